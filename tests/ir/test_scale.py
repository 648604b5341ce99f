"""Tests of graphs of many nodes: nothing is recursive. Counts only, no times."""

import os
import weakref

import numpy as np
import pytest

from stagedad.ir import Graph, live_graph_count, parse_graph
from stagedad.transform import cse, dce, differentiate

SOAK = bool(os.environ.get("STAGEDAD_SOAK"))
MILLION = 1_000_000
# Where text is involved or a pass runs, and is verified after.
LENGTH = MILLION if SOAK else 100_000

pytestmark = pytest.mark.usefixtures("shallow_stack")


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


def mixed(length):
    """v -> mul(tanh(v), x) -> ..., over and over, of `length` nodes."""
    graph = Graph()
    x = value = graph.add_input("f64[]")
    for _ in range(length // 2):
        value = graph.insert("mul", graph.insert("tanh", value), x)
    graph.register_output(value)
    return graph


@pytest.fixture(scope="module")
def million():
    return mixed(MILLION)


def test_a_million_nodes_take_200_bytes_each(million):
    assert len(million) == MILLION
    assert million.memory() <= 200 * MILLION
    million.verify()
    assert sum(1 for _ in million.nodes()) == sum(1 for _ in reversed(million)) == MILLION
    assert sum(1 for _ in million.nodes(nested=True)) == MILLION


def test_a_million_nodes_are_copied_inlined_and_freed(million):
    before = live_graph_count()
    twin = million.copy()
    assert len(twin) == MILLION
    assert twin.memory() <= 200 * MILLION
    twin.inline(million, twin.inputs)
    assert len(twin) == 2 * MILLION
    assert twin.memory() <= 2 * 200 * MILLION
    del twin
    assert live_graph_count() == before


def test_the_cost_of_differentiating_does_not_grow():
    def sizes(graph):
        gradient = differentiate(graph, [True])
        return len(gradient.f), len(gradient.df), len(gradient.df_input_captures)

    one, two = sizes(mixed(1000)), sizes(mixed(2000))
    # Every thousand nodes more cost the same.
    wanted = [a + (b - a) * (LENGTH // 1000 - 1) for a, b in zip(one, two, strict=True)]
    assert list(sizes(mixed(LENGTH))) == wanted


def test_many_nodes_are_swept():
    source = mixed(LENGTH)
    graph = source.copy()
    assert not dce(graph)
    assert not cse(graph)
    graph.register_output(*graph.inline(source, graph.inputs))
    assert cse(graph)
    assert dce(graph)
    assert len(graph) == LENGTH
    assert graph.outputs[0] == graph.outputs[1]
    graph.outputs[0].replace_all_uses_with(graph.inputs[0])
    assert dce(graph)
    assert len(graph) == 0


def test_edits_of_a_million_nodes_leave_no_room_behind():
    graph = mixed(MILLION)
    before = graph.memory()
    for _ in range(2):
        graph.outputs[0].replace_all_uses_with(graph.inputs[0])
        dce(graph)
        value = graph.inputs[0]
        for _ in range(MILLION // 2):
            value = graph.insert("mul", graph.insert("tanh", value), graph.inputs[0])
        graph.erase_output(0)
        graph.register_output(value)
    assert graph.memory() == before


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
