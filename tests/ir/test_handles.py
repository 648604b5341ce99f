"""Tests of ir/_graph: handles of nodes and values."""

import gc
import weakref

import pytest

from stagedad.errors import ForeignValue, StagedadError, StaleHandle
from stagedad.ir import Graph, live_graph_count


@pytest.fixture
def chain():
    """Two nodes: y = f(x); z = g(y)."""
    graph = Graph()
    x = graph.add_input()
    y = graph.insert("f", x)
    z = graph.insert("g", y)
    return graph, x, y, z


def test_handles_compare_by_what_they_name(chain):
    graph, x, y, z = chain
    assert graph.inputs[0] == x
    assert z.node.inputs[0] == y
    assert y.node == y.uses[0].user.inputs[0].node
    assert y != z
    assert y.node != z.node
    assert y != y.node
    assert x != "x"


def test_handles_hash_by_what_they_name(chain):
    graph, x, y, z = chain
    names = {x: "x", y: "y", z: "z", y.node: "f", z.node: "g"}
    assert names[graph.inputs[0]] == "x"
    assert names[z.node.inputs[0]] == "y"
    assert [names[node] for node in graph.nodes()] == ["f", "g"]
    assert len(names) == 5


def test_handles_of_two_graphs_differ():
    one, two = Graph(), Graph()
    assert one.add_input() != two.add_input()
    assert one.insert("f").node != two.insert("f").node


def test_a_graph_is_unhashable(chain):
    with pytest.raises(TypeError, match="unhashable"):
        hash(chain[0])


def test_a_handle_keeps_its_graph_alive():
    def value():
        graph = Graph()
        x = graph.add_input("f64[3]")
        return graph.insert("neg", x)

    y = value()
    gc.collect()
    assert y.node.kind == "neg"
    assert str(y.node.inputs[0].type) == "f64[3]"
    node = y.node
    del y
    assert node.graph.inputs == node.inputs


def test_a_graph_goes_with_its_last_handle():
    gc.collect()
    before = live_graph_count()
    graph = Graph()
    y = graph.insert("f", graph.add_input())
    node, use = y.node, graph.inputs[0].uses[0]
    gone = weakref.ref(graph)
    gc.disable()  # reference counts alone must do it
    try:
        del graph
        assert live_graph_count() == before + 1
        del y, node
        assert gone() is not None
        del use
        assert gone() is None
        assert live_graph_count() == before
    finally:
        gc.enable()


def test_handles_support_weak_references(chain):
    graph, x, y, _ = chain
    node = y.node
    for handle in (graph, x, node):
        assert weakref.ref(handle)() is handle
    held = weakref.WeakKeyDictionary({x: 1, node: 2})
    assert held[graph.inputs[0]] == 1
    assert held[y.node] == 2


def test_a_dead_handle_does_not_kill_what_it_named(chain):
    graph, x, *_ = chain
    gone = weakref.ref(x)
    identity = x.id
    del x, chain
    assert gone() is None or gone().id == identity
    assert graph.inputs[0].id == identity


ON_NODE = {
    "kind": lambda node: node.kind,
    "inputs": lambda node: node.inputs,
    "outputs": lambda node: node.outputs,
    "output": lambda node: node.output,
    "stage": lambda node: node.stage,
    "attributes": lambda node: dict(node.attributes),
    "scope": lambda node: node.scope,
    "location": lambda node: node.location,
    "blocks": lambda node: node.blocks,
    "has_uses": lambda node: node.has_uses(),
    "destroy": lambda node: node.destroy(),
    "add_output": lambda node: node.add_output(),
    "erase_output": lambda node: node.erase_output(0),
    "remove_all_inputs": lambda node: node.remove_all_inputs(),
    "remove_input": lambda node: node.remove_input(0),
    "add_input": lambda node: node.add_input(node.graph.inputs[0]),
}

ON_VALUE = {
    "type": lambda value: value.type,
    "node": lambda value: value.node,
    "offset": lambda value: value.offset,
    "uses": lambda value: value.uses,
    "name": lambda value: value.name,
    "stage": lambda value: value.stage,
    "set type": lambda value: setattr(value, "type", "f64[]"),
    "set name": lambda value: setattr(value, "name", "n"),
    "replace": lambda value: value.replace_all_uses_with(value),
}


@pytest.mark.parametrize("call", ON_NODE.values(), ids=ON_NODE.keys())
def test_a_stale_node_raises(chain, call):
    graph, *_, z = chain
    node = z.node
    node.destroy()
    graph.insert("again", graph.inputs[0])  # whatever took the place is not what was named
    with pytest.raises(StaleHandle):
        call(node)
    graph.verify()


@pytest.mark.parametrize("call", ON_VALUE.values(), ids=ON_VALUE.keys())
def test_a_stale_value_raises(chain, call):
    graph, *_, z = chain
    z.node.destroy()
    graph.insert("again", graph.inputs[0])
    with pytest.raises(StaleHandle):
        call(z)
    graph.verify()


def test_stale_arguments_raise(chain):
    graph, x, y, z = chain
    gone = z.node
    gone.destroy()
    other = graph.insert("again", x).node
    for call in (
        lambda: graph.insert("f", z),
        lambda: graph.create("f", x, z),
        lambda: graph.register_output(z),
        lambda: graph.append(gone),
        lambda: other.add_input(z),
        lambda: other.replace_input(0, z),
        lambda: other.replace_input_with(x, z),
        lambda: x.replace_all_uses_with(z),
        lambda: other.move_before(gone),
        lambda: other.move_after(gone, check=True),
        lambda: other.is_before(gone),
        lambda: graph.create("f").insert_after(gone),
    ):
        before = str(graph)
        with pytest.raises(StaleHandle):
            call()
        assert str(graph) == before
    assert y.uses == ()
    graph.verify()


def test_erasing_an_output_makes_its_handle_stale():
    graph = Graph()
    one, two = graph.insert("f", outputs=2)
    one.node.erase_output(0)
    with pytest.raises(StaleHandle):
        _ = one.offset
    assert two.offset == 0


def test_a_stale_handle_is_a_reference_error(chain):
    *_, z = chain
    z.node.destroy()
    with pytest.raises(ReferenceError):
        _ = z.uses
    with pytest.raises(StagedadError):
        _ = z.uses


def test_stale_handles_still_compare_hash_and_print(chain):
    graph, _, y, z = chain
    node, names = z.node, {z: "z", z.node: "g"}
    node.destroy()
    again = graph.insert("again", y)
    assert names[z] == "z"
    assert names[node] == "g"
    assert z == z
    assert again != z
    assert again.node != node
    assert repr(z)
    assert repr(node)


def test_destroyed_places_are_used_again_without_confusion():
    graph, stale = Graph(), []
    for _ in range(1000):
        value = graph.insert("f")
        stale.append(value)
        value.node.destroy()
    alive = graph.insert("f")
    assert alive not in stale
    assert len(set(stale)) == 1000
    for value in stale:
        with pytest.raises(StaleHandle):
            _ = value.node


def test_values_of_another_graph_are_refused(chain):
    graph, x, y, z = chain
    other = Graph()
    foreign = other.add_input()
    there = other.insert("h", foreign).node
    calls = (
        lambda: graph.insert("f", foreign),
        lambda: graph.insert("f", x, foreign),
        lambda: graph.create("f", x, foreign),
        lambda: graph.register_output(foreign),
        lambda: graph.append(other.create("f")),
        lambda: z.node.add_input(foreign),
        lambda: z.node.replace_input(0, foreign),
        lambda: z.node.replace_input_with(y, foreign),
        lambda: y.replace_all_uses_with(foreign),
        lambda: z.node.move_before(there),
        lambda: z.node.move_after(there),
        lambda: z.node.move_after(there, check=True),
        lambda: graph.create("f").insert_before(there),
        lambda: graph.create("f").insert_after(there),
    )
    for call in calls:
        with pytest.raises(ForeignValue):
            call()
    assert z.node.inputs == (y,)
    assert [use.user for use in y.uses] == [z.node]
    assert [use.user for use in foreign.uses] == [there]
    assert len(graph) == 2
    graph.verify()
    other.verify()


def test_a_foreign_value_is_a_value_error(chain):
    graph, *_ = chain
    with pytest.raises(ValueError, match="another graph"):
        graph.insert("f", Graph().add_input())


def test_comparing_the_order_across_graphs_is_refused(chain):
    *_, z = chain
    with pytest.raises(ForeignValue):
        z.node.is_before(Graph().insert("f").node)


def test_a_foreign_exception_to_replacing_is_refused(chain):
    _, x, y, _ = chain
    with pytest.raises(ForeignValue):
        y.replace_all_uses_with(x, except_=Graph().insert("f").node)
