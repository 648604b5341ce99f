"""Tests of ir/_graph: the attributes of a node."""

import enum
from collections.abc import Mapping

import numpy as np
import pytest

from stagedad.errors import ParseError
from stagedad.ir import Graph, parse_graph


@pytest.fixture
def node():
    """A node of an unknown kind with a float, an integer and a text."""
    graph = Graph()
    node = graph.create("f", one=3.4, two=5, three="what")
    graph.append(node)
    return node


def test_reads_back_what_was_set(node):
    assert isinstance(node.attributes, Mapping)
    assert node.attributes["one"] == 3.4
    assert node.attributes["two"] == 5
    assert node.attributes["three"] == "what"
    assert dict(node.attributes) == {"one": 3.4, "two": 5, "three": "what"}
    assert len(node.attributes) == 3


def test_overwrites_whatever_type_it_was(node):
    node.attributes["three"] = "no"
    node.attributes["two"] = ("hi", "now")
    assert node.attributes["three"] == "no"
    assert node.attributes["two"] == ("hi", "now")
    assert list(node.attributes) == ["one", "two", "three"]


def test_tells_what_is_there(node):
    assert "three" in node.attributes
    assert "four" not in node.attributes
    assert node.attributes.get("four") is None
    with pytest.raises(KeyError):
        _ = node.attributes["four"]


def test_keeps_the_order(node):
    node.attributes["four"] = 4
    assert list(node.attributes) == ["one", "two", "three", "four"]
    del node.attributes["two"]
    assert list(node.attributes) == ["one", "three", "four"]


def test_a_copy_is_independent(node):
    graph = node.graph.copy()
    (copy,) = graph.nodes()
    assert dict(copy.attributes) == dict(node.attributes)
    copy.attributes["one"] = 1.0
    assert node.attributes["one"] == 3.4
    node.attributes["two"] = 2
    assert copy.attributes["two"] == 5


def test_a_clone_is_independent(node):
    other = Graph()
    clone = node.clone_into(other, {})
    clone.attributes["one"] = 1.0
    clone.attributes["five"] = 5
    assert dict(node.attributes) == {"one": 3.4, "two": 5, "three": "what"}


def test_an_attribute_does_not_change_with_the_list_it_came_from(node):
    given = [1, 2]
    node.attributes["two"] = given
    given.append(3)
    assert list(node.attributes["two"]) == [1, 2]


def test_a_copy_shares_no_list(node):
    node.attributes["two"] = [1, 2]
    (copy,) = node.graph.copy().nodes()
    value = copy.attributes["two"]
    if isinstance(value, list):
        value.append(3)
    assert list(node.attributes["two"]) == [1, 2]


def test_declared_defaults_show():
    graph = Graph()
    a = graph.add_input("f64[2]")
    added = graph.insert("add", a, a).node
    assert dict(added.attributes) == {"alpha": 1}
    total = graph.insert("sum", a).node
    assert dict(total.attributes) == {"axis": None, "keepdims": False}
    assert "sum(" in str(graph)
    assert "add(" in str(graph)


def test_a_default_that_is_set_is_no_difference():
    one, two = Graph(), Graph()
    for graph, attributes in ((one, {}), (two, {"alpha": 1})):
        a = graph.add_input("f64[2]")
        graph.register_output(graph.insert("add", a, a, **attributes))
    assert one == two
    assert one.fingerprint() == two.fingerprint()
    assert str(one) == str(two)


def test_alpha_is_kept():
    graph = Graph()
    a = graph.add_input("f64[2]")
    node = graph.insert("sub", a, a, alpha=2.5).node
    assert node.attributes["alpha"] == 2.5
    assert "sub[alpha=2.5](" in str(graph)


def test_unknown_names_are_refused_on_known_kinds():
    graph = Graph()
    a = graph.add_input("f64[2]")
    node = graph.insert("sum", a).node
    with pytest.raises((TypeError, KeyError, ValueError), match="keepdim"):
        node.attributes["keepdim"] = True
    graph.verify()


@pytest.mark.parametrize(
    "value", [object(), lambda: 0, {1: object()}, slice(1, 2), {1}, [object()], Ellipsis]
)
def test_values_without_a_text_form_are_refused(node, value):
    before = str(node.graph)
    with pytest.raises((TypeError, ValueError)):
        node.attributes["one"] = value
    with pytest.raises((TypeError, ValueError)):
        node.graph.insert("g", x=value)
    assert str(node.graph) == before


@pytest.mark.parametrize("name", ["a b", "a=1", "", "1a", "a]"])
def test_names_that_could_not_be_read_back_are_refused(node, name):
    with pytest.raises((TypeError, ValueError, KeyError)):
        node.attributes[name] = 1


@pytest.mark.parametrize(
    "value",
    [
        True, False, None, 0, -3, 10**30, 2.5, -0.0, 1e-300, 5e-324, float("inf"),
        -float("inf"), float("nan"), 1j, complex(-0.0, 2), complex("nan+infj"), "", "a, b](%x)",
        "quote ' and \" and \\ and \n newline # x", "é", (), (1,), (1, (2, None)), b"\x00]",
        np.dtype("float32"), np.dtype("bool"), np.dtype("complex128"),
    ],
    ids=repr,
)  # fmt: skip
def test_values_survive_the_text_form(value):
    graph = Graph()
    graph.register_output(graph.insert("f", graph.add_input(), x=value, y=1))
    parsed = parse_graph(str(graph))
    (node,) = parsed.nodes()
    back = node.attributes["x"]
    assert type(back) is type(value)
    assert repr(back) == repr(value)
    assert node.attributes["y"] == 1
    assert parsed == graph
    assert parsed.fingerprint() == graph.fingerprint()


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        (1, 2),
        ((1,), 1),
        (None, False),
        (1.0, 1 + 0j),
    ],
    ids=repr,
)
def test_values_that_print_differently_are_different(one, two):
    graphs = []
    for value in (one, two):
        graph = Graph()
        graph.register_output(graph.insert("f", x=value))
        graphs.append(graph)
    assert graphs[0] != graphs[1]
    assert graphs[0].fingerprint() != graphs[1].fingerprint()


def test_nan_equals_itself():
    graphs = []
    for _ in range(2):
        graph = Graph()
        graph.register_output(graph.insert("f", x=float("nan")))
        graphs.append(graph)
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("value", [np.float64(2.5), np.int64(3), np.bool_(True)])
def test_numpy_scalars_print_as_python_literals(value):
    graph = Graph()
    graph.register_output(graph.insert("f", x=value))
    parsed = parse_graph(str(graph))
    assert parsed == graph
    assert "np." not in str(graph)


def test_t6_attributes():
    graph = Graph()
    node = graph.insert("f", one=3.4, two=5, three="what").node
    assert (node.attributes["one"], node.attributes["two"]) == (3.4, 5)
    assert node.attributes["three"] == "what"
    node.attributes["one"] = "no"
    assert node.attributes["one"] == "no"
    assert "three" in node.attributes
    assert "four" not in node.attributes
    node.attributes["two"] = ["hi", "now"]
    (copy,) = graph.copy()
    assert copy.attributes == node.attributes == {
        "one": "no", "two": ("hi", "now"), "three": "what"
    }  # fmt: skip
    copy.attributes["one"] = 1
    copy.attributes["four"] = 4
    del copy.attributes["two"]
    assert dict(node.attributes) == {"one": "no", "two": ("hi", "now"), "three": "what"}


@pytest.mark.parametrize("name", ["class", "None", "\ufb01"])
def test_names_of_python_s_own_are_refused_or_read_back(node, name):
    try:
        node.attributes[name] = 1
    except (TypeError, ValueError):
        return
    assert parse_graph(str(node.graph)) == node.graph


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()

    def __repr__(self):
        return "f("


@pytest.mark.parametrize(
    "given", [Colour.RED, Text("a"), (Colour.RED,), enum.IntFlag("F", "A")(1)]
)
def test_subclasses_of_plain_values_are_read_back_as_these(node, given):
    node.attributes["one"] = given
    assert parse_graph(str(node.graph)) == node.graph
    assert type(node.attributes["one"]) in (int, str, tuple)


def test_clearing_leaves_the_defaults():
    graph = Graph()
    node = graph.insert("sum", graph.add_input("f64[2, 3]"), axis=0, keepdims=True).node
    node.attributes.clear()
    assert dict(node.attributes) == {"axis": None, "keepdims": False}
    assert str(node.output.type) == "f64[]"


def test_tuples_nested_deeply_are_refused_or_printed(node):
    given = 1
    for _ in range(2000):
        given = (given,)
    try:
        node.attributes["one"] = given
    except (TypeError, ValueError):
        return
    with pytest.raises(ParseError):
        parse_graph(str(node.graph))


def test_a_number_of_too_many_digits_is_refused(node):
    with pytest.raises(ValueError, match="one"):
        node.attributes["one"] = 10**5000


@pytest.mark.parametrize("end", ["param", "return"])
def test_the_ends_of_a_graph_have_no_attributes(node, end):
    graph = node.graph
    value = graph.add_input()
    graph.register_output(value)
    at = value.node if end == "param" else value.uses[0].user
    with pytest.raises((TypeError, ValueError)):
        at.attributes["x"] = 1
