"""Tests of dtypes: traced values promote as NumPy's arrays and numbers do."""

import operator

import numpy as np
import pytest

from stagedad.front import grad, jit

DTYPES = [
    "bool",
    "int8",
    "int32",
    "int64",
    "uint8",
    "float16",
    "float32",
    "float64",
    "complex64",
]
NUMBERS = [2, 2.5, np.float32(2), np.float64(2), np.int64(2), 2 + 1j, True]
OPERATORS = [operator.add, operator.mul, operator.truediv, operator.lt]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_numbers_promote_as_in_numpy(op, dtype, number):
    array = np.ones(3, dtype)
    for function in (lambda x: op(x, number), lambda x: op(number, x)):
        wanted = function(array)
        got = jit(function)(array)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_arrays_promote_as_in_numpy(left, right):
    one, two = np.ones(3, left), np.ones(3, right)
    for function in (np.multiply, np.maximum, np.equal):
        assert jit(function)(one, two).dtype == function(one, two).dtype


@pytest.mark.parametrize("number", [2, 2.5, 1j])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float64", "complex64"])
def test_a_traced_python_number_stays_weak(dtype, number):
    array = np.ones(3, dtype)

    def function(x, number):
        return x * (number * 2 - 1) + number**2

    wanted = function(array, number)
    got = jit(function)(array, number)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted)


def test_a_ufunc_makes_a_python_number_strong():
    array = np.ones(3, np.float32)
    got = jit(lambda x, number: x * np.exp(number))(array, 1.0)
    assert got.dtype == (array * np.exp(1.0)).dtype == np.float64


def test_numpy_scalars_and_0d_arrays_are_not_weak():
    array = np.ones(3, np.float32)
    assert jit(lambda x, y: x * y)(array, np.float64(2)).dtype == np.float64
    assert jit(lambda x, y: x * y)(array, np.array(2.0)).dtype == np.float64


def test_where_and_concatenate_promote_as_in_numpy():
    x = np.ones(3, np.float32)
    for function in (
        lambda x: np.where(x > 0, x, 0.0),
        lambda x: np.where(x > 0, x, np.zeros(3)),
        lambda x: np.where(x > 0, 1, 2.0),
        lambda x: np.concatenate([x, [1.0]]),
        lambda x: np.stack([x, x]),
        lambda x: np.clip(x, 0, 1.0),
        lambda x: np.mean(x),
        lambda x: np.sum(x > 0),
        lambda x: np.mean(x > 0),
        lambda x: np.zeros_like(x, dtype=np.int32) * x,
    ):
        assert jit(function)(x).dtype == function(x).dtype


def test_an_integer_that_does_not_fit_raises_as_in_numpy():
    with pytest.raises(OverflowError):
        jit(lambda x: x + 300)(np.ones(2, np.int8))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.max(x, axis=1)),
        lambda x: np.mean(x * 2.0),
        lambda x: np.sum(np.where(x > 0, x, 0.0)),
        lambda x: np.sum(x / 3 + 2**x),
        lambda x: np.sum(np.float32(2) * x) ** 2,
        lambda x: np.sqrt(np.sum(x**2)),
    ],
)
def test_float32_stays_float32(function):
    gradient = grad(function)(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert gradient.dtype == np.float32


def test_a_weak_number_beside_float32_gets_its_gradient_in_float64():
    gradient = grad(lambda s, x: np.sum(s * x))(2.0, np.ones(3, np.float32))
    assert type(gradient) is np.float64
    assert gradient == 3
