"""Instructions executed by a call, counted by callgrind: figures that do not depend on load.

    python bench/instructions.py             # every call
    python bench/instructions.py chain grad  # those with one of these words in their names

Needs valgrind; says so where it is missing.  What is counted is the whole call, from Python's
loop to its result.  A count says nothing of caches and little of time: one instruction of
NumPy's loops does four numbers.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # last: an installed stagedad comes first

CALLS = 200
"""Calls of one kind that are counted together."""

MARK = "getsid"
"""A system call that nothing else here makes: callgrind writes its counts whenever it is."""

SMALL = {"chain": 16, "rosenbrock": 10, "logistic": 50, "mlp": 1}


def works() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the calls: of functions that do next to nothing, then of the small rows."""
    import numpy

    import stagedad as sd
    from bench.rows import ROWS

    x, y = numpy.linspace(0.1, 1, 3), numpy.ones(3)
    scale, shift, power, name = numpy.ones(3), 2.0, 3, "text"

    def square(x: Any) -> Any:
        return numpy.sum(x * x)

    def closure(x: Any) -> Any:
        return numpy.sum(x * scale * shift + power * len(name))

    def entries(parameters: Any) -> Any:
        return numpy.sum(parameters["w"] * parameters["b"])

    yield "a call of a Python function", lambda: None
    identity = sd.compile(sd.trace(lambda x: x, x))
    yield "program: one copy", lambda: identity(x)
    program = sd.compile(sd.trace(square, x))
    yield "program: square and sum", lambda: program(x)
    inputs, outputs = (x,), (numpy.empty(()),)
    yield "program.run: square and sum", lambda: program.run(inputs, outputs)
    for label, transform in (
        ("jit", sd.jit),
        ("grad", sd.grad),
        ("value_and_grad", sd.value_and_grad),
    ):
        yield f"{label}: square and sum", _bound(transform(square), x)
    yield "value_and_grad: closure of four cells", _bound(sd.value_and_grad(closure), x)
    yield "value_and_grad: a dict", _bound(sd.value_and_grad(entries), {"w": x, "b": y})
    yield "value_and_grad: a float", _bound(sd.value_and_grad(lambda x: x * x), 2.0)
    weighted = sd.value_and_grad(lambda x, *, weights: numpy.sum(x * weights))
    yield "value_and_grad: a keyword", lambda: weighted(x, weights=y)
    shapes = sd.value_and_grad(square)
    long = numpy.linspace(0.1, 1, 5)
    yield "value_and_grad: two shapes in turn", lambda: (shapes(x), shapes(long))
    for row_name, size in SMALL.items():
        row = ROWS[row_name]
        yield f"row {row_name} {size}: transform", row.step(size)
        yield f"row {row_name} {size}: program.run", row.step(size, "stagedad buffers")


def _bound(function: Callable[..., Any], *args: Any) -> Callable[[], object]:
    return lambda: function(*args)


def count(words: list[str]) -> None:
    """Make the calls between marks; runs under callgrind."""
    gc.disable()
    chosen = [("nothing", lambda: None)] + [
        (name, work) for name, work in works() if not words or any(w in name for w in words)
    ]
    for name, work in chosen:
        for _ in repeat(None, 3):
            work()
        os.getsid(0)
        for _ in repeat(None, CALLS):
            work()
        os.getsid(0)
        print(name, flush=True)


def main() -> int:
    """Print instructions a call, and how many more than a call of a Python function."""
    words = sys.argv[1:]
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
             f"--dump-before={MARK}", sys.executable, __file__, "--count", *words],
            capture_output=True, text=True, check=False, env=_environment(),
        )  # fmt: skip
        if run.returncode != 0:
            print(run.stderr[-4000:], file=sys.stderr)
            return 1
        dumps = sorted(
            Path(folder).glob("callgrind.out.*"), key=lambda path: int(path.suffix[1:])
        )
        totals = [_total(path) for path in dumps]
    names = run.stdout.strip().split("\n")
    counts = totals[-2 * len(names) :][1::2]  # between two marks; before them are warm-ups
    floor = counts[0]
    print("| call | instructions | beyond a call of Python |\n|---|---|---|")
    for name, total in zip(names[1:], counts[1:], strict=True):
        print(f"| {name} | {total / CALLS:,.0f} | {(total - floor) / CALLS:,.0f} |")
    return 0


def _total(dump: Path) -> int:
    """Return the instructions between the mark before `dump` and that before it."""
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"callgrind: no total in {dump}")
    return int(found[1])


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--count"]:
        count(sys.argv[2:])
    else:
        sys.exit(main())
