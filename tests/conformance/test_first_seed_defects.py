"""What went wrong with the first seed, or in what grew from it: each defect as a test.

B1, B2, ... are the numbers of the reference.  Not restated, for what they are about is not
here: B23 (dropout), B29 (loops, lists of tensors), B31 (nodes with an effect), B33 (mutation),
B37 (blocks), B39 (choosing differentiable parts of a graph).
"""

import gc
import weakref

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import NotDifferentiable
from stagedad.transform import Capture
from stagedad.transform.tangent import tangent


def graph_of(body, inputs="%a : f64[], %b : f64[]"):
    """The graph of `body`, with the types that follow from the inputs'."""
    untyped = sd.parse_graph(f"graph({inputs}) {{\n {body}\n}}")
    graph, values = sd.Graph(), {}
    for value in untyped.inputs:
        values[value] = graph.add_input(value.type, name=value.name)
    for node in untyped.nodes():
        operands = [values[value] for value in node.inputs]
        new = graph.create(node.kind, *operands, outputs=len(node.outputs), **node.attributes)
        graph.append(new)
        values.update(zip(node.outputs, new.outputs, strict=True))
    for value in untyped.outputs:
        graph.register_output(values[value])
    return graph


def captures(gradient):
    kinds = {Capture.INPUT: "I", Capture.OUTPUT: "O"}
    return " ".join(f"{kinds[kind]}{offset}" for kind, offset in gradient.df_input_captures)


def kinds(graph):
    return [node.kind for node in graph.nodes()]


def pull(gradient, arrays, cotangents):
    """What df gives, run by its compiled pair, for a cotangent for each of `df_input_vjps`."""
    pair = sd.compile(gradient)
    outputs = pair.f(*arrays)
    saved = [
        (arrays if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]
    return [array.tolist() for array in pair.df(*saved, *cotangents)]


def scalars(*numbers):
    return [np.array(float(number)) for number in numbers]


# In the seed's own text


def test_b01_the_cotangent_of_a_temporary_is_not_lost():
    """The temporary's cotangent is itself an output of df: (a + b) squared."""
    gradient = sd.differentiate(
        graph_of("%t = add(%a, %b)\n %y = mul(%t, %t)\n return (%y)"), [True, True]
    )
    assert captures(gradient) == "O1"
    assert gradient.df_input_vjps == [0, 1]
    assert pull(gradient, scalars(2, 3), scalars(1, 0)) == [10, 10]
    assert pull(gradient, scalars(2, 3), scalars(0, 1)) == [1, 1]


@pytest.mark.parametrize(("kind", "sign"), [("add", 1), ("sub", -1)])
def test_b02_alpha_counts(kind, sign):
    """The gradient of the second operand is alpha times the cotangent."""
    graph = graph_of(f"%y = {kind}[alpha=2.5](%a, %b)\n return (%y)")
    gradient = sd.differentiate(graph, [True, True])
    assert pull(gradient, scalars(2, 3), scalars(4)) == [4, sign * 10]
    assert sd.compile(gradient.f)(*scalars(2, 3))[0] == 2 + sign * 7.5


def test_b03_a_rule_is_found_by_the_whole_signature(monkeypatch):
    """A mul of one operand is not the mul whose rule reads two."""
    monkeypatch.delenv("STAGEDAD_CHECK", raising=False)
    graph = graph_of("%y = mul(%a, %b)\n return (%y)")
    (node,) = graph.nodes()
    assert sd.is_differentiable(node)
    node.remove_input(1)
    assert not sd.is_differentiable(node)
    with pytest.raises(NotDifferentiable, match="mul: takes 2 operands: 1"):
        sd.differentiate(graph, [True, True])


def test_b04_the_zero_of_an_unused_input_can_be_run():
    """Zeros are constants of the one kind that programs know."""
    gradient = sd.differentiate(graph_of("%y = mul(%a, %a)\n return (%y)"), [True, True])
    assert gradient.df.outputs[1].node.kind == "constant"
    assert pull(gradient, scalars(3, 5), scalars(1)) == [6, 0]


@pytest.mark.parametrize("type_", ["", " : f64[?]", " : f64[*]"])
def test_b05_a_zero_needs_no_type(type_):
    """Where no shape is known, an unused input's zero takes it from the input."""
    graph = graph_of("%y = exp(%a)\n return (%y)", f"%a{type_}, %b{type_}")
    gradient = sd.differentiate(graph, [True, True])
    assert pull(gradient, [np.zeros(2), np.ones(3)], [np.ones(2)]) == [[1, 1], [0, 0, 0]]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (1, 1)])
def test_b06_zeros_of_every_shape(shape):
    """0-d and empty ones too."""
    text = ", ".join(map(str, shape))
    graph = graph_of("%y = exp(%a)\n return (%y)", f"%a : f64[], %b : f64[{text}]")
    gradient = sd.differentiate(graph, [True, True])
    _, db = sd.compile(gradient).df(np.array(1.0), np.array(1.0))
    assert db.shape == shape
    assert not db.any()


def test_b07_an_absent_cotangent_costs_nothing():
    """Through floor comes a structural zero: no array of zeros goes on through tanh."""
    body = "%t = tanh(%a)\n %u = floor(%t)\n %v = mul(%u, %b)\n return (%v)"
    gradient = sd.differentiate(graph_of(body), [True, True])
    assert captures(gradient) == "O1"
    assert kinds(gradient.df) == ["mul", "constant"]
    assert pull(gradient, scalars(-0.5, 3), scalars(2, 7)) == [0, -2]


def test_b08_no_code_for_inputs_that_are_not_asked_for():
    """Nothing is made for them and thrown away later: neither nodes nor captures."""
    body = "%t = mul(%a, %b)\n %u = tanh(%b)\n %v = mul(%t, %u)\n return (%v)"
    graph = graph_of(body)
    gradient = sd.differentiate(graph, [True, False])
    assert kinds(gradient.df) == ["mul", "mul"]
    assert captures(gradient) == "I1 O1"
    assert gradient.df_input_vjps == [0]
    whole = gradient.df.copy()
    assert not sd.dce(whole)
    assert whole == gradient.df


def test_b09_the_cotangent_of_a_temporary_does_not_leak():
    """tanh(x) and b share the cotangent of their sum; d tanh = 1 is none of b's."""
    graph = graph_of(
        "%t = tanh(%x)\n %s = add(%t, %b)\n %y = mul(%s, %c)\n return (%y)",
        "%x : f64[], %b : f64[], %c : f64[]",
    )
    gradient = sd.differentiate(graph, [True] * 3)
    assert captures(gradient) == "I2 O1 O2"
    assert gradient.df_input_vjps == [0, 1, 2]
    slope = 1 - np.tanh(0.5) ** 2
    arrays = scalars(0.5, 2, 3)
    dx, db, dc = pull(gradient, arrays, scalars(0, 1, 0))
    assert (dx, db, dc) == (pytest.approx(slope), 0, 0)
    dx, db, dc = pull(gradient, arrays, scalars(0, 0, 1))
    assert (dx, db, dc) == (pytest.approx(slope), 1, 0)
    dx, db, dc = pull(gradient, arrays, scalars(1, 0, 0))
    assert (dx, db, dc) == tuple(map(pytest.approx, (3 * slope, 3, np.tanh(0.5) + 2)))


def test_b10_the_cotangent_of_a_temporary_may_be_an_input_of_df():
    """tanh(x) + b: there is no node of df behind which the sum could go."""
    graph = graph_of("%t = tanh(%a)\n %y = add(%t, %b)\n return (%y)")
    gradient = sd.differentiate(graph, [True, True])
    assert kinds(gradient.df)[0] == "add"
    slope = pytest.approx(1 - np.tanh(0.5) ** 2)
    assert pull(gradient, scalars(0.5, 3), scalars(1, 0)) == [slope, 1]
    assert pull(gradient, scalars(0.5, 3), scalars(0, 1)) == [slope, 0]


def test_b11_broadcasting_is_undone():
    """1001 e = 2721, where the broadcast gradient gave 5436.56."""

    def f(z):
        return np.sum(np.exp(z) - 0.0) + np.sum(np.exp(z) - np.zeros(1000))

    assert sd.grad(f)(1.0) == pytest.approx(1001 * np.e)
    graph = graph_of("%y = mul(%a, %b)\n return (%y)", "%a : f64[2, 1], %b : f64[3]")
    gradient = sd.differentiate(graph, [True, True])
    a, b, g = np.array([[2.0], [3]]), np.array([5.0, 7, 11]), np.arange(6.0).reshape(2, 3)
    da, db = pull(gradient, [a, b], [g])
    assert da == (g * b).sum(1, keepdims=True).tolist()
    assert db == (g * a).sum(0).tolist()
    # The type of a result is that of both operands, not of the left one.
    assert str(gradient.f.outputs[0].type) == "f64[2, 3]"


def test_b12_a_stage_without_a_node():
    """The identity's df has inputs and outputs only, and is a sound graph."""
    gradient = sd.differentiate(graph_of("return (%a, %b)"), [True, True])
    assert len(gradient.df) == 0
    gradient.df.verify()
    gradient.joint.verify()
    assert pull(gradient, scalars(1, 2), scalars(5, 7)) == [5, 7]


def test_b12_a_value_replaced_by_itself():
    """Which went round for ever."""
    graph = graph_of("%t = mul(%a, %b)\n %y = mul(%t, %t)\n return (%y)")
    before, t = str(graph), graph.outputs[0].node.inputs[0]
    t.replace_all_uses_with(t)
    assert str(graph) == before
    graph.verify()


def test_b12_a_named_value_is_cloned_within_its_graph():
    """The second of two equal names gets a suffix."""
    graph = graph_of("%y = tanh(%a)\n return (%y)")
    node = graph.outputs[0].node
    graph.outputs[0].name = "out"
    twin = node.clone_into(graph, {graph.inputs[0]: graph.inputs[1]})
    graph.verify()
    assert node.output.name == "out"
    assert twin.output.name not in (None, "out")
    assert twin.output.name.startswith("out")


def test_b13_attributes_of_every_sort_are_compared():
    """Equal ones merge, lists too; nodes that differ in one do not."""
    graph = graph_of(
        "%t = reshape[shape=(3, 2)](%a)\n %u = reshape[shape=(3, 2)](%a)\n"
        " %v = reshape[shape=(2, 3)](%a)\n %w = astype[dtype=dtype(f32)](%a)\n"
        " %x = astype[dtype=dtype(f32)](%a)\n %y = astype[dtype=dtype(f16)](%a)\n"
        " return (%t, %u, %v, %w, %x, %y)",
        "%a : f64[6]",
    )
    assert sd.cse(graph)
    t, u, v, w, x, y = graph.outputs
    assert (t, w) == (u, x)
    assert len({t, v, w, y}) == 4


def test_b14_dead_nodes_make_no_zeros():
    """What only dead code reads is neither computed nor captured."""
    body = "%t = exp(%b)\n %u = mul(%t, %t)\n %y = tanh(%a)\n return (%y)"
    gradient = sd.differentiate(graph_of(body), [True, True])
    assert kinds(gradient.f) == ["tanh"]
    assert captures(gradient) == "O0"
    assert kinds(gradient.df) == ["mul", "constant", "sub", "mul", "constant"]


def test_b15_captures_are_inputs_first_then_nodes_in_order():
    """The worked example: x, t, y and not y, t, x."""
    graph = graph_of(
        "%t = add(%x, %m)\n %u = mul(%t, %x)\n %y = tanh(%u)\n return (%y)",
        "%x : f64[], %m : f64[]",
    )
    gradient = sd.differentiate(graph, [True, False])
    assert captures(gradient) == "I0 O1 O0"
    assert gradient.f_real_outputs == 1
    assert gradient.df_input_vjps == [0, 1]
    assert gradient.df_output_vjps == [0]
    assert len(gradient.df.inputs) == 5


# Formulas


def test_b16_both_operands_of_a_matmul():
    """The second one's was a copy of the first one's where no type was known."""
    rng = np.random.default_rng(1)
    a, b, g = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    body = "%y = matmul(%a, %b)\n return (%y)"
    for inputs in ("%a : f64[2, 3], %b : f64[3, 4]", "%a : f64[?, ?], %b : f64[?, ?]"):
        gradient = sd.differentiate(graph_of(body, inputs), [True, True])
        da, db = pull(gradient, [a, b], [g])
        np.testing.assert_allclose(da, g @ b.T)
        np.testing.assert_allclose(db, a.T @ g)
    with pytest.raises(NotDifferentiable, match="matmul"):
        sd.differentiate(graph_of(body, "%a, %b"), [True, True])


@pytest.mark.parametrize("alpha", [1, 2, -0.5])
def test_b17_a_product_that_is_scaled_and_added(alpha):
    """addmm's formula held for alpha = 1 only."""
    rng = np.random.default_rng(2)
    a, b, c = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    g = rng.normal(size=(2, 2))
    body = f"%p = matmul(%a, %b)\n %y = add[alpha={alpha}](%c, %p)\n return (%y)"
    graph = graph_of(body, "%a : f64[2, 3], %b : f64[3, 2], %c : f64[2, 2]")
    da, db, dc = pull(sd.differentiate(graph, [True] * 3), [a, b, c], [g])
    np.testing.assert_allclose(da, alpha * g @ b.T)
    np.testing.assert_allclose(db, alpha * a.T @ g)
    np.testing.assert_allclose(dc, g)


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        ("reshape[shape=(6,)](%a)", "f64[2, 3]"),
        ("broadcast_to[shape=(2, 3)](%a)", "f64[2, 1]"),
        ("squeeze(%a)", "f64[1, 3]"),
        ("expand_dims[axis=0](%a)", "f64[3]"),
        ("concatenate(%a, %a)", "f64[3]"),
        ("transpose(%a)", "f64[2, 3]"),
    ],
)
def test_b18_what_has_a_formula_is_reached(call, type_):
    """One table: no second list of kinds that could leave one out."""
    graph = graph_of(f"%y = {call}\n return (%y)", f"%a : {type_}")
    assert sd.is_differentiable(graph.outputs[0].node)
    gradient = sd.differentiate(graph, [True])
    x = np.ones([int(n) for n in type_[4:-1].split(",")])
    y = sd.compile(gradient.f)(x)[0]
    (dx,) = pull(gradient, [x], [np.ones_like(y)])
    np.testing.assert_array_equal(dx, np.full(x.shape, y.size / x.size))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [([1, 3, 1], None), ([1, 3, 1], (0, 2)), ([1, 3, 1], -1), ([1, 1, 3], (-3, 1))],
)
def test_b18b_squeezing_several_axes(shape, axis):
    """They come back at their places, also where counted from the end."""
    graph = graph_of(f"%y = squeeze[axis={axis}](%a)\n return (%y)", f"%a : f64{shape}")
    gradient = sd.differentiate(graph, [True])
    x = np.arange(3.0).reshape(shape)
    g = np.array([5.0, 7, 11]).reshape(np.squeeze(x, axis).shape)
    assert pull(gradient, [x], [g]) == [g.reshape(x.shape).tolist()]


def test_b19_sums_of_cotangents_of_unlike_shapes():
    """What reads a stretched and what reads it plain: summed to its shape first, then added."""
    body = "%p = add(%a, %a)\n %q = mul(%a, %b)\n return (%p, %q)"
    gradient = sd.differentiate(graph_of(body, "%a : f64[1], %b : f64[3]"), [True, True])
    a, b = np.array([2.0]), np.array([3.0, 5, 7])
    assert pull(gradient, [a, b], [np.ones(1), np.zeros(3)])[0] == [2]
    assert pull(gradient, [a, b], [np.ones(1), np.ones(3)])[0] == [2 + 15]


@pytest.mark.parametrize(("kind", "wanted"), [("add", ""), ("sub", ""), ("mul", "I0 I1")])
def test_b20_shapes_are_not_captured(kind, wanted):
    """Broadcasting or not, df reads the values of its rules and nothing else."""
    for inputs in ("%a : f64[2, 3], %b : f64[3]", "%a : f64[3], %b : f64[3]"):
        graph = graph_of(f"%y = {kind}(%a, %b)\n return (%y)", inputs)
        gradient = sd.differentiate(graph, [True, True])
        assert captures(gradient) == wanted
        assert len(gradient.f.outputs) == 1


@pytest.mark.parametrize("used", [[0], [2], [0, 2], [1, 2], [0, 1, 2]])
def test_b21_a_split_with_unused_parts(used):
    """Zeros take the place of a part without a cotangent."""
    graph = sd.Graph()
    parts = graph.insert("split", graph.add_input("f64[6]"), indices_or_sections=3)
    for i in used:
        graph.register_output(parts[i])
    gradient = sd.differentiate(graph, [True])
    wanted = [0.0] * 6
    for i in used:
        wanted[2 * i : 2 * i + 2] = [i + 1.0] * 2
    x = np.arange(6.0)
    assert pull(gradient, [x], [np.full(2, i + 1.0) for i in used]) == [wanted]


def test_b22_outputs_that_carry_no_cotangent():
    """Each output for itself: whole numbers and truth values have no slot."""
    body = "%n = astype[dtype=dtype(i64)](%a)\n %m = less(%a, %b)\n %y = mul(%a, %b)"
    gradient = sd.differentiate(graph_of(f"{body}\n return (%n, %y, %m, %y)"), [True, True])
    assert gradient.df_input_vjps == [1, 3]
    assert pull(gradient, scalars(2, 3), scalars(1, 10)) == [33, 22]


def test_b24_a_copy_has_a_gradient():
    """contiguous() had None."""
    graph = graph_of("%y = copy(%a)\n return (%y)", "%a : f64[3]")
    assert pull(sd.differentiate(graph, [True]), [np.ones(3)], [np.arange(3.0)]) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("call", "points", "wanted"),
    [
        ("maximum(%a, %b)", (2, 2), [0.5, 0.5]),
        ("minimum(%a, %b)", (2, 2), [0.5, 0.5]),
        ("maximum(%a, %b)", (2, 3), [0, 1]),
        ("maximum(%a, %a)", (2, 3), [1, 0]),
    ],
)
def test_b25_gradients_at_ties(call, points, wanted):
    """Stated: ties share equally."""
    gradient = sd.differentiate(graph_of(f"%y = {call}\n return (%y)"), [True, True])
    assert pull(gradient, scalars(*points), scalars(1)) == wanted


def test_b25_gradients_of_an_extremum_at_ties():
    """Of a reduction as well."""
    graph = graph_of("%y = max(%a)\n return (%y)", "%a : f64[4]")
    gradient = sd.differentiate(graph, [True])
    slots = [float(j < gradient.f_real_outputs) for j in gradient.df_input_vjps]
    assert pull(gradient, [np.array([3.0, 1, 3, 2])], scalars(*slots)) == [[0.5, 0, 0.5, 0]]


def test_b26_nodes_of_which_nothing_is_known_are_not_merged():
    """They may draw a number: two draws are two, and df takes what f drew."""
    graph = sd.parse_graph(
        "graph(%a : f64[]) {\n %s : f64[] = draw()\n %t : f64[] = draw()\n"
        " %u : f64[] = mul(%a, %s)\n %y : f64[] = mul(%u, %t)\n return (%y)\n}"
    )
    assert not sd.cse(graph)
    gradient = sd.differentiate(graph, [True])
    assert kinds(gradient.f).count("draw") == 2
    assert "draw" not in kinds(gradient.df)
    assert captures(gradient) == "O1 O2"


# What requires a gradient


@pytest.mark.parametrize("call", ["less(%t, %b)", "astype[dtype=dtype(i32)](%t)", "isnan(%t)"])
def test_b27_what_cannot_carry_a_gradient_gets_none(call):
    """Comparisons and integers end it: no slot, nothing emitted behind them."""
    body = f"%t = tanh(%a)\n %m = {call}\n %y = mul(%m, %b)\n return (%m, %y)"
    gradient = sd.differentiate(graph_of(body), [True, True])
    assert gradient.df_input_vjps == [1]
    assert captures(gradient) == "O0"
    assert "tanh" not in kinds(gradient.df)
    assert pull(gradient, scalars(0.5, 3), scalars(1))[0] == 0


def test_b27_a_detached_value_passes_no_gradient():
    """stop_gradient: the value counts, its derivative does not."""
    body = "%t = stop_gradient(%a)\n %y = mul(%t, %a)\n return (%y)"
    gradient = sd.differentiate(graph_of(body, "%a : f64[]"), [True])
    pair = sd.compile(gradient)
    (y,), pullback = pair(np.array(3.0))
    assert (y, pullback(1.0)[0]) == (9, 3)


def test_b28_outputs_that_need_no_gradient_have_no_slot():
    """Each is computed from the inputs it depends on."""
    body = "%c = mul(%b, %b)\n %d = mul(%a, %b)\n return (%c, %d, %b, %a)"
    gradient = sd.differentiate(graph_of(body), [True, False])
    assert gradient.df_input_vjps == [1, 3]
    assert pull(gradient, scalars(2, 3), scalars(1, 10)) == [13]
    none = sd.differentiate(graph_of(body), [False, False])
    assert (none.df_input_vjps, none.df_output_vjps, len(none.df)) == ([], [], 0)


def test_b30_an_unused_input_gets_zeros():
    """Never None, of its own shape and dtype."""
    graph = graph_of("%y = exp(%a)\n return (%y)", "%a : f64[], %b : f32[2, 3]")
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    _, pullback = pair(np.array(0.0), np.ones((2, 3), "f4"))
    _, db = pullback(1.0)
    assert (db.dtype, db.tolist()) == (np.float32, np.zeros((2, 3)).tolist())


# Passes and the IR


def test_b32_results_that_are_one_value_are_arrays_apart():
    """df of a + b is (g, g): who writes into one does not change the other, nor g."""
    graph = graph_of("%y = add(%a, %b)\n return (%y)", "%a : f64[2], %b : f64[2]")
    pair, g = sd.compile(sd.differentiate(graph, [True, True])), np.ones(2)
    da, db = pair.df(g)
    da += 5
    assert (db.tolist(), g.tolist()) == ([1, 1], [1, 1])


def test_b34_outputs_that_are_views_of_one_another():
    """Each one's cotangent counts, and their arrays are apart."""
    body = "%v = reshape[shape=(4,)](%t)\n %w = transpose(%t)\n return (%t, %v, %w, %a)"
    graph = graph_of(f"%t = mul(%a, %a)\n {body}", "%a : f64[2, 2]")
    gradient = sd.differentiate(graph, [True])
    assert gradient.df_input_vjps == [0, 1, 2, 3]
    a = np.array([[1.0, 2], [3, 4]])
    outputs, pullback = sd.compile(gradient)(a)
    for i, one in enumerate(outputs):
        for other in (a, *outputs[:i]):
            assert not np.shares_memory(one, other)
    g = np.arange(1.0, 5)
    (da,) = pullback(g.reshape(2, 2), 10 * g, 100 * g.reshape(2, 2), 1000 * np.ones((2, 2)))
    total = 11 * g.reshape(2, 2) + 100 * g.reshape(2, 2).T
    np.testing.assert_array_equal(da, 2 * a * total + 1000)


def test_b35_a_transpose_of_a_transpose():
    """Both go, and the handles of what went say so."""
    graph = graph_of(
        "%s = transpose(%a)\n %t = transpose(%s)\n %y = exp(%t)\n return (%y)", "%a : f64[2, 3]"
    )
    gone = graph.outputs[0].node.inputs[0].node
    assert sd.simplify(graph)
    sd.dce(graph)
    graph.verify()
    assert kinds(graph) == ["exp"]
    with pytest.raises(ReferenceError):
        gone.kind  # noqa: B018
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(sd.compile(graph)(a)[0], np.exp(a))


def test_b35_broadcasting_to_a_shape_that_may_be_ones_own():
    """It goes only where the shape is known to be that."""
    for type_, left in (("f64[2, 3]", 0), ("f64[?, 3]", 1), ("f64[1, 3]", 1)):
        body = "%s = broadcast_to[shape=(2, 3)](%a)\n %y = exp(%s)\n return (%y)"
        graph = graph_of(body, f"%a : {type_}")
        sd.simplify(graph)
        sd.dce(graph)
        assert kinds(graph).count("broadcast_to") == left


def test_b36_operands_that_are_one_value():
    """A use is a user and a place: editing one of two leaves the other."""
    graph = graph_of("%y = mul(%a, %a)\n return (%y)")
    a, b = graph.inputs
    node = graph.outputs[0].node
    assert [(use.user, use.offset) for use in a.uses] == [(node, 0), (node, 1)]
    node.add_input(b)
    node.remove_input(0)
    assert node.inputs == (a, b)
    assert [(use.user, use.offset) for use in a.uses] == [(node, 0)]
    assert [(use.user, use.offset) for use in b.uses] == [(node, 1)]
    graph.verify()
    assert pull(sd.differentiate(graph, [True, True]), scalars(2, 3), scalars(1)) == [3, 2]


def test_b38_constants_are_not_captured():
    """They are copied into df."""
    graph = sd.Graph()
    a = graph.add_input("f64[3]")
    graph.register_output(graph.insert("mul", a, graph.constant(np.array([2.0, 3, 5]))))
    gradient = sd.differentiate(graph, [True])
    assert captures(gradient) == ""
    assert len(gradient.f.outputs) == 1
    assert pull(gradient, [np.ones(3)], [np.ones(3)]) == [[2, 3, 5]]


def test_b40_the_second_and_third_call_are_right_too():
    """Other shapes, other values, then the first ones again: each run is what it should be."""
    body = "%t = mul(%a, %b)\n %y = tanh(%t)\n return (%y)"
    pair = sd.compile(sd.differentiate(graph_of(body, "%a, %b"), [True, True]))
    rng = np.random.default_rng(3)
    for one, other in [
        ((), ()),
        ((3,), ()),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((), ()),
        ((3,), ()),
    ]:
        for _ in range(3):
            a, b = np.asarray(rng.normal(size=one)), np.asarray(rng.normal(size=other))
            (y,), pullback = pair(a, b)
            np.testing.assert_allclose(y, np.tanh(a * b))
            da, db = pullback(np.ones(y.shape))
            slope = 1 - np.tanh(a * b) ** 2
            np.testing.assert_allclose(da, slope * b)
            np.testing.assert_allclose(np.sum(db), np.sum(slope * a))
            assert (da.shape, db.shape) == (one, other)


def test_b41_the_graph_stays_the_callers():
    """It is copied, however many hold it; only `consume` takes it."""
    graph = graph_of("%y = mul(%a, %b)\n return (%y)")
    other, before = graph, str(graph)
    first = sd.differentiate(graph, [True, True])
    assert str(other) == before
    assert first.f == sd.differentiate(graph, [True, True], consume=True).f
    with pytest.raises(ReferenceError, match="consume"):
        str(other)


def test_b42_scopes_outlive_the_graph_they_come_from():
    """f and df keep them when it is gone."""
    graph = sd.Graph()
    a = graph.add_input("f64[]")
    graph.register_output(graph.insert("tanh", a, scope="model/layer1", location=("m.py", 3)))
    gradient = sd.differentiate(graph, [True])
    gone = weakref.ref(graph)
    del graph, a
    gc.collect()
    assert gone() is None
    for part in (gradient.f, gradient.df.copy()):
        assert {node.scope for node in part.nodes()} == {"model/layer1"}


def test_b42_types_come_from_rules_and_not_from_a_trial():
    """Integers divided by a value nobody has yet."""
    graph = graph_of("%y = div(%a, %b)\n return (%y)", "%a : i64[3], %b : i64[]")
    assert str(graph.outputs[0].type) == "f64[3]"


# When it runs


def test_b43_what_was_saved_goes_with_the_pullback():
    """And it serves as often as it is called until then."""
    graph = graph_of("%y = mul(%a, %a)\n return (%y)", "%a : f64[1000]")
    pair = sd.compile(sd.differentiate(graph, [True]))
    a = np.arange(1000.0)
    _, pullback = pair(a)
    for g in (1, 2, 1):
        np.testing.assert_array_equal(pullback(np.full(1000, g))[0], 2 * a * g)
    gone = weakref.ref(pullback)
    del pullback
    assert gone() is None


def test_b44_double_backward_time_after_time():
    """The second derivative is the same in the tenth round as in the first."""
    second = sd.grad(lambda x: np.sum(sd.grad(lambda y: np.sum(np.tanh(y) ** 2))(x)))
    for scale in (1.0, 0.5, 1.0) * 4:
        x = scale * np.array([0.3, -0.7, 1.1])
        t = np.tanh(x)
        np.testing.assert_allclose(second(x), 2 * (1 - t * t) * (1 - 3 * t * t))


def test_b44_forward_mode_of_what_was_differentiated():
    """The tangent of f and the vjp of df are one linear map."""
    graph = graph_of("%t = mul(%a, %b)\n %y = tanh(%t)\n return (%y)")
    gradient = sd.differentiate(graph, [True, True])
    forward = sd.compile(tangent(gradient.f, [True, True]))
    arrays, u = scalars(0.5, 0.6), scalars(3, -2)
    dy = forward(*arrays, *u)[len(gradient.f.outputs)]
    da, db = pull(gradient, arrays, scalars(*[j == 0 for j in gradient.df_input_vjps]))
    assert dy == pytest.approx(3 * da - 2 * db)
    assert da == pytest.approx(0.6 * (1 - np.tanh(0.3) ** 2))


def test_b45_both_parts_are_at_stage_0():
    """Two graphs, each of one stage; joint has the two."""
    gradient = sd.differentiate(graph_of("%y = mul(%a, %b)\n return (%y)"), [True, True])
    for part in (gradient.f, gradient.df):
        assert part.stage == 0
        values = (*part.inputs, *part.outputs)
        assert {item.stage for item in (*part.nodes(), *values)} == {0}
    assert {node.stage for node in gradient.joint.nodes()} == {0, 1}


def test_b46_one_variable_as_two_cotangents():
    """Both slots count it; its own derivative is the sum of theirs."""
    gradient = sd.differentiate(
        graph_of("%y = mul(%a, %b)\n %z = add(%a, %b)\n return (%y, %z)"), [True, True]
    )
    (g,) = scalars(5)
    assert pull(gradient, scalars(2, 3), [g, g]) == [20, 15]
    graph = sd.Graph()
    a, b, d = (graph.add_input("f64[]") for _ in range(3))
    for value in graph.inline(gradient.df, [a, b, d, d]):
        graph.register_output(value)
    _, pullback = sd.compile(sd.differentiate(graph, [False, False, True]))(*scalars(2, 3, 5))
    assert pullback(1.0, 10.0) == (4 + 30,)
