"""Sums are at least as accurate as NumPy's of a contiguous copy, along every axis."""

from itertools import chain, combinations
from math import fsum

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.run import compile

SHAPES = [
    (10_000,),
    (3000, 7),
    (7, 3000),
    (300, 40),
    (40, 300),
    (20, 30, 40),
    (2, 3, 5, 7),
    (1, 99),
]
RNG = np.random.default_rng(3)


def program_of(kind, **attributes):
    graph = Graph()
    graph.register_output(graph.insert(kind, graph.add_input(), **attributes))
    return compile(graph)


def subsets(ndim):
    axes = range(ndim)
    return chain.from_iterable(combinations(axes, count) for count in range(ndim + 1))


def rows_of(array, axes):
    """The elements of each sum, contiguous."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    count = int(np.prod([array.shape[axis] for axis in kept], dtype=int))
    return np.ascontiguousarray(array.transpose(*kept, *axes)).reshape(count, -1)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_is_accurate_along_every_axis(shape, dtype, layout):
    array = np.asarray(RNG.lognormal(sigma=3, size=shape).astype(dtype), order=layout)
    for axes in subsets(len(shape)):
        (result,) = program_of("sum", axis=axes)(array)
        assert result.shape == np.sum(array, axis=axes).shape
        rows = rows_of(array, axes)
        exact = np.array([fsum(row.tolist()) for row in rows])
        # NumPy at its most accurate: one contiguous sum at a time.
        reference = np.max(np.abs(np.array([np.sum(row) for row in rows], "f8") - exact))
        error = np.max(np.abs(result.ravel().astype("f8") - exact))
        assert error <= 2 * reference + 2 * np.finfo(dtype).eps * np.max(exact)


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16", "i1", "u2", "b1"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_numpy_for_other_dtypes(shape, dtype):
    array = np.asarray(RNG.integers(0, 2, shape)).astype(dtype)
    for axes in subsets(len(shape)):
        for kind in ("sum", "mean"):
            (result,) = program_of(kind, axis=axes, keepdims=True)(array)
            wanted = getattr(np, kind)(array, axis=axes, keepdims=True)
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=2e-3 if dtype == "f2" else 1e-6)


def test_is_the_same_in_every_run():
    program = program_of("sum", axis=0)
    array = RNG.normal(size=(1000, 33))
    (first,) = program(array)
    for _ in range(20):
        np.testing.assert_array_equal(program(array)[0], first)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) > 1], ids=str)
def test_extrema(kind, shape):
    array = RNG.normal(size=shape)
    array.flat[3] = np.nan
    for axes in subsets(len(shape)):
        for given in (array, np.asfortranarray(array), array[::-1]):
            (result,) = program_of(kind, axis=axes)(given)
            np.testing.assert_array_equal(result, getattr(np, kind)(given, axis=axes))


def test_the_extremum_of_nothing_raises():
    with pytest.raises(ValueError, match="max"):
        program_of("max")(np.zeros((0, 3)))
    (result,) = program_of("max", axis=1)(np.zeros((0, 3)))
    assert result.shape == (0,)
    (result,) = program_of("sum", axis=0)(np.zeros((0, 3)))
    assert np.array_equal(result, np.zeros(3))
    (result,) = program_of("mean", axis=0)(np.zeros((0, 3)))
    assert np.isnan(result).all()


def test_mul0_and_stretched_operands():
    graph = Graph()
    x = graph.add_input()
    wide = graph.insert("broadcast_to", x, shape=(1000, 1000))
    graph.register_output(graph.insert("sum", wide))
    graph.register_output(graph.insert("sum", wide, axis=0))
    total, column = compile(graph)(np.float64(0.5))
    assert total == 500_000
    assert np.array_equal(column, np.full(1000, 500.0))
