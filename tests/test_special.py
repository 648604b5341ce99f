"""Tests of special.py."""

import numpy as np
import pytest

import stagedad as sd
from stagedad import special

X = np.array([[0.31, -1.23, 2.67, 0.9], [0.76, 1.94, -0.41, -2.2]])


def _softmax(x, axis):
    powers = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


WANTED = {
    "expit": (special.expit, lambda x: 1 / (1 + np.exp(-x))),
    "log_expit": (special.log_expit, lambda x: -np.log1p(np.exp(-x))),
    "logit": (lambda x: special.logit(x * x / 9), lambda x: np.log(x * x / (9 - x * x))),
    "softplus": (special.softplus, lambda x: np.log1p(np.exp(x))),
    "relu": (special.relu, lambda x: x * (x > 0)),
    "relu6": (lambda x: special.relu6(3 * x), lambda x: np.clip(3 * x, 0, 6)),
    "leaky_relu": (
        lambda x: special.leaky_relu(x, 0.2), lambda x: x * np.where(x > 0, 1, 0.2),
    ),
    "elu": (
        lambda x: special.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)),
    ),
    "celu": (
        lambda x: special.celu(x, 0.7),
        lambda x: np.where(x > 0, x, 0.7 * (np.exp(x / 0.7) - 1)),
    ),
    "selu": (
        special.selu,
        lambda x: 1.0507009873554805
        * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    ),
    "silu": (special.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (
        special.gelu,
        lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "topk": (
        lambda x: special.topk(x, 2)[0], lambda x: np.sort(x, axis=-1)[..., :-3:-1],
    ),
    "topk_axis": (
        lambda x: special.topk(x, 1, axis=0)[0], lambda x: np.max(x, axis=0, keepdims=True),
    ),
    "logsumexp": (special.logsumexp, lambda x: np.log(np.exp(x).sum())),
    "logsumexp_axis": (
        lambda x: special.logsumexp(x, axis=(1,), keepdims=True) * special.logsumexp(x, 0),
        lambda x: np.log(np.exp(x).sum(1, keepdims=True)) * np.log(np.exp(x).sum(0)),
    ),
    "softmax": (special.softmax, lambda x: _softmax(x, None)),
    "softmax_axis": (lambda x: special.softmax(x, axis=0), lambda x: _softmax(x, 0)),
    "log_softmax": (
        lambda x: special.log_softmax(x, axis=-1), lambda x: np.log(_softmax(x, -1))
    ),
    "layer_norm": (
        lambda x: special.layer_norm(x, np.arange(4, dtype=x.dtype), 2.0, eps=0.0),
        lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * np.arange(4) + 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WANTED)
def test_values(name):
    function, wanted = WANTED[name]
    plain = function(X)
    assert not isinstance(plain, sd.front.Tracer)
    np.testing.assert_allclose(plain, wanted(X), rtol=1e-13)
    traced = sd.jit(function)(X)
    np.testing.assert_allclose(traced, plain, rtol=1e-14)
    assert sd.jit(function)(X.astype("f4")).dtype == function(X.astype("f4")).dtype == "f4"


@pytest.mark.parametrize("name", WANTED)
def test_gradients(name):
    function, _ = WANTED[name]
    weights = np.cos(np.arange(np.size(function(X)))).reshape(np.shape(function(X)))

    def scalar(x):
        return np.sum(weights * function(x))

    found = sd.grad(scalar)(X)
    for at in np.ndindex(X.shape):
        step = np.zeros(X.shape)
        step[at] = 1e-6
        slope = (scalar(X + step) - scalar(X - step)) / 2e-6
        np.testing.assert_allclose(found[at], slope, rtol=1e-6, atol=1e-8)


def test_far_from_zero():
    x = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    middle = np.array([0, 0, np.log(2), 0, 0])
    for function, value, slope in (
        (special.softplus, np.maximum(x, 0) + middle, [0, 0, 0.5, 1, 1]),
        (special.log_expit, np.minimum(x, 0) - middle, [1, 1, 0.5, 0, 0]),
        (special.expit, [0, 0, 0.5, 1, 1], [0, 0, 0.25, 0, 0]),
    ):
        np.testing.assert_allclose(function(x), value, rtol=1e-15, atol=1e-300)
        found = sd.grad(lambda x, function=function: np.sum(function(x)))(x)
        np.testing.assert_allclose(found, slope, rtol=1e-15, atol=1e-300)
    y = np.array([1000.0, 1000.0, -1000.0])
    np.testing.assert_array_equal(special.softmax(y), [0.5, 0.5, 0])
    np.testing.assert_allclose(special.log_softmax(y), [-np.log(2)] * 2 + [-2000 - np.log(2)])
    np.testing.assert_allclose(special.logsumexp(y), 1000 + np.log(2))
    np.testing.assert_allclose(sd.grad(special.logsumexp)(y), [0.5, 0.5, 0], rtol=1e-12)


def test_infinities_and_ties():
    below = np.array([-np.inf, -np.inf])
    assert special.logsumexp(below) == -np.inf
    assert special.logsumexp(np.zeros(0)) == -np.inf
    np.testing.assert_array_equal(sd.grad(special.logsumexp)(below), [0, 0])
    x = np.array([-np.inf, 1.0])
    np.testing.assert_array_equal(special.softmax(x), [0, 1])
    np.testing.assert_array_equal(special.log_softmax(x), [-np.inf, 0])
    relu = sd.grad(lambda x: np.sum(special.relu(x)))
    np.testing.assert_array_equal(relu(np.array([-1.0, 0.0, 2.0])), [0, 0, 1])


def test_takes_lists_of_traced_values():
    got = sd.grad(lambda x: special.logsumexp([x[0], 1.0, x[1]]))(np.array([1.0, 1.0]))
    np.testing.assert_allclose(got, [1 / 3, 1 / 3])


def test_topk_of_equal_numbers_takes_the_first():
    x = np.array([1.0, 3.0, 3.0, 2.0, 3.0])
    values, positions = sd.jit(lambda x: special.topk(x, 4))(x)
    assert values.tolist() == [3, 3, 3, 2]
    assert positions.tolist() == [1, 2, 4, 3]
    assert special.topk(x, 0)[0].shape == (0,)
    with pytest.raises(ValueError, match="no axis"):
        special.topk(3.0, 1)
    for k in (-1, 6):
        with pytest.raises(ValueError, match="topk"):
            special.topk(x, k)


def test_units_far_out_and_at_zero():
    x = np.array([-800.0, 0.0, 800.0])
    for name in ("elu", "celu", "selu", "silu", "gelu", "leaky_relu", "relu6"):
        slope = sd.grad(lambda x, name=name: np.sum(getattr(special, name)(x)))(x)
        assert np.isfinite(slope).all(), name


def test_the_exact_gelu_is_that_of_the_normal_distribution():
    scipy = pytest.importorskip("scipy.special")
    exact = sd.value_and_grad(lambda x: np.sum(special.gelu(x, approximate=False)))
    value, slope = exact(X)
    density = np.exp(-X * X / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(value, np.sum(X * scipy.ndtr(X)))
    np.testing.assert_allclose(slope, scipy.ndtr(X) + X * density)
