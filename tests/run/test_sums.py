"""Sums are at least as accurate as NumPy's of a contiguous copy, along every axis."""

from itertools import chain, combinations
from math import fsum

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph
from stagedad.plan import blocks
from stagedad.plan.kernels import loops_enabled
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


def layouts_of(array):
    """The same values in memory of other orders and steps."""
    yield array
    yield np.asfortranarray(array)
    yield np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    room = np.empty(tuple(2 * dim for dim in array.shape), array.dtype)
    spaced = room[tuple(slice(None, None, 2) for _ in array.shape)]
    spaced[...] = array
    yield spaced
    order = np.roll(range(array.ndim), 1)
    yield np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def hard(shape, dtype):
    """Numbers of all magnitudes and both signs, whose sum is small."""
    array = RNG.normal(size=shape) * np.exp(8 * RNG.normal(size=shape))
    if np.dtype(dtype).kind == "c":
        array = array + 1j * np.roll(array, 1)
    return array.astype(dtype)


@pytest.mark.parametrize("shape", [*SHAPES, (3, 1, 17, 129), (1025, 16), (5, 200, 6)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_is_numpys_sum_of_a_contiguous_copy_to_the_last_bit(shape, dtype):
    array = hard(shape, dtype)
    for axes in subsets(len(shape)):
        rows = rows_of(array, axes)
        if rows.shape[1] > 8192:  # NumPy 2.0 sums longer ones in pieces of its buffer
            continue
        wanted = np.array([np.sum(row) for row in rows] if axes else rows.ravel())
        program = program_of("sum", axis=axes)
        for given in layouts_of(array):
            (result,) = program(given)
            np.testing.assert_array_equal(result.ravel(), wanted)
            (result,) = program_of("sum", axis=axes[::-1], keepdims=True)(given)
            np.testing.assert_array_equal(result.ravel(), wanted)


def bound(count, eps):
    """What pairwise summation errs by, relative to the sum of magnitudes.

    A leaf is 16 additions in a lane, three to join the lanes and up to seven after them;
    what is above it is a binary tree, and one addition starts from zero.
    """
    return (27 + max(0, int(np.ceil(np.log2(max(count / 64, 1)))))) * eps


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1_000_003,), (0,)),
        ((200_000, 5), (0,)),
        ((5, 200_000), (0,)),
        ((5, 200_000), (1,)),
        ((1000, 7, 30), (0, 2)),
        ((1000, 7, 30), (0, 1)),
        ((64, 64, 64), (0,)),
        ((64, 64, 64), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_hard_sums_err_by_the_logarithm_of_their_count(shape, axes, dtype):
    array = hard(shape, dtype)
    rows = rows_of(array, axes)
    exact = np.array([fsum(row.tolist()) for row in rows])
    scale = np.array([fsum(np.abs(row).tolist()) for row in rows])
    limit = bound(rows.shape[1], float(np.finfo(dtype).eps)) * scale
    first = None
    for given in layouts_of(array):
        (result,) = program_of("sum", axis=axes)(given)
        assert np.all(np.abs(result.ravel().astype("f8") - exact) <= limit)
        first = result if first is None else first
        np.testing.assert_array_equal(result, first)
        (mean,) = program_of("mean", axis=axes)(given)
        np.testing.assert_array_equal(mean, first / np.dtype(dtype).type(rows.shape[1]))


def test_a_sequential_sum_would_not_pass():
    array = np.full(1_000_003, 0.1, "f4")
    scale = fsum(array.tolist())
    error = abs(float(np.cumsum(array)[-1]) - scale)
    assert error > bound(array.size, float(np.finfo("f4").eps)) * scale
    (result,) = program_of("sum")(array)
    assert abs(float(result) - scale) <= bound(array.size, float(np.finfo("f4").eps)) * scale


@pytest.mark.parametrize("shape", [(5000,), (70, 70), (3, 5000)], ids=str)
def test_halves_are_summed_in_float32(shape):
    array = RNG.normal(size=shape).astype("f2")
    for axes in subsets(len(shape)):
        for given in layouts_of(array):
            (result,) = program_of("sum", axis=axes)(given)
            rows = rows_of(array, axes)
            wanted = np.array([np.sum(row.astype("f4")) for row in rows] if axes else rows)
            np.testing.assert_array_equal(result.ravel(), wanted.ravel().astype("f2"))
            (mean,) = program_of("mean", axis=axes)(given)
            count = np.float32(rows.shape[1] if axes else 1)
            np.testing.assert_array_equal(mean.ravel(), (wanted.ravel() / count).astype("f2"))


@pytest.mark.parametrize("shape", [(2,), (9,), (300,), (3, 7), (9, 30), (5000,)], ids=str)
def test_a_sum_of_minus_zeros_is_zero(shape):
    for axes in list(subsets(len(shape)))[1:]:
        (result,) = program_of("sum", axis=axes)(np.full(shape, -0.0))
        assert not np.signbit(result).any()
        assert not np.signbit(np.sum(np.full(shape, -0.0), axis=axes)).any()


def squares(graph, x):
    y = graph.insert("mul", graph.insert("sub", x, graph.insert("sin", x)), x)
    kinds = ("sum", "mean", "max", "min")
    return [graph.insert(kind, y) for kind in kinds]


@pytest.fixture
def fused():
    """A run of elementwise steps that ends in reductions."""
    graph = Graph()
    for value in squares(graph, graph.add_input()):
        graph.register_output(value)
    return graph


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i8"])
@pytest.mark.parametrize("n", [2048, 2049, 4096 + 7, 8192, 100_001])
def test_no_block_length_changes_a_bit(n, dtype, monkeypatch):
    graph = Graph()
    x = graph.add_input()
    y = graph.insert("mul", graph.insert("sub", x, graph.insert("square", x)), x)
    for kind in ("sum", "mean") if dtype == "c16" else ("sum", "mean", "max", "min"):
        graph.register_output(graph.insert(kind, y))
    array = (
        hard(n, dtype) if dtype not in ("f2", "i8") else (7 * RNG.normal(size=n)).astype(dtype)
    )
    with np.errstate(all="ignore"):
        exact = (array - np.square(array)) * array
        wanted = [np.sum(exact), np.mean(exact)]
        if dtype != "c16":
            wanted += [np.max(exact), np.min(exact)]
    monkeypatch.setattr(blocks, "SHORTEST", 1)
    for length in (10**9, 1024, 512, 257, 131, 8, 1):
        monkeypatch.setattr(blocks, "LONGEST", length)
        if length == 1 and n > 5000:
            continue
        program = compile(graph)
        results = program(array)
        if loops_enabled():
            assert "block" in [record.kind for record in program.instructions]
        for result, want in zip(results, wanted, strict=True):
            if n <= 8192 and dtype != "c16":  # NumPy contracts products of complex numbers
                np.testing.assert_array_equal(result, want)
            else:
                np.testing.assert_allclose(result, want, rtol=1e-3)
        if length == 10**9:
            first = results
        for result, one in zip(results, first, strict=True):
            np.testing.assert_array_equal(result, one)


@pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")
def test_reductions_at_the_end_of_a_run_need_no_array(fused):
    program = compile(fused)
    array = RNG.normal(size=1_000_000)
    total, mean, most, least = program(array)
    product = (array - np.sin(array)) * array
    np.testing.assert_allclose(total, fsum(product.tolist()))
    assert (mean, most, least) == (total / 1e6, product.max(), product.min())
    kinds = [record.kind for record in program.instructions]
    assert kinds == ["block", "loop", "loop", "loop", *["reduce"] * 4, "own"]
    assert program.workspace_bytes < 40_000


@pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")
def test_value_and_gradient_of_a_long_mean_are_one_block():
    graph = sd.trace(lambda x, y: np.mean((np.tanh(x) * y) ** 2), *[np.zeros(100_000)] * 2)
    joint = compile(sd.differentiate(graph, [True, True])).joint
    x, y = RNG.normal(size=(2, 100_000))
    value, dx, dy = joint(x, y, 1.0)
    t = np.tanh(x)
    np.testing.assert_allclose(value, np.mean((t * y) ** 2), rtol=1e-14)
    np.testing.assert_allclose(dx, 2 * t * y**2 * (1 - t**2) / 1e5, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(dy, 2 * t**2 * y / 1e5, rtol=1e-9, atol=1e-20)
    listed = joint.instructions
    (block,) = [record for record in listed if record.kind == "block"]
    # Of the others, each is over one element: a mean's division, a cotangent's.
    outside = [record for record in listed if record.types[:1] and record.types[-1].size == 1]
    assert len(listed) - 1 - block.calls <= len(outside) <= 4
    assert joint.workspace_bytes < 100_000


def test_what_reads_a_total_comes_after_the_block():
    def f(x):
        y = np.exp(x) * x
        z = y / np.sum(y)
        return z, np.max(z), np.sum(z * z + y), y

    x = RNG.normal(size=5000)
    program = compile(sd.trace(f, x))
    for _ in range(2):
        for result, want in zip(program(x), f(x), strict=True):
            np.testing.assert_allclose(result, want, rtol=1e-13)


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
