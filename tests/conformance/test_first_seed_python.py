"""T15 of the reference: the first seed's Python tests, restated for graphs and staged pairs.

Its stages are f and df here, a stage more is df of df; a compiled function is a Pair.
"""

from itertools import product

import numpy as np
import pytest

import stagedad as sd
from stagedad.transform import Capture

X, Y = np.array([0.4, 0.3]), np.array([0.7, 0.5])
ONE = np.ones(2)


def traced(f, flags, *arrays):
    return sd.differentiate(sd.trace(f, *arrays), flags)


def lines(graph):
    """Kinds and wiring, with values counted anew."""
    number = {value: f"%{i}" for i, value in enumerate(graph.inputs)}
    found = []
    for node in graph.nodes():
        operands = ", ".join(number[value] for value in node.inputs)
        number[node.output] = f"%{len(number)}"
        found.append(f"{number[node.output]} = {node.kind}({operands})")
    return [*found, f"return ({', '.join(number[value] for value in graph.outputs)})"]


def saved(gradient, arrays, outputs):
    return [
        (arrays if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]


def test_t15_cse():
    def f(x, y):
        w = (x + y) * (x + y) * (x + y)
        t = np.tanh(w) + np.tanh(w)
        return (x + y) * (x + y) * (x + y) + t

    graph = sd.trace(f, X, Y)
    before = sd.compile(graph)(X, Y)
    assert sd.cse(graph)
    sd.dce(graph)
    graph.verify()
    assert lines(graph) == [
        "%2 = add(%0, %1)",
        "%3 = mul(%2, %2)",
        "%4 = mul(%3, %2)",
        "%5 = tanh(%4)",
        "%6 = add(%5, %5)",
        "%7 = add(%4, %6)",
        "return (%7)",
    ]
    np.testing.assert_array_equal(sd.compile(graph)(X, Y), before)


def test_t15_repeated_output():
    def f(x, y):
        z = x + y
        return z, z

    gradient = traced(f, [True, True], X, Y)
    assert lines(gradient.f) == ["%2 = add(%0, %1)", "return (%2, %2)"]
    assert lines(gradient.df) == ["%2 = add(%0, %1)", "return (%2, %2)"]
    assert gradient.df_input_vjps == [0, 1]
    pair = sd.compile(gradient)
    (one, two), pullback = pair(X, Y)
    np.testing.assert_array_equal(one, X + Y)
    np.testing.assert_array_equal(two, X + Y)
    assert not np.shares_memory(one, two)
    for dx in pullback(3 * ONE, 4 * ONE):
        np.testing.assert_array_equal(dx, 7 * ONE)


def test_t15_repeated_input():
    gradient = traced(lambda a, b: a + b, [True, True], X, Y)
    assert lines(gradient.df) == ["return (%0, %0)"]
    (z,), pullback = sd.compile(gradient)(X, X)
    np.testing.assert_array_equal(z, 2 * X)
    one, two = pullback(5 * ONE)
    np.testing.assert_array_equal(one + two, 10 * ONE)
    assert not np.shares_memory(one, two)
    # The caller's one variable gets both cotangents.
    np.testing.assert_array_equal(sd.grad(lambda x: np.sum(x + x))(X), 2 * ONE)


def test_t15_input_pruning():
    gradient = traced(lambda x, y: (x * y, x + y), [True, False], X, Y)
    assert gradient.df_output_vjps == [0]
    assert len(gradient.df.outputs) == 1
    assert gradient.df_input_vjps == [0, 1]
    assert [node.kind for node in gradient.df.nodes()] == ["mul", "add"]
    _, pullback = sd.compile(gradient)(X, Y)
    (dx,) = pullback(3 * ONE, 4 * ONE)
    np.testing.assert_allclose(dx, 3 * Y + 4)


def test_t15_output_pruning():
    gradient = traced(lambda x, y: (x * y, y + y), [True, False], X, Y)
    assert gradient.df_input_vjps == [0]
    assert len(gradient.df.inputs) - len(gradient.df_input_captures) == 1
    outputs, pullback = sd.compile(gradient)(X, Y)
    np.testing.assert_array_equal(outputs[1], 2 * Y)
    np.testing.assert_allclose(pullback(3 * ONE), [3 * Y])
    with pytest.raises(TypeError):
        pullback(3 * ONE, 4 * ONE)


def test_t15_backward():
    """Three stages: z = y * 2 * x, its gradient, and the gradient of that one's sum."""
    first = traced(lambda x, y: y * 2 * x, [True, False], X, Y)
    second = sd.differentiate(first.df, [True] * len(first.df.inputs))
    for gradient in (first, second):
        for part in (gradient.f, gradient.df):
            part.verify()
            assert part.stage == 0
    g = np.array([1.5, -2.0])
    outputs = sd.compile(first.f)(X, Y)
    captured = saved(first, (X, Y), outputs)
    (dx,) = sd.compile(first.df)(*captured, g)
    np.testing.assert_allclose(outputs[0], 2 * X * Y)
    np.testing.assert_allclose(dx, 2 * Y * g)
    # Stage 2, of sum(dx): to the temporary 2 y that df reads, and to g.
    _, pullback = sd.compile(second)(*captured, g)
    t, dg = pullback(ONE)
    assert [capture.kind for capture in first.df_input_captures] == [Capture.OUTPUT]
    np.testing.assert_allclose(captured[0], 2 * Y)
    np.testing.assert_allclose(t, g)
    np.testing.assert_allclose(dg, 2 * Y)


def test_t15_backward_to_what_came_before():
    """As above, where y = a * b: the stages of the caller and of the pair connect."""
    a, b = np.array([2.0, -1.0]), np.array([0.5, 4.0])

    def dx(a, b):
        y = a * b
        return np.sum(sd.grad(lambda x: np.sum(y * 2 * x))(a))

    da, db = sd.grad(dx, argnums=(0, 1))(a, b)
    np.testing.assert_allclose(da, 2 * b)
    np.testing.assert_allclose(db, 2 * a)


def test_t15_backward_closure():
    """A pullback keeps what its call saved, over several stages."""
    first = traced(lambda x: x * x, [True], X)
    second = sd.differentiate(first.df, [True, True])
    pair, next_pair = sd.compile(first), sd.compile(second)
    (_, one), (_, two) = pair(X), pair(Y)
    np.testing.assert_allclose(one(ONE), [2 * X])
    np.testing.assert_allclose(two(ONE), [2 * Y])
    (_, one), (_, two) = next_pair(X, 3 * ONE), next_pair(Y, 5 * ONE)
    np.testing.assert_allclose(two(ONE), [10 * ONE, 2 * Y])
    np.testing.assert_allclose(one(ONE), [6 * ONE, 2 * X])
    np.testing.assert_allclose(one(2 * ONE), [12 * ONE, 4 * X])


@pytest.mark.parametrize("flags", list(product((True, False), repeat=2)))
def test_t15_flags(flags):
    gradient = traced(lambda x, y: np.sum(x * x + y * y + x * y), flags, X, Y)
    assert gradient.df_output_vjps == [i for i, flag in enumerate(flags) if flag]
    assert gradient.df_input_vjps[:1] == ([0] if any(flags) else [])
    wanted = [2 * X + Y, 2 * Y + X]
    (z,), pullback = sd.compile(gradient)(X, Y)
    np.testing.assert_allclose(z, np.sum(X * X + Y * Y + X * Y))
    found = pullback(*[1.0] * any(flags))
    assert len(found) == sum(flags)
    for one, i in zip(found, gradient.df_output_vjps, strict=True):
        np.testing.assert_allclose(one, wanted[i])


def test_t15_unused_input():
    gradient = traced(lambda a, b, c: a + b, [True] * 3, X, Y, np.ones((3, 1)))  # noqa: ARG005
    assert gradient.df_output_vjps == [0, 1, 2]
    assert gradient.df_input_captures == []
    _, pullback = sd.compile(gradient)(X, Y, np.ones((3, 1)))
    da, db, dc = pullback(3 * ONE)
    np.testing.assert_array_equal(da, 3 * ONE)
    np.testing.assert_array_equal(db, 3 * ONE)
    np.testing.assert_array_equal(dc, np.zeros((3, 1)))


def test_t15_re_enter():
    """A compiled function is called again before its backward, on what it gave."""
    gradient = traced(lambda x, y: np.tanh(x) * y, [True, True], X, Y)
    pair = sd.compile(gradient)
    (z,), outer = pair(X, Y)
    (w,), inner = pair(z, Y)  # of what the first call gave
    np.testing.assert_allclose(w, np.tanh(np.tanh(X) * Y) * Y)
    dz, dy = inner(ONE)
    dx, more = outer(dz)
    t, u = np.tanh(X), np.tanh(np.tanh(X) * Y)
    np.testing.assert_allclose(dz, (1 - u * u) * Y)
    np.testing.assert_allclose(dx, (1 - u * u) * Y * (1 - t * t) * Y)
    np.testing.assert_allclose(dy + more, u + (1 - u * u) * Y * t)
    staged = sd.jit(lambda x, y: np.tanh(x) * y)
    np.testing.assert_allclose(sd.grad(lambda x: np.sum(staged(staged(x, Y), Y)))(X), dx)


def test_t15_repeated_grad():
    """One cotangent variable in two slots: known broken in the seed."""
    gradient = traced(lambda x, y: (x * y, x + y), [True, True], X, Y)
    assert gradient.df_input_vjps == [0, 1]
    pair, g = sd.compile(gradient), np.array([2.0, 3.0])
    _, pullback = pair(X, Y)
    for dx, other in zip(pullback(g, g), (Y, X), strict=True):
        np.testing.assert_allclose(dx, g * other + g)
    for dx, other in zip(pair.df(X, Y, g, g), (Y, X), strict=True):
        np.testing.assert_allclose(dx, g * other + g)
    np.testing.assert_allclose(pair.joint(X, Y, g, g)[2], g * Y + g)
    np.testing.assert_array_equal(g, [2, 3])
    # The stage as a graph of one cotangent: its derivative to that sums over both slots.
    graph = sd.Graph()
    x, y, d = (graph.add_input("f64[2]") for _ in range(3))
    for value in graph.inline(gradient.df, [x, y, d, d]):
        graph.register_output(value)
    _, pullback = sd.compile(sd.differentiate(graph, [True] * 3))(X, Y, g)
    u, v = np.array([1.0, -1.0]), np.array([0.5, 2.0])
    dx, dy, dg = pullback(u, v)
    np.testing.assert_allclose(dx, g * v)
    np.testing.assert_allclose(dy, g * u)
    np.testing.assert_allclose(dg, u * (Y + 1) + v * (X + 1))


def test_t15_repeated_grad_that_is_an_input_too():
    """The same variable as input and as both of its outputs' cotangents: x of (x * x, 2 x)."""
    gradient = traced(lambda x: (x * x, 2 * x), [True], X)
    graph = sd.Graph()
    x = graph.add_input("f64[2]")
    outputs = graph.inline(gradient.f, [x])
    captured = saved(gradient, (x,), outputs)
    (dx,) = graph.inline(gradient.df, [*captured, x, x])
    graph.register_output(dx)
    (value,), pullback = sd.compile(sd.differentiate(graph, [True]))(X)
    np.testing.assert_allclose(value, 2 * X * X + 2 * X)
    np.testing.assert_allclose(pullback(ONE), [4 * X + 2])
