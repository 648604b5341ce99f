"""Tests of transform/dce.py."""

import pytest

from stagedad.ir import Graph, parse_graph
from stagedad.transform import dce


def graph_text(*body, inputs="%x : f64[3], %y : f64[3]"):
    return "\n".join([f"graph({inputs}) {{", *body, "}"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("%a = exp(%x)", "return (%x)"), ("return (%x)",)),
        (("%a = exp(%x)", "%b = tanh(%a)", "%c = mul(%b, %a)", "return ()"), ("return ()",)),
        (
            ("%a = exp(%x)", "%b = tanh(%a)", "%c = mul(%x, %y)", "return (%a, %x)"),
            ("%a = exp(%x)", "return (%a, %x)"),
        ),
        (
            (
                "%a = exp(%x)",
                "---- stage 1 ----",
                "%b = exp(%a)",
                "%c = neg(%a)",
                "return (%c)",
            ),
            ("%a = exp(%x)", "---- stage 1 ----", "%c = neg(%a)", "return (%c)"),
        ),
    ],
)
def test_removes_what_nobody_reads(before, after):
    graph = parse_graph(graph_text(*before))
    assert dce(graph) is True
    graph.verify()
    assert graph == parse_graph(graph_text(*after))
    assert dce(graph) is False


def test_keeps_what_is_read():
    graph = parse_graph(graph_text("%a = exp(%x)", "%b = mul(%a, %y)", "return (%b)"))
    before = str(graph)
    assert dce(graph) is False
    assert str(graph) == before


def test_keeps_a_node_of_which_one_output_is_read():
    graph = Graph()
    one, two = graph.insert("f", graph.add_input(), outputs=2)
    graph.register_output(two)
    assert dce(graph) is False
    assert one.node.outputs == (one, two)


def test_keeps_unused_inputs():
    graph = parse_graph(graph_text("return (%y)"))
    assert dce(graph) is False
    assert len(graph.inputs) == 2


def test_keeps_the_handles_of_what_stays():
    graph = parse_graph(graph_text("%a = exp(%x)", "%b = exp(%y)", "return (%b)"))
    kept = graph.outputs[0]
    dce(graph)
    assert kept.node.kind == "exp"
    assert graph.inputs[0].uses == ()
    assert [node.output for node in graph.nodes()] == [kept]
