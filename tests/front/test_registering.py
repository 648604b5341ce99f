"""Tests of front/registering.py and ops/registry.py: ops that users add."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import (
    DeclarationError,
    DTypeError,
    KernelError,
    NotDifferentiable,
    ShapeError,
)
from stagedad.ops import OPS, evaluate, infer
from stagedad.transform.cost import flops
from stagedad.types import TensorType

X = np.array([0.3, -1.2, 2.5])


def t_logistic(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


def t_product(a, b):
    return a * b


def t_scaled(x, *, factor=2.0):
    return x * factor


def t_stacked(*parts, axis=0):
    return np.stack(parts, axis)


def t_both(x, y):
    return x + y, x - y


def stacked_type(*parts, axis):
    shape = parts[0].shape
    return TensorType(parts[0].dtype, (*shape[:axis], len(parts), *shape[axis:]))


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """Make ops of the functions above; tests that go over the table are collected already."""
    for function, named in {
        t_logistic: {"partials": ["result * (1 - result)"], "flops": 26, "notes": "a test's"},
        t_product: {"partials": {"a": "b", "b": "a"}},
        t_scaled: {"vjp": ["t_scaled(g, factor=factor)"], "jvp": "linear"},
        t_stacked: {"type": stacked_type, "vjp": "zero"},
        t_both: {
            "signature": "t_both(x, y) -> (total, apart)",
            "vjp": {"x": "g_total + g_apart", "y": "g_total - g_apart"},
            "jvp": "(x_t + y_t, x_t - y_t)",
        },
    }.items():
        globals()[function.__name__] = sd.register_op(function, **named)


def fails(*arguments, how=sd.register_op, **named):
    """The error of a registration, which says where the call is."""
    with pytest.raises(DeclarationError) as caught:
        how(*arguments, **named)
    error = caught.value
    assert (error.file, error.line) == (__file__, fails.__code__.co_firstlineno + 3)
    assert str(error).startswith(f"{__file__}:{error.line}:{error.column}: ")
    return error


def test_an_op_is_recorded_as_one_node():
    graph = sd.trace(lambda x: t_scaled(t_logistic(x), factor=3.0) + t_scaled(x), X)
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == ["t_logistic", "t_scaled", "t_scaled", "add"]
    lines = str(graph)
    assert "%2 : f64[3] = t_scaled[factor=3.0](%1)" in lines
    assert "%3 : f64[3] = t_scaled(%x)" in lines
    again = sd.parse_graph(lines)
    assert again == graph
    assert again.fingerprint() == graph.fingerprint()
    assert pickle.loads(pickle.dumps(graph)) == graph
    (found,) = sd.compile(graph)(X)
    np.testing.assert_array_equal(found, t_scaled(t_logistic(X), factor=3.0) + t_scaled(X))


def test_plain_calls_are_those_of_the_function():
    assert t_scaled.__name__ == "t_scaled"
    np.testing.assert_array_equal(t_scaled(X, factor=5.0), X * 5)
    assert t_logistic(0.0) == 0.5


def test_every_order_of_derivative():
    s = t_logistic(0.7)
    first = sd.grad(t_logistic)
    second = sd.grad(first)
    assert first(0.7) == pytest.approx(s * (1 - s), rel=1e-15)
    assert second(0.7) == pytest.approx(s * (1 - s) * (1 - 2 * s), rel=1e-14)
    assert sd.grad(second)(0.7) == pytest.approx(s * (1 - s) * (1 - 6 * s + 6 * s * s))
    assert OPS["t_logistic"].max_order is None


def test_products_know_the_op():
    graph = sd.trace(lambda x, y: t_product(t_logistic(x), y), X, X[:1])
    gradient = sd.differentiate(graph, [True, True])
    assert gradient.check(X, X[:1]).differences
    with pytest.raises(KernelError, match=r"t_product: declares no flops: .*\nhint: flops="):
        flops(graph)
    assert flops(sd.trace(t_logistic, X)) == 26 * 3
    assert "t_logistic" in sd.ops
    assert "t_logistic" in list(sd.ops)
    assert infer("t_product", [TensorType("f4", (3,)), TensorType("f8", (2, 1))], {}) == (
        TensorType("f8", (2, 3)),
    )
    (found,) = evaluate("t_product", [X, X], {})
    np.testing.assert_array_equal(found, X * X)


def test_broadcasting_is_undone():
    gx, gy = sd.grad(lambda x, y: np.sum(t_product(x, y)), argnums=(0, 1))(X, np.ones((2, 1)))
    np.testing.assert_array_equal(gx, [2, 2, 2])
    np.testing.assert_allclose(gy, [[X.sum()]] * 2)


def test_float32_stays_float32():
    assert sd.grad(lambda x: np.sum(t_logistic(x)))(X.astype("f4")).dtype == np.float32


def test_a_list_of_operands_and_a_type_function():
    graph = sd.trace(lambda x, y: t_stacked(x, y, axis=1), X, X)
    assert graph.outputs[0].type == TensorType("f8", (3, 2))
    np.testing.assert_array_equal(sd.compile(graph)(X, -X)[0], np.stack([X, -X], 1))


def test_several_results():
    def f(x, y):
        total, apart = t_both(x, y)
        return np.sum(total * apart)

    gx, gy = sd.grad(f, argnums=(0, 1))(X, 2 * X)
    np.testing.assert_allclose(gx, 2 * X)
    np.testing.assert_allclose(gy, -4 * X)
    graph = sd.trace(lambda x, y: t_both(x, y), X, X)
    assert sd.differentiate(graph, [True, True]).check(X, X + 1).tangents


def test_what_the_function_gives_is_checked_against_the_type():
    def wrong(x, *, n=3):
        return x[:1].repeat(n)

    op = sd.register_op(
        wrong, type=lambda x, n: TensorType(x.dtype, (n - 1,)), vjp="zero", name="t_wrong"
    )
    with pytest.raises(ShapeError, match=r"t_wrong: its function gives, for its type: .*2"):
        sd.jit(op)(X)
    not_elementwise = sd.register_op(np.sum, ["1"], name="t_sum", signature="t_sum(x) -> y")
    with pytest.raises(ShapeError, match=r"t_sum: is not elementwise: .*\(\)"):
        sd.jit(not_elementwise)(X)
    two = sd.register_op(lambda x: x, vjp=["g_a + g_b"], jvp="(x_t, x_t)", name="t_two",
                         signature="t_two(x) -> (a, b)")  # fmt: skip
    with pytest.raises(TypeError, match="t_two: its function gives no tuple of 2 results"):
        sd.jit(lambda x: two(x)[0])(X)


def test_a_dtype_that_the_function_does_not_take():
    with pytest.raises(
        DTypeError, match="t_both: its function does not take: bool, bool: numpy"
    ):
        infer("t_both", [TensorType("?", ())] * 2, {})


def test_a_dtype_that_depends_on_the_values_is_an_error():
    root = sd.register_op(np.emath.sqrt, ["0.5 / result"], name="t_root",
                          signature="t_root(x) -> result")  # fmt: skip
    np.testing.assert_array_equal(sd.jit(root)(X**2), np.abs(X))
    with pytest.raises(DTypeError, match="t_root: its function gives complex128, not float64"):
        sd.jit(root)(X)


def test_a_function_runs_once_a_run():
    calls = []

    @sd.register_op(partials=["1"])
    def t_counted(x):
        calls.append(x.shape)
        return x + 1

    program = sd.jit(t_counted)
    program(X)
    del calls[:]
    for _ in range(3):
        program(X)
    # The checks of the tests run each plan a second time, without writing in place.
    assert calls == [(3,)] * (6 if os.environ.get("STAGEDAD_CHECK") == "1" else 3)


def test_shapes_of_formulas_are_made_to_fit_or_refused():
    def f(x, y):
        total, apart = t_both(x, y)
        return np.sum(total * apart)

    x, y = X, np.array([[1.0], [2.0]])
    gx, gy = sd.grad(f, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gx, 4 * x)
    np.testing.assert_allclose(gy, -6 * y)
    graph = sd.trace(lambda x, y: t_both(x, y), x, y)
    assert sd.differentiate(graph, [True, False]).check(x, y).tangents
    wrong = sd.register_op(
        lambda x: x[:2],
        type=lambda x: TensorType(x.dtype, (2,)),
        vjp=["g"],
        jvp="x_t",
        name="t_head",
    )
    with pytest.raises(NotDifferentiable, match=r"t_head: its vjp.x gives f64\[2\] .*3"):
        sd.grad(lambda x: np.sum(wrong(x)))(X)


def test_formulas_fit_where_shapes_are_unknown_too():
    graph = sd.Graph()
    x, y = graph.add_input(None, "x"), graph.add_input(None, "y")
    total, apart = graph.insert("t_both", x, y)
    graph.register_output(graph.insert("sum", graph.insert("mul", total, apart)))
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    given = X, np.array([[1.0], [2.0]])
    _, pullback = pair(*given)
    gx, gy = pullback(np.array(1.0))
    np.testing.assert_allclose(gx, 4 * given[0])
    np.testing.assert_allclose(gy, -6 * given[1])


def test_cotangents_of_a_list_of_operands():
    def joined_type(*parts):
        return TensorType(parts[0].dtype, (sum(part.shape[0] for part in parts),))

    def joined(*parts):
        return np.concatenate(parts)

    right = sd.register_op(joined, type=joined_type, name="t_joined", jvp="linear",
                           vjp=["pieces(g, parts.shape, 0)"])  # fmt: skip
    gx, gy = sd.grad(lambda x, y: np.sum(right(x, y) ** 2), argnums=(0, 1))(X, X[:2])
    np.testing.assert_array_equal(gx, 2 * X)
    np.testing.assert_array_equal(gy, 2 * X[:2])
    wrong = sd.register_op(joined, type=joined_type, name="t_unjoined", jvp="linear",
                           vjp=["(g, g)"])  # fmt: skip
    with pytest.raises(NotDifferentiable, match=r"t_unjoined: its vjp.parts gives f64\[5\]"):
        sd.grad(lambda x, y: np.sum(wrong(x, y)))(X, X[:2])


def test_a_function_cannot_change_what_it_is_given():
    @sd.register_op(partials=["1"])
    def t_greedy(x):
        x += 1
        return x

    given = X.copy()
    np.testing.assert_array_equal(sd.jit(lambda x: t_greedy(x * 1) * x)(given), (X + 1) * X)
    np.testing.assert_array_equal(given, X)


def test_an_op_without_a_derivative_says_so():
    op = sd.register_op(lambda x: x, ["not_implemented"], name="t_opaque")
    np.testing.assert_array_equal(sd.jit(op)(X), X)
    with pytest.raises(NotDifferentiable, match="t_opaque: no derivative with respect to 'x'"):
        sd.grad(op)(1.0)
    assert OPS["t_opaque"].max_order == 0


def test_registering_the_same_again_changes_nothing():
    def make(scale):
        def t_again(x):
            return scale * x

        return t_again

    first = sd.register_op(make(2.0), ["2"])
    op = OPS["t_again"]
    sd.register_op(make(2.0), ["2"])
    assert OPS["t_again"] is op
    error = fails(make(3.0), ["2"])
    assert f"t_again: is another op since {__file__}:" in str(error)
    assert "name=" in error.hint
    fails(make(2.0), ["2 * 1"])
    assert sd.grad(first)(1.0) == 2


WRONG = [
    ("name", {"name": "exp"}, None, "'exp' is an op already"),
    ("alias", {"name": "multiply"}, None, "'multiply' names mul already"),
    ("scipy", {"name": "gamma"}, None, "'gamma' is an op already"),
    ("keyword", {"name": "class"}, None, "not a name for an op: 'class'"),
    ("text", {"name": "a-b"}, None, "not a name for an op: 'a-b'"),
    ("letters", {"name": "é"}, None, "not a name for an op: 'é'"),
    ("macro", {"name": "sum_to"}, None, "already"),
    ("reserved", {"name": "return"}, None, "not a name for an op"),
    ("count", {"partials": ["1", "1"]}, "partial", "2 formulas for 1 operands"),
    ("unknown", {"partials": {"y": "1"}}, "partial.y", "no tensor argument 'y'"),
    ("none", {"partials": None}, None, "no rule for argument 'x'"),
    ("type", {"partials": [1]}, "partial.x", "wrong type: int"),
    ("string", {"partials": "1"}, "partial", "not a list of formulas"),
    ("near", {"partials": ["reslt"]}, "partial.x", "unknown name 'reslt'"),
    ("attribute", {"partials": ["sum(x, axs=0)"]}, "partial.x", "unknown attribute of sum"),
    ("arity", {"partials": ["mul(x)"]}, "partial.x", "mul takes 2 operands: 1"),
    ("both", {"jvp": "x_t"}, "jvp", "follows from the partials"),
    ("vjp", {"partials": None, "vjp": ["g"]}, None, "no jvp"),
    (
        "tuple",
        {
            "partials": None,
            "signature": "t_new(x) -> (a, b)",
            "vjp": ["g_a + g_b"],
            "jvp": "x_t",
        },
        "jvp",
        "no tuple of 2 tangents",
    ),
    ("linear", {"partials": None, "vjp": ["1"], "jvp": "linear"}, "vjp.x", "never uses 'g'"),
    ("whole", {"type": lambda x: x}, "partial", "not elementwise"),
    ("signature", {"signature": "t_new(x -> y"}, "signature", "not a signature"),
    ("other", {"signature": "t_old(x) -> y"}, "signature", "is not of 't_new'"),
    ("untyped", {"signature": 3}, "signature", "wrong type: int"),
    ("ties", {"name": "ties"}, None, "is the name of a macro"),
    ("comment", {"partials": ["1 # x"]}, "partial.x", "not allowed: '#'"),
    ("shape", {"partials": ["x.shape"]}, "partial.x", "gives a shape"),
    ("array", {"points": [{"at": {"x": "1"}, "gradient": {}}]}, "points", "not an array: '1'"),
    ("twice", {"signature": "t_new(x) -> x"}, "signature", "'x' twice"),
    ("flops", {"flops": -1}, "flops", "negative"),
    ("domain", {"domain": {"x": [1]}}, "domain.x", "not [low, high]"),
    ("points", {"points": [{"at": {}}]}, "points", "a point has at and gradient"),
]


@pytest.mark.parametrize(
    ("given", "key", "problem"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_errors_name_line_key_and_column(given, key, problem):
    count = len(OPS)
    named = {"partials": ["1"], "name": "t_new", **given}
    error = fails(lambda x: x, **named)
    assert f": {named['name']}: {f'{key}: ' if key else ''}" in str(error)
    assert problem in str(error)
    assert error.key == key
    assert len(OPS) == count


def test_columns_are_those_of_the_formula():
    error = fails(lambda x: x, ["x * (1 - nonsense)"], name="t_new")
    assert error.column == len("x * (1 - ") + 1
    assert "t_new: partial.x: unknown name 'nonsense'" in str(error)


HOSTILE = [
    "__import__('os').system('touch {mark}')",
    "open('{mark}', 'w')",
    "x.__class__.__base__.__subclasses__()",
    "x.shape.__class__",
    "(lambda: x)()",
    "[x for x in x]",
    "(y for y in x)",
    "x[0]",
    "f'{{x}}'",
    "x if open('{mark}', 'w') else x",
    "(y := x)",
    "exp(*x)",
    "exp(**x)",
    "10 ** 10 ** 10 * x",
    "1 / 0",
    "1e999",
    "'a' * 99999999",
    "(" * 300 + "x" + ")" * 300,
    "-" * 900 + "x",
    "x + " * 2000 + "x",
    "lambda: x",
    "yield x",
    "await x",
    "__debug__",
    "x\0",
]


@pytest.mark.parametrize("how", ["partials", "vjp"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_formulas_are_refused_and_never_executed(text, how, tmp_path):
    mark = tmp_path / "mark"
    formula = text.format(mark=mark) if "{mark}" in text or "{{" in text else text
    given = {how: [formula], "jvp": "x_t"} if how == "vjp" else {how: [formula]}
    try:
        fails(lambda x: x, name="t_hostile", **given)
    finally:
        assert not mark.exists()
    assert "t_hostile" not in OPS


def test_kinds_that_graphs_named_before():
    text = "graph(%a : f64[2]) {\n  %1 = t_later(%a)\n  return (%1)\n}"
    early = sd.parse_graph(text)
    assert early.outputs[0].type is None
    with pytest.raises(KernelError, match=r"t_later: no kernel: %1\nhint: .*sd\.register_op"):
        sd.compile(early)(X[:2])
    with pytest.raises(NotDifferentiable, match=r"t_later: is not an op.*\nhint: .*register_"):
        sd.differentiate(early, [True])
    sd.register_op(lambda x: x * x, ["2 * x"], name="t_later")
    late = sd.Graph()
    late.register_output(late.insert("t_later", late.add_input("f64[2]")))
    assert late.outputs[0].type == TensorType("f8", (2,))
    np.testing.assert_array_equal(sd.compile(early)(X[:2])[0], X[:2] ** 2)
    assert sd.differentiate(late, [True]).check(X[:2]).differences


def test_a_process_without_the_op_says_what_to_do():
    data = pickle.dumps(sd.trace(t_logistic, X))
    code = (
        "import pickle, sys, numpy, stagedad as sd\n"
        "graph = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "try:\n"
        "    sd.compile(graph)(numpy.ones(3))\n"
        "except sd.errors.KernelError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, data.hex()], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("t_logistic: no kernel: ")
    assert "sd.register_op and sd.register_ufunc add ops, in every process" in found.stdout


def test_threads_register_and_use_ops():
    barrier = Barrier(8)

    def work(number):
        barrier.wait()
        found = []
        for turn in range(20):
            # Each op by two threads at once.
            name = f"t_thread{number // 2}_{turn}"
            op = sd.register_op(_cube, ["3 * x * x"], name=name)
            found.append(float(sd.grad(op)(2.0)))
            assert name in list(sd.ops)
        return found

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[12.0] * 20] * 8


def _cube(x):
    return x * x * x


# Ufuncs.  NumPy's own are ops already, so these come from elsewhere.


def test_functions_that_are_no_ufuncs_are_refused():
    with pytest.raises(TypeError, match=r"not a ufunc: .*\nhint: sd\.register_op"):
        sd.register_ufunc(lambda x: x, ["1"])
    with pytest.raises(TypeError, match="not a ufunc"):
        sd.register_ufunc(np.vectorize(lambda x: x), ["1"])
    with pytest.raises(TypeError, match="loops of Python objects only"):
        sd.register_ufunc(np.frompyfunc(lambda x: x, 1, 1), ["1"], name="t_object")
    with pytest.raises(TypeError, match="a generalised ufunc: matmul"):
        sd.register_ufunc(np.matmul, ["1", "1"])
    with pytest.raises(TypeError, match=r"a ufunc: .*\nhint: sd.register_ufunc"):
        sd.register_op(np.exp, ["result"])
    with pytest.raises(TypeError, match="not a function: 3"):
        sd.register_op(3, ["1"])


def test_ufuncs_that_are_ops_are_refused():
    error = fails(np.exp, ["result"], how=sd.register_ufunc, name="t_exp")
    assert "traced calls of this ufunc are recorded already" in str(error)


def test_unregistered_ufuncs_say_how_to_register():
    stranger = np.frompyfunc(lambda x: x, 1, 1)
    with pytest.raises(TypeError, match=r"hint: sd\.register_ufunc\(ufunc, partials"):
        sd.jit(lambda x: stranger(x))(X)


class Wrapped:
    """As numba's ufuncs: a wrapper whose ufunc has no loop for what it has not met."""

    def __init__(self, ufunc):
        self.ufunc = ufunc
        self.__name__ = "t_wrapped"
        self.calls = 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.ufunc(*arguments)


def test_a_wrapped_ufunc_that_never_compiles_is_a_dtype_error():
    # A loop of objects and one of floats, none of complex numbers.
    wrapped = Wrapped(np.heaviside)
    sd.register_ufunc(wrapped, ["zero", "zero"])
    with pytest.raises(DTypeError, match="t_wrapped: not defined for: complex128"):
        infer("t_wrapped", [TensorType("c16", ())] * 2, {})
    assert wrapped.calls == 1
    assert infer("t_wrapped", [TensorType("f4", ())] * 2, {}) == (TensorType("f4", ()),)
