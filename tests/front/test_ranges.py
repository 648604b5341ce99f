"""Tests of np.linspace and its like between traced ends."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import DTypeError

ENDS = [(0.3, 2.0), (-1.0, -4.0), (np.array([1.0, 2.0]), 5.0), (np.float32(1), np.float32(7))]


@pytest.mark.parametrize("function", [np.linspace, np.logspace, np.geomspace])
@pytest.mark.parametrize(("start", "stop"), ENDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num": 7},
        {"num": 1},
        {"num": 0},
        {"num": 4, "endpoint": False},
        {"num": 3, "dtype": np.float32},
        {"num": 3, "axis": -1},
    ],
)
def test_values_are_those_of_numpy(function, start, stop, options):
    wanted = function(start, stop, **options)
    found = sd.jit(lambda a, b: function(a, b, **options))(start, stop)
    assert found.dtype == wanted.dtype
    single = wanted.dtype == np.float32 or isinstance(start, np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if single else 1e-14)


def test_the_step_and_the_base():
    found, step = sd.jit(lambda a: np.linspace(a, 3.0, 5, retstep=True))(1.0)
    assert step == 0.5
    assert found.tolist() == [1, 1.5, 2, 2.5, 3]
    base = np.array([2.0, 3.0])
    wanted = np.logspace(0.0, 2.0, 3, base=base)
    np.testing.assert_allclose(sd.jit(lambda b: np.logspace(0.0, 2.0, 3, base=b))(base), wanted)


@pytest.mark.parametrize("function", [np.linspace, np.logspace, np.geomspace])
def test_gradients_are_those_of_differences(function):
    def total(a, b):
        return np.sum(np.cos(function(a, b, 5)) * np.arange(1, 6))

    a, b = 0.7, 1.9
    found = sd.grad(total, argnums=(0, 1))(a, b)
    h = 1e-6
    wanted = (
        (total(a + h, b) - total(a - h, b)) / (2 * h),
        (total(a, b + h) - total(a, b - h)) / (2 * h),
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_last_is_the_end_itself():
    assert sd.grad(lambda b: np.linspace(0.1, b, 3)[-1])(0.3) == 1
    assert sd.jit(lambda b: np.linspace(0.1, b, 8)[-1])(0.7) == 0.7


def test_what_cannot_be_traced_says_so():
    with pytest.raises(DTypeError, match=r"num is a traced value .*test_ranges\.py"):
        sd.jit(lambda a, n: np.linspace(a, 1.0, n))(0.0, 3)
    with pytest.raises(DTypeError, match="would cut the gradient"):
        sd.jit(lambda a: np.linspace(a, 1.0, 3, dtype=int))(0.0)
    with pytest.raises(DTypeError, match="complex"):
        sd.jit(lambda a: np.geomspace(a, 1.0, 3))(1j)
    with pytest.raises(ValueError, match="non-negative"):
        sd.jit(lambda a: np.linspace(a, 1.0, -1))(0.0)


def test_between_ends_of_two_signs_is_nothing():
    found = sd.jit(lambda a, b: np.geomspace(a, b, 4))(np.array([-1.0, 1.0, 0.0]), 4.0)
    with np.errstate(all="ignore"):
        wanted = np.geomspace(np.array([-1.0, 1.0]), 4.0, 4)
    np.testing.assert_allclose(found[:, :2], wanted, rtol=1e-14)
    assert np.isnan(found[1:-1, 2]).all()
    with pytest.raises(ValueError, match="an end is zero"):
        sd.jit(lambda b: np.geomspace(0.0, b, 4))(1.0)
