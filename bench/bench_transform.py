"""transform/: from a graph to its pair, and the passes, by the length of the graph."""

from __future__ import annotations

from typing import Any

import pytest

import stagedad as sd
from bench import graphs

NODES = [1_000, 10_000, 100_000]


@pytest.mark.benchmark(group="transform: differentiate")
@pytest.mark.parametrize("nodes", NODES)
def bench_differentiate(benchmark: Any, nodes: int) -> None:
    """O(nodes): 3 us a forward node is the aim, at every length."""
    graph = graphs.chain(nodes)
    benchmark.pedantic(sd.differentiate, (graph, [True, True]), rounds=5, warmup_rounds=1)


@pytest.mark.benchmark(group="transform: passes")
@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("name", ["dce", "cse"])
def bench_pass(benchmark: Any, name: str, nodes: int) -> None:
    """O(nodes) on a graph where the pass finds nothing to do."""
    benchmark.pedantic(
        getattr(sd, name), setup=lambda: ((graphs.chain(nodes),), {}), rounds=5, warmup_rounds=1
    )
