"""Functions that pick elements: take_along_axis, compress, choose, select, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from stagedad.errors import ShapeError, TraceError
from stagedad.front.elementwise import apply, astype, common_dtype, ndim_of, operand, shape_of
from stagedad.front.joining import where
from stagedad.front.location import place
from stagedad.front.reducing import refuse
from stagedad.front.shaping import axes_of, broadcast_to, reshape
from stagedad.front.tracing import Traced, owner

_ALL: Final = slice(None)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Traced:
    """Record `np.take_along_axis`."""
    source, where_ = operand(arr, "take_along_axis"), operand(indices, "take_along_axis")
    if where_.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: indices must be integers: {where_.dtype}")
    if axis is None:
        if ndim_of(where_) != 1:
            raise ShapeError("take_along_axis", "axis=None needs one axis", shape_of(where_))
        source, axis = _reshaped(source, (-1,)), 0
    ndim = ndim_of(source)
    (along,) = axes_of(axis, ndim, "take_along_axis")
    if ndim_of(where_) != ndim:
        raise ShapeError("take_along_axis", "ranks differ", shape_of(source), shape_of(where_))
    key = [
        where_ if at == along else np.arange(dim).reshape((-1,) + (1,) * (ndim - at - 1))
        for at, dim in enumerate(shape_of(source))
    ]
    if not isinstance(source, Traced):
        trace = owner([where_])
        source = trace.emit("copy", (trace.value(source),))
    return source[tuple(key)]  # type: ignore[index, no-any-return]


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Traced:
    """Record `np.compress` by a condition that is known."""
    refuse("compress", out=out)
    source = operand(a, "compress")
    if isinstance(condition, Traced):
        raise TraceError(
            f"compress: how many elements stay is not known: {condition.type} ({place()})",
            op="compress",
            hint="np.where(condition, x, 0) keeps the shape",
        )
    if np.ndim(condition) != 1:
        raise ValueError("compress: the condition must have one axis")
    if axis is None:
        source, axis = reshape(source, (-1,) if source.size else (0,)), 0
    (along,) = axes_of(axis, source.ndim, "compress")
    if isinstance(condition, np.ndarray):
        source._trace.constants.watch(condition)
    (rows,) = np.asarray(condition).nonzero()
    return source[(*(_ALL,) * along, rows)]  # type: ignore[no-any-return]


def extract(condition: Any, arr: Any) -> Traced:
    """Record `np.extract` by a condition that is known."""
    if isinstance(condition, np.ndarray) and isinstance(arr, Traced):
        arr._trace.constants.watch(condition)
    known = condition if isinstance(condition, Traced) else np.ravel(condition)
    return compress(known, operand(arr, "extract").reshape(-1))


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Traced:
    """Record `np.choose`: each element from the array whose number stands there."""
    refuse("choose", out=out)
    if mode != "raise":
        raise TraceError(f"choose: mode={mode!r} hides wrong numbers: {place()}", op="choose")
    which = operand(a, "choose")
    given = [operand(each, "choose") for each in _listed(choices)]
    dtype = common_dtype(given)
    shape = np.broadcast_shapes(shape_of(which), *map(shape_of, given))
    rows = [_broadcast(astype(each, dtype), (1, *shape)) for each in given]
    trace = owner([which, *given])
    stacked = trace.emit("concatenate", [trace.value(each) for each in rows])
    return take_along_axis(stacked, _broadcast(which, (1, *shape)), 0)[0]  # type: ignore[index, no-any-return]


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Traced:
    """Record `np.select`: the first choice whose condition holds."""
    conditions = [operand(each, "select") for each in condlist]
    choices = [operand(each, "select") for each in (*choicelist, default)]
    if len(conditions) != len(choices) - 1 or not conditions:
        raise ValueError(f"select: {len(conditions)} conditions for {len(choices) - 1} choices")
    for each in conditions:
        if (
            np.asarray(each).dtype != bool
            if not isinstance(each, Traced)
            else each.dtype != bool
        ):
            raise TypeError("select: conditions must be boolean")
    dtype = common_dtype(choices)
    shape = np.broadcast_shapes(*map(shape_of, (*conditions, *choices)))
    result = astype(choices[-1], dtype)
    for condition, choice in zip(conditions[::-1], choices[-2::-1], strict=True):
        known = astype(choice, dtype)
        if any(isinstance(each, Traced) for each in (condition, known, result)):
            result = where(condition, known, result)
        else:
            result = np.where(condition, known, result)
    return result if result.shape == shape else apply("copy", broadcast_to(result, shape))


def angle(z: Any, deg: bool = False) -> Traced:
    """Record `np.angle`."""
    source = operand(z, "angle")
    trace = owner([source])
    result = trace.emit("angle", (trace.value(source),))
    return apply("mul", result, 180 / np.pi) if deg else result


def isreal(x: Any) -> Traced:
    """Record `np.isreal`."""
    return apply("equal", _imaginary(x), 0)


def iscomplex(x: Any) -> Traced:
    """Record `np.iscomplex`."""
    return apply("not_equal", _imaginary(x), 0)


def _imaginary(x: Any) -> Traced:
    return apply("imag", operand(x, "isreal"))


def _listed(choices: Any) -> Sequence[Any]:
    if isinstance(choices, (Traced, np.ndarray)):
        return [choices[i] for i in range(len(choices))]  # type: ignore[arg-type, index]
    return list(choices)


def _reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    return reshape(value, shape) if isinstance(value, Traced) else np.reshape(value, shape)


def _broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(value, Traced):
        return broadcast_to(value, shape)
    return np.ascontiguousarray(np.broadcast_to(value, shape))


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.take_along_axis: take_along_axis,
    np.compress: compress,
    np.extract: extract,
    np.choose: choose,
    np.select: select,
    np.angle: angle,
    np.isreal: isreal,
    np.iscomplex: iscomplex,
}

REFUSED: Final = {
    "argwhere": "np.where(condition, x, y) needs no indices",
    "flatnonzero": "np.where(condition, x, y) needs no indices",
    "put_along_axis": "np.where gives a new array",
    "real_if_close": "np.real(x), where the imaginary part is nothing",
    "trim_zeros": "slice it: how much stays depends on values",
    "unravel_index": "np.unravel_index of plain indices",
    "ravel_multi_index": "x[i, j] takes several traced indices",
    "nonzero": "np.where(condition, x, y) needs no indices",
}
"""Functions whose result depends on values in its shape or dtype, or that write."""
