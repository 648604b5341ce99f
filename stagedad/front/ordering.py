"""Sorting, searching and counting of traced values."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front.elementwise import apply, astype, operand, shape_of
from stagedad.front.indexing import take
from stagedad.front.joining import concatenate
from stagedad.front.location import place
from stagedad.front.numbers import dtype_of
from stagedad.front.reducing import refuse
from stagedad.front.shaping import axes_of, flattened, integers, ravel, stretched
from stagedad.front.tracing import Traced, owner

_STABLE = ("stable", "mergesort")


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Traced:
    """Record `np.sort`: the gradient goes back to where the elements came from."""
    del kind, stable  # the sorted values are the same
    refuse("sort", order=order)
    return _along("sort", a, axis)


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Traced:
    """Record `np.argsort`: positions, which have no derivative."""
    refuse("argsort", order=order)
    keep = {"stable": True} if stable or kind in _STABLE else {}
    return _along("argsort", a, axis, **keep)


def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Traced:
    """Record `np.argpartition`: positions, which have no derivative."""
    del kind
    refuse("argpartition", order=order)
    found = integers(kth, "argpartition")
    return _along("argpartition", a, axis, kth=found[0] if len(found) == 1 else found)


def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Traced:
    """Record `np.partition`; what NumPy leaves in any order may be in another here."""
    source, along = _flattened(a, axis, "partition")
    return take_along_axis(source, argpartition(source, kth, along, kind, order), along)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Traced:
    """Record `np.take_along_axis`."""
    source, where = operand(arr, "take_along_axis"), operand(indices, "take_along_axis")
    if dtype_of(where).kind not in "iu":
        raise IndexError(
            f"take_along_axis: indices must be integers: {dtype_of(where)} ({place()})"
        )
    if axis is None:
        source = flattened(source)
        axis = 0
    (along,) = axes_of(axis, source.ndim, "take_along_axis")
    if len(shape_of(where)) != source.ndim:
        raise ShapeError(
            "take_along_axis", "dims differ in number", source.shape, shape_of(where)
        )
    rest = [
        np.broadcast_shapes((one,), (other,))[0] if number != along else None
        for number, (one, other) in enumerate(zip(source.shape, where.shape, strict=True))
    ]
    wide = [each if each is not None else source.shape[along] for each in rest]
    tall = [each if each is not None else where.shape[along] for each in rest]
    pair = [stretched(source, tuple(wide)), stretched(where, tuple(tall))]
    trace = owner(pair)
    values = [trace.value(each) for each in pair]
    return trace.emit("take_along_axis", values, {"axis": along})


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Traced:
    """Record `np.searchsorted`: positions, which have no derivative."""
    sides = {"left": False, "right": True, "l": False, "r": True}
    if side not in sides:
        raise ValueError(f"searchsorted: side: {side!r}\nhint: 'left' or 'right'")
    table, value = operand(a, "searchsorted"), operand(v, "searchsorted")
    if sorter is not None:
        table = _taken(table, sorter)
    pair = [each if isinstance(each, Traced) else np.asarray(each) for each in (table, value)]
    trace = owner(pair)
    attributes = {"right": True} if sides[side] else None
    return trace.emit("searchsorted", [trace.value(each) for each in pair], attributes)


def digitize(x: Any, bins: Any, right: bool = False) -> Traced:
    """Record `np.digitize`, whose bins must be plain: they may rise or fall."""
    if isinstance(bins, Traced):
        raise TraceError(
            f"digitize: whether traced bins rise or fall is not known: {bins.type} ({place()})",
            op="digitize",
            hint="np.searchsorted(bins, x, side='right') for bins that rise",
        )
    edges = np.asarray(bins)
    steps = np.diff(edges)
    if edges.ndim != 1 or not ((steps >= 0).all() or (steps <= 0).all()):
        raise ValueError("digitize: bins must be monotonically increasing or decreasing")
    value = _real(operand(x, "digitize"), "digitize")
    side = "left" if right else "right"
    if edges.size and edges[0] > edges[-1]:
        return apply("sub", len(edges), searchsorted(edges[::-1], value, side))
    return searchsorted(edges, value, side)


def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Traced:
    """Record `np.bincount` of plain numbers, whose weights have a derivative."""
    if isinstance(x, Traced):
        raise TraceError(
            f"bincount: the length depends on traced values: {x.type} ({place()})",
            op="bincount",
            hint="np.sum(x[:, None] == np.arange(n), axis=0)",
        )
    bins = np.asarray(x)
    if bins.ndim != 1 or (bins.size and bins.dtype.kind not in "biu"):
        raise TypeError(f"bincount: not a vector of integers: {bins.dtype}{bins.shape}")
    if bins.size and bins.min() < 0:
        raise ValueError(f"bincount: negative: {bins.min()}")
    value = astype(_real(operand(weights, "bincount"), "bincount"), np.float64)
    if value.shape != bins.shape:
        raise ShapeError("bincount", "weights differ in length", bins.shape, value.shape)
    length = max(int(bins.max()) + 1 if bins.size else 0, index(minlength))
    return _counted(value, bins.astype(np.intp), length)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Record `np.histogram` for edges that are known: counts, or sums of the weights."""
    if isinstance(bins, Traced) or (np.ndim(bins) == 0 and range is None):
        raise TraceError(
            f"histogram: edges that depend on traced values: {place()}",
            op="histogram",
            hint="give `range=`, or the edges as a plain array",
        )
    edges = np.histogram_bin_edges(np.zeros(0), bins, range)
    value = flattened(operand(a, "histogram"))
    if weights is None:
        parts = [
            searchsorted(sort(value), edges[:-1], "left"),
            searchsorted(sort(value), edges[-1:], "right"),
        ]
        cuts = concatenate(parts)
        counts = apply("sub", cuts[1:], cuts[:-1])  # type: ignore[index]
    else:
        counts = _weighted(value, edges, operand(weights, "histogram"))
    if density:
        widths = np.asarray(np.diff(edges), float)
        total = counts.sum()  # type: ignore[attr-defined]
        return apply("div", apply("div", counts, widths), total), edges
    return counts, edges


def _weighted(value: Any, edges: Any, weights: Any) -> Traced:
    """Return sums of the weights of what lies between the edges, the last one included."""
    weights = flattened(weights)
    if weights.shape != value.shape:
        raise ShapeError("histogram", "weights differ in shape", value.shape, weights.shape)
    last = len(edges) - 2
    inside = np.logical_and(value >= edges[0], value <= edges[-1])
    bins = np.minimum(np.maximum(np.searchsorted(edges, value, "right") - 1, 0), last)
    return _counted(np.where(inside, weights, 0), bins, last + 1)


def _counted(weights: Any, bins: Any, length: int) -> Traced:
    trace = owner([weights, bins])
    if not isinstance(bins, Traced):
        trace.constants.watch(bins)
    values = [trace.value(weights), trace.value(bins)]
    return trace.emit("take_add", values, {"shape": (length,)})


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Record `np.interp`, differentiable in all but the order of `xp`.

    The slope at a knot is that of the piece to its right, at the last that to its left.
    """
    at, knots, values = (operand(each, "interp") for each in (x, xp, fp))
    dtype = np.dtype(complex if dtype_of(values).kind == "c" else float)
    at, knots = (astype(_real(each, "interp"), np.dtype(float)) for each in (at, knots))
    values = astype(values, dtype)
    if knots.ndim != 1 or values.shape != knots.shape:
        raise ShapeError("interp", "not vectors of one length", knots.shape, values.shape)
    if not knots.size:
        raise ValueError("interp: no points")
    if period is not None:
        if period == 0:
            raise ValueError("interp: period must not be 0")
        period, left, right = abs(period), None, None
        at, knots = np.remainder(at, period), np.remainder(knots, period)
        order = np.argsort(knots)
        knots, values = _taken(knots, order), _taken(values, order)
        ends = (knots[-1:] - period, knots, knots[:1] + period)
        knots = np.concatenate(ends)
        values = np.concatenate((values[-1:], values, values[:1]))
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    between = values[0] if knots.size == 1 else _between(at, knots, values)
    found = np.where(at < knots[0], low, np.where(at > knots[-1], high, between))
    return found.astype(dtype) if found.dtype != dtype else found


def _between(at: Any, knots: Any, values: Any) -> Any:
    """Return the linear interpolation in the piece where each of `at` is."""
    piece = np.searchsorted(knots, at, "right") - 1
    piece = np.minimum(np.maximum(piece, 0), knots.size - 2)
    (x0, x1), (y0, y1) = (
        (_taken(each, piece), _taken(each, piece + 1)) for each in (knots, values)
    )
    width = x1 - x0
    slope = np.where(width == 0, 0, (y1 - y0) / np.where(width == 0, 1, width))
    # From the nearer end where it is reached, so that knots get their own values.
    return np.where(at >= x1, y1 + slope * (at - x1), y0 + slope * (at - x0))


def _real(value: Any, op: str) -> Any:
    """Raise DTypeError, as NumPy does, where an imaginary part would be lost."""
    if dtype_of(value).kind == "c":
        raise DTypeError(f"{op}: not of complex numbers: {dtype_of(value)} ({place()})", op=op)
    return value


def _taken(values: Any, at: Any) -> Any:
    """Return the elements of a vector at positions, of which NumPy would ask no protocol."""
    if isinstance(values, Traced) or isinstance(at, Traced):
        return take(values, at, 0)
    return np.take(values, at)


def _flattened(a: Any, axis: Any, op: str) -> tuple[Any, int]:
    source = operand(a, op)
    if axis is None:
        return ravel(source), 0
    return source, axes_of(axis, source.ndim, op)[0]


def _along(kind: str, a: Any, axis: Any, **attributes: Any) -> Traced:
    """Record an op along one axis, None for the flattened array."""
    source, along = _flattened(a, axis, kind)
    trace = owner([source])
    return trace.emit(kind, [trace.value(source)], {"axis": along, **attributes})
