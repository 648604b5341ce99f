"""ir/: the cost of building a graph, rewiring it, printing it and letting it go."""

from __future__ import annotations

from typing import Any

import pytest

import stagedad as sd
from bench import graphs

NODES = [1_000, 10_000, 100_000]


@pytest.mark.benchmark(group="ir: create")
@pytest.mark.parametrize("nodes", NODES)
def bench_create(benchmark: Any, nodes: int) -> None:
    """O(nodes), types inferred: 0.4 us a node is the aim."""
    benchmark.pedantic(graphs.chain, (nodes,), rounds=10, warmup_rounds=1)


@pytest.mark.benchmark(group="ir: free")
@pytest.mark.parametrize("nodes", NODES)
def bench_free(benchmark: Any, nodes: int) -> None:
    """O(nodes) without recursion: 0.1 us a node is the aim."""
    benchmark.pedantic(
        list.clear, setup=lambda: (([graphs.chain(nodes)],), {}), rounds=10, warmup_rounds=1
    )


@pytest.mark.benchmark(group="ir: replace_all_uses_with")
@pytest.mark.parametrize("width", [10, 1_000, 100_000])
def bench_replace_all_uses(benchmark: Any, width: int) -> None:
    """O(uses): a tenfold width should cost ten times as much, no more."""
    benchmark.pedantic(
        lambda _graph, old, new: old.replace_all_uses_with(new),
        setup=lambda: (graphs.fan_out(width), {}),
        rounds=10,
    )


@pytest.mark.benchmark(group="ir: copy")
@pytest.mark.parametrize("nodes", NODES)
def bench_copy(benchmark: Any, nodes: int) -> None:
    """O(nodes)."""
    graph = graphs.chain(nodes)
    benchmark.pedantic(graph.copy, rounds=10, warmup_rounds=1)


@pytest.mark.benchmark(group="ir: walk")
@pytest.mark.parametrize("nodes", NODES)
def bench_walk(benchmark: Any, nodes: int) -> None:
    """O(nodes): a handle made for each, and its operands read."""
    graph = graphs.chain(nodes)
    benchmark.pedantic(
        lambda: sum(len(node.inputs) for node in graph.nodes()), rounds=10, warmup_rounds=1
    )


@pytest.mark.benchmark(group="ir: text")
@pytest.mark.parametrize("nodes", NODES[:2])
def bench_text(benchmark: Any, nodes: int) -> None:
    """O(nodes)."""
    graph = graphs.chain(nodes)
    benchmark.pedantic(str, (graph,), rounds=10, warmup_rounds=1)


@pytest.mark.benchmark(group="ir: parse")
@pytest.mark.parametrize("nodes", NODES[:2])
def bench_parse(benchmark: Any, nodes: int) -> None:
    """O(characters)."""
    text = str(graphs.chain(nodes))
    benchmark.pedantic(sd.parse_graph, (text,), rounds=10, warmup_rounds=1)
