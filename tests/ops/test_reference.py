"""Tests of ops/reference.py."""

import numpy as np
import pytest

from stagedad.ops import evaluate


def value(kind, *arrays, **attributes):
    return evaluate(kind, [np.asarray(array) for array in arrays], attributes)[0]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: value("add", [1.0, 2.0], [3.0, 4.0], alpha=2), [7, 10]),
        (lambda: value("sub", [1.0, 2.0], [3.0, 4.0], alpha=2), [-5, -6]),
        (lambda: value("mul0", [0.0, 2.0, -0.0], [np.inf, 3.0, np.nan]), [0, 6, 0]),
        (lambda: value("sum_to", np.ones((2, 3)), shape=(1, 3)), [[2, 2, 2]]),
        (lambda: value("sum_to", np.ones((2, 3)), shape=()), 6),
        (lambda: value("sum_to_like", np.ones((2, 3)), np.ones(3)), [2, 2, 2]),
        (lambda: value("take", [1.0, 2.0, 3.0], [0, 0, -1]), [1, 1, 3]),
        (lambda: value("take_add", [1.0, 2.0, 4.0], [0, 0, -1], shape=(3,)), [3, 0, 4]),
        (lambda: value("slice", [1, 2, 3], start=(2,), stop=(None,), step=(-1,)), [3, 2, 1]),
        (
            lambda: value("unslice", [1, 2], shape=(4,), start=(3,), stop=(None,), step=(-2,)),
            [0, 2, 0, 1],
        ),
        (
            lambda: value("slice_set", [1, 2, 3], 9, start=(2,), stop=(None,), step=(-2,)),
            [9, 2, 9],
        ),
        (
            lambda: value("slice_add", [1, 2, 3], 9, start=(1,), stop=(3,), step=(1,)),
            [1, 11, 12],
        ),
        (lambda: value("slice_set", [1, 2], 0.5, start=(0,), stop=(1,), step=(1,)), [0.5, 2]),
        (lambda: value("index_set", [1, 2, 3], [0, -1, 0], [7, 8, 9]), [9, 2, 8]),
        (lambda: value("index_set", [[1, 2]], [1], 5, axis=1), [[1, 5]]),
        (lambda: value("index_add", [1, 2, 3], [0, -1, 0], [7, 8, 9]), [17, 2, 11]),
        (lambda: value("take_last", [1, 2, 3], [0, -1, 0, 2, 1]), [0, 0, 1, 3, 2]),
        (lambda: value("take_last", [[1, 2]], [[1, -1]], axis=1), [[[0, 2]]]),
        (lambda: value("astype", [1 + 2j], dtype="float32"), [1]),
        (lambda: value("constant", value=3, dtype="float32"), 3),
        (lambda: value("constant_like", [1.0, 2.0], value=3), 3),
        (lambda: value("div", [1.0, 0.0], [0.0, 0.0]), [np.inf, np.nan]),
    ],
)
def test_gives(found, expected):
    np.testing.assert_array_equal(found(), expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sigmoid_is_right_far_from_zero(dtype):
    ends = np.finfo(dtype)
    x = np.array([-np.inf, ends.min, -20, -6, 0, 6, 20, ends.max, np.inf, np.nan], dtype)
    found = value("sigmoid", x)
    with np.errstate(all="ignore"):
        small = np.exp(-np.abs(x.astype("f8")))
    wanted = np.where(x < 0, small, 1) / (1 + small)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, wanted, rtol=8 * ends.eps, atol=ends.smallest_normal)


def test_results_are_arrays_even_of_no_dims():
    for kind in ("exp", "sum", "copy", "sigmoid", "real", "where"):
        operands = [True, 1.0, 2.0] if kind == "where" else [1.0]
        assert type(value(kind, *operands)) is np.ndarray


def test_indices_are_checked():
    with pytest.raises(IndexError):
        value("take", [1.0, 2.0], [2])
    with pytest.raises(IndexError):
        value("take_add", [1.0], [2], shape=(2,))
    with pytest.raises(IndexError):
        value("take_last", [1.0, 2.0], [-3])
    with pytest.raises(IndexError):
        value("index_set", [1.0, 2.0], [2], 1.0)
    with pytest.raises(IndexError):
        value("index_add", [1.0, 2.0], [2], 1.0)


def test_copies_share_nothing():
    x = np.ones(3)
    for kind in ("copy", "stop_gradient"):
        assert not np.shares_memory(value(kind, x), x)
    assert not np.shares_memory(value("sum_to", x, shape=(3,)), x)
    assert not np.shares_memory(value("index_set", x, [0], x[:1]), x)
    assert not np.shares_memory(value("slice_add", x, x, start=(0,), stop=(3,), step=(1,)), x)
    assert np.array_equal(x, np.ones(3))
    assert np.shares_memory(value("transpose", x), x)
