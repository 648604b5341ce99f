"""Tests of front/indexing.py."""

import numpy as np
import pytest

from stagedad.errors import TraceError
from stagedad.front import grad, jit, trace

X = np.arange(24.0).reshape(2, 3, 4)
MASK = X[0, :, 0] > 2

KEYS = {
    "int": 1,
    "negative_int": -1,
    "numpy_int": np.int64(1),
    "ints": (1, 2, 3),
    "some_ints": (0, slice(None), 1),
    "slice": slice(1, None),
    "empty_slice": slice(2, 1),
    "step": (slice(None), slice(None, None, 2), slice(1, 4, 2)),
    "reverse": (slice(None, None, -1), slice(None), slice(None, None, -2)),
    "reverse_part": (..., slice(2, 0, -1)),
    "beyond": (slice(-10, 10), slice(1, 100)),
    "ellipsis": (..., 1),
    "ellipsis_middle": (0, ..., slice(1, 3)),
    "none": (None, 0, None, ..., None),
    "everything": (),
    "list": [1, 0, 0],
    "empty_list": [],
    "array": (slice(None), np.array([[2, 0], [-1, 1]])),
    "array_last": (0, slice(1, 3), np.array([3, 0, 3])),
    "int_beside_array": (0, np.array([2, 0])),
    "int_apart_from_array": (0, slice(None), np.array([3, 0, 3])),
    "two_arrays": (np.array([0, 1]), np.array([2, -1])),
    "two_arrays_apart": (np.array([0, 1]), slice(None), np.array([2, -1])),
    "two_arrays_last": (slice(None), np.array([[0], [2]]), np.array([2, -1])),
    "broadcast_arrays": (np.array([[0], [1]]), np.array([2, -1, 0])),
    "none_and_array": (None, np.array([1, 0]), slice(None), 0),
    "0d_array": np.array(1),
    "mask": X > 5,
    "mask_of_axis": (slice(None), MASK),
    "mask_and_int": (0, MASK, slice(1, 3)),
}


@pytest.mark.parametrize("name", KEYS)
def test_gives_what_numpy_gives(name):
    key = KEYS[name]
    got = jit(lambda x: x[key] * 1.0)(X)
    np.testing.assert_array_equal(got, X[key] * 1.0)
    assert got.shape == X[key].shape


@pytest.mark.parametrize("name", KEYS)
def test_the_gradient_goes_to_what_was_read(name):
    key = KEYS[name]
    wanted = np.zeros_like(X)
    np.add.at(wanted, key, 2 * X[key])
    np.testing.assert_array_equal(grad(lambda x: np.sum(x[key] ** 2))(X), wanted)


@pytest.mark.parametrize("key", [2, (0, 3), (0, 0, -5), [0, 2], (slice(None), [3])])
def test_an_index_out_of_bounds_raises(key):
    with pytest.raises(IndexError):
        jit(lambda x: x[key] * 1.0)(X)


@pytest.mark.parametrize("key", [(0, 0, 0, 0), (..., ...), "a", 1.0, (np.array([0.5]),)])
def test_a_key_that_numpy_refuses_raises_index_error(key):
    with pytest.raises(IndexError):
        jit(lambda x: x[key])(X)


def test_traced_indices_are_read_at_each_call():
    pick = jit(lambda x, i: x[i] * 1.0)
    x = np.array([1.0, 2.0, 3.0])
    for indices in ([0, 0, 2], [2, 1, -1]):
        np.testing.assert_array_equal(pick(x, np.array(indices)), x[indices])
    assert pick(x, 1) == pick(x, np.array(1)) == 2
    assert pick.cache_info().misses == 3
    with pytest.raises(IndexError):
        pick(x, np.array([0, 3, 0]))


def test_several_traced_indices_are_checked_each():
    pick = jit(lambda x, i, j: x[i, j])
    x = X[0]
    i, j = np.array([0, 2]), np.array([-1, 1])
    np.testing.assert_array_equal(pick(x, i, j), x[i, j])
    with pytest.raises(IndexError):
        pick(x, i, np.array([4, 0]))


def test_traced_indices_have_no_gradient_and_need_none():
    x = np.array([1.0, 2.0, 3.0])
    gradient = grad(lambda x, i: np.sum(x[i] ** 2))(x, np.array([0, 0, 2]))
    np.testing.assert_array_equal(gradient, [4, 0, 6])


def test_closed_over_indices_may_change():
    indices = np.array([0, 1])
    rows, columns = np.array([0, 1]), np.array([0, 1])
    mask = np.array([True, False, True])
    x = np.arange(9.0).reshape(3, 3)
    one = jit(lambda x: x[indices] * 1.0)
    two = jit(lambda x: x[rows, columns] * 1.0)
    three = jit(lambda x: x[mask] * 1.0)
    for _ in range(2):
        np.testing.assert_array_equal(one(x), x[indices])
        np.testing.assert_array_equal(two(x), x[rows, columns])
        np.testing.assert_array_equal(three(x), x[mask])
        indices[:] = [2, 2]
        rows[0] = 2
        mask[1] = True


def test_a_traced_mask_raises_at_the_users_line():
    with pytest.raises(TraceError, match=r"mask.*test_indexing\.py:\d+.*\n.*np\.where"):
        jit(lambda x: x[x > 0])(X)


def test_a_full_slice_records_nothing():
    graph = trace(lambda x: x[:, ...][:], X)
    assert len(graph) == 0
