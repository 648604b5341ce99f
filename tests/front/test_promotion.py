"""Tests of dtypes: traced values promote as NumPy's arrays and numbers do."""

import operator

import numpy as np
import pytest

from stagedad.front import grad, jit
from stagedad.types import CODES

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


RESULTS = {
    "square": lambda x: x**2,
    "square_of_float": lambda x: x**2.0,
    "square_of_int64": lambda x: x ** np.int64(2),
    "np_power": lambda x: np.power(x, 2),
    "root": lambda x: x**0.5,
    "np_root": lambda x: np.power(x, 0.5),
    "first": lambda x: x**1,
    "zeroth": lambda x: x**0,
    "cube": lambda x: x**3,
    "inverse": lambda x: x**-1,
    "inverse_of_float": lambda x: x**-1.0,
    "clip": lambda x: np.clip(x, 0, 1),
    "clip_float": lambda x: np.clip(x, 0.0, 1.0),
    "clip_above": lambda x: x.clip(None, 1),
    "sum": np.sum,
    "sum_axis": lambda x: x.sum(axis=0, keepdims=True),
    "sum_dtype": lambda x: x.sum(dtype=np.float32),
    "add_reduce": np.add.reduce,
    "mean": np.mean,
    "mean_dtype": lambda x: x.mean(dtype=np.float32),
    "var": np.var,
    "std": np.std,
    "std_ddof": lambda x: x.std(ddof=1),
    "max": np.max,
    "min": np.min,
    "positive": lambda x: +x,
    "np_positive": np.positive,
    "np_square": np.square,
    "conj": lambda x: x.conj(),
    "np_conj": np.conj,
    "real": np.real,
    "imag": np.imag,
    "trace": lambda x: x.reshape(1, 2).trace(),
    "norm": np.linalg.norm,
    "einsum_sum": lambda x: np.einsum("i->", x),
    "einsum_dot": lambda x: np.einsum("i,i", x, x),
    "einsum_number": lambda x: np.einsum("i,->i", x, 2.0),
    "dot": lambda x: np.dot(x, x),
    "where": lambda x: np.where(x > 0, x, 0),
    "full_like": lambda x: np.full_like(x, 1) * x,
    "append": lambda x: np.append(x, 1),
}


# NumPy before 2.3 squares for any scalar exponent of 2, whatever its dtype, and keeps its own.
if (np.ones(1, np.int8) ** np.int64(2)).dtype == np.int8:
    del RESULTS["square_of_int64"], RESULTS["square_of_float"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", CODES.values(), ids=str)
@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_values_and_dtypes_of_numpy(name, dtype):
    x = np.array([1, 100]).astype(dtype)
    function = RESULTS[name]
    try:
        wanted = function(x)
    except (TypeError, ValueError, OverflowError) as error:
        kinds = (TypeError, ValueError, OverflowError)
        with pytest.raises(next(kind for kind in kinds if isinstance(error, kind))):
            jit(function)(x)
        return
    got = jit(function)(x)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("number", [300, -1, 2**70, -(2**70), 255, 0, 7])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64"])
@pytest.mark.parametrize(
    "op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_comparisons_with_integers_out_of_range(op, dtype, number):
    x = np.array([0, 7, 100], dtype)
    for function in (lambda x: op(x, number), lambda x: op(number, x)):
        got = jit(function)(x)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, function(x))
    ufunc = {"lt": np.less, "ge": np.greater_equal}.get(op.__name__, np.equal)
    np.testing.assert_array_equal(jit(lambda x: ufunc(number, x))(x), ufunc(number, x))


def test_booleans_have_bitwise_operators():
    x, mask = np.array([0.0, 1.0, 2.0]), np.array([True, False, True])
    for function in (
        lambda x: (x > 0) & mask,
        lambda x: mask & (x > 0),
        lambda x: (x > 0) | [True, False, False],
        lambda x: mask ^ (x > 1),
        lambda x: (x > 1) ^ True,
        lambda x: ~(x > 0),
        lambda x: np.invert(x > 0),
        lambda x: np.bitwise_or(x > 1, mask),
    ):
        got = jit(function)(x)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, function(x))
