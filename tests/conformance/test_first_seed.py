"""The first seed's gradient pairs: the two that it prints, and vectors derived from its rules.

The names T1, T2, V1, ... are those of the reference that the vectors come from.
"""

import numpy as np
import pytest

from stagedad.ir import Graph, parse_graph
from stagedad.ops import evaluate
from stagedad.transform import Capture, differentiate


def run(graph, *arrays):
    """Evaluate `graph` node by node."""
    assert len(arrays) == len(graph.inputs)
    values = dict(zip(graph.inputs, map(np.asarray, arrays), strict=True))
    for node in graph.nodes():
        results = evaluate(node.kind, tuple(values[v] for v in node.inputs), node.attributes)
        values.update(zip(node.outputs, results, strict=True))
    return tuple(values[v] for v in graph.outputs)


def pull(gradient, arrays, cotangents):
    """Run f, then df. `cotangents` has one entry for each of `df_input_vjps`."""
    outputs = run(gradient.f, *arrays)
    captured = [
        arrays[capture.offset] if capture.kind == Capture.INPUT else outputs[capture.offset]
        for capture in gradient.df_input_captures
    ]
    return outputs, run(gradient.df, *captured, *cotangents)


def lines(graph):
    """Kinds, wiring and order, with values counted anew: what a reader of the text sees."""
    number = {value: f"%{i}" for i, value in enumerate(graph.inputs)}
    found = []
    for node in graph.nodes():
        operands = ", ".join(number[v] for v in node.inputs)
        for value in node.outputs:
            number[value] = f"%{len(number)}"
        results = ", ".join(number[v] for v in node.outputs)
        found.append(f"{results} = {node.kind}({operands})")
    return [*found, f"return ({', '.join(number[v] for v in graph.outputs)})"]


def captures(gradient):
    kinds = {Capture.INPUT: "I", Capture.OUTPUT: "O"}
    return " ".join(f"{kinds[c.kind]}{c.offset}" for c in gradient.df_input_captures)


def counts(graph):
    kinds = [node.kind for node in graph.nodes()]
    return {kind: kinds.count(kind) for kind in kinds}


def test_t1_a_b_a_plus_b():
    graph = Graph()
    a, b = graph.add_input("f32[2, 3, 4]"), graph.add_input("f32[2, 3, 4]")
    product = graph.insert("mul", graph.insert("mul", a, b), a)
    graph.register_output(graph.insert("add", product, b))
    gradient = differentiate(graph, [True, True])
    assert gradient.f_real_outputs == 1
    assert captures(gradient) == "I0 I1 O1"
    assert gradient.df_input_vjps == [0, 1]
    assert gradient.df_output_vjps == [0, 1]
    assert lines(gradient.f) == [
        "%2 = mul(%0, %1)",
        "%3 = mul(%2, %0)",
        "%4 = add(%3, %1)",
        "return (%4, %2)",
    ]
    assert lines(gradient.df) == [
        "%5 = mul(%3, %0)",
        "%6 = add(%4, %5)",
        "%7 = mul(%3, %2)",
        "%8 = mul(%6, %1)",
        "%9 = mul(%6, %0)",
        "%10 = add(%7, %8)",
        "%11 = add(%3, %9)",
        "return (%10, %11)",
    ]
    for part in (gradient.f, gradient.df):
        part.verify()
        assert part.stage == 0
        for value in (*part.inputs, *(v for node in part.nodes() for v in node.outputs)):
            assert str(value.type) == "f32[2, 3, 4]"
            assert value.stage == 0
        for node in part.nodes():
            assert node.attributes.get("alpha", 1) == 1
    a, b = (np.full((2, 3, 4), x, "f4") for x in (2, 3))
    one, zero = np.ones_like(a), np.zeros_like(a)
    (y, t), (da, db) = pull(gradient, (a, b), (one, zero))
    assert [x.flat[0] for x in (y, t, da, db)] == [15, 6, 12, 5]
    assert da.dtype == db.dtype == np.float32
    assert da.shape == db.shape == (2, 3, 4)
    _, (da, db) = pull(gradient, (a, b), (zero, one))
    assert [x.flat[0] for x in (da, db)] == [3, 2]


def test_t2_with_one_input_that_requires_grad():
    graph = Graph()
    a, b = graph.add_input("f32[2, 3, 4]"), graph.add_input("f32[2, 3, 4]")
    d = graph.insert("add", graph.insert("mul", b, b), b)
    e = graph.insert("add", graph.insert("mul", graph.insert("add", d, a), a), b)
    graph.register_output(d)
    graph.register_output(e)
    gradient = differentiate(graph, [True, False])
    assert gradient.f_real_outputs == 2
    assert captures(gradient) == "I0 O2"
    assert gradient.df_input_vjps == [1, 2]
    assert gradient.df_output_vjps == [0]
    assert lines(gradient.f) == [
        "%2 = mul(%1, %1)",
        "%3 = add(%2, %1)",
        "%4 = add(%3, %0)",
        "%5 = mul(%4, %0)",
        "%6 = add(%5, %1)",
        "return (%3, %6, %4)",
    ]
    assert lines(gradient.df) == [
        "%4 = mul(%2, %0)",
        "%5 = add(%3, %4)",
        "%6 = mul(%2, %1)",
        "%7 = add(%6, %5)",
        "return (%7)",
    ]
    a, b = (np.full((2, 3, 4), x, "f4") for x in (2, 3))
    (d, e, t), (da,) = pull(gradient, (a, b), (np.ones_like(a), np.zeros_like(a)))
    assert [x.flat[0] for x in (d, e, t, da)] == [12, 31, 14, 16]
    _, (da,) = pull(gradient, (a, b), (np.zeros_like(a), np.ones_like(a)))
    assert da.flat[0] == 1


TEXTS = {
    "add": "%2 = add(%a, %b)\n return (%2)",
    "sub": "%2 = sub(%a, %b)\n return (%2)",
    "mul": "%2 = mul(%a, %b)\n return (%2)",
    "swap": "return (%b, %a)",
    "twice": "%2 = mul(%a, %b)\n return (%2, %2)",
    "input and product": "%2 = mul(%a, %b)\n return (%a, %2)",
    "square of a": "%2 = mul(%a, %a)\n return (%2)",
    "square of the sum": "%2 = add(%a, %b)\n %3 = mul(%2, %2)\n return (%3)",
    "thrice": "%2 = mul(%a, %b)\n %3 = mul(%2, %a)\n return (%2, %2, %3)",
    "inactive square": "%2 = mul(%b, %b)\n %3 = mul(%2, %a)\n return (%3)",
    "sign of the product": "%2 = mul(%a, %b)\n %3 = copysign(%a, %2)\n return (%3)",
    "tanh plus": "%2 = tanh(%a)\n %3 = add(%2, %b)\n return (%3)",
}


def scalar_graph(body, inputs="%a, %b"):
    """The graph of `body` with every value typed f64[]."""
    inputs = inputs.replace(",", " : f64[],") + " : f64[]"
    return parse_graph(f"graph({inputs}) {{\n {body.replace(' = ', ' : f64[] = ')}\n}}")


def pair_of(name, flags):
    return differentiate(scalar_graph(TEXTS[name]), [flag == "1" for flag in flags])


# Name, graph, flags, captures, df_input_vjps, df_output_vjps, (a, b), cotangents, df's answer.
VECTORS = [
    ("V1", "add", "11", "", [0], [0, 1], (2, 3), (1,), (1, 1)),
    ("V2", "sub", "11", "", [0], [0, 1], (2, 3), (1,), (1, -1)),
    ("V3 11", "mul", "11", "I0 I1", [0], [0, 1], (2, 3), (1,), (3, 2)),
    ("V3 10", "mul", "10", "I1", [0], [0], (2, 3), (1,), (3,)),
    ("V3 01", "mul", "01", "I0", [0], [1], (2, 3), (1,), (2,)),
    ("V5", "swap", "11", "", [0, 1], [0, 1], (2, 3), (5, 7), (7, 5)),
    ("V6", "twice", "11", "I0 I1", [0, 1], [0, 1], (2, 3), (1, 1), (6, 4)),
    ("V6 first", "twice", "11", "I0 I1", [0, 1], [0, 1], (2, 3), (1, 0), (3, 2)),
    ("V8", "input and product", "11", "O0 I1", [0, 1], [0, 1], (2, 3), (1, 1), (4, 2)),
    ("V9", "square of a", "11", "I0", [0], [0, 1], (3, 5), (1,), (6, 0)),
    ("V12", "square of a", "00", "", [], [], (3, 5), (), ()),
    ("V15", "square of the sum", "11", "O1", [0, 1], [0, 1], (2, 3), (1, 0), (10, 10)),
    ("V15 dt", "square of the sum", "11", "O1", [0, 1], [0, 1], (2, 3), (0, 1), (1, 1)),
    ("V16", "thrice", "11", "I0 I1 O0", [0, 1, 2], [0, 1], (2, 3), (1, 1, 1), (18, 8)),
    ("V17", "inactive square", "10", "O1", [0], [0], (2, 3), (1,), (9,)),
    ("V18 dy", "sign of the product", "11", "I0 I1 O1", [0, 1], [0, 1], (2, 3), (1, 0), (1, 0)),
    ("V18 dt", "sign of the product", "11", "I0 I1 O1", [0, 1], [0, 1], (2, 3), (0, 1), (3, 2)),
    ("V19 dy", "tanh plus", "11", "O1", [0, 1], [0, 1], (0.5, 3), (1, 0), (0.786448, 1)),
    ("V19 dt", "tanh plus", "11", "O1", [0, 1], [0, 1], (0.5, 3), (0, 1), (0.786448, 0)),
]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector[0] for vector in VECTORS])
def test_a_derived_vector(vector):
    _, name, flags, captured, ins, outs, point, cotangents, expected = vector
    gradient = pair_of(name, flags)
    assert captures(gradient) == captured
    assert gradient.df_input_vjps == ins
    assert gradient.df_output_vjps == outs
    assert len(gradient.df.inputs) == len(gradient.df_input_captures) + len(ins)
    assert len(gradient.df.outputs) == len(outs)
    assert all(str(v.type) == "f64[]" for v in (*gradient.df.inputs, *gradient.df.outputs))
    arrays = [np.array(float(x)) for x in point]
    _, answer = pull(gradient, arrays, [np.array(float(x)) for x in cotangents])
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-6)
    assert all(x.shape == () and x.dtype == np.float64 for x in answer)
    for part in (gradient.f, gradient.df):
        part.verify()
        assert part.stage == 0


def test_v1_has_no_node():
    gradient = pair_of("add", "11")
    assert len(gradient.df) == 0
    assert gradient.df.outputs == (gradient.df.inputs[0],) * 2


def test_v2_has_one_negation():
    assert lines(pair_of("sub", "11").df) == ["%1 = neg(%0)", "return (%0, %1)"]


def test_v4_is_the_identity():
    graph = scalar_graph("return (%a)", "%a")
    gradient = differentiate(graph, [True])
    assert captures(gradient) == ""
    assert (gradient.df_input_vjps, gradient.df_output_vjps) == ([0], [0])
    assert lines(gradient.df) == ["return (%0)"]


def test_v5_has_no_node():
    assert lines(pair_of("swap", "11").df) == ["return (%1, %0)"]


def test_v6_adds_the_cotangents_once():
    df = pair_of("twice", "11").df
    assert counts(df) == {"add": 1, "mul": 2}
    assert lines(df)[0] in ("%4 = add(%2, %3)", "%4 = add(%3, %2)")


def test_v7_is_two_products_and_a_sum():
    graph = scalar_graph("%1 = mul(%a, %a)\n return (%1)", "%a")
    gradient = differentiate(graph, [True])
    assert captures(gradient) == "I0"
    assert counts(gradient.df) == {"mul": 2, "add": 1}
    _, (da,) = pull(gradient, (np.array(3.0),), (np.array(1.0),))
    assert da == 6


def test_v9_has_an_explicit_zero():
    gradient = pair_of("square of a", "11")
    assert counts(gradient.df) == {"mul": 2, "add": 1, "constant": 1}
    assert gradient.df.outputs[1].node.kind == "constant"


def test_v12_leaves_f_as_it_was():
    gradient = pair_of("square of a", "00")
    assert lines(gradient.f) == ["%2 = mul(%0, %0)", "return (%2)"]
    assert lines(gradient.df) == ["return ()"]
    assert gradient.df.inputs == ()


def test_the_second_derivative_needs_the_slot_of_the_temporary():
    graph = scalar_graph("%t = mul(%a, %b)\n %p = mul(%t, %a)\n %y = add(%p, %b)\n return (%y)")
    first = differentiate(graph, [True, True])
    second = differentiate(first.df, [True] * 5)
    a, b, one, zero = (np.array(x) for x in (2.0, 3.0, 1.0, 0.0))
    (_, t), _ = pull(first, (a, b), (one, zero))
    inputs = (a, b, t, one, zero)
    slots = [one if j == 0 else zero for j in second.df_input_vjps]  # of da alone
    outputs, partial = pull(second, inputs, slots)
    assert outputs[:2] == (12, 5)
    assert tuple(map(float, partial)) == (3, 2, 1, 12, 3)
    _, through_t = pull(first, (a, b), (zero, partial[2]))
    assert tuple(map(float, through_t)) == (3, 2)
    assert partial[0] + through_t[0] == 6  # d2y/da2 = 2b
    assert partial[1] + through_t[1] == 4  # d2y/dadb = 2a


@pytest.mark.parametrize("vector", VECTORS, ids=[vector[0] for vector in VECTORS])
def test_a_derived_vector_when_compiled(vector):
    sd = pytest.importorskip("stagedad")
    if not hasattr(sd, "compile"):
        pytest.skip("programs are not built yet")
    _, name, flags, _, _, _, point, cotangents, expected = vector
    gradient = pair_of(name, flags)
    pair = sd.compile(gradient)
    arrays = [np.array(float(x)) for x in point]
    outputs = pair.f(*arrays)
    captured = [
        arrays[capture.offset] if capture.kind == Capture.INPUT else outputs[capture.offset]
        for capture in gradient.df_input_captures
    ]
    answer = pair.df(*captured, *(np.array(float(x)) for x in cotangents))
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-6)
    for one, other in zip(outputs, run(gradient.f, *arrays), strict=True):
        np.testing.assert_allclose(one, other)
