"""Tests of plan/_view: views are what NumPy's own views are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from stagedad.plan._view import (
    Buffer,
    View,
    broadcast,
    fresh,
    is_dense,
    loop_axes,
    reshape,
    sliced,
)
from stagedad.plan.step import ARENA

F8 = np.dtype("f8")


def as_array(view, memory):
    return as_strided(memory[view.offset // 8 :], view.shape, view.strides)


@st.composite
def views(draw):
    """A view of 4 KiB of numbers, as NumPy's indexing makes them."""
    memory = np.arange(512, dtype=F8)
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    size = int(np.prod(shape, dtype=int))
    array = memory[:size].reshape(shape)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = [draw(st.sampled_from([1, -1, 2])) for _ in shape]
    array = array[(..., *[slice(None, None, step) for step in steps])]
    offset = array.ctypes.data - memory.ctypes.data if array.size else 0
    buffer = Buffer(ARENA, 0, memory.nbytes)
    return View(buffer, F8, array.shape, array.strides, offset), array, memory


@given(views())
def test_dense_is_c_contiguous(case):
    view, array, memory = case
    assert view.dense == array.flags.c_contiguous
    assert view.size == array.size
    assert np.array_equal(as_array(view, memory), array)


@given(views(), st.data())
def test_reshape_copies_only_where_numpy_does(case, data):
    view, array, memory = case
    dims, rest = [], array.size
    while rest > 1 and len(dims) < 5:
        dims.append(data.draw(st.sampled_from([n for n in (1, 2, 3, rest) if rest % n == 0])))
        rest //= dims[-1]
    dims.append(rest)
    shape = tuple(dims) if array.size else (0, 3)
    result = reshape(view, shape)
    wanted = np.reshape(array, shape)
    if wanted.size and not np.may_share_memory(wanted, array):  # NumPy 2.0 has no copy=False
        wanted = None
    if wanted is None:
        assert result is None
    else:
        assert result is not None
        assert np.array_equal(as_array(result, memory), wanted)


@given(views(), st.lists(st.integers(1, 3), max_size=2))
def test_broadcast(case, lead):
    view, array, memory = case
    shape = (*lead, *array.shape)
    result = broadcast(view, shape)
    assert np.array_equal(as_array(result, memory), np.broadcast_to(array, shape))


@given(views())
def test_loop_axes_visit_every_element_once(case):
    view, array, memory = case
    if view.size == 0:
        return
    n, strides, outer = loop_axes(view.shape, [view.strides], [8])
    dims = [n, *outer[1::2]]
    steps = [strides[0], *outer[2::2]]
    visited = as_strided(memory[view.offset // 8 :], dims, steps)
    assert sorted(visited.ravel().tolist()) == sorted(array.ravel().tolist())
    assert len(outer) in (0, 1 + 2 * (outer[0] if outer else 0))
    if n == 1:
        assert strides == (8,)


def test_a_short_last_axis_gives_way():
    assert loop_axes((1000, 3), [(24, 8)], [8])[0] == 3000
    assert loop_axes((1000, 3), [(8, 8000)], [8])[0] == 1000
    assert loop_axes((1000, 3), [(8, 8000)], [8], False)[0] == 3
    assert loop_axes((50, 15), [(8, 8000)], [8], False)[0] == 15


def test_the_inner_axis_is_one_along_which_most_operands_lie_dense():
    columns, rows = (8, 800), (1600, 8)
    assert loop_axes((100, 200), [columns, columns, rows], [8] * 3)[0] == 100
    assert loop_axes((100, 200), [columns, rows, rows], [8] * 3)[0] == 200
    assert loop_axes((100, 200), [columns, rows], [8] * 2)[0] == 200
    assert loop_axes((100, 200), [columns, columns, rows], [8] * 3, False)[0] == 200
    assert loop_axes((15, 200), [(8, 120), (8, 120), rows], [8] * 3)[0] == 200
    assert loop_axes((15, 10), [(8, 120), (8, 120), (80, 8)], [8] * 3)[0] == 15
    # A number stands still along every axis.
    assert loop_axes((100, 200), [columns, (0, 0), rows], [8] * 3)[0] == 200


def test_is_dense_ignores_axes_of_size_one():
    assert is_dense((3, 1), (8, 77), 8)
    assert is_dense((0, 3), (1, 2), 8)
    assert not is_dense((3, 2), (8, 24), 8)


def test_a_size_that_cannot_be_counted_raises():
    with pytest.raises(ValueError, match="too big"):
        fresh(F8, (1 << 40, 1 << 40))


LIMITS = st.one_of(st.none(), st.integers(-6, 6))
STEPS = st.one_of(
    st.none(), st.integers(-3, 3).filter(bool), st.sampled_from([2**62, -(2**62)])
)


@given(views(), st.data())
def test_slices_are_those_of_python(case, data):
    view, array, memory = case
    keys = [slice(*data.draw(st.tuples(LIMITS, LIMITS, STEPS))) for _ in array.shape]
    part = sliced(view, *[tuple(getattr(key, name) for key in keys)
                          for name in ("start", "stop", "step")])  # fmt: skip
    wanted = array[tuple(keys)]
    assert part.shape == wanted.shape
    if wanted.size > 1 and max(map(abs, part.strides)) < 4096:
        assert np.array_equal(as_array(part, memory), wanted)
    elif wanted.size:
        assert memory[part.offset // 8] == wanted.flat[0]


def test_a_slice_an_axis():
    with pytest.raises(ValueError, match="sliced: 1 slices for 2 axes"):
        sliced(fresh(F8, (2, 3)), (0,), (1,), (1,))
