"""Diagonals and triangles of traced matrices: reading, writing, summing."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import ShapeError
from stagedad.front.elementwise import astype, operand
from stagedad.front.reducing import reduction, refuse
from stagedad.front.shaping import axes_of, moveaxis, reshape, shared
from stagedad.front.tracing import Traced, owner


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Traced:
    """Record `np.diagonal`: every n + 1st element of the rows, one behind the other."""
    source = operand(a, "diagonal")
    if source.ndim < 2:
        raise ShapeError("diagonal", "not a matrix", source.shape)
    axes_of((axis1, axis2), source.ndim, "diagonal")
    moved = moveaxis(source, (axis1, axis2), (-2, -1))
    rows, columns = moved.shape[-2:]
    start, count = _start(offset, rows, columns)
    flat = reshape(moved, (*moved.shape[:-2], rows * columns))
    stop = min(start + count * (columns + 1), rows * columns)
    picked: Traced = flat[..., start : stop if count else start : columns + 1]  # type: ignore[index]
    return shared(picked, source)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Traced:
    """Record `np.trace`."""
    refuse("trace", out=out)
    source = operand(a, "trace")
    if dtype is not None:
        source = astype(source, dtype)
    return reduction("sum", diagonal(source, offset, axis1, axis2), -1, False)


def diag(v: Any, k: int = 0) -> Traced:
    """Record `np.diag`: of a matrix its diagonal, of a vector the matrix that has it."""
    source = operand(v, "diag")
    if source.ndim == 2:
        return diagonal(source, k)
    if source.ndim != 1:
        raise ValueError(f"diag: input must be 1- or 2-d: {source.type}")
    return diagflat(source, k)


def diagflat(v: Any, k: int = 0) -> Traced:
    """Record `np.diagflat`."""
    source = operand(v, "diagflat")
    size = source.size + abs(index(k))
    start, count = _start(k, size, size)
    trace = owner([source])
    flat = reshape(source, (source.size,))
    attributes = {
        "shape": (size * size,),
        "start": (start if count else 0,),
        "stop": (min(start + count * (size + 1), size * size) if count else 0,),
        "step": (size + 1,),
    }
    written = trace.emit("unslice", (trace.value(flat),), attributes)
    return reshape(written, (size, size))


def triangle(kind: str) -> Callable[..., Traced]:
    """Return `np.tril` or `np.triu` for traced values."""

    def keep(m: Any, k: int = 0) -> Traced:
        source = operand(m, kind)
        if source.ndim == 1:
            # NumPy broadcasts a vector against a square mask.
            rows = (source.size, source.size)
            source = owner([source]).emit(
                "broadcast_to", (owner([source]).value(source),), {"shape": rows}
            )
        trace = owner([source])
        attributes = {"k": index(k)} if index(k) else None
        return trace.emit(kind, (trace.value(source),), attributes)

    return keep


def _start(offset: Any, rows: int, columns: int) -> tuple[int, int]:
    """Return where a diagonal starts in the flattened matrix, and its length."""
    shift = index(offset)
    if shift >= 0:
        return shift, max(min(rows, columns - shift), 0)
    return -shift * columns, max(min(rows + shift, columns), 0)


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.diagonal: diagonal,
    np.trace: trace,
    np.diag: diag,
    np.diagflat: diagflat,
    np.tril: triangle("tril"),
    np.triu: triangle("triu"),
}
