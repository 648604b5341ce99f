"""The whole kinds of the cases in test_cases.py: every reduction, dtype and layout of them."""

# ruff: noqa: ARG005
import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import TraceError
from stagedad.front import grad, jit, trace, value_and_grad, vjp
from stagedad.run import compile
from stagedad.transform import differentiate

DTYPES = ["f2", "f4", "f8", "c8", "c16"]


def total(y):
    """A real number out of anything."""
    y = np.sum(y)
    return y.real if np.iscomplexobj(y) else y


# A. NaN and singular points

PRODUCTS = {
    "prod": lambda x, axis: np.prod(x, axis=axis),
    "nanprod": lambda x, axis: np.nanprod(x, axis=axis),
    "method": lambda x, axis: x.prod(axis),
    "reduce": lambda x, axis: np.multiply.reduce(x, axis=axis),
    "keepdims": lambda x, axis: np.prod(x, axis=axis, keepdims=True),
}
ROWS = np.array([[0, 2, 3], [0, 0, 3], [1, 2, 3], [0, 0, 0]])


def others(x):
    """Of each element the product of the others in its row."""
    return np.array([[np.prod(np.delete(row, i)) for i in range(row.size)] for row in x])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a14_products_beside_zeros(name, dtype):
    product, x = PRODUCTS[name], ROWS.astype(dtype)
    gradient = grad(lambda x: total(product(x, 1)))
    np.testing.assert_array_equal(gradient(x), others(ROWS))
    assert gradient(x).dtype == x.dtype
    np.testing.assert_array_equal(grad(lambda x: total(product(x, 0)))(x.T), others(ROWS).T)
    whole = grad(lambda x: total(product(x, (0, 1))))
    np.testing.assert_array_equal(whole(x[:1]), others(ROWS[:1]))
    np.testing.assert_array_equal(whole(x[:2]), np.zeros((2, 3)))


def test_a14_products_beside_zeros_have_second_derivatives():
    x = np.array([0.0, 0.0, 3.0])
    for i, wanted in enumerate([[0, 3, 0], [3, 0, 0], [0, 0, 0]]):
        found = grad(lambda x, i=i: grad(np.prod)(x)[i] * 1.0)(x)
        np.testing.assert_array_equal(found, wanted)


def test_a14_products_of_some_and_from_a_start():
    x = np.array([0.0, 2.0, 3.0])
    found = grad(lambda x: np.prod(x, where=np.array([True, False, True])))(x)
    np.testing.assert_array_equal(found, [3, 0, 0])
    np.testing.assert_array_equal(grad(lambda x: np.prod(x, initial=2.0))(x), [12, 0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cumprod", "nancumprod"])
def test_a15_running_products_beside_zeros(name, dtype):
    running = getattr(np, name)
    for row in ([2, 0, 3, 4], [2, 0, 3, 0], [0, 0, 3, 4], [0, 1, 0, 2], [0, 0, 0, 0]):
        # d y[k] / d x[i] is the product of all up to k but x[i].
        wanted = [
            sum(np.prod(np.delete(row[: k + 1], i)) for k in range(i, 4)) for i in range(4)
        ]
        x = np.array(row, dtype)
        found = grad(lambda x: total(running(x)))(x)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == x.dtype
        column = grad(lambda x: total(running(x, axis=0)))(np.stack([x, 0 * x], 1))
        np.testing.assert_array_equal(column[:, 0], wanted)


# B. Ties and ordering


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "logaddexp", "hypot"])
def test_b19_contributions_of_equal_values(name, dtype):
    ufunc = getattr(np, name)
    x = np.array([1.0, -2.0, 0.0, np.inf], dtype)[: 3 if name == "hypot" else 4]
    left, right = grad(lambda x, y: np.sum(ufunc(x, y)), argnums=(0, 1))(x, x.copy())
    both = grad(lambda x: np.sum(ufunc(x, x)))(x)
    assert left.dtype == both.dtype == x.dtype
    np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(left + right, both)
    if name != "hypot":
        np.testing.assert_array_equal(both, np.ones(4))


EXTREMA = {
    "max": np.max, "amax": np.amax, "nanmax": np.nanmax, "method": lambda x, axis: x.max(axis),
    "min": lambda x, axis: -np.min(-x, axis), "nanmin": lambda x, axis: -np.nanmin(-x, axis),
    "reduce": lambda x, axis: np.maximum.reduce(x, axis=axis),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", EXTREMA)
def test_b20_ties_share_equally(name, dtype):
    extremum = EXTREMA[name]
    x = np.array([[1, 1, 0], [2, 2, 2]], dtype)
    for axis, wanted in (
        (0, [[0, 0, 0], [1, 1, 1]]),
        (1, [[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]),
        ((0, 1), [[0, 0, 0], [1 / 3, 1 / 3, 1 / 3]]),
        (None, [[0, 0, 0], [1 / 3, 1 / 3, 1 / 3]]),
    ):
        found = grad(lambda x, axis=axis: np.sum(extremum(x, axis)))(x)
        np.testing.assert_array_equal(found, np.array(wanted, dtype))
        assert found.dtype == x.dtype


ORDERED = {
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "stable": lambda x, axis: np.sort(x, axis, kind="stable"),
    "flipped": lambda x, axis: np.flip(np.sort(x, axis=axis), axis),
    "partition": lambda x, axis: np.partition(x, 1, axis=axis),
    "take_along_axis": lambda x, axis: np.take_along_axis(x, np.argsort(x, axis=axis), axis),
    "median": lambda x, axis: np.median(x, axis=axis),
    "quantile": lambda x, axis: np.quantile(x, [0.1, 0.8], axis=axis),
}


@pytest.mark.parametrize("shape", [(256, 10), (2, 3), (3, 4, 2), (1, 5)])
@pytest.mark.parametrize("name", ORDERED)
def test_b22_ordering_hands_back_along_the_axis(name, shape):
    order = ORDERED[name]
    # Far enough from one another for differences.
    x = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape) / 7.0
    for axis in range(-1, len(shape) - (name == "partition")):
        if shape[axis] < 2:
            continue
        weights = np.cos(np.arange(np.size(order(x, axis)))).reshape(order(x, axis).shape)
        found = grad(lambda x, a=axis, w=weights: np.sum(w * order(x, a)))(x)
        assert found.shape == shape
        # Linear where nothing is tied: one difference along one direction says all.
        way = np.random.default_rng(1).uniform(-1, 1, shape) / 50
        slope = np.sum(weights * (order(x + way, axis) - order(x - way, axis))) / 2
        np.testing.assert_allclose(np.sum(found * way), slope, rtol=1e-9, atol=1e-12)


# D. Staged graphs


BOTH_NEEDED = {
    "mul": lambda x, y: np.sum(np.exp(x) * np.tanh(y)),
    "matmul": lambda x, y: np.sum(np.outer(x, x) @ y),
    "where": lambda x, y: np.sum(np.where(x > 0, np.sin(x), np.cos(y))),
    "prod": lambda x, y: np.prod(x) * np.prod(y),
    "sort": lambda x, y: np.sum(np.sort(x) * np.sort(y)),
    "concatenate": lambda x, y: np.sum(np.concatenate([x**2, y**3])),
}


@pytest.mark.parametrize("name", BOTH_NEEDED)
def test_d45_only_requested_gradients_are_computed(name):
    graph = trace(BOTH_NEEDED[name], np.ones(3), np.ones(3))
    counts = {}
    for flags in ((True, False), (False, True), (True, True)):
        gradient = differentiate(graph, flags)
        pair = compile(gradient)
        _, pull = pair(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.1, 0.2]))
        pull(np.ones(()))
        counts[flags] = len(pair.df.instructions)
        assert len(gradient.df.outputs) == sum(flags)
    assert counts[True, False] < counts[True, True]
    assert counts[False, True] < counts[True, True]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: tuple(np.split(x**2, 3)), 3),
        (lambda x: np.modf(x**2), 2),
        (lambda x: (x**2, np.sin(x), x.sum()), 3),
        (lambda x: tuple(x**2), 3),
    ],
)
def test_d42_some_outputs_are_seeded(function, count):
    x = np.array([1.5, 2.25, 3.125])
    outputs, pull = vjp(function, x)
    seeds = [np.ones_like(np.asarray(y)) for y in outputs]
    (whole,) = pull(tuple(seeds))
    parts = []
    for k in range(count):
        (one,) = pull(tuple(s if i == k else None for i, s in enumerate(seeds)))
        (zero,) = pull(tuple(s if i == k else 0 * s for i, s in enumerate(seeds)))
        np.testing.assert_array_equal(one, zero)
        parts.append(one)
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-14)
    np.testing.assert_array_equal(pull((None,) * count)[0], np.zeros(3))


# E. Types, shapes, arguments, messages


REDUCTIONS = """
    sum prod mean var std max min ptp median average nansum nanprod nanmean nanvar nanstd
    nanmax nanmin nanmedian cumsum cumprod nancumsum
""".split()
FUNCTIONS = {
    **{name: getattr(np, name) for name in REDUCTIONS},
    "norm": np.linalg.norm,
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "diff": lambda x, axis: np.diff(x, axis=-1 if axis is None else axis),
    "quantile": lambda x, axis: np.quantile(x, 0.3, axis=axis),
    "where": lambda x, axis: np.where(x > 1, x, 0.0),
    "scaled": lambda x, axis: np.mean(x * 2.0 + 1, axis=axis),
    "clip": lambda x, axis: np.clip(x, 0.5, 1.2),
    "power": lambda x, axis: x**2 + x**0.5 + 2.0**x,
    "round trip": lambda x, axis: x.astype("f8").astype(x.dtype),
    "indexed": lambda x, axis: x[1:, [0, 2, 2]],
    "transposed": lambda x, axis: (x.T * 2)[::-1],
}  # fmt: skip


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "strided", "broadcast"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_e52_e59_gradients_are_plain_arrays_of_the_arguments_dtype(name, dtype, layout):
    function = FUNCTIONS[name]
    x = (np.arange(1, 13).reshape(3, 4) % 7 / 4 + 0.1).astype(dtype)
    x = {
        "C": x, "F": np.asfortranarray(x), "transposed": np.ascontiguousarray(x.T).T,
        "strided": np.repeat(x, 2, 1)[:, ::2], "broadcast": np.broadcast_to(x[0], x.shape),
    }[layout]  # fmt: skip
    for axis in (None, 0, 1):
        value, gradient = value_and_grad(lambda x, a=axis: np.sum(function(x, axis=a)))(x)
        wanted = np.sum(function(x, axis=axis))
        assert np.asarray(value).dtype == wanted.dtype == x.dtype
        assert type(gradient) is np.ndarray
        assert (gradient.dtype, gradient.shape) == (x.dtype, x.shape)
        assert gradient.flags.c_contiguous
        assert gradient.flags.writeable
        assert gradient.flags.aligned
        assert not np.shares_memory(gradient, x)
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("dtype", ["b1", "i1", "i4", "i8", "u2", "u8"])
def test_e53_integers_are_named(dtype):
    with pytest.raises(TypeError, match=r"argument `count` is (b1|[iu]\d+)\[3\].*\n.*astype"):
        grad(lambda count: np.sum(count * 1.5))(np.ones(3, dtype))
    with pytest.raises(TypeError, match="count"):
        grad(lambda x, count: np.sum(x * count), argnums=(0, 1))(np.ones(3), np.ones(3, dtype))
    np.testing.assert_array_equal(
        grad(lambda x, count: np.sum(x * count))(np.ones(3), np.ones(3, dtype)), np.ones(3)
    )


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_e53_a_refusal_names_the_function_that_was_called(name):
    with pytest.raises(TraceError, match=f"^{name}: not of complex numbers"):
        jit(lambda x: getattr(np, name)(x))(np.ones(2, complex))


INDEXED = {
    "index": lambda x, i: x[i],
    "take": lambda x, i: np.take(x, i),
    "method": lambda x, i: x.take(i),
    "rows": lambda x, i: np.stack([x, 0 * x], 1)[i],
    "take_along_axis": lambda x, i: np.take_along_axis(x, i, 0),
}


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u2"])
@pytest.mark.parametrize("name", INDEXED)
def test_e53_indices_are_arguments_without_a_gradient(name, dtype):
    function, x = INDEXED[name], np.array([1.0, 2.0, 3.0])
    index = np.array([0, 2, 2], dtype)
    found = grad(lambda x, i: np.sum(function(x, i) ** 2))(x, index)
    np.testing.assert_array_equal(found, [2, 0, 12])


EMPTY = {
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis=axis),
    "nancumsum": lambda x, axis: np.nancumsum(x, axis=axis),
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "prod": lambda x, axis: np.prod(x, axis=axis),
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "partition": lambda x, axis: np.partition(x, 2, axis=axis),
    "diff": lambda x, axis: np.diff(x, axis=axis),
    "flip": lambda x, axis: np.flip(x, axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "trapezoid": lambda x, axis: np.trapezoid(x, axis=axis),
    "norm": lambda x, axis: np.linalg.norm(x, axis=axis),
    "nansum": lambda x, axis: np.nansum(x, axis=axis),
    "stack": lambda x, axis: np.stack([x, x], axis),
    "concatenate": lambda x, axis: np.concatenate([x, 2 * x], axis),
    "split": lambda x, axis: np.split(x, 1, axis)[0],
    "take": lambda x, axis: np.take(x, np.zeros(0, int), axis=axis),
    "product": lambda x, axis: x.T @ x,
    "outer": lambda x, axis: np.outer(x, x),
    "matrix": lambda x, axis: np.ones((3, 2)) @ x if x.shape[0] == 2 else x,
    "tensordot": lambda x, axis: np.tensordot(x, x, x.ndim),
    "column": lambda x, axis: x + np.ones((*x.shape[:-1], 1)),
    "where": lambda x, axis: np.where(x > 0, x, 1 / x),
    "index": lambda x, axis: x[..., []],
    "boolean": lambda x, axis: x[np.zeros(x.shape, bool)],
    "reshape": lambda x, axis: np.reshape(x, (0, 5)),
    "broadcast": lambda x, axis: np.broadcast_to(x, (3, *x.shape)),
}


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0,), (0, 0)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("name", EMPTY)
def test_e56_of_no_elements(name, dtype, shape):
    function, x = EMPTY[name], np.zeros(shape, dtype)
    for axis in range(len(shape)):
        if name == "take" and shape[axis] == 0:
            continue
        wanted = np.asarray(function(x, axis))
        found = np.asarray(jit(lambda x, a=axis: function(x, a))(x))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
        gradient = grad(lambda x, a=axis: total(function(x, a)))(x)
        assert (gradient.dtype, gradient.shape) == (x.dtype, shape)


def test_e56_what_is_lost_has_zeros():
    x = np.arange(10.0)
    for function in (
        lambda x: np.repeat(x, 0), lambda x: x[:0], lambda x: np.take(x, np.zeros(0, int)),
        lambda x: x[np.zeros(10, bool)], lambda x: np.zeros((10, 0)) + x[:, None],
        lambda x: np.diff(x, n=10), lambda x: np.cumsum(x[:0]), lambda x: x[3:3] * x[7:2],
        lambda x: np.outer(x, x[:0]), lambda x: x[:, None] @ np.zeros((1, 0)),
    ):  # fmt: skip
        np.testing.assert_array_equal(grad(lambda x, f=function: np.sum(f(x)))(x), 0 * x)


def test_e59_gradients_suit_an_optimiser_in_any_tree():
    x = np.arange(6.0).reshape(2, 3).T
    tree = {"w": x, "b": [x[0], np.float64(2.0)]}
    found = sd.grad(lambda t: np.sum(t["w"].T ** 2) + np.sum(t["b"][0]) * t["b"][1])(tree)
    np.testing.assert_array_equal(found["w"], 2 * x)
    for each in (found["w"], found["b"][0]):
        assert each.flags.c_contiguous
        assert each.flags.writeable
        each += 1  # is the caller's own
