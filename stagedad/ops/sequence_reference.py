"""Reference functions of ops along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


def cumsum(self: Array, *, axis: int, reverse: bool) -> Any:
    """Return running sums, from the end if `reverse`."""
    if not reverse:
        return np.cumsum(self, axis)
    return np.flip(np.cumsum(np.flip(self, axis), axis), axis)


def recurrence(self: Array, other: Array, *, axis: int, reverse: bool) -> Array:
    """Return y[i] = other[i] + self[i] * y[i - 1], or its transpose."""
    factors, terms = np.moveaxis(self, axis, 0), np.moveaxis(other, axis, 0)
    result = np.empty(other.shape, np.result_type(self, other))
    rows = np.moveaxis(result, axis, 0)
    count = len(rows)
    if result.size == count and result.dtype == np.float64:
        # Python's numbers are the same ones, without NumPy's cost for each.
        rows.reshape(count)[...] = _one_line(factors, terms, reverse)
        return result
    if count:
        rows[-1 if reverse else 0] = terms[-1 if reverse else 0]
    for i in range(count - 2, -1, -1) if reverse else range(1, count):
        known, factor = (i + 1, i + 1) if reverse else (i - 1, i)
        rows[i] = terms[i] + factors[factor] * rows[known]
    return result


def _one_line(factors: Array, terms: Array, reverse: bool) -> list[float]:
    """As `recurrence`, of vectors of double precision."""
    a, b = (np.asarray(x, float).ravel().tolist() for x in (factors, terms))
    if reverse:
        a, b = [0.0, *a[:0:-1]][: len(b)], b[::-1]
    found: list[float] = []
    known = 0.0
    for number, (factor, term) in enumerate(zip(a, b, strict=True)):
        known = term + factor * known if number else term
        found.append(known)
    return found[::-1] if reverse else found


def convolve(self: Array, other: Array) -> Any:
    """Return the full convolution, in the promoted dtype."""
    return np.convolve(self, other)


def argsort(self: Array, *, axis: int, stable: bool) -> Any:
    """Return what sorts along an axis."""
    return np.argsort(self, axis, stable=True if stable else None)


def add_along_axis(self: Array, indices: Array, *, shape: Any, axis: int) -> Array:
    """Return zeros to which `self` was added at indices along an axis."""
    result = np.zeros(shape, self.dtype)
    at: list[Any] = list(np.ogrid[tuple(map(slice, indices.shape))])
    at[axis] = indices
    np.add.at(result, tuple(at), self)
    return result


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add_along_axis": add_along_axis,
    "argpartition": lambda self, *, kth, axis: np.argpartition(self, kth, axis),
    "argsort": argsort,
    "convolve": convolve,
    "convolve_valid": lambda self, other: np.convolve(self, other, "valid"),
    "cumsum": cumsum,
    "recurrence": recurrence,
    "searchsorted": lambda self, other, *, right: np.searchsorted(
        self, other, "right" if right else "left"
    ),
    "take_along_axis": lambda self, indices, *, axis: np.take_along_axis(self, indices, axis),
}
