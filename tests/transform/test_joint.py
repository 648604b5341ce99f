"""Tests of transform/joint.py."""

import numpy as np
import pytest

from stagedad.ir import Graph, parse_graph
from stagedad.ops import evaluate
from stagedad.transform import Capture, add_gradients, differentiate, joint


def run(graph, *arrays):
    """Evaluate `graph` node by node."""
    values = dict(zip(graph.inputs, map(np.asarray, arrays), strict=True))
    for node in graph.nodes():
        results = evaluate(node.kind, tuple(values[v] for v in node.inputs), node.attributes)
        values.update(zip(node.outputs, results, strict=True))
    return tuple(values[v] for v in graph.outputs)


BODIES = {
    "temporaries": (
        "%t : f64[3] = tanh(%a)",
        "%p : f64[3] = mul(%t, %b)",
        "%y : f64[3] = mul(%p, %t)",
        "return (%y)",
    ),
    "repeated outputs": ("%c : f64[3] = mul(%a, %b)", "return (%c, %b, %c)"),
    "an output that requires no grad": (
        "%c : f64[3] = mul(%b, %b)",
        "%d : f64[3] = mul(%a, %c)",
        "return (%c, %d)",
    ),
    "identity": ("return (%b, %a)",),
    "unused": ("%c : f64[3] = exp(%a)", "return (%c)"),
    "no output": ("return ()",),
}


@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", BODIES)
def test_is_f_then_df(name, flags):
    text = "\n".join(["graph(%a : f64[3], %b : f64[3]) {", *BODIES[name], "}"])
    gradient = differentiate(parse_graph(text), flags)
    both = joint(gradient)
    both.verify()
    real = [j for j in gradient.df_input_vjps if j < gradient.f_real_outputs]
    assert len(both.inputs) == 2 + len(real)
    assert len(both.outputs) == gradient.f_real_outputs + len(gradient.df.outputs)
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=3) for _ in range(2)]
    outputs = run(gradient.f, *arrays)
    cotangents = {j: rng.normal(size=3) for j in real}
    saved = [
        arrays[capture.offset] if capture.kind == Capture.INPUT else outputs[capture.offset]
        for capture in gradient.df_input_captures
    ]
    seeds = [cotangents.get(j, np.zeros(3)) for j in gradient.df_input_vjps]
    expected = [*outputs[: gradient.f_real_outputs], *run(gradient.df, *saved, *seeds)]
    found = run(both, *arrays, *cotangents.values())
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_leaves_the_pair_alone():
    gradient = differentiate(
        parse_graph("graph(%a : f64[]) {\n%b : f64[] = tanh(%a)\nreturn (%b)\n}"), [True]
    )
    before = str(gradient.f), str(gradient.df)
    joint(gradient)
    assert (str(gradient.f), str(gradient.df)) == before


def test_spends_nothing_on_the_temporaries_slots():
    graph = Graph()
    a, b = graph.add_input("f32[2, 3, 4]"), graph.add_input("f32[2, 3, 4]")
    product = graph.insert("mul", graph.insert("mul", a, b), a)
    graph.register_output(graph.insert("add", product, b))
    both = joint(differentiate(graph, [True, True]))
    # f has 3 nodes, df 7, of which one adds the cotangent of the temporary.
    assert len(both) == 9
    assert "constant" not in [node.kind for node in both.nodes()]


@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", BODIES)
def test_gradients_added_in_place_are_those_at_ones(name, flags):
    text = "\n".join(["graph(%a : f64[3], %b : f64[3]) {", *BODIES[name], "}"])
    both = joint(differentiate(parse_graph(text), flags))
    graph = parse_graph(text)
    outputs, grads = add_gradients(graph, flags)
    assert (len(outputs), len(grads)) == (len(parse_graph(text).outputs), sum(flags))
    assert graph.outputs == ()
    for value in (*outputs, *grads):
        graph.register_output(value)
    graph.verify()
    assert {node.stage for node in graph.nodes()} <= {0}
    a, b = np.array([0.5, -1.5, 2.0]), np.array([2.0, 0.25, -3.0])
    ones = [np.ones(3)] * (len(both.inputs) - 2)
    np.testing.assert_allclose(run(graph, a, b), run(both, a, b, *ones), rtol=1e-14)


def test_gradients_added_in_place_need_no_slots_of_temporaries():
    graph = Graph()
    a, b = graph.add_input("f32[2, 3, 4]"), graph.add_input("f32[2, 3, 4]")
    product = graph.insert("mul", graph.insert("mul", a, b), a)
    graph.register_output(graph.insert("add", product, b))
    add_gradients(graph, [True, True])
    # As above, and the constant of ones.
    assert len(graph) == 10
