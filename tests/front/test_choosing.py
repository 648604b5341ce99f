"""Tests of front/choosing.py and of index forms: what is picked, and what accumulates."""

import numpy as np
import pytest

from stagedad.errors import ShapeError, TraceError
from stagedad.front import grad, jit

X = np.cos(np.arange(60.0)).reshape(3, 4, 5)
I = np.array([[0, -1, 2], [1, 1, 0]])  # noqa: E741

FUNCTIONS = {
    "take_along_axis": lambda np, x: [
        np.take_along_axis(x, np.argsort(X, axis=0), 0),
        np.take_along_axis(x, np.argsort(X, axis=-1)[:, :, :2], -1),
        np.take_along_axis(x, np.array([[[0], [-1], [0], [0], [3]]]).swapaxes(1, 2) % 4, 1),
        np.take_along_axis(x, I[0], None),
        np.take_along_axis(x[:1], np.zeros((3, 4, 1), int), 2),
    ],
    "compress": lambda np, x: [
        np.compress([True, False, True], x, axis=0),
        np.compress([0, 1, 1], x, axis=1),
        np.compress(X[0, 0] > 0, x),
    ],
    "extract": lambda np, x: np.extract(X > 0, x) * np.extract(X > 0, X),
    "choose": lambda np, x: [
        np.choose([[0, 1], [2, 0]], [x[0, :2, :2], X[0, 0, :2], 3.0]),
        np.choose(I % 3, x[:, :1, :3]),
        np.choose(X[0] > 0, [x[0], x[1]]) * np.choose(x[0] > 0.3, [x[0], 2.0]),
    ],
    "select": lambda np, x: [
        np.select([x > 0.5, x > 0], [x, x * x], 7),
        np.select([X > 0.5, x[0] > 0], [X, x[0, 0]], x[1, 1, 1]),
        np.select([X > 2], [x]),
    ],
    "angle": lambda np, x: [
        np.angle(x + 1j * np.sin(x)),
        np.angle(x),
        np.angle(x[0] - 2j, deg=True),
    ],
    "isreal": lambda np, x: [
        np.where(np.isreal(x + 1j * X), x, 2 * x),
        np.where(np.iscomplex(x + 1j * (X > 0)), x, 2 * x),
        np.where(np.isreal(x), x, 0),
    ],
    "einsum_repeated": lambda np, x: [
        np.einsum("ii", x[0, :, :4]),
        np.einsum("ii->i", x[0, :, :4]),
        np.einsum("iij->j", x[:, :3]),
        np.einsum("iii->", x[:, :3, :3]),
        np.einsum("nd,nn->d", x[0], x[1, :, :4]),
        np.einsum("abab->ab", x[:2, :2, None, :2] * X[0, :2, :2]),
    ],
    "einsum_implicit": lambda np, x: [
        np.einsum("ba", x[0]),
        np.einsum("ij,jk", x[0], x[1].T),
        np.einsum("ij , ij", x[0], X[1]),
        np.einsum("b...a", x),
    ],
    "einsum_dots": lambda np, x: [
        np.einsum("...i->...", x),
        np.einsum("...ij,...jk->...ik", x, x[0].T),
        np.einsum("i...,i...", x, x),
        np.einsum("...,...", x, X[0]),
        np.einsum("...a,b->ab...", x, X[0, 0, :2]),
        np.einsum("...ii->...i", x[:, :, :4]),
        np.einsum("ij...->ij", x[0]),
    ],
    "einsum_ones": lambda np, x: [
        np.einsum("ij,jk->ik", x[0, :, :1], X[0]),
        np.einsum("ij,ij->ij", x[0, :1], X[1]),
        np.einsum("ij,ij->", x[0, :1, :1], X[1, :1, :1]),
        np.einsum("ij,jk,kl->il", x[0], x[1, :1].T, x[2, :1]),
    ],
    "einsum_lists": lambda np, x: [
        np.einsum(x[0], [0, 1], x[1], [2, 1], [2, 0]),
        np.einsum(x, [Ellipsis, 30], X[0, 0], [30]),
        np.einsum(x[0], [27, 3]),
    ],
    "einsum_many": lambda np, x: [
        np.einsum("ij,kj,kl,l->i", x[0], x[1], x[2], X[0, 0], optimize=True),
        np.einsum("ij->", x[0]),
        np.einsum("i,j->ij", x[0, 0], x[0, 0]),
        np.einsum(",ij->ij", 2.0, x[0]),
    ],
    "products": lambda np, x: [
        np.tensordot(x, x, ([0, 1], [0, 1])),
        np.tensordot(x, X[0], 0),
        np.inner(x, x[0]),
        np.vdot(x * 1j, x),
        np.outer(x[0], x[1, 0]),
        np.dot(x, x[0].T),
    ],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_numpys(name, same_as_numpy):
    same_as_numpy(FUNCTIONS[name], X)


def random_key(random, shape):
    """A key of `shape`: slices, ints, None, Ellipsis, index arrays and masks, mixed."""
    ndim = len(shape)
    key, at, dots = [], 0, False
    wide = tuple(random.integers(1, 3, random.integers(0, 3)))
    while at < ndim:
        kind = random.choice(["slice", "int", "array", "mask", "none", "dots", "stop"])
        dim = shape[at]
        if kind == "slice":
            start, stop = random.integers(-dim, dim + 1, 2)
            key.append(slice(start, stop, random.choice([1, 2, -1])))
            at += 1
        elif kind == "int":
            key.append(int(random.integers(-dim, dim)))
            at += 1
        elif kind == "array":
            key.append(random.integers(-dim, dim, wide))
            at += 1
        elif kind == "mask" and not any(isinstance(each, np.ndarray) for each in key):
            depth = random.integers(1, ndim - at + 1)
            key.append(random.random(shape[at : at + depth]) < 0.4)
            at += depth
            if wide:
                wide = (1,)
        elif kind == "none":
            key.append(None)
        elif kind == "dots" and not dots:
            key.append(Ellipsis)
            dots = True
            skip = random.integers(0, ndim - at + 1)
            shape = shape[:at] + shape[at + skip :]
            ndim = len(shape)
        elif kind == "stop":
            break
    return tuple(key)


def test_every_form_of_index():
    random = np.random.default_rng(0)
    forms = set()
    for _ in range(400):
        x = random.standard_normal(tuple(random.integers(1, 4, random.integers(1, 5))))
        key = random_key(random, x.shape)
        try:
            wanted = x[key]
        except IndexError:
            with pytest.raises(IndexError):
                jit(lambda x, key=key: x[key] * 1.0)(x)
            continue
        np.testing.assert_array_equal(jit(lambda x, key=key: x[key] * 1.0)(x), wanted)
        weights = random.standard_normal(wanted.shape)
        gradient = grad(lambda x, key=key, w=weights: np.sum(w * x[key]))(x)
        added = np.zeros_like(x)
        np.add.at(added, key, weights)
        np.testing.assert_allclose(gradient, added, atol=1e-14)
        forms |= {tuple(sorted({type(each).__name__ for each in key}))}
    assert len(forms) > 20


def test_indices_are_checked_at_each_run():
    for function in (
        lambda x, i: np.take_along_axis(x, i, 0),
        lambda x, i: x[i, np.array([0, 1])],
        lambda x, i: np.choose(i[0] - 1, [x[0], x[1]]),
    ):
        compiled = jit(function)
        good = np.array([[1, 2, 1, 1, 2]])[:, :2]
        compiled(X[0, :3, :2], good)
        with pytest.raises(IndexError, match="out of bounds"):
            compiled(X[0, :3, :2], good + 7)


def test_repeated_traced_indices_accumulate():
    g = grad(lambda x, i: np.sum(np.take_along_axis(x, i, 0) ** 2))
    np.testing.assert_array_equal(g(np.array([1.0, 2, 3]), np.array([0, 0, 2])), [4, 0, 6])


def test_angle_of_zero_has_gradient_zero():
    gradient = grad(lambda x: np.sum(np.angle(x * (1 + 1j))))(np.array([0.0, 2.0]))
    np.testing.assert_array_equal(gradient, [0, 0])


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: np.compress(x[0, 0] > 0, x, axis=2), TraceError, "np.where"),
        (lambda x: np.extract(x > 0, x), TraceError, "np.where"),
        (
            lambda x: np.choose(I % 2, [x[0, :2, :3], X[0, :2, :3]], mode="clip"),
            TraceError,
            "clip",
        ),
        (lambda x: np.select([x], [x]), TypeError, "boolean"),
        (lambda x: np.select([x > 0], [x, x]), ValueError, "not one choice a condition: 1, 2"),
        (lambda x: np.take_along_axis(x, I, 0), ShapeError, "dims differ"),
        (lambda x: np.take_along_axis(x, x, 0), IndexError, "integers"),
        (lambda x: np.argwhere(x > 0), TraceError, "np.where"),
        (lambda x: np.real_if_close(x), TraceError, "np.real"),
        (lambda x: np.einsum("ij->ik", x[0]), ValueError, "`k` of the result"),
        (lambda x: np.einsum("ij->ii", x[0]), ValueError, "`i` of the result"),
        (lambda x: np.einsum("...i->i", x), ValueError, "not in the result"),
        (lambda x: np.einsum("ij", x), ShapeError, "does not fit"),
        (lambda x: np.einsum("ij,ij", x[0], x[0].T), ShapeError, "two lengths"),
        (lambda x: np.einsum("ij,jk", x[0]), ValueError, "2 subscripts for 1"),
        (lambda x: np.einsum("i1", x[0]), ValueError, "letters"),
        (lambda x: np.einsum(x[0], ["a", "b"]), ValueError, "not numbers"),
    ],
)
def test_refuses_by_name(function, error, match):
    with pytest.raises(error, match=match):
        jit(function)(X)
