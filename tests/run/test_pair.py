"""Tests of run/pair.py."""

import numpy as np
import pytest

from stagedad.errors import DTypeError, ShapeError
from stagedad.ir import Graph
from stagedad.run import compile
from stagedad.transform import differentiate


@pytest.fixture
def pair():
    """y = tanh(x @ w) * x0, z = sum(y); gradients to x and w."""
    graph = Graph()
    x, w = graph.add_input("f64[3, 4]"), graph.add_input("f64[4, 4]")
    y = graph.insert("mul", graph.insert("tanh", graph.insert("matmul", x, w)), x)
    graph.register_output(y)
    graph.register_output(graph.insert("sum", y))
    return compile(differentiate(graph, [True, True]))


RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 4))
DY, DZ = RNG.normal(size=(3, 4)), 0.5


def gradients(x, w, dy, dz):
    t = np.tanh(x @ w)
    g = dy + dz
    inner = g * x * (1 - t * t)
    return g * t + inner @ w.T, x.T @ inner


def test_gives_outputs_and_pullback(pair):
    outputs, pullback = pair(X, W)
    wanted = np.tanh(X @ W) * X
    np.testing.assert_allclose(outputs[0], wanted)
    np.testing.assert_allclose(outputs[1], wanted.sum())
    for _ in range(2):
        for result, want in zip(pullback(DY, DZ), gradients(X, W, DY, DZ), strict=True):
            np.testing.assert_allclose(result, want)


def test_later_changes_of_arguments_and_outputs_do_not_matter(pair):
    x, w = X.copy(), W.T.copy().T
    outputs, pullback = pair(x, w)
    x[...] = w[...] = 7
    for output in outputs:
        output[...] = 9
    for result, want in zip(pullback(DY, DZ), gradients(X, W, DY, DZ), strict=True):
        np.testing.assert_allclose(result, want)


def test_the_joint_program_gives_both(pair):
    results = pair.joint(X, W, DY, DZ)
    np.testing.assert_allclose(results[0], np.tanh(X @ W) * X)
    for result, want in zip(results[2:], gradients(X, W, DY, DZ), strict=True):
        np.testing.assert_allclose(result, want)


def test_programs_have_the_graphs_inputs_and_outputs(pair):
    gradient = pair.gradient
    results = pair.f(X, W)
    assert len(results) == len(gradient.f.outputs)
    captured = [
        ((X, W) if kind.name == "INPUT" else results)[offset]
        for kind, offset in gradient.df_input_captures
    ]
    cotangents = [np.ones_like(results[offset]) for offset in gradient.df_input_vjps]
    assert len(pair.df(*captured, *cotangents)) == len(gradient.df_output_vjps)


def test_refuses_cotangents_that_do_not_fit(pair):
    _, pullback = pair(X, W)
    with pytest.raises(TypeError, match="1 cotangents for 2"):
        pullback(DY)
    with pytest.raises(ShapeError):
        pullback(DY, np.zeros(3))
    with pytest.raises(DTypeError):
        pullback(DY + 1j, DZ)
    (result, _) = pullback(DY.astype("f4"), 1)
    assert result.dtype == np.float64
