"""Tests of odd but legal ways to write, call and change differentiated functions."""

# ruff: noqa: ARG005
import dataclasses
import functools
from collections import OrderedDict, namedtuple
from itertools import pairwise

import numpy as np
import pytest

import stagedad as sd

X = np.array([0.3, -1.2, 2.5, 0.9])
ONES = np.ones(3)


def product_of_first(x, n):
    """A recursive helper."""
    return x[0] if n == 0 else x[n] * product_of_first(x, n - 1)


def loop(x):
    total = 0
    for i in range(len(x)):
        total += x[i] * x[i] * i
    return total


def unpacked(x):
    first, second, *rest = x
    return first * second + rest[0] * rest[1]


def pushed(x):
    seen = []
    for element in x:
        seen.append(element * element)
    return sum(seen)


def augmented_alias(x):
    y = x * 1
    z = y
    z *= 2
    return (y * x).sum()


def aliased_list(x):
    pair = [x * 1] * 2
    pair[0] += 1
    return (pair[0] * pair[1]).sum()


def caught(x):
    try:
        return x[10]
    except IndexError:
        return x[0] ** 2


def matched(x):
    match x.ndim:
        case 1:
            return x.sum() ** 2
        case _:
            return 0.0


def branch_by_shape(x):
    return x.sum() / x.size * x.shape[0] * x.ndim * len(x)


def dictionary(x):
    parts = {"a": x[0], "b": x[1:]}
    return sum((part**2).sum() for part in parts.values())


ODD = {
    "loop": (loop, 2 * X * np.arange(4)),
    "generator": (lambda x: sum(v * v for v in x), 2 * X),
    "comprehension": (lambda x: sum([v**3 for v in x]), 3 * X**2),
    "reversed": (lambda x: sum(v * k for k, v in enumerate(reversed(x))), [3, 2, 1, 0]),
    "pairwise": (lambda x: sum(a * b for a, b in pairwise(x)), [-1.2, 2.8, -0.3, 2.5]),
    "recursion": (lambda x: product_of_first(x, 3), np.prod(X) / X),
    "reduce": (
        lambda x: functools.reduce(lambda a, b: a * b + 1, x),
        [-2.7, 0.675, 0.576, 2.6],
    ),
    "unpacked": (unpacked, [-1.2, 0.3, 0.9, 2.5]),
    "starred": (lambda x: (lambda *a: a[0] * a[3])(*x), [0.9, 0, 0, 0.3]),
    "pushed": (pushed, 2 * X),
    "augmented alias": (augmented_alias, 4 * X),
    "aliased list": (aliased_list, 2 * (X + 1)),
    "caught": (caught, [0.6, 0, 0, 0]),
    "matched": (matched, np.full(4, 5.0)),
    "shape": (branch_by_shape, np.full(4, 4.0)),
    "dictionary": (dictionary, 2 * X),
    "walrus": (lambda x: (y := x * x).sum() + y[0], [1.2, -2.4, 5, 1.8]),
    "partial": (
        functools.partial(lambda a, x, b: a * (b * x).sum(), 3, b=2.0),
        np.full(4, 6.0),
    ),
    "negative step": (lambda x: (x[::-2] ** 2 * np.array([1, 2])).sum(), [0, -4.8, 0, 1.8]),
    "boolean factor": (lambda x: ((x > 0) * x).sum(), [1, 0, 1, 1]),
    "empty slice": (lambda x: x[:0].sum() + x[0], [1, 0, 0, 0]),
    "no use": (lambda x: 3.0, np.zeros(4)),
    "concatenated": (
        lambda x: np.sum(np.concatenate([x, [x @ x]]) ** 2),
        2 * X * (1 + 2 * (X @ X)),
    ),
    "nested": (lambda x: (sd.grad(lambda y: (y**3).sum())(x) * x).sum(), 9 * X**2),
    "staged inside": (lambda x: sd.jit(lambda y: y * y)(x).sum(), 2 * X),
    "formatted": (lambda x: len(f"{x} {x[0]!r}") * 0 + x.sum(), np.ones(4)),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_function_has_the_right_gradient_again_and_again(name):
    function, expected = ODD[name]
    gradient = sd.grad(function)
    for _ in range(2):
        np.testing.assert_allclose(gradient(X.copy()), expected, rtol=1e-12, atol=1e-12)
    assert float(sd.jit(function)(X)) == pytest.approx(float(function(X)))


def layouts():
    """One matrix and others of its shape in layouts that no kernel likes."""
    base = np.arange(1.0, 13.0).reshape(3, 4)
    packed = np.zeros((3, 4), [("tag", "i1"), ("x", "f8")])
    packed["x"] = base
    unaligned = np.zeros(97, np.uint8)[1:].view("f8").reshape(3, 4)
    unaligned[...] = base
    frozen = base.copy()
    frozen.flags.writeable = False
    return {
        "fortran": np.asfortranarray(base),
        "reversed": base[::-1, ::-1],
        "strided": np.repeat(base, 2, 1)[:, ::2],
        "row broadcast": np.broadcast_to(np.arange(1.0, 5.0), (3, 4)),
        "column broadcast": np.broadcast_to(np.arange(1.0, 4.0)[:, None], (3, 4)),
        "read-only": frozen,
        "swapped": base.astype(">f8"),
        "packed": packed["x"],
        "unaligned": unaligned,
        "overlapping": np.lib.stride_tricks.as_strided(np.arange(1.0, 10.0), (3, 4), (16, 8)),
        "no rows": np.zeros((0, 4)),
        "no columns": np.zeros((3, 0)),
        "one column": base[:, :1],
    }


def test_one_gradient_function_takes_every_layout_in_turn():
    gradient = sd.grad(lambda x: (x @ x.T).sum() + (x[::-1].sum(0) ** 2).sum())
    for _ in range(2):
        for name, x in layouts().items():
            before = x.copy()
            found = gradient(x)
            expected = np.broadcast_to(4 * np.asarray(x, float).sum(0), x.shape)
            np.testing.assert_allclose(found, expected, err_msg=name)
            assert found.flags.c_contiguous, name
            assert found.flags.writeable, name
            assert found.dtype == np.float64, name
            assert np.array_equal(x, before), name


@dataclasses.dataclass
class Scale:
    """Something to close over."""

    factor: float = 1.0


def test_a_changed_closure_is_seen():
    factor = 1.0
    listed = [1.0, [1.0]]
    named = {"a": {"b": 1.0}}
    array = np.ones(3)
    held = Scale()

    def function(x):
        scale = factor * listed[1][0] * named["a"]["b"] * held.factor
        return (x * array * scale).sum()

    gradient = sd.grad(function)
    found = [gradient(ONES)[0]]
    factor = 2.0
    found.append(gradient(ONES)[0])
    listed[1][0] = 3.0
    found.append(gradient(ONES)[0])
    named["a"]["b"] = 5.0
    found.append(gradient(ONES)[0])
    array[0] = 7.0
    found.append(gradient(ONES)[0])
    held.factor = 11.0
    found.append(gradient(ONES)[0])
    assert found == [1, 2, 6, 30, 210, 2310]


def test_changed_defaults_methods_and_helpers_are_seen():
    class Model:
        def __init__(self):
            self.scale = 1.0

        def loss(self, x, power=1, *, shift=0.0):
            return (self.scale * (x + shift) ** power).sum()

    def once(x):
        return x.sum()

    def function(x):
        return helper(x)

    helper = once
    model = Model()
    gradient, through = sd.grad(model.loss), sd.grad(function)
    found = [gradient(2 * ONES)[0], through(ONES)[0]]
    model.scale = 3.0
    found.append(gradient(2 * ONES)[0])
    Model.loss.__defaults__ = (2,)
    found.append(gradient(2 * ONES)[0])
    Model.loss.__kwdefaults__ = {"shift": 1.0}
    found.append(gradient(2 * ONES)[0])

    def five_times(x):
        return 5 * x.sum()

    helper = five_times
    found.append(through(ONES)[0])
    assert found == [1, 1, 3, 12, 18, 5]


def test_changing_inputs_and_results_between_vjp_and_pull_changes_nothing():
    x, weights = np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3)
    out, pull = sd.vjp(lambda x, w: np.exp(x) @ w, x, weights)
    cotangent = np.array([1.0, 0.5, 2.0])
    first = [part.copy() for part in pull(cotangent)]
    x[:], weights[:], out[:] = 100, 7, -1
    for part in pull(cotangent):
        part[:] = 9
    for found, expected in zip(pull(cotangent), first, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(cotangent, [1, 0.5, 2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: x.reshape(3, 1),
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda x: (x, x),
    ],
)
def test_results_share_no_memory_with_arguments_or_with_one_another(function):
    x = np.array([1.0, 2.0, 3.0])
    out, pull = sd.vjp(function, x)
    outs = out if isinstance(out, tuple) else (out,)
    cotangents = tuple(np.ones_like(part) for part in outs)
    (found,) = pull(cotangents if isinstance(out, tuple) else cotangents[0])
    arrays = [x, *outs, *cotangents, found]
    for i, array in enumerate(arrays):
        assert array.flags.writeable
        assert not any(np.shares_memory(array, other) for other in arrays[:i])


def test_a_constant_result_is_new_at_every_call():
    constant = np.ones(3)
    staged = sd.jit(lambda x: (constant, x, np.zeros(3)))
    for part in staged(ONES):
        part[:] = 9
    for part, value in zip(staged(ONES), (1, 1, 0), strict=True):
        np.testing.assert_array_equal(part, np.full(3, value))
    np.testing.assert_array_equal(constant, ONES)


def test_one_array_passed_twice_or_in_overlapping_views_has_two_gradients():
    a = np.array([1.0, 2.0, 3.0])
    gradient = sd.grad(lambda x, y: (x * y**2).sum(), (0, 1))
    np.testing.assert_array_equal(gradient(a, a), [a**2, 2 * a * a])
    np.testing.assert_array_equal(gradient(a[1:], a[:-1]), [[1, 4], [4, 12]])


def test_trees_come_back_as_they_went_in():
    point = namedtuple("point", "u v")
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    tree = {"p": point(a, b), "n": None, "l": [(a, 2.0), []], "o": OrderedDict(z=b, y=a)}

    def function(t):
        return (t["p"].u * t["p"].v).sum() + t["l"][0][1] ** 2 + (t["o"]["z"] * 3).sum()

    found = sd.grad(function)(tree)
    assert list(found["o"]) == ["z", "y"]
    assert type(found["p"]) is point
    assert found["n"] is None
    assert found["l"][1] == []
    assert found["l"][0][1] == 4
    np.testing.assert_array_equal(found["p"].u, b)
    np.testing.assert_array_equal(found["l"][0][0], [0, 0])
    np.testing.assert_array_equal(found["o"]["z"], [3, 3])


WEAK = {
    "float": lambda x: x * 2.0,
    "float64 scalar": lambda x: x * np.float64(2),
    "int": lambda x: x * 2 + 1,
    "bool": lambda x: x * True,
    "int array": lambda x: x * np.arange(3),
    "byte array": lambda x: x * np.arange(3, dtype="i1"),
    "0-d array": lambda x: x * np.array(2.0),
    "where": lambda x: np.where(x > 1, x, 0.0),
    "maximum": lambda x: np.maximum(x, 0.5),
    "power": lambda x: x**2.5,
    "clip": lambda x: x.clip(0.5, 2),
    "var": lambda x: x.var(),
    "mask": lambda x: (x > 1).sum() * x,
    "matmul": lambda x: x @ np.arange(3),
}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", WEAK)
def test_values_have_the_dtype_of_numpy_and_gradients_that_of_the_argument(name, dtype):
    function, x = WEAK[name], np.array([1.5, 2.5, 0.25], dtype)
    found, expected = sd.jit(function)(x), function(x)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    assert sd.grad(lambda x: function(x).sum())(x).dtype == x.dtype


def test_levels_of_differentiation_do_not_mix():
    assert sd.grad(lambda x: x * sd.grad(lambda y: x + y)(1.0))(1.0) == 1
    assert sd.grad(lambda x: x * sd.grad(lambda y: x * y * y)(x))(3.0) == 54
    third = sd.grad(sd.grad(sd.grad(lambda x: x**4 + np.exp(x))))(1.0)
    assert third == pytest.approx(24 + np.e)


def test_a_tracer_kept_from_an_earlier_call_is_refused():
    kept = []

    def function(x):
        kept.append(x * 2)
        return x.sum()

    sd.grad(function)(ONES)
    with pytest.raises(sd.errors.LeakedTracer):
        sd.grad(lambda y: (y * kept[0]).sum())(ONES)
    with pytest.raises(sd.errors.LeakedTracer):
        sd.grad(lambda y: kept[0].sum())(ONES)


def test_a_function_that_failed_once_works_the_next_time():
    calls = []

    def function(x):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return x.sum()

    gradient = sd.grad(function)
    with pytest.raises(ValueError, match="not yet"):
        gradient(ONES)
    np.testing.assert_array_equal(gradient(ONES), ONES)


def test_sixty_four_dimensions_are_carried():
    x = np.full((1,) * 63 + (2,), 3.0)
    found = sd.grad(lambda x: (x.T * x + x[..., ::-1]).sum())(x)
    assert found.shape == x.shape
    np.testing.assert_array_equal(found.ravel(), [14, 14])
