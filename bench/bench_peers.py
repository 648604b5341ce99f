"""The rows in every library side by side: value and gradient, grouped by row and size.

Missing peers are skipped by name. `python bench/report.py` times the same steps interleaved,
which is what figures are quoted from: here each peer runs alone and the machine drifts.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench import peers
from bench.agree import difference
from bench.rows import ROWS, Row

CELLS = [(row, size) for row in ROWS.values() for size in row.sizes]
NAMES = [f"{row.name}-{size}" for row, size in CELLS]


@pytest.mark.parametrize("peer", peers.PEERS)
@pytest.mark.parametrize(("row", "size"), CELLS, ids=NAMES)
def bench_step(benchmark: Any, row: Row, size: int, peer: str) -> None:
    """Checked against the gradient written by hand before it is timed."""
    try:
        step = peers.load(peer)(row, size)
    except peers.Missing as missing:
        pytest.skip(str(missing))
    benchmark.group = f"{row.name} {size}"
    got, expected = step(), peers.load("numpy")(row, size)()
    if peer == "numpy f":
        got, expected = (got,), expected[:1]
    wrong = difference(row.arguments(size)[0].dtype, got, expected)
    assert wrong is None, f"{peer}: {wrong}"
    benchmark(step)
