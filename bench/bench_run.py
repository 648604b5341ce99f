"""plan/ and run/: planning a program, and running one that is planned."""

from __future__ import annotations

from typing import Any

import pytest

import stagedad as sd
from bench import graphs, peers
from bench.rows import ROWS, Row

CELLS = [(row, size) for row in ROWS.values() for size in row.sizes]
NAMES = [f"{row.name}-{size}" for row, size in CELLS]


@pytest.mark.benchmark(group="plan: compile and run once")
@pytest.mark.parametrize("nodes", [100, 1_000, 10_000])
def bench_plan(benchmark: Any, nodes: int) -> None:
    """O(nodes): microseconds an instruction. The first run is what plans."""
    import numpy as np

    gradient = sd.differentiate(graphs.chain(nodes), [True, True])
    arrays = [np.full(16, 0.25), np.full(16, 0.5), np.ones(16)]
    benchmark.pedantic(lambda: sd.compile(gradient).joint(*arrays), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("door", ["stagedad joint", "stagedad buffers"])
@pytest.mark.parametrize(("row", "size"), CELLS, ids=NAMES)
def bench_joint(benchmark: Any, row: Row, size: int, door: str) -> None:
    """One run of the planned value and gradient: with fresh results, and into buffers."""
    benchmark.group = f"run: {row.name} {size}"
    step = peers.load(door)(row, size)
    step()
    benchmark(step)
