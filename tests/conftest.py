"""What every test shares: checks turned on, and how many random examples are tried."""

import gc
import os

# Before stagedad is imported: verify graphs after every pass, poison dead buffers.
os.environ.setdefault("STAGEDAD_CHECK", "1")
# `python -c` in a test sees the installed package as well, not the folder it is called in.
os.environ["PYTHONSAFEPATH"] = "1"

import pytest
from hypothesis import settings

import stagedad.ir
import stagedad.run
from stagedad.ops.registry import load_scipy

# Where SciPy is installed, its ops are under every test that goes over the table.
load_scipy()

# Fixed seeds, so that a failure is the change's own; no deadline, since machines are shared.
settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("STAGEDAD_SOAK") else "test")


# In a debug build no handle and no run may outlive the module whose tests made it.  Fixtures
# and parameters are gone only when the protocol of the last test has ended.
_left: list[str] = []
_before: dict[str, dict[str, int]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    module = item.nodeid.partition("::")[0]
    if stagedad.ir.live_handle_count() is None:
        return (yield)
    _before.setdefault(module, alive())
    result = yield
    if nextitem is None or nextitem.nodeid.partition("::")[0] != module:
        found = alive()
        if found != _before[module]:
            _left.append(f"{module}: {_before[module]} before, {found} after")
    return result


def pytest_sessionfinish(session):
    if _left:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    for line in _left:
        terminalreporter.write_line(f"LEFT OVER {line}", red=True)


def alive():
    """Count what lives, by kind."""
    gc.collect()
    busy = stagedad.run.live_counts()["busy_arenas"]
    return {"handles": stagedad.ir.live_handle_count(), "busy_arenas": busy}
