"""Tests of `gradient.check`: what it finds, what it calls it, and where it stays silent."""

import copy
import dataclasses
import importlib

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import DTypeError, NotDifferentiable, ShapeError, VerifyError
from stagedad.ops import OPS
from stagedad.transform import Capture

A = np.array([0.5, -1.25, 2.0])
B = np.array([1.5, 0.25, -0.75])


def model(a, b):
    """On the way back a, b, exp(a), tanh(b) and sin(a) are read: captures of one type."""
    return np.exp(a) * np.tanh(b) + np.sin(a) * b


def pair_of(function, *arguments, wanted=None):
    graph = sd.trace(function, *arguments)
    return sd.differentiate(graph, wanted or [value.type.is_inexact for value in graph.inputs])


@pytest.fixture
def gradient():
    """The pair of `model` at A and B."""
    return pair_of(model, A, B)


def node_of(graph, kind):
    (node,) = [node for node in graph.nodes() if node.kind == kind]
    return node


def replace_node(node, kind):
    """Let another op of the same operands take the place of a node."""
    made = node.graph.create(kind, *node.inputs)
    made.insert_before(node)
    node.output.replace_all_uses_with(made.output)
    node.destroy()


def times(gradient, factor):
    """Let df give the cotangent of the first input times a factor."""
    out = gradient.df.outputs[0]
    wrong = gradient.df.insert("mul", out, gradient.df.constant(factor))
    out.replace_all_uses_with(wrong, except_=wrong.node)


def failure(gradient, *arguments, **options):
    with pytest.raises(VerifyError) as caught:
        gradient.check(*arguments, **options)
    return caught.value


# What is right passes, and something was compared.


def test_passes_and_says_how_much_it_compared(gradient):
    before = [A.copy(), B.copy()]
    found = gradient.check(A, B, function=model)
    # Two inputs, two directions of each, four outputs: the real one and three temporaries.
    assert gradient.df_input_vjps == [0, 1, 2, 3]
    assert found == (16, 16, 0)
    assert (found.tangents, found.differences, found.blunt) == found
    for array, old in zip((A, B), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_is_the_same_every_time_and_leaves_the_generator_alone(gradient):
    state = np.random.get_state(legacy=False)["state"]["pos"]
    assert gradient.check(A, B) == gradient.check(A, B)
    assert np.random.get_state(legacy=False)["state"]["pos"] == state


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_passes_in_every_dtype(dtype):
    def function(a, b):
        return np.exp(a) * np.sin(b) + a / (2 + b * b), np.sum(a * b)

    a, b = A.astype(dtype), B.astype(dtype)
    if dtype.startswith("c"):
        a, b = a + 1j * b, b - 0.5j * a
    found = pair_of(function, a, b).check(a, b, function=function)
    assert found.tangents == found.differences or dtype == "f2"
    assert found.blunt == 0 or dtype in ("f2", "f4", "c8")


def test_passes_for_numbers_empty_arrays_integers_and_pytrees():
    def function(x, params, index):
        return {"y": x * params["w"][0], "n": index + 1}, np.sum(params["w"][1] ** 2)

    arguments = (0.5, {"w": [np.array(2.0), np.zeros((0, 3))]}, np.arange(3))
    gradient = pair_of(function, *arguments)
    assert gradient.df_output_vjps == [0, 1, 2]
    assert gradient.check(*arguments, function=function) == (8, 8, 0)


def test_arrays_that_f_closes_over_are_no_arguments():
    held = np.array([1.0, 2.0, 3.0])

    def function(x):
        return np.sin(x * held), np.arange(3.0), np.arange(3)

    gradient = pair_of(function, A)
    assert gradient.check(A, function=function) == (4, 4, 0)
    replace_node(node_of(gradient.df, "cos"), "sin")
    assert failure(gradient, A).input == 0


def test_nothing_to_differentiate_is_nothing_to_compare():
    gradient = pair_of(lambda n: n + 1, np.arange(3))
    assert gradient.check(np.arange(3)) == (0, 0, 0)
    flat = np.array([0.5, -1.25, 2.5])
    assert pair_of(np.floor, flat).check(flat) == (2, 2, 0)


def test_an_untyped_graph_passes():
    graph = sd.Graph()
    a, b = graph.add_input(), graph.add_input()
    graph.register_output(graph.insert("mul", graph.insert("sin", a), b))
    gradient = sd.differentiate(graph, [True, True])
    assert gradient.check(A, B[:1]).tangents == 8
    assert gradient.check(A.astype("f4"), B.astype("f4")).tangents == 8


def test_many_outputs_are_weighed_in_groups():
    def function(x):
        for _ in range(100):
            x = np.sin(x)
        return x

    gradient = pair_of(function, A)
    assert len(gradient.df_input_vjps) == 100
    assert gradient.check(A).tangents == 2 * 64
    replace_node([n for n in gradient.df.nodes() if n.kind == "cos"][40], "sin")
    assert "temporary output" in str(failure(gradient, A))


# Kinks, jumps, singular points and cancellation are no faults.


def relu(x):
    return np.maximum(x, 0)


ZERO = np.zeros(3)
AT_KINKS = {
    "abs": (np.abs, ZERO),
    "relu": (relu, ZERO),
    "relu beside others": (relu, np.array([0.0, 1, -1, 3, 0])),
    "tie": (lambda x: np.maximum(x, x[::-1]), np.array([1.0, 5, 1])),
    "three tie": (np.max, np.array([2.0, 2, 2, 1])),
    "near a kink": (relu, np.array([1e-5, -1e-6, 1e-9])),
    "jump": (lambda x: np.sign(x) * x + np.floor(x), np.array([0.0, 1, 2])),
    "near a jump": (lambda x: x + np.floor(x), np.array([1e-5, 1 + 1e-7, -1e-9])),
    "branch": (lambda x: np.where(x > 0, x * x, -3 * x), np.array([0.0, 1, -1])),
    "branch of one point": (lambda x: np.where(x == 0, x, np.sin(2 * x)), np.array([0.0, 1])),
    "root of zero": (np.sqrt, np.array([0.0, 1, 4])),
    "log of zero": (lambda x: x * np.log(x), np.array([0.0, 1, 4])),
    "infinite value": (np.log, np.array([0.0, 1, 4])),
    "no number": (lambda x: np.sqrt(x) * x, np.array([-1.0, 1, 4])),
    "power": (lambda x: x**1.5, np.array([0.0, 1, 4])),
    "overflow": (np.exp, np.array([1e3, 1])),
    "tiny": (lambda x: np.sin(x / 1e-9), np.array([1e-9, -2e-9])),
    "huge": (lambda x: np.sin(x / 1e9), np.array([1e9, -2e9])),
    "rough": (lambda x: np.sin(1e4 * x), np.array([0.3, 2.0])),
    "offset": (lambda x: x + 1e8, A),
    "cancels": (lambda x: (x + 1e8) - 1e8, A),
    "cancels in f": (lambda x: (x * x + 1e10 * x) - 1e10 * x, A),
    "cancels in df": (lambda x: (1e10 * x * x - 1e10 * x * x) + x, A),
}


@pytest.mark.parametrize("name", AT_KINKS)
def test_raises_no_false_alarm(name):
    function, x = AT_KINKS[name]
    for dtype in ("f8", "f4"):
        at = x.astype(dtype)
        with np.errstate(all="ignore"):
            found = pair_of(function, at).check(at, function=function)
        assert found.differences + found.blunt > 0


@pytest.mark.parametrize(
    "name", ["relu beside others", "branch", "near a jump", "tiny", "huge", "rough", "offset"]
)
def test_finds_faults_beside_kinks_too(name):
    function, x = AT_KINKS[name]
    gradient = pair_of(function, x)
    times(gradient, 1.001)
    assert failure(gradient, x).found == pytest.approx(1.001 * failure(gradient, x).expected)


def test_passes_at_an_optimum():
    """The gradient is what rounding leaves of terms that cancel."""

    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    for x in (np.ones(10), np.ones(10) + 1e-9, np.full(10, 1 / 3) * 3):
        gradient = pair_of(rosenbrock, x)
        assert gradient.check(x).tangents == 2 * len(gradient.df_input_vjps)


def test_passes_where_f_loses_all_digits():
    """Products of numbers under a half, beside sums: values of 1e-12 in steps of 1e-17."""

    def chain(a, b):
        for _ in range(15):
            a = a * b + 0.25 - 0.25
        return a

    a, b = np.random.default_rng(1).uniform(0, 0.2, (2, 3))
    assert np.max(chain(a, b)) < 1e-10
    assert pair_of(chain, a, b).check(a, b).tangents == 2 * 2 * 15


def test_what_stop_gradient_gives_is_held_still():
    def function(x):
        return sd.stop_gradient(np.exp(x)) * np.sin(x) + sd.stop_gradient(x)

    gradient = pair_of(function, A)
    assert gradient.check(A, function=function).blunt == 0
    replace_node(node_of(gradient.df, "cos"), "sin")
    assert failure(gradient, A).input == 0


@pytest.mark.parametrize("policy", ["masked", "strict"])
def test_passes_under_both_policies(policy):
    x = np.array([0.0, 1.0, 2.0])
    graph = sd.trace(lambda x: np.where(x > 0.5, np.log(x), 0) + np.sqrt(x), x)
    gradient = sd.differentiate(graph, [True], nan_policy=policy)
    with np.errstate(all="ignore"):
        assert gradient.check(x).blunt > 0


# Planted faults, each found and named.


def test_a_wrong_rule_in_df(gradient):
    replace_node(node_of(gradient.df, "cos"), "sin")
    error = failure(gradient, A, B)
    (at,) = error.index
    assert (error.input, error.output, error.output_index) == (0, 0, (at,))
    right, wrong = (np.exp(A) * np.tanh(B) + part(A) * B for part in (np.cos, np.sin))
    assert error.expected == pytest.approx(right[at], rel=1e-12)
    assert error.found == pytest.approx(wrong[at], rel=1e-12)
    assert str(error).startswith(
        f"gradient.check: df output 0, the cotangent of input 0 (%a) at ({at},): "
        f"df gives {error.found:.9g}, the tangent of f {error.expected:.9g}: of output 0 (%"
    )
    assert "\nhint: a rule in df is wrong" in str(error)


def test_a_fault_in_one_element_of_many():
    x = np.random.default_rng(0).uniform(1, 2, (40, 50))
    gradient = pair_of(np.log, x)
    factor = np.ones((40, 50))
    factor[17, 31] = 1 + 1e-6
    times(gradient, factor)
    error = failure(gradient, x)
    assert (error.index, error.output_index) == ((17, 31), (17, 31))
    assert error.expected == pytest.approx(1 / x[17, 31], rel=1e-12)
    assert error.found / error.expected == pytest.approx(1 + 1e-6, rel=1e-12)


def test_exchanged_captures_are_named(gradient):
    order = gradient.df_input_captures
    names = [str(capture) for capture in order]
    assert names == ["I0", "I1", "O1", "O2", "O3"]
    for i, j in ((0, 1), (2, 3), (0, 3)):
        twin = copy.copy(gradient)
        twin.df_input_captures[i], twin.df_input_captures[j] = order[j], order[i]
        said = f"hint: captures {i} ({order[j]}) and {j} ({order[i]}) are exchanged"
        assert said in str(failure(twin, A, B))


def test_a_capture_of_another_value_is_named():
    a = np.abs(A)
    gradient = pair_of(lambda a, b: (np.exp(a) * np.tanh(b), a * b), a, B)
    at = gradient.df_input_captures.index((Capture.OUTPUT, 2))
    gradient.df_input_captures[at] = Capture(Capture.OUTPUT, 1)
    said = f"hint: capture {at} is O1, and df fits with O2"
    assert said in str(failure(gradient, a, B))


def test_a_dead_capture_is_named(gradient):
    node = node_of(gradient.df, "cos")
    node.replace_input(0, gradient.df.inputs[1])
    gradient.df.inputs[0].replace_all_uses_with(gradient.df.inputs[1])
    error = failure(gradient, A, B)
    assert str(error).startswith("gradient.check: capture 0 is dead: I0 (%a of f, %a of df)")
    assert error.capture == 0


def test_a_repeated_capture_is_named(gradient):
    gradient.df_input_captures[3] = Capture(Capture.OUTPUT, 1)
    message = str(failure(gradient, A, B))
    assert message.startswith(
        "gradient.check: captures 2 and 3 are the same value: O1 and O1 (%"
    )


def test_two_names_of_one_value_are_named(gradient):
    """An output that is a value captured already, or an input."""
    gradient.f.register_output(gradient.f.outputs[1])
    gradient.df_input_captures[3] = Capture(Capture.OUTPUT, 4)
    assert "captures 2 and 3 are the same value: O1 and O4" in str(failure(gradient, A, B))
    gradient.f.register_output(gradient.f.inputs[0])
    gradient.df_input_captures[3] = Capture(Capture.OUTPUT, 5)
    assert "captures 0 and 3 are the same value: I0 and O5" in str(failure(gradient, A, B))


def test_a_lost_cotangent_of_a_temporary_is_named(gradient):
    slot = gradient.df.inputs[6]
    zero = gradient.df.insert("zeros_like", slot)
    zero.node.move_before(next(gradient.df.nodes()))
    slot.replace_all_uses_with(zero, except_=zero.node)
    error = failure(gradient, A, B)
    assert error.output == 1
    assert ": of temporary output 1 (%" in str(error)
    assert error.found == 0


def test_lost_conjugation_is_named_with_its_part():
    a, b = A + 1j * B, B - 0.5j * A
    gradient = pair_of(lambda a, b: a * b, a, b)
    for node in [node for node in gradient.df.nodes() if node.kind == "conj"]:
        node.output.replace_all_uses_with(node.inputs[0])
        node.destroy()
    error = failure(gradient, a, b)
    assert ", imaginary part" in str(error)
    assert error.found == pytest.approx(-error.expected)


def test_no_number_where_there_should_be_one(gradient):
    times(gradient, np.array([1, np.nan, 1]))
    error = failure(gradient, A, B)
    assert "df gives nan, the tangent of f " in str(error)
    assert (error.input, error.index, np.isnan(error.found)) == (0, (1,), True)
    assert np.isfinite(error.expected)


def test_something_that_comes_out_where_nothing_went_in():
    x = np.zeros((0, 3)), np.ones((1, 3))
    gradient = pair_of(lambda a, b: a * b, *x)
    assert gradient.check(*x) == (2, 2, 0)
    out = gradient.df.outputs[1]
    more = gradient.df.insert("add", out, gradient.df.constant(1.0))
    out.replace_all_uses_with(more, except_=more.node)
    assert "df gives" in str(failure(gradient, *x))
    assert ": of zero cotangents" in str(failure(gradient, *x))


def test_a_cotangent_of_another_shape(gradient):
    out = gradient.df.outputs[0]
    total = gradient.df.insert("sum", out)
    total.type = out.type  # which the verifier believes
    gradient.df.outputs[0].replace_all_uses_with(total, except_=total.node)
    with pytest.raises((VerifyError, ShapeError)):
        gradient.check(A, B)


# Faults of a declaration: df and the tangent are wrong alike, differences are not.


@pytest.fixture
def fresh_rules(monkeypatch):
    """No rule that was made before, or is made here, is used again."""
    module = importlib.import_module("stagedad.transform.differentiate")
    policies = {policy: {} for policy in module.NAN_POLICIES}
    monkeypatch.setattr(module, "_templates", policies)


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("kind", ["sub", "mul", "div", "maximum"])
def test_a_wrong_declaration_shows_in_differences(kind, dtype, monkeypatch):
    op = OPS[kind]
    swapped = {"self": op.partials["other"], "other": op.partials["self"]}
    monkeypatch.setitem(OPS, kind, dataclasses.replace(op, partials=swapped))
    a, b = A.astype(dtype), B.astype(dtype)
    function = getattr(
        np, {"sub": "subtract", "mul": "multiply", "div": "divide"}.get(kind, kind)
    )
    error = failure(pair_of(function, a, b), a, b)
    assert "finite differences" in str(error)
    assert "\nhint: where df agrees with the tangent" in str(error)
    assert error.index == error.output_index
    right = {"sub": 1.0, "mul": b, "div": 1 / b, "maximum": 1.0 * (a > b)}[kind]
    if error.input == 0:
        wanted = np.broadcast_to(right, a.shape)[error.index]
        assert error.expected == pytest.approx(wanted, abs=1e-6 if dtype == "f8" else 1e-2)


def test_without_forward_rules_differences_are_enough(gradient, monkeypatch):
    probing = importlib.import_module("stagedad.front.probing")

    def unable(*_):
        raise NotDifferentiable("sin: has no jvp")

    monkeypatch.setattr(probing, "tangent", unable)
    assert gradient.check(A, B) == (0, 16, 0)
    replace_node(node_of(gradient.df, "cos"), "sin")
    assert "finite differences" in str(failure(gradient, A, B))
    again = pair_of(model, A, B)
    times(again, np.array([1, np.inf, 1]))
    error = failure(again, A, B)
    assert (error.index, error.output_index) == ((1,), (1,))
    assert np.isinf(error.found)
    assert np.isfinite(error.expected)


# The function that f was traced from.


def test_f_is_not_the_function(gradient):
    error = failure(gradient, A, B, function=lambda a, b: model(a, b) + (a > 1) * 1e-6)
    assert str(error).startswith("gradient.check: output 0 (%")
    assert (error.output, error.output_index) == (0, (2,))
    assert error.expected - error.found == pytest.approx(1e-6)
    assert f"is {error.found}, the function gives {error.expected}" in str(error)


def test_the_function_gives_another_shape_dtype_or_number_of_results(gradient):
    message = str(failure(gradient, A, B, function=lambda a, b: model(a, b)[:2]))
    assert "is float64(3,), the function gives float64(2,)" in message
    message = str(failure(gradient, A, B, function=lambda a, b: model(a, b).astype("f4")))
    assert "the function gives float32(3,)" in message
    message = str(failure(gradient, A, B, function=lambda a, b: (model(a, b), a)))
    assert message == "gradient.check: f has 1 outputs, the function gives 2"


def test_numbers_of_python_and_what_is_no_number_are_as_traced():
    def function(x):
        return {"value": x * x, "name": "square", "nothing": None}

    assert pair_of(function, 3.0).check(3.0, function=function).blunt == 0
    assert pair_of(function, 3.0).check(np.float64(3.0), function=lambda _: 9.0).blunt == 0


def test_a_function_that_writes_to_its_argument_changes_nothing():
    def function(x):
        result = np.exp(x)
        x *= 0
        return result

    gradient = pair_of(np.exp, A)
    assert gradient.check(A.copy(), function=function).blunt == 0


# Arguments and fields that do not fit.


def test_refuses_arguments_that_f_does_not_take(gradient):
    with pytest.raises(TypeError, match=r"^gradient\.check: 1 arrays for the 2 inputs of f$"):
        gradient.check(A)
    with pytest.raises(ShapeError):
        gradient.check(A, B[:2])
    with pytest.raises(DTypeError):
        gradient.check(A, B.astype("f4"))


def test_verifies_both_graphs(gradient):
    node = node_of(gradient.df, "cos")
    node.output.type = "f64[7]"
    assert "f64[7]" in str(failure(gradient, A, B))
