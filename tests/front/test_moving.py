"""Tests of front/moving.py: functions that move and repeat elements of traced values."""

import numpy as np
import pytest

from stagedad.errors import TraceError
from stagedad.front import grad, jit

X = np.cos(np.arange(24.0)).reshape(2, 3, 4)
P = np.array([[9.0, 8, 7], [6, 5, 4]])

FUNCTIONS = {
    "roll": lambda np, x: [
        np.roll(x, 5),
        np.roll(x, -2, axis=1),
        np.roll(x, (1, 6), axis=(0, -1)),
        np.roll(x, 1, axis=(1, 2)),
        np.roll(x, 0),
        np.roll(x, (1, 2)),
    ],
    "rot90": lambda np, x: [np.rot90(x, k, (0, 2)) for k in (-1, 0, 1, 2, 3)],
    "flips": lambda np, x: [np.fliplr(x), np.flipud(x), np.flip(x, (0, -1))],
    "rollaxis": lambda np, x: [np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, -1)],
    "tile": lambda np, x: [
        np.tile(x, 2),
        np.tile(x, (2, 1, 1, 3)),
        np.tile(x[0, 0, 0], (2, 2)),
    ],
    "kron": lambda np, x: [
        np.kron(x[0], x[1]),
        np.kron(x, P),
        np.kron(P, x[0, 0]),
        np.kron(x[0, 0, 0], x),
    ],
    "array_split": lambda np, x: [
        *np.array_split(x, 3, axis=2),
        *np.array_split(x, 5, axis=1),
        *np.array_split(x, [1, 2], axis=-1),
    ],
    "splits": lambda np, x: [*np.hsplit(x, 3), *np.vsplit(x, [1]), *np.dsplit(x, 2)],
    "hsplit_vector": lambda np, x: np.hsplit(x[0, 0], 2),
    "stacks": lambda np, x: [
        np.dstack([x[0], P[:, 0].repeat(6).reshape(3, 4)]),
        np.dstack(x[0]),
    ],
    "atleast": lambda np, x: [np.atleast_3d(x[0, 0, 0], x[0, 0]), np.atleast_3d(x[0])],
    "block": lambda np, x: [
        np.block([[x[0], x[1]], [np.ones((1, 4)), x[0, :1]]]),
        np.block([x[0, 0], 2.0]),
        np.block(x),
    ],
    "apply_along_axis": lambda np, x: [
        np.apply_along_axis(lambda row: row * row[0], 1, x),
        np.apply_along_axis(lambda row: row[1], 0, x),
        np.apply_along_axis(lambda row: row[:2].reshape(1, 2) * 3, -1, x),
    ],
    "vander": lambda np, x: [
        np.vander(x[0, 0]),
        np.vander(x[0, 0], 2, increasing=True),
        np.vander(x[0, 0] * 0, 3),
        np.vander(x[0, 0], 1),
    ],
    "polyval": lambda np, x: [
        np.polyval(x[0, 0], x[1]),
        np.polyval([1.0, 2, 3], x),
        np.polyval(x[0, 0], 2.0),
    ],
    "ix": lambda np, x: [x[0][np.ix_([0, 2], [True, False, True, False])]],
    "indices": lambda np, x: [
        x[0, :, :3][np.diag_indices_from(x[0, :, :3])],
        x[0, :, :3][np.tril_indices_from(x[0, :, :3], -1)],
        x[0][np.triu_indices_from(x[0], 1)],
    ],
    "order": lambda np, x: [
        np.reshape(x, (4, -1), order="F"),
        x.reshape(6, 4, order="F"),
        x.ravel("F"),
        x.flatten("F"),
        x[0, 0].reshape(2, 2, order="F"),
    ],
    "take_modes": lambda np, x: [
        np.take(x, [5, -9, 1], mode="clip"),
        np.take(x, np.array([[5, -9]]), axis=1, mode="wrap"),
    ],
    "meshgrid": lambda np, x: [
        *np.meshgrid(x[0, 0], x[1, 1, :3]),
        *np.meshgrid(x[0, 0], P[0], indexing="ij", sparse=True),
        *np.meshgrid(x[0, 0], x[0, 1], P[1]),
    ],
    "resize": lambda np, x: [np.resize(x, (2, 2)), np.resize(x[0, 0], (3, 3))],
    "delete": lambda np, x: [
        np.delete(x, 1),
        np.delete(x, [0, -1], axis=2),
        np.delete(x, slice(0, 2), 1),
    ],
    "insert": lambda np, x: [
        np.insert(x, 1, x[0, 0, 0]),
        np.insert(x, [1, 3], 5.0, axis=2),
        np.insert(x, 1, x[0, 0], axis=1),
        np.insert(P, [0, 2], x[0, :2, :2], axis=1),
    ],
    "pad": lambda np, x: [
        np.pad(x, 1),
        np.pad(x, ((0, 0), (1, 2), (0, 3)), constant_values=7),
        np.pad(x[0], (1, 2), constant_values=((1, x[0, 0, 0]), (x[0, 1, 1], 2))),
        *[np.pad(x, 2, mode) for mode in ("edge", "reflect", "symmetric", "wrap")],
        np.pad(x, ((0, 1), (1, 1), (5, 0)), "symmetric"),
    ],
}
if hasattr(np, "unstack"):
    FUNCTIONS["unstack"] = lambda np, x: np.unstack(x, axis=1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_numpys(name, same_as_numpy):
    same_as_numpy(FUNCTIONS[name], X)


def test_empty_arrays(same_as_numpy):
    same_as_numpy(
        lambda np, x: [np.roll(x, 1, 0), np.tile(x, (2, 2)), np.pad(x, 1), np.kron(x, P)],
        np.empty((0, 3)),
    )


def test_moved_arrays_are_not_the_callers():
    def f(x):
        y = np.roll(x, 0) + 0.0
        return np.sum(y * np.pad(x, 0))

    np.testing.assert_array_equal(grad(f)(P), 2 * P)


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: np.pad(x, 1, "mean"), TraceError, "mode='mean'"),
        (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), TraceError, "odd"),
        (lambda x: np.pad(x, -1), ValueError, "negative"),
        (lambda x: np.pad(x, 1, "constant", stat_length=2), ValueError, "stat_length"),
        (lambda x: np.insert(x, x[0].astype(int), 0.0), TraceError, "not known"),
        (lambda x: np.delete(x, x[0].astype(int)), TraceError, "not known"),
        (lambda x: np.block([[x], x]), ValueError, "different depths"),
        (lambda x: np.rollaxis(x, 0, 9), np.exceptions.AxisError, "start=9"),
        (lambda x: np.array_split(x, 0), ValueError, "0 parts"),
        (lambda x: np.meshgrid(x, indexing="no"), ValueError, "indexing"),
    ],
)
def test_refuses_by_name(function, error, match):
    with pytest.raises(error, match=match):
        jit(function)(P)
