"""Tests of edits during which a caller's code runs, and edits the graph itself."""

import weakref

import pytest

from stagedad import types
from stagedad.errors import StaleHandle
from stagedad.ir import Graph, _verify
from stagedad.types import TensorType

WHOLE = [
    _verify.check_ring,
    _verify.check_blocks,
    _verify.check_use_lists,
    _verify.check_outputs,
    _verify.check_names,
]


class Meddler(list):
    """A list, for an attribute, that edits a graph when it is read."""

    def __init__(self, edit):
        super().__init__()
        self.edit = edit

    def __iter__(self):
        edit, self.edit = self.edit, lambda: None
        edit()
        return iter((1, 2))


class Map(dict):
    """A map of values that edits a graph when it is read."""

    def __init__(self, edit, value):
        self.edit, self.value = edit, value

    def __getitem__(self, key):
        edit, self.edit = self.edit, lambda: None
        edit()
        return self.value


@pytest.fixture
def chain():
    """y = f(x), and x."""
    graph = Graph()
    x = graph.add_input("f64[3]")
    return graph, x, graph.insert("f", x)


def whole(graph):
    for check in WHOLE:
        check(graph)
    graph.verify()


@pytest.mark.parametrize("edit", ["destroy", "take_over"])
def test_operands_that_die_while_attributes_are_read(chain, edit):
    graph, _, y = chain
    taken = []
    given = Meddler(
        y.node.destroy if edit == "destroy" else lambda: taken.append(graph.take_over())
    )
    with pytest.raises(StaleHandle):
        graph.insert("g", y, x=given)
    for each in taken or [graph]:
        whole(each)


@pytest.mark.parametrize("edit", ["destroy", "take_over"])
def test_a_node_that_dies_while_its_attributes_are_set(chain, edit):
    graph, _, y = chain
    taken, node = [], y.node

    def destroy():
        node.destroy()
        graph.insert("h")  # takes its place

    given = Meddler(destroy if edit == "destroy" else lambda: taken.append(graph.take_over()))
    with pytest.raises(StaleHandle):
        node.attributes["x"] = given
    for each in taken or [graph]:
        whole(each)
        assert all(not each.attributes for each in each.nodes())


@pytest.mark.parametrize("edit", ["destroy", "take_over"])
def test_a_node_that_dies_while_it_is_cloned(chain, edit):
    graph, _, y = chain
    other, taken, node = Graph(), [], y.node
    end = node.destroy if edit == "destroy" else lambda: taken.append(graph.take_over())
    with pytest.raises(StaleHandle):
        node.clone_into(other, Map(end, other.add_input()))
    assert len(other) == 0
    whole(other)


def test_a_graph_that_is_consumed_while_it_is_inlined(chain):
    source, *_ = chain
    graph = Graph()
    x = graph.add_input()
    taken = []

    def values():
        taken.append(source.take_over())
        yield x

    with pytest.raises(StaleHandle):
        graph.inline(source, values())
    assert len(graph) == 0
    whole(taken[0])


def test_the_graph_that_nodes_go_to_is_consumed_meanwhile(chain):
    source, *_ = chain
    graph = Graph()
    x = graph.add_input()

    def values():
        graph.take_over()
        yield x

    with pytest.raises(StaleHandle):
        graph.inline(source, values())


@pytest.mark.parametrize("what", ["value", "input of a block", "attribute"])
def test_a_graph_grows_while_a_node_is_freed(what):
    graph, size = Graph(), 987_654
    node = graph.insert("f").node
    type_ = TensorType("float64", (size,))
    if what == "value":
        node.output.type = type_
    elif what == "attribute":
        node.attributes["x"] = type_
    else:
        node.add_block().add_input(type_)
    ended = []

    def grow():
        ended.append(size)
        for _ in range(50_000):
            graph.insert("f").node.add_block()

    weakref.finalize(type_, grow)
    del type_
    types._recent.clear()
    node.destroy()
    assert ended == [size]
    whole(graph)
    assert len(graph) == 50_000
