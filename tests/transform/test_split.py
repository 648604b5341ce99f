"""Splitting a stage off a graph: what must suffice, and what is said if it does not."""

import pytest

import stagedad as sd
from stagedad.errors import ForeignValue, VerifyError
from stagedad.ir import Graph
from stagedad.transform import split_stage


def two_stages():
    """y = x * t with t = exp(x) at stage 0; at stage 1, dx = dy * t + 2."""
    graph = Graph()
    x = graph.add_input("f64[]", name="x")
    t = graph.insert("exp", x)
    t.name = "t"
    two = graph.constant(2.0)
    y = graph.insert("mul", x, t)
    graph.register_output(y)
    graph.advance_stage()
    dy = graph.add_input("f64[]", name="dy")
    dx = graph.insert("add", graph.insert("mul", dy, t), two)
    graph.register_output(dx)
    graph.verify()
    return graph, t, y, dx


def test_a_stage_becomes_a_graph_at_stage_0():
    graph, t, y, dx = two_stages()
    before = str(graph)
    f = split_stage(graph, 0, [], [y, t])
    df = split_stage(graph, 1, [t], [dx])
    assert (
        str(df)
        == """graph(%t : f64[], %dy : f64[]) {
  %2 : f64[] = mul(%dy, %t)
  %3 : f64[] = constant[value=2.0]()
  %4 : f64[] = add(%2, %3)
  return (%4)
}"""
    )
    for each in (f, df):
        each.verify()
    assert [value.name for value in f.inputs] == ["x"]
    assert len(f.outputs) == 2
    assert str(graph) == before


def test_inputs_that_do_not_suffice_are_named_with_the_node():
    graph, _, _, dx = two_stages()
    with pytest.raises(VerifyError, match=r"do not suffice: `%\d+ = mul\(%dy, %t\)` reads %t"):
        split_stage(graph, 1, [], [dx])


def test_an_output_of_another_stage_is_named():
    graph, t, y, dx = two_stages()
    with pytest.raises(VerifyError, match=r"output 1, %\d+, is of stage 1, not 0"):
        split_stage(graph, 0, [], [y, dx])
    with pytest.raises(VerifyError, match=r"output 0, %\d+, is of stage 0, not 1"):
        split_stage(graph, 1, [t], [y])


def test_captures_and_inputs_of_the_stage_may_be_returned():
    graph, t, _, _ = two_stages()
    dy = graph.inputs[1]
    df = split_stage(graph, 1, [t], [t, dy])
    assert df.outputs == df.inputs


def test_values_of_other_graphs_and_bad_stages_are_refused():
    graph, t, y, _ = two_stages()
    other, foreign, _, _ = two_stages()
    with pytest.raises(ForeignValue):
        split_stage(graph, 1, [foreign], [])
    with pytest.raises(ForeignValue):
        split_stage(other, 0, [], [y])
    for stage in (-1, 1.0, None):
        with pytest.raises(ValueError, match="stage"):
            split_stage(graph, stage, [t], [])


def test_nodes_of_df_name_what_they_are_the_derivative_of():
    graph = Graph()
    x = graph.add_input("f64[]", name="x")
    t = graph.insert("tanh", x, location=("model.py", 3))
    dead = graph.insert("exp", t)
    y = graph.insert("mul", graph.insert("sin", t), t, location=("model.py", 4))
    graph.register_output(y)
    assert dead.node.attached
    gradient = sd.differentiate(graph, [True])
    kinds = {value.id: value.node.kind for node in gradient.f.nodes() for value in node.outputs}
    found = [(node.kind, kinds[node.origin]) for node in gradient.df.nodes()]
    assert {origin for _, origin in found} == {"mul", "sin", "tanh"}
    assert ("cos", "sin") in found
    assert ("add", "tanh") in found, "the sum of the cotangents of t"
    again = sd.parse_graph(gradient.df.text(locations=True))
    assert [node.origin for node in again.nodes()] == [
        node.origin for node in gradient.df.nodes()
    ]
    assert "# model.py:4, from %" in gradient.df.text(locations=True)
    assert all(node.origin is None for node in gradient.f.nodes())
