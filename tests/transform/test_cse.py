"""Tests of transform/cse.py."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph, parse_graph
from stagedad.transform import cse, dce


def cleaned(text):
    """The graph of `text` after cse and dce, which must both find nothing more to do."""
    graph = parse_graph(text)
    cse(graph)
    dce(graph)
    graph.verify()
    twin = graph.copy()
    assert cse(graph) is False
    assert dce(graph) is False
    assert graph == twin
    return graph


def graph_text(*body, inputs="%x : f64[3], %y : f64[3]"):
    return "\n".join([f"graph({inputs}) {{", *body, "}"])


def test_merges_equal_nodes():
    graph = Graph()
    x = graph.add_input("f64[3]")
    first, second = graph.insert("exp", x), graph.insert("exp", x)
    total = graph.insert("add", first, second)
    graph.register_output(total)
    assert cse(graph) is True
    assert total.node.inputs == (first, first)
    graph.verify()


def test_tells_that_there_was_nothing():
    graph = parse_graph(graph_text("%z = mul(%x, %y)", "return (%z)"))
    before = str(graph)
    assert cse(graph) is False
    assert str(graph) == before


def test_merges_what_becomes_equal():
    # w = (x + y)^3 by products, t = tanh(w) + tanh(w), z = (x + y)^3 + t.
    cube = ("%s{0} = add(%x, %y)", "%q{0} = mul(%s{0}, %s{0})", "%w{0} = mul(%q{0}, %s{0})")
    body = [line.format(1) for line in cube]
    body += ["%h = tanh(%w1)", "%k = tanh(%w1)", "%t = add(%h, %k)"]
    body += [line.format(2) for line in cube] + ["%z = add(%w2, %t)", "return (%z)"]
    expected = graph_text(
        "%s = add(%x, %y)", "%q = mul(%s, %s)", "%w = mul(%q, %s)", "%h = tanh(%w)",
        "%t = add(%h, %h)", "%z = add(%w, %t)", "return (%z)",
    )  # fmt: skip
    assert cleaned(graph_text(*body)) == parse_graph(expected)


def test_merges_what_is_returned():
    graph = cleaned(graph_text("%p = exp(%x)", "%q = exp(%x)", "return (%p, %q)"))
    assert graph == parse_graph(graph_text("%p = exp(%x)", "return (%p, %p)"))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("exp(%x)", "exp(%y)"),
        ("exp(%x)", "tanh(%x)"),
        ("sub(%x, %y)", "sub(%y, %x)"),
        ("add(%x, %y)", "add[alpha=2](%x, %y)"),
        ("sum(%x)", "sum[keepdims=True](%x)"),
        ("constant[value=0.0]()", "constant[value=-0.0]()"),
        ("constant[value=1]()", "constant[value=1.0]()"),
        ("constant[value=1]()", "constant[value=True]()"),
        ("constant[value=1.0, dtype=dtype(f32)]()", "constant[value=1.0]()"),
        ("constant[value=1.0]()", "constant[value=2.0]()"),
    ],
)
def test_keeps_different_nodes_apart(one, two):
    graph = parse_graph(graph_text(f"%p = {one}", f"%q = {two}", "return (%p, %q)"))
    graph.verify()
    assert cse(graph) is False
    assert len(graph) == 2


def test_keeps_stages_apart():
    text = graph_text("%p = exp(%x)", "---- stage 1 ----", "%q = exp(%x)", "return (%p, %q)")
    assert len(cleaned(text)) == 2


def test_merges_equal_constants_of_equal_arrays():
    graph = Graph()
    array = np.arange(20.0)
    first, second = graph.constant(array), graph.constant(array)
    graph.register_output(graph.insert("add", first, second))
    cse(graph)
    dce(graph)
    assert len(graph) == 2


def test_keeps_arrays_of_different_content_apart():
    graph = Graph()
    for array in (
        np.arange(20.0),
        np.arange(20.0) + 1,
        np.arange(20),
        np.arange(20.0)[:, None],
    ):
        graph.register_output(graph.constant(array))
    assert cse(graph) is False
    assert len(graph) == 4


def test_a_closed_over_array_that_changes_is_never_merged_with_its_twin():
    # Constants are held by reference: equal now is not equal later.
    graph = Graph()
    one, two = np.zeros(20), np.zeros(20)
    for array in (one, two):
        graph.register_output(graph.constant(array))
    cse(graph)
    held = [value.node.attributes["value"] for value in graph.outputs]
    assert held[0] is one
    assert held[1] is two


def test_keeps_unknown_ops_apart():
    # An op that nothing is known of may draw a number or write a file.
    text = graph_text("%p = frobnicate(%x)", "%q = frobnicate(%x)", "return (%p, %q)")
    assert len(cleaned(text)) == 2


def test_keeps_scatters_apart_for_the_planner():
    # Merged, each of them would be an array with two readers, and sums of n reads quadratic.
    body = [
        "%p = unslice[shape=(5,), start=(1,), stop=(4,), step=(1,)](%x)",
        "%q = unslice[shape=(5,), start=(1,), stop=(4,), step=(1,)](%x)",
    ]
    graph = sd.parse_graph(
        "\n".join(["graph(%x : f64[3]) {", *body, "%r = add(%p, %q)", "return (%r)", "}"])
    )
    assert not sd.cse(graph)
    x = np.array([1.0, 2.0, 3.0])
    assert sd.compile(graph)(x)[0].tolist() == [0, 2, 4, 6, 0]


@pytest.mark.parametrize("n", [20, 80])
def test_reading_element_by_element_makes_one_array(n):
    def squares(x):
        total = 0.0
        for i in range(n):
            total = total + x[i] * x[i]
        return total

    x = np.arange(float(n))
    gradient = sd.differentiate(sd.trace(squares, x), [True])
    graph = sd.transform.joint(gradient)
    sd.optimize(graph)
    program = sd.compile(graph)
    assert program(x, np.ones(()))[1].tolist() == (2 * x).tolist()
    whole = [i for i in program.instructions if i.types[-1].shape == (n,)]
    assert len(whole) == 1  # the zeros that the cotangents are added to
