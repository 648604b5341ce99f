"""The workloads of bench/rows.py against finite differences, on NumPy's own functions."""

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.front import jit, value_and_grad, vjp


def chain(np, a, b):
    c = a
    for i in range(100):
        c = (np.multiply, np.add, np.subtract)[i % 3](c, b)
    return c


def rosenbrock(np, x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic(np, w, x, y):
    return np.mean(np.log1p(np.exp(-y * (x @ w))))


def mlp(np, w1, b1, w2, b2, x, y):
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    z = z - np.max(z, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - np.sum(z * y, axis=1))


@pytest.mark.parametrize("size", [1, 16, 1000])
def test_chain(size):
    random = np.random.default_rng(0)
    a, b = random.uniform(0, 0.5, (2, size))
    seed = random.standard_normal(size)
    step = jit(lambda a, b, seed: (lambda out, pull: (out, *pull(seed)))(
        *vjp(lambda a, b: chain(np, a, b), a, b)
    ))  # fmt: skip
    value, da, db = step(a, b, seed)
    np.testing.assert_allclose(value, chain(np, a, b), rtol=1e-13)
    h = 1e-6
    for got, plus, minus in (
        (da, (a + h, b), (a - h, b)),
        (db, (a, b + h), (a, b - h)),
    ):
        wanted = seed * (chain(np, *plus) - chain(np, *minus)) / (2 * h)
        np.testing.assert_allclose(got, wanted, atol=1e-7)


@pytest.mark.parametrize("namespace", [np, snp])
@pytest.mark.parametrize("size", [2, 10, 200])
def test_rosenbrock(size, namespace, numerical_gradient):
    x = np.random.default_rng(1).uniform(-2, 2, size)
    value, gradient = value_and_grad(lambda x: rosenbrock(namespace, x))(x)
    np.testing.assert_allclose(value, rosenbrock(np, x), rtol=1e-13)
    wanted = numerical_gradient(lambda x: rosenbrock(np, x), x)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-3)


def test_logistic(numerical_gradient):
    random = np.random.default_rng(2)
    w, x = random.standard_normal(8), random.standard_normal((50, 8))
    y = np.sign(random.standard_normal(50))
    value, gradient = value_and_grad(lambda w: logistic(np, w, x, y))(w)
    np.testing.assert_allclose(value, logistic(np, w, x, y), rtol=1e-13)
    wanted = numerical_gradient(lambda w: logistic(np, w, x, y), w)
    np.testing.assert_allclose(gradient, wanted, atol=1e-8)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mlp(batch, dtype, numerical_gradient):
    random = np.random.default_rng(3)
    arrays = [
        random.standard_normal(shape).astype(dtype)
        for shape in [(6, 5), (5,), (5, 4), (4,), (batch, 6)]
    ]
    arrays.append(np.eye(4, dtype=dtype)[random.integers(0, 4, batch)])
    step = value_and_grad(lambda *arrays: mlp(np, *arrays), argnums=(0, 1, 2, 3))
    for _ in range(2):
        value, gradients = step(*arrays)
        assert value.dtype == dtype
        tolerance = 1e-7 if dtype is np.float64 else 2e-5
        np.testing.assert_allclose(value, mlp(np, *arrays), rtol=tolerance)
        for argnum, gradient in enumerate(gradients):
            assert gradient.dtype == dtype
            assert gradient.shape == arrays[argnum].shape
            wanted = numerical_gradient(lambda *a: mlp(np, *a), *arrays, argnum=argnum)
            np.testing.assert_allclose(gradient, wanted, atol=tolerance * 10)
