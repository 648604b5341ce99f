"""Tests of graphs of many nodes: nothing is recursive. Counts only, no times."""

import sys
import weakref

import numpy as np
import pytest

from stagedad.ir import Graph, live_graph_count, parse_graph
from stagedad.transform import cse, dce, differentiate

LENGTH = 100_000


@pytest.fixture(autouse=True)
def shallow_stack():
    """Leave little room to recurse, so that a recursion is an error, not a matter of luck."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 150)
    yield
    sys.setrecursionlimit(limit)


def chain(length=LENGTH, kind="tanh"):
    """A chain: x -> tanh(x) -> tanh(tanh(x)) -> ..."""
    graph = Graph()
    value = graph.add_input("f64[]")
    for _ in range(length):
        value = graph.insert(kind, value)
    graph.register_output(value)
    return graph


@pytest.fixture(scope="module")
def long():
    return chain()


def test_a_long_chain_is_built_and_verified(long):
    assert len(long) == LENGTH
    long.verify()
    assert sum(1 for _ in long.nodes()) == sum(1 for _ in reversed(long)) == LENGTH


def test_a_long_chain_is_copied_and_compared(long):
    twin = long.copy()
    assert len(twin) == LENGTH
    assert twin == long
    assert twin.fingerprint() == long.fingerprint()


def test_a_long_chain_is_printed_and_parsed(long):
    text = str(long)
    assert len(text.splitlines()) == LENGTH + 3
    parsed = parse_graph(text)
    assert len(parsed) == LENGTH
    assert parsed == long


def test_a_long_chain_is_differentiated(long):
    gradient = differentiate(long, [True])
    assert len(gradient.f) == LENGTH
    assert len(gradient.df_input_captures) == LENGTH
    gradient.df.verify()
    # A fixed number of nodes each, and not one captured value too many.
    assert len(gradient.df) <= 8 * LENGTH
    assert gradient.df_output_vjps == [0]


def test_a_long_linear_chain_saves_nothing():
    gradient = differentiate(chain(kind="neg"), [True])
    assert len(gradient.df) == LENGTH
    assert list(gradient.df_input_captures) == []


def test_a_long_dead_chain_is_removed():
    graph = chain()
    x = graph.inputs[0]
    graph.outputs[0].replace_all_uses_with(x)
    assert dce(graph)
    assert len(graph) == 0
    assert x.uses[0].user.kind == "return"
    assert not dce(graph)


def test_twin_chains_are_merged():
    graph = Graph()
    one = two = graph.add_input("f64[]")
    for _ in range(LENGTH // 2):
        one, two = graph.insert("tanh", one), graph.insert("tanh", two)
    graph.register_output(graph.insert("mul", one, two))
    cse(graph)
    dce(graph)
    assert len(graph) == LENGTH // 2 + 1
    graph.verify()


def test_a_long_chain_is_freed():
    before = live_graph_count()
    graph = chain()
    gone, last = weakref.ref(graph), graph.outputs[0]
    del graph
    assert last.node.kind == "tanh"
    del last
    assert gone() is None
    assert live_graph_count() == before


def test_a_value_with_many_uses_is_replaced():
    graph = Graph()
    old, new = graph.add_input("f64[]"), graph.add_input("f64[]")
    for _ in range(LENGTH):
        graph.insert("neg", old)
    old.replace_all_uses_with(new)
    assert old.uses == ()
    assert len(new.uses) == LENGTH
    for node in graph.nodes():
        node.destroy()
    assert new.uses == ()
    assert len(graph) == 0


def test_a_node_with_many_operands():
    graph = Graph()
    values = [graph.add_input() for _ in range(2000)]
    node = graph.insert("f", *values, *values).node
    assert node.inputs == (*values, *values)
    node.remove_input(0)
    assert node.inputs == (*values[1:], *values)
    graph.verify()


def test_moving_a_node_across_a_long_chain():
    graph = chain(2_000)
    nodes = list(graph.nodes())
    assert not nodes[0].move_after(nodes[-1], check=True)
    assert not nodes[-1].move_before(nodes[0], check=True)
    free = graph.insert("neg", graph.inputs[0]).node
    assert free.move_before(nodes[0], check=True)
    assert free.move_after(nodes[-1], check=True)
    graph.verify()


def test_many_constants():
    graph = Graph()
    arrays = [np.full(17, float(i)) for i in range(1000)]
    total = graph.constant(arrays[0])
    for array in arrays[1:]:
        total = graph.insert("add", total, graph.constant(array))
    graph.register_output(total)
    assert len(graph.constants) == 1000
    assert parse_graph(str(graph), constants=graph.constants) == graph
