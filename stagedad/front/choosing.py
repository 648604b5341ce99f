"""Functions that pick elements by what is known: compress, extract, choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front.elementwise import astype, common_dtype, operand, shape_of
from stagedad.front.joining import sequence
from stagedad.front.location import place
from stagedad.front.numbers import dtype_of
from stagedad.front.ordering import take_along_axis
from stagedad.front.reducing import refuse
from stagedad.front.shaping import axes_of, reshape, stretched
from stagedad.front.tracing import Traced, owner

_ALL: Final = slice(None)


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
    (rows,) = np.asarray(condition).nonzero()
    return source[(*(_ALL,) * along, rows)]  # type: ignore[no-any-return]


def extract(condition: Any, arr: Any) -> Traced:
    """Record `np.extract` by a condition that is known."""
    known = condition if isinstance(condition, Traced) else np.ravel(condition)
    return compress(known, operand(arr, "extract").reshape(-1))


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Traced:
    """Record `np.choose`: each element from the array whose number stands there."""
    refuse("choose", out=out)
    if mode != "raise":
        raise TraceError(f"choose: mode={mode!r} hides wrong numbers: {place()}", op="choose")
    which = operand(a, "choose")
    if dtype_of(which).kind == "b":
        which = astype(which, np.intp)
    given = [operand(each, "choose") for each in sequence(choices)]
    dtype = common_dtype(given)
    shape = np.broadcast_shapes(shape_of(which), *map(shape_of, given))
    rows = [stretched(astype(each, dtype), (1, *shape)) for each in given]
    trace = owner([which, *given])
    stacked = trace.emit("concatenate", [trace.value(each) for each in rows])
    return take_along_axis(stacked, stretched(which, (1, *shape)), 0)[0]  # type: ignore[index, no-any-return]


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.compress: compress,
    np.extract: extract,
    np.choose: choose,
}

REFUSED: Final = {
    "put_along_axis": "np.where gives a new array",
    "real_if_close": "np.real(x), where the imaginary part is nothing",
    "unravel_index": "np.unravel_index of plain indices",
    "ravel_multi_index": "x[i, j] takes several traced indices",
    "nonzero": "np.where(condition, x, y) needs no indices",
}
"""Functions whose result depends on values in its shape or dtype, or that write."""
