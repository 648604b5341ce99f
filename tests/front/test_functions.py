"""Tests of every NumPy function that traced values may meet: values, types, gradients."""

# ruff: noqa: ARG005
import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.front import grad, jit

X = np.array([[0.3, -1.2, 2.5], [0.7, 1.9, -0.4]])
Y = np.array([[1.5, 0.8, -0.6], [2.2, 0.9, 1.1]])
V = np.array([0.5, -1.5, 2.0])
S = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.6, 0.7, 3.0]])

# One function of NumPy each, of arrays to arrays; they are also run by stagedad.numpy.
ONE = {
    "add": lambda np, x: x + 1 + (2.0 + x),
    "subtract": lambda np, x: 1 - x - 3.0,
    "multiply": lambda np, x: 2 * x * x,
    "divide": lambda np, x: x / 3 + 1 / (x * x + 1),
    "power": lambda np, x: x**2 + x**3 + (x * x + 1) ** 0.5 + np.power(x, 2),
    "rpower": lambda np, x: 2.0**x,
    "negative": lambda np, x: -x + np.negative(x) + (+x),
    "abs": lambda np, x: abs(x) + np.abs(x) + np.absolute(x),
    "exp": lambda np, x: np.exp(x) + np.expm1(x),
    "log": lambda np, x: np.log(x * x + 1) + np.log1p(x * x),
    "trigonometric": lambda np, x: np.sin(x) * np.cos(x) + np.tanh(x),
    "copysign": lambda np, x: np.copysign(x, -x) + np.copysign(x, 2.0) + np.copysign(3.0, x),
    "sqrt": lambda np, x: np.sqrt(x * x + 1) + np.square(x),
    "reciprocal": lambda np, x: np.reciprocal(x + 10),
    "positive": lambda np, x: np.positive(x) * x,
    "sign": lambda np, x: np.sign(x) * x,
    "floor": lambda np, x: np.floor(x) * x,
    "maximum": lambda np, x: np.maximum(x, 0.1) + np.minimum(x, 0.2),
    "clip": lambda np, x: np.clip(x, -1, 1) + x.clip(0, None) + np.clip(x, None, 2.0),
    "where": lambda np, x: np.where(x > 0, x * x, 0.0),
    "where_lists": lambda np, x: np.where([True, False, True], x, -x),
    "comparisons": lambda np, x: np.where((x > 0) & ~(x >= 2) | (x < -1), x, 2 * x),
    "sum": lambda np, x: np.sum(x * x, axis=0) + x.sum(0) + np.sum(x, axis=(0,)),
    "sum_all": lambda np, x: np.sum(x * x) + x.sum(),
    "sum_keepdims": lambda np, x: x * np.sum(x, axis=1, keepdims=True),
    "mean": lambda np, x: np.mean(x * x, axis=-1) + x.mean(axis=1),
    "max": lambda np, x: np.max(x, axis=1) + x.max(1) + np.amax(x, axis=1),
    "min": lambda np, x: np.min(x, axis=1) + x.min(1) + np.amin(x),
    "reduce": lambda np, x: np.add.reduce(x) + np.maximum.reduce(x, axis=0),
    "var": lambda np, x: np.var(x, axis=0) + x.var() + np.var(x, ddof=1),
    "std": lambda np, x: np.std(x) + x.std(axis=0),
    "dot": lambda np, x: np.dot(x, V) + x.dot(V) + x @ V + np.matmul(x, V),
    "dot_matrices": lambda np, x: np.dot(x, S) + x @ S + np.dot(x, 2.0),
    "rmatmul": lambda np, x: Y.T @ x + np.dot(Y.T, x),
    "inner": lambda np, x: np.inner(x, Y) + np.inner(V, x)[0],
    "outer": lambda np, x: np.outer(x, V) + np.multiply.outer(x[0], x).reshape(6, 3)[0],
    "vdot": lambda np, x: np.vdot(x, Y) * x,
    "tensordot": lambda np, x: np.tensordot(x, Y) * np.tensordot(x, S, 1),
    "tensordot_axes": lambda np, x: np.tensordot(x, Y, axes=([0], [0])),
    "einsum": lambda np, x: np.einsum("ij,kj->ik", x, Y) + np.einsum("ij,ij", x, x),
    "einsum_three": lambda np, x: np.einsum("ij,jk,lk->il", x, S, Y),
    "trace": lambda np, x: np.trace(x.T @ x) * x + x.trace(),
    "norm": lambda np, x: np.linalg.norm(x) * x + np.linalg.norm(x, axis=1, keepdims=True),
    "norm_orders": lambda np, x: np.linalg.norm(x[0], 1) + np.linalg.norm(x[1], np.inf) * x,
    "reshape": lambda np, x: np.reshape(x, (3, 2)) + x.reshape(3, -1) + x.reshape((3, 2)),
    "ravel": lambda np, x: np.ravel(x) * x.flatten() + x.ravel(),
    "transpose": lambda np, x: x.T * np.transpose(x) + x.transpose(1, 0) + x.transpose((1, 0)),
    "axes": lambda np, x: np.swapaxes(x, 0, 1) * np.moveaxis(x, 0, -1) + x.swapaxes(0, -1),
    "expand_dims": lambda np, x: (
        np.expand_dims(x, 1) * x[:, None] + np.expand_dims(x, (0, 2))[0]
    ),
    "squeeze": lambda np, x: np.squeeze(x[:, None]) + x[:1].squeeze() + x[None].squeeze(0),
    "broadcast_to": lambda np, x: np.broadcast_to(x, (4, 2, 3)) * 2,
    "broadcast_arrays": lambda np, x: (
        np.broadcast_arrays(x, V)[1] * np.broadcast_arrays(x, 1)[0]
    ),
    "atleast": lambda np, x: np.atleast_2d(x[0]) * np.atleast_1d(x[0, 0]),
    "flip": lambda np, x: np.flip(x) * x + np.flip(x, 0),
    "concatenate": lambda np, x: np.concatenate([x, 2 * x, Y]) * 2,
    "concatenate_axis": lambda np, x: np.concatenate((x, Y, x), axis=1),
    "concatenate_flat": lambda np, x: np.concatenate([x, [1.0, 2.0]], axis=None) * 3,
    "concatenate_lists": lambda np, x: np.concatenate([x[0], [x[0] @ x[1], 1.0]]),
    "stack": lambda np, x: np.stack([x, Y, x]) + np.stack((x, x, Y), axis=0),
    "stack_last": lambda np, x: np.stack([x, Y], axis=-1),
    "hstack": lambda np, x: np.hstack([x, Y]) * np.hstack([x, x]),
    "vstack": lambda np, x: np.vstack([x[0], V, x]),
    "column_stack": lambda np, x: np.column_stack([x[:, 0], x]),
    "append": lambda np, x: (
        np.append(x, [1.0, 2.0]) * np.append(x[:1], x[:1] * 2, axis=0)[0, 0]
    ),
    "split": lambda np, x: np.split(x, 3, axis=1)[1] + np.split(x, [1], axis=1)[1],
    "split_cuts": lambda np, x: np.add(*np.split(x, np.array([1, -1]), axis=-1)[::2]),
    "split_rows": lambda np, x: sum(i * row for i, row in enumerate(np.split(x, 2))),
    "full_like": lambda np, x: np.full_like(x, 2.0) * x + np.zeros_like(x) + np.ones_like(x),
    "full_like_traced": lambda np, x: snp.full_like(np.zeros(3), 2 * x[0, 0]) * x,
    "copy": lambda np, x: np.copy(x) * x.copy(),
    "astype": lambda np, x: x.astype(np.float32).astype(float) * x.astype(float),
    "take": lambda np, x: np.take(x, [2, 0, 0], axis=1) + x.take([1, 1, 0], 1),
    "take_flat": lambda np, x: np.take(x, [[5, 0], [-1, 2]]),
    "diff": lambda np, x: np.diff(x) * np.diff(x, axis=1) + np.diff(x, n=2),
    "repeat": lambda np, x: np.repeat(x, 2, axis=1) + np.repeat(x, [1, 2, 3], axis=1),
    "repeat_flat": lambda np, x: np.repeat(x, 3),
    "real": lambda np, x: np.real(x) * x.real + np.imag(x) + x.imag + np.conj(x),
    "iteration": lambda np, x: sum(row * row for row in x) + len(x),
    "shape": lambda np, x: x * np.shape(x)[0] * np.size(x) * np.ndim(x) * x.size * x.ndim,
    "keyword_dtype": lambda np, x: np.sum(x, dtype=np.float64) + np.add(x, 1, dtype=float),
    "zero_d": lambda np, x: (x[0, 0] * x[1, 1] + x.reshape(-1)[2]) ** 2,
}


@pytest.mark.parametrize("namespace", [np, snp], ids=["numpy", "stagedad.numpy"])
@pytest.mark.parametrize("name", ONE)
def test_gives_what_numpy_gives(name, namespace):
    wanted = ONE[name](np, X)
    got = jit(lambda x: ONE[name](namespace, x))(X)
    assert type(got) is type(wanted)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in ONE if name != "astype"])
def test_has_the_gradient_that_differences_give(name, numerical_gradient):
    weights = np.cos(np.arange(np.size(ONE[name](np, X)))).reshape(np.shape(ONE[name](np, X)))

    def scalar(x):
        return np.sum(weights * ONE[name](np, x))

    got = grad(scalar)(X)
    assert type(got) is np.ndarray
    assert got.flags.c_contiguous
    assert got.flags.writeable
    np.testing.assert_allclose(got, numerical_gradient(scalar, X), rtol=2e-6, atol=2e-6)


ARRAYS = {
    "array": lambda x: snp.array([[x[0], 1.0], [2, x[1] * x[2]]]),
    "array_of_rows": lambda x: snp.array([x, 2 * x, [1, 2, 3]]),
    "asarray": lambda x: snp.asarray([x[0], x[1]]) * snp.asarray(x)[:2],
    "array_copy": lambda x: snp.array(x, ndmin=2) * snp.array(x, dtype=float),
    "full": lambda x: snp.full((2, 3), x[0]) * snp.full(3, 2.0),
    "full_dtype": lambda x: snp.full(2, x[0], dtype=np.float64),
    "sin_of_list": lambda x: snp.sin([x[0], 1.0]),
    "sum_of_list": lambda x: snp.sum([x[0], x[1] * x[2], 3.0]),
    "stack_of_lists": lambda x: snp.stack([[x[0], 1.0], [x[1], x[0]]]),
    "creation": lambda x: x * (snp.zeros(3) + snp.ones(3) + snp.arange(3)) @ snp.eye(3),
    "linspace": lambda x: x + snp.linspace(0, snp.pi, 3) + snp.asarray([1.0, 2, 3]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_creation_functions_take_traced_values(name, numerical_gradient):
    wanted = ARRAYS[name](V)
    got = jit(ARRAYS[name])(V)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-14)

    def scalar(x):
        return np.sum(ARRAYS[name](x) ** 2)

    np.testing.assert_allclose(grad(scalar)(V), numerical_gradient(scalar, V), atol=1e-6)
