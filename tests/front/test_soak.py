"""Nothing is left over: thousands of functions traced, differentiated, run and forgotten."""

import gc
import os
import sys

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import live_graph_count
from stagedad.run import live_counts

SOAK = bool(os.environ.get("STAGEDAD_SOAK"))
CYCLES = 100_000 if SOAK else 1_000
WARM_UP = 200


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "0")


def forward_and_back(i):
    """One function that nobody has seen, by all the ways there are to run it."""
    scale, held = float(i), np.linspace(0, 1, 3 + i % 5)

    def function(x, more):
        for _ in range(3):
            x = np.sin(x) * scale + held
        return np.sum(x[1:] * x[:-1]) + np.sum(more["b"][0])

    x, more = np.linspace(-1, 1, held.size), {"b": [held, i % 3 == 0]}
    value, gradient = sd.value_and_grad(function)(x, more)
    assert gradient.shape == x.shape
    graph = sd.trace(function, x, more)
    pair = sd.compile(sd.differentiate(graph, [True, False]))
    outputs, pull = pair(x, held)
    np.testing.assert_allclose(outputs[0], value, rtol=1e-12)
    np.testing.assert_allclose(pull(1.0)[0], gradient, rtol=1e-12)
    _, pull = sd.vjp(lambda x: function(x, more), x)
    np.testing.assert_allclose(pull(1.0)[0], gradient, rtol=1e-12)
    with pytest.raises(sd.errors.StagedadError):
        sd.jit(lambda x: float(x))(x)


def counted():
    """What is alive, by kind, once the collector has been, and for what its finalisers left."""
    gc.collect()
    gc.collect()
    found = {**live_counts(), "graphs": live_graph_count(), "objects": len(gc.get_objects())}
    return found, sys.getallocatedblocks(), resident()


def resident():
    """Bytes of memory that the process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@pytest.mark.slow
def test_nothing_is_left_over():
    for i in range(WARM_UP):
        forward_and_back(i)
    before, blocks, memory = counted()
    for i in range(WARM_UP, WARM_UP + CYCLES):
        forward_and_back(i)
    after, blocks_after, memory_after = counted()
    objects = after.pop("objects") - before.pop("objects")
    assert after == before
    # Free lists and caches breathe, by numbers that do not grow with the cycles; what earlier
    # tests left may go meanwhile.
    assert objects < 200
    assert blocks_after - blocks < 2_000
    assert memory_after - memory < 16 << 20


def test_calls_leave_nothing_over():
    step = sd.value_and_grad(lambda d, n: np.sum(d["x"] ** 2) * n)
    calls = [({"x": np.ones(n)}, float(n)) for n in range(1, 12)]
    for call in calls * 3:
        step(*call)
    before, blocks, _ = counted()
    for _ in range(CYCLES // 10):
        for call in calls:
            step(*call)
    after, blocks_after, _ = counted()
    assert after.pop("objects") - before.pop("objects") < 20
    assert after == before
    assert blocks_after - blocks < 200
