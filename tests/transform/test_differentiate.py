"""Tests of transform/differentiate.py."""

import numpy as np
import pytest

from stagedad.errors import NotDifferentiable
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


def captured(gradient, arrays, outputs):
    return [
        arrays[capture.offset] if capture.kind == Capture.INPUT else outputs[capture.offset]
        for capture in gradient.df_input_captures
    ]


def pull(gradient, arrays, cotangents):
    """Run f, then df. `cotangents` has one entry for each of `df_input_vjps`."""
    outputs = run(gradient.f, *arrays)
    return outputs, run(gradient.df, *captured(gradient, arrays, outputs), *cotangents)


def pull_ones(gradient, *arrays):
    """The answer of df to a cotangent of ones for each real output, zeros for temporaries."""
    outputs = run(gradient.f, *arrays)
    cotangents = [
        (np.ones_like if j < gradient.f_real_outputs else np.zeros_like)(outputs[j])
        for j in gradient.df_input_vjps
    ]
    return run(gradient.df, *captured(gradient, arrays, outputs), *cotangents)


def kinds(graph):
    return [node.kind for node in graph.nodes()]


def parse(*body, inputs="%a : f64[3], %b : f64[3]"):
    """The graph of `body`, with the types that follow from the inputs'."""
    untyped = parse_graph("\n".join([f"graph({inputs}) {{", *body, "}"]))
    graph, values = Graph(), {}
    for value in untyped.inputs:
        values[value] = graph.add_input(value.type, name=value.name)
    for node in untyped.nodes():
        operands = [values[v] for v in node.inputs]
        new = graph.create(node.kind, *operands, outputs=len(node.outputs), **node.attributes)
        graph.append(new)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            value.name, values[old] = old.name, value
            value.type = old.type or value.type
    for value in untyped.outputs:
        graph.register_output(values[value])
    return graph


@pytest.fixture
def product():
    return parse("%c = mul(%a, %b)", "return (%c)")


# The caller's graph


def test_copies_the_graph(product):
    before, fingerprint = str(product), product.fingerprint()
    gradient = differentiate(product, [True, True])
    assert str(product) == before
    assert product.fingerprint() == fingerprint
    assert gradient.f is not product
    product.insert("neg", product.inputs[0])
    assert len(gradient.f) == 1


def test_consumes_the_graph_when_asked(product):
    twin = differentiate(product, [True, True])
    a = product.inputs[0]
    gradient = differentiate(product, [True, True], consume=True)
    assert gradient.f == twin.f
    assert gradient.df == twin.df
    for use in (
        lambda: product.insert("neg", a),
        lambda: list(product.nodes()),
        lambda: product.add_input("f64[]"),
        lambda: differentiate(product, [True, True]),
        lambda: str(a.node),
    ):
        with pytest.raises(ReferenceError, match="consume"):
            use()


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("flags", [[], [True], [True] * 3])
def test_wants_one_flag_an_input(product, consume, flags):
    before = str(product)
    with pytest.raises(ValueError, match="differentiate"):
        differentiate(product, flags, consume=consume)
    assert str(product) == before
    product.verify()


@pytest.mark.parametrize("consume", [False, True])
def test_wants_stage_0(product, consume):
    product.advance_stage()
    product.insert("neg", product.inputs[0])
    before = str(product)
    with pytest.raises(ValueError, match="stage"):
        differentiate(product, [True, True], consume=consume)
    assert str(product) == before
    product.verify()


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("type", ["i64[3]", "b1[3]", "u8[3]"])
def test_integers_have_no_gradient(consume, type):
    graph = parse("%c = mul(%a, %b)", "return (%c)", inputs=f"%a : f64[3], %b : {type}")
    before = str(graph)
    with pytest.raises(TypeError) as caught:
        differentiate(graph, [True, True], consume=consume)
    assert "b" in str(caught.value)
    assert str(graph) == before
    gradient = differentiate(graph, [True, False], consume=consume)
    (da,) = pull_ones(gradient, np.ones(3), np.arange(3).astype(graph_type(type)))
    np.testing.assert_array_equal(da, np.arange(3).astype(graph_type(type)))
    assert da.dtype == np.float64


def graph_type(text):
    return {"i64[3]": "i8", "b1[3]": "?", "u8[3]": "u1"}[text]


@pytest.mark.parametrize("consume", [False, True])
def test_a_missing_rule_leaves_the_graph_alone(consume):
    graph = parse("%c = mul(%a, %b)", "%d = frobnicate(%c)", "return (%d)")
    before = str(graph)
    with pytest.raises(NotDifferentiable):
        differentiate(graph, [True, True], consume=consume)
    assert str(graph) == before
    product = graph.inputs[0].uses[0].user
    assert product.kind == "mul"
    graph.verify()


@pytest.mark.parametrize("consume", [False, True])
def test_ways_to_save_that_are_not_built_are_listed(product, consume):
    before = str(product)
    with pytest.raises(ValueError, match="all"):
        differentiate(product, [True, True], save="most", consume=consume)
    assert str(product) == before
    assert len(differentiate(product, [True, True], save="all").df) == 2


def test_a_broken_graph_is_refused(product):
    product.register_output(product.create("neg", product.inputs[0]).output)
    with pytest.raises(AssertionError):
        differentiate(product, [True, True])


# Rules that are missing


def rule_missing(graph, flags):
    with pytest.raises(NotDifferentiable) as caught:
        differentiate(graph, flags)
    return caught.value


def test_a_missing_rule_names_op_and_place():
    graph = Graph()
    a = graph.add_input("f64[3]")
    graph.register_output(graph.insert("frobnicate", a, location=("model.py", 42)))
    error = rule_missing(graph, [True])
    assert error.op == "frobnicate"
    assert "frobnicate" in str(error)
    assert "model.py" in str(error)
    assert "42" in str(error)


def test_a_missing_rule_is_a_not_implemented_error():
    graph = parse("%c = frobnicate(%a)", "return (%c)")
    with pytest.raises(NotImplementedError):
        differentiate(graph, [True, True])


@pytest.mark.parametrize(
    ("body", "flags"),
    [
        (("%c = frobnicate(%a)", "return (%c)"), [False, True]),  # reads nothing active
        (("%c = frobnicate(%a)", "return (%a)"), [True, True]),  # dead
        (("%c = frobnicate(%a)", "%d = mul(%a, %b)", "return (%d)"), [True, True]),
        (("%c = frobnicate(%b)", "%d = mul(%a, %c)", "return (%d)"), [True, False]),
        (("%c = frobnicate(%a)", "%d = floor(%c)", "return (%d)"), [True, True]),
        (("%c = frobnicate(%a)", "%d = stop_gradient(%c)", "return (%d)"), [True, True]),
        (("%c = frobnicate(%a)", "%d = less(%c, %b)", "return (%d)"), [True, True]),
        (("%c = floor(%a)", "%d = frobnicate(%c)", "return (%d)"), [True, True]),
        (("%c = stop_gradient(%a)", "%d = frobnicate(%c)", "return (%d)"), [True, True]),
        (("%c : b1[3] = less(%a, %b)", "%d = frobnicate(%c)", "return (%d)"), [True, True]),
    ],
)
def test_a_missing_rule_does_not_matter_where_no_cotangent_comes(body, flags):
    gradient = differentiate(parse(*body), flags)
    gradient.f.verify()
    gradient.df.verify()
    assert "frobnicate" not in kinds(gradient.df)


def test_an_integer_result_of_an_unknown_op_takes_no_cotangent():
    graph = parse("%c : i64[3] = frobnicate(%a)", "return (%c)")
    gradient = differentiate(graph, [True, True])
    assert gradient.df_input_vjps == []
    assert len(gradient.df.outputs) == 2


def test_a_missing_rule_matters_where_a_cotangent_comes():
    for body in (
        ("%c = frobnicate(%a)", "return (%c)"),
        ("%c = mul(%a, %b)", "%d = frobnicate(%c, %b)", "%e = add(%d, %a)", "return (%e)"),
        ("%c = frobnicate(%b)", "%d = floor(%c)", "return (%d, %c)"),
    ):
        assert rule_missing(parse(*body), [True, True]).op == "frobnicate"


# What is captured, and what is not


def test_captures_inputs_then_nodes_in_order():
    graph = parse(
        "%s = tanh(%b)", "%t = tanh(%a)", "%p = mul(%t, %s)", "%q = mul(%p, %a)", "return (%q)"
    )
    gradient = differentiate(graph, [True, True])
    found = [(capture.kind, capture.offset) for capture in gradient.df_input_captures]
    assert found == [(Capture.INPUT, 0), *((Capture.OUTPUT, i) for i in (1, 2, 3))]
    assert [v.node.kind for v in gradient.f.outputs] == ["mul", "tanh", "tanh", "mul"]
    assert gradient.df_input_vjps == [0, 1, 2, 3]
    assert gradient.f_real_outputs == 1


def test_an_output_that_is_read_is_captured_once_and_as_the_first():
    graph = parse("%c = tanh(%a)", "return (%b, %c, %c)")
    gradient = differentiate(graph, [True, True])
    found = [(capture.kind, capture.offset) for capture in gradient.df_input_captures]
    assert found == [(Capture.OUTPUT, 1)]
    assert len(gradient.f.outputs) == 3
    assert gradient.df_input_vjps == [0, 1, 2]


@pytest.mark.parametrize("value", [3.0, np.arange(3.0) + 1, np.arange(30.0)])
def test_constants_are_copied_and_never_captured(value):
    graph = Graph()
    a = graph.add_input(f"f64[{np.size(value)}]")
    graph.register_output(graph.insert("mul", graph.constant(value), a))
    gradient = differentiate(graph, [True])
    assert list(gradient.df_input_captures) == []
    assert gradient.df_input_vjps == [0]
    assert gradient.f == graph
    assert "constant" in kinds(gradient.df)
    (da,) = pull_ones(gradient, np.ones(np.size(value)))
    np.testing.assert_array_equal(da, np.broadcast_to(value, da.shape))


def test_copied_constants_share_their_array():
    array = np.arange(30.0)
    graph = Graph()
    a = graph.add_input("f64[30]")
    graph.register_output(graph.insert("mul", graph.constant(array), a))
    gradient = differentiate(graph, [True])
    for part in (gradient.f, gradient.df):
        assert any(held is array for held in part.constants)


def test_a_constant_that_is_returned_gets_no_cotangent():
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.register_output(graph.constant(2.0))
    graph.register_output(graph.insert("neg", a))
    gradient = differentiate(graph, [True])
    assert gradient.df_input_vjps == [1]


def test_what_is_read_only_by_dead_code_is_not_captured():
    graph = parse("%c = tanh(%a)", "%d = exp(%b)", "%e = mul(%d, %d)", "return (%c)")
    gradient = differentiate(graph, [True, True])
    assert kinds(gradient.f) == ["tanh"]
    assert len(gradient.df_input_captures) == 1
    da, db = pull_ones(gradient, np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(da, np.ones(3))
    np.testing.assert_array_equal(db, np.zeros(3))


def test_every_capture_is_read_by_df():
    for body in (
        ("%c = mul(%a, %b)", "%d = div(%c, %a)", "return (%d)"),
        ("%c = where(%m, %a, %b)", "return (%c)"),
        ("%c = exp(%a)", "%d = sqrt(%c)", "%e = sum(%d)", "return (%e)"),
    ):
        inputs = "%a : f64[3], %b : f64[3], %m : b1[3]"
        gradient = differentiate(parse(*body, inputs=inputs), [True, True, False])
        count = len(gradient.df_input_captures)
        assert all(value.uses for value in gradient.df.inputs[:count])


def test_only_wanted_inputs_get_gradient_code():
    graph = parse("%c = mul(%a, %b)", "%d = tanh(%b)", "%e = mul(%c, %d)", "return (%e)")
    one, both = differentiate(graph, [True, False]), differentiate(graph, [True, True])
    assert kinds(one.df) == ["mul", "mul"]
    assert len(one.df) < len(both.df)
    assert one.df_output_vjps == [0]


def test_flags_may_be_numpys(product):
    gradient = differentiate(product, np.array([True, False]))
    assert gradient.df_output_vjps == [0]
    assert differentiate(product, (False, True)).df_output_vjps == [1]


def test_no_input_and_no_output():
    gradient = differentiate(Graph(), [])
    assert gradient.f == Graph() == gradient.df
    graph = Graph()
    graph.add_input("f64[2, 3]")
    gradient = differentiate(graph, [True])
    assert gradient.df_input_vjps == []
    (da,) = run(gradient.df)
    np.testing.assert_array_equal(da, np.zeros((2, 3)))


# Names, places, stages


def test_nodes_of_df_know_the_line_of_the_forward_node():
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.register_output(graph.insert("tanh", a, location=("model.py", 7), scope="layer"))
    gradient = differentiate(graph, [True])
    assert [node.location for node in gradient.f.nodes()] == [("model.py", 7)]
    assert gradient.df.nodes()
    assert {node.location for node in gradient.df.nodes()} == {("model.py", 7)}
    assert {node.scope for node in gradient.f.nodes()} == {"layer"}


def test_f_keeps_the_names():
    graph = parse("%c = mul(%a, %b)", "return (%c)")
    gradient = differentiate(graph, [True, True])
    assert [v.name for v in gradient.f.inputs] == ["a", "b"]
    assert gradient.f.outputs[0].name == "c"


def test_both_parts_are_at_stage_0():
    gradient = differentiate(parse("%c = mul(%a, %b)", "return (%c)"), [True, True])
    for part in (gradient.f, gradient.df):
        assert part.stage == 0
        assert {node.stage for node in part.nodes()} == {0}
        assert {v.stage for v in (*part.inputs, *part.outputs)} == {0}


def test_is_deterministic():
    body = ("%c = tanh(%a)", "%d = mul(%c, %b)", "%e = exp(%d)", "return (%e, %d)")
    texts = {
        str(part)
        for _ in range(3)
        for gradient in [differentiate(parse(*body), [True, True])]
        for part in (gradient.f, gradient.df)
    }
    assert len(texts) == 2


# Zeros, ties of flags, attributes


@pytest.mark.parametrize("kind", ["floor", "sign", "stop_gradient"])
def test_a_structural_zero_costs_nothing(kind):
    graph = parse(f"%c = {kind}(%a)", "%d = mul(%c, %b)", "return (%d)")
    gradient = differentiate(graph, [True, True])
    assert kinds(gradient.df).count("mul") == 1
    da, db = pull_ones(gradient, np.array([-1.5, 0.5, 2.5]), np.full(3, 4.0))
    np.testing.assert_array_equal(da, np.zeros(3))
    expected = run(parse(f"%c = {kind}(%a)", "return (%c)"), np.array([-1.5, 0.5, 2.5]), da)
    np.testing.assert_array_equal(db, expected[0])


@pytest.mark.parametrize(("kind", "slots"), [("stop_gradient", [0]), ("floor", [0, 1])])
def test_activity_ends_at_stop_gradient_and_goes_on_through_floor(kind, slots):
    lines = [f"%c = {kind}(%a)", "%d = mul(%c, %b)"]
    for results in ("(%d, %c)", "(%d)"):  # an output of its own; a captured temporary
        gradient = differentiate(parse(*lines, f"return {results}"), [True, True])
        assert gradient.df_input_vjps == slots


def test_a_zero_has_shape_and_dtype_of_its_input():
    graph = parse(
        "return (%a)", inputs="%a : f64[], %b : f32[2, 0], %c : c64[2, 3], %d : f16[1]"
    )
    gradient = differentiate(graph, [True] * 4)
    arrays = [
        np.zeros((), "f8"),
        np.zeros((2, 0), "f4"),
        np.zeros((2, 3), "c8"),
        np.zeros(1, "f2"),
    ]
    for array, zero in zip(arrays[1:], pull_ones(gradient, *arrays)[1:], strict=True):
        assert zero.shape == array.shape
        assert zero.dtype == array.dtype
        assert not zero.any()


@pytest.mark.parametrize("type", [None, "f64[?]", "f64[*]"])
def test_a_zero_of_an_unknown_shape_has_the_shape_of_its_input(type):
    graph = Graph()
    a, b = graph.add_input(type), graph.add_input(type)
    graph.register_output(graph.insert("neg", a))
    gradient = differentiate(graph, [True, True])
    da, db = pull_ones(gradient, np.ones(2), np.ones(5))
    np.testing.assert_array_equal(da, [-1, -1])
    np.testing.assert_array_equal(db, np.zeros(5))
    assert b.uses == ()


@pytest.mark.parametrize("kind", ["add", "sub"])
@pytest.mark.parametrize("alpha", [1, 2.5, -1, 0, 3])
def test_alpha_counts(kind, alpha):
    graph = Graph()
    a, b = graph.add_input("f64[3]"), graph.add_input("f64[3]")
    graph.register_output(graph.insert(kind, a, b, alpha=alpha))
    da, db = pull_ones(differentiate(graph, [True, True]), np.ones(3), np.ones(3))
    np.testing.assert_array_equal(da, np.ones(3))
    np.testing.assert_array_equal(db, np.full(3, alpha if kind == "add" else -alpha))


SHAPES = [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (1, 1), (4, 2, 3), (0, 2, 3), (2, 0)]


def broadcasting(*shapes):
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "maximum"])
@pytest.mark.parametrize("typed", [True, False])
def test_broadcasting_is_undone(kind, typed):
    rng = np.random.default_rng(1)
    for one in SHAPES:
        for two in SHAPES:
            if not broadcasting(one, two):
                continue
            graph = Graph()
            types = [f"f64[{', '.join(map(str, s))}]" if typed else None for s in (one, two)]
            a, b = (graph.add_input(type) for type in types)
            graph.register_output(graph.insert(kind, a, b))
            gradient = differentiate(graph, [True, True])
            x, y = rng.uniform(1, 2, one), rng.uniform(3, 4, two)
            g = rng.normal(size=np.broadcast_shapes(one, two))
            _, (da, db) = pull(gradient, (x, y), [g])
            partials = {
                "add": (1, 1), "sub": (1, -1), "mul": (y, x), "div": (1 / y, -x / y**2),
                "maximum": (0, 1),
            }[kind]  # fmt: skip
            for found, partial, shape in ((da, partials[0], one), (db, partials[1], two)):
                expected = unbroadcast(g * partial, shape)
                assert found.shape == shape
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def unbroadcast(array, shape):
    """Sum over the axes along which `shape` was stretched, one by one."""
    while array.ndim > len(shape):
        array = array.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1 and array.shape[axis] != 1:
            array = array.sum(axis=axis, keepdims=True)
    return array


def test_a_scalar_broadcast_in_one_of_two_terms():
    graph = Graph()
    z = graph.add_input("f64[]")
    zeros = graph.constant(np.zeros(1000))
    one = graph.insert("sum", graph.insert("sub", graph.insert("exp", z), graph.constant(0.0)))
    two = graph.insert("sum", graph.insert("sub", graph.insert("exp", z), zeros))
    graph.register_output(graph.insert("add", one, two))
    (dz,) = pull_ones(differentiate(graph, [True]), np.array(1.0))
    np.testing.assert_allclose(dz, 1001 * np.e, rtol=1e-12)


@pytest.mark.parametrize("other", ["f4", "f2", "i4", "?"])
def test_a_cotangent_has_the_dtype_of_its_value(other):
    graph = Graph()
    code = {"f4": "f32", "f2": "f16", "i4": "i32", "?": "b1"}[other]
    a, b = graph.add_input("f64[3]"), graph.add_input(f"{code}[3]")
    graph.register_output(graph.insert("mul", a, b))
    wanted = other.startswith("f")
    gradient = differentiate(graph, [True, wanted])
    arrays = np.array([1.0, 2, 3]), np.array([1, 0, 1]).astype(other)
    found = pull_ones(gradient, *arrays)
    assert found[0].dtype == np.float64
    np.testing.assert_array_equal(found[0], arrays[1])
    if wanted:
        assert found[1].dtype == np.dtype(other)
        np.testing.assert_array_equal(found[1], arrays[0])


def test_single_precision_stays_single():
    graph = parse(
        "%c = mul(%a, %b)", "%d = exp(%c)", "%e = mean(%d)", "return (%e)",
        inputs="%a : f32[3], %b : f32[3]",
    )  # fmt: skip
    gradient = differentiate(graph, [True, True])
    for part in (gradient.f, gradient.df):
        for node in part.nodes():
            assert all(str(v.type).startswith("f32") for v in node.outputs), node
    for found in pull_ones(gradient, np.ones(3, "f4"), np.ones(3, "f4")):
        assert found.dtype == np.float32


def test_a_weight_used_twice_counts_once():
    graph = parse(
        "%c = matmul(%x, %w)", "%d = matmul(%c, %w)", "%e = sum(%d)", "return (%e)",
        inputs="%x : f64[2, 2], %w : f64[2, 2]",
    )  # fmt: skip
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    dx, dw = pull_ones(differentiate(graph, [True, True]), x, w)
    ones = np.ones((2, 2))
    np.testing.assert_allclose(dx, ones @ w.T @ w.T)
    np.testing.assert_allclose(dw, (x @ w).T @ ones + x.T @ ones @ w.T)


def split_in_four(used, type="f64[8]", sections=4):
    """The sum of those parts of an input that are in `used`, each multiplied by its number."""
    graph = Graph()
    parts = graph.insert("split", graph.add_input(type), indices_or_sections=sections)
    for number in used:
        factor = graph.constant(float(number), dtype="f8")
        graph.register_output(graph.insert("mul", parts[number], factor))
    return graph


@pytest.mark.parametrize("used", [(0,), (2,), (3, 1), (0, 1, 2, 3)])
@pytest.mark.parametrize("type", ["f64[8]", "f64[?]", None])
@pytest.mark.parametrize("sections", [4, (2, 4, 6)])
def test_parts_without_a_cotangent_count_as_zeros(used, type, sections):
    gradient = differentiate(split_in_four(used, type, sections), [True])
    gradient.df.verify()
    (dx,) = pull_ones(gradient, np.arange(8.0))
    wanted = [number if number in used else 0 for number in range(4)]
    np.testing.assert_array_equal(dx, np.repeat(wanted, 2))


def test_the_cotangent_of_a_split_reads_nothing():
    gradient = differentiate(split_in_four((1, 2)), [True])
    assert gradient.df_input_captures == []
    kinds = [node.kind for node in gradient.df.nodes() if node.kind != "constant"]
    assert kinds == ["mul", "mul", "concatenate"]
    df = differentiate(split_in_four((2,)), [True]).df
    assert [node.kind for node in df.nodes()] == ["constant", "mul", "unslice"]


def test_parts_that_overlap_add_up():
    """np.split at cuts that do not rise has elements in two parts, and leaves some out."""
    graph = split_in_four((0, 1, 2), "f64[5]", (-1, 3))
    parts = np.split(np.arange(5.0), (-1, 3))
    assert [len(part) for part in parts] == [4, 0, 2]
    (dx,) = pull_ones(differentiate(graph, [True]), np.arange(5.0))
    np.testing.assert_array_equal(dx, [0, 0, 0, 2, 2])


@pytest.mark.parametrize("count", [31, 32, 33, 64, 65, 100])
def test_a_node_may_have_many_operands_and_outputs(count):
    x = np.arange(1.0, 1 + count)
    (dx,) = pull_ones(differentiate(split_in_four((0, count - 1), None, count), [True]), x)
    np.testing.assert_array_equal(dx, [*[0] * (count - 1), count - 1])
    graph = Graph()
    inputs = [graph.add_input("f64[1]") for _ in range(count)]
    graph.register_output(graph.insert("concatenate", *inputs))
    gradient = differentiate(graph, [False] * (count - 1) + [True])
    _, (last,) = pull(gradient, [np.zeros(1)] * count, [x])
    assert last == count
    assert [node.kind for node in gradient.df.nodes()] == ["slice"]


def test_df_does_not_change_its_arguments():
    gradient = differentiate(parse("%c = mul(%a, %b)", "return (%c, %a)"), [True, True])
    arrays = [np.arange(3.0), np.arange(3.0) + 5]
    cotangents = [np.ones(3), np.full(3, 2.0)]
    for array in (*arrays, *cotangents):
        array.flags.writeable = False
    _, (da, db) = pull(gradient, arrays, cotangents)
    np.testing.assert_array_equal(da, arrays[1] + 2)
    np.testing.assert_array_equal(db, arrays[0])


def test_third_derivative_of_a_cube():
    graph = parse("%b = mul(%a, %a)", "%c = mul(%b, %a)", "return (%c)", inputs="%a : f64[]")
    x = np.array(2.0)
    first = differentiate(graph, [True])
    # y' as a function of x alone: f and df in one graph.
    for expected in (12.0, 12.0, 6.0):
        joined = Graph()
        a = joined.add_input("f64[]")
        outputs = joined.inline(first.f, [a])
        saved = [
            a if capture.kind == Capture.INPUT else outputs[capture.offset]
            for capture in first.df_input_captures
        ]
        seeds = [
            joined.constant(1.0 if j < first.f_real_outputs else 0.0)
            for j in first.df_input_vjps
        ]
        (result,) = joined.inline(first.df, [*saved, *seeds])
        joined.register_output(result)
        assert run(joined, x) == (expected,)
        first = differentiate(joined, [True])
