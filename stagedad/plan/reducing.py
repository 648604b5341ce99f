"""Lowering reductions.

The order of a sum's additions depends on how many there are and on nothing else
(Note [order of sums] in reduce.h), so memory layout decides only which loop goes
there: along the axes that are summed, or across rows of what stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from stagedad.ops.type_rules import normal_axes
from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, dense_strides, fresh, loop_axes
from stagedad.plan.blocks import FROM
from stagedad.plan.kernels import copy_kernel, extremum_kernel, sum_kernel, ufunc_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape
from stagedad.plan.step import REDUCE
from stagedad.types import CODES, TensorType

FEW = 4
"""Rows shorter than this are not summed as rows."""

TILE_BYTES = 1024
"""How much of a row is summed at a time: with its lanes and partial sums it stays in L1."""

STREAM_BYTES = 2048
"""What a sum within a block keeps from piece to piece.  ORDER STREAM: as in reduce.h."""


@rule("sum")
def sum_(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Cast to the result's dtype, then add."""
    axes = normal_axes("sum", attributes["axis"], len(reads[0].shape))
    return (_sum(emitter, reads[0], axes, results[0]),)


@rule("sum_to", "sum_to_like")
def sum_to(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Add along the axes that were stretched."""
    view, shape = reads[0], static_shape(results[0])
    lead = len(view.shape) - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + axis
        for axis, dim in enumerate(shape)
        if dim == 1 and view.shape[lead + axis] != 1
    )
    return (_sum(emitter, view, axes, results[0]),)


@rule("mean")
def mean(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Add in the result's dtype, half in float; then divide by the count."""
    view, result = reads[0], results[0]
    axes = normal_axes("mean", attributes["axis"], len(view.shape))
    wide = _accumulator(result)
    total = _sum(emitter, view, axes, wide)
    count = emitter.number(prod(view.shape[axis] for axis in axes), wide.dtype)
    return (
        emitter.cast(emitter.elementwise(np.true_divide, (total, count), wide), result.dtype),
    )


@rule("max", "min")
def extremum(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Start from the first element along the axes, then compare with all."""
    (view,), (result,) = reads, results
    axes = normal_axes(emitter.origin.op, attributes["axis"], len(view.shape))
    ufunc = np.maximum if emitter.origin.op == "max" else np.minimum
    kernel = ufunc_kernel(ufunc, (view.dtype, view.dtype), emitter.origin.op)
    write = fresh(view.dtype, static_shape(result))
    if write.size == 0:
        return (write,)
    _, gone = _axes(view, axes, write)
    if write.size == 1 and len(gone) == 1:
        emitter.strided(
            extremum_kernel(ufunc, view.dtype, emitter.origin.op),
            (view, write),
            1,
            (view.size, view.size, 0),
            (gone[0][1], 0, view.itemsize),
            kind=REDUCE,
        )
        return (write,)
    first = tuple(1 if axis in axes else dim for axis, dim in enumerate(view.shape))
    start = View(view.buffer, view.dtype, first, view.strides, view.offset)
    target = View(write.buffer, write.dtype, first)
    emitter.call(copy_kernel(view.dtype), [start], target)
    if gone:
        still = tuple(
            0 if axis in axes else stride for axis, stride in enumerate(target.strides)
        )
        n, strides, outer = loop_axes(
            view.shape, [still, view.strides, still], [view.dtype.itemsize] * 3
        )
        emitter.strided(kernel, (write, view, write), 2, (n,), strides, outer)
    return (write,)


def _accumulator(result: TensorType) -> TensorType:
    """Return the type that sums are taken in: float for half, as NumPy's own loop does."""
    return result.with_dtype(CODES["f32"]) if result.dtype.char == "e" else result


Axis = tuple[int, ...]


def _sum(emitter: Emitter, view: View, axes: Sequence[int], result: TensorType) -> View:
    """Return the sum of `view` along `axes`, in the type of `result`."""
    shape = static_shape(result)
    wide = _accumulator(result).dtype
    if 0 in view.shape:
        return emitter.zeros(result)
    view = emitter.cast(view, wide)
    write = fresh(wide, shape)
    kept, gone = _axes(view, axes, write)
    if not gone:
        # Nothing is reduced but axes of size 1.
        left = iter([stride for _, stride, _ in kept])
        spread = tuple(0 if dim == 1 else next(left) for dim in shape)
        same = View(view.buffer, view.dtype, shape, spread, view.offset)
        return emitter.cast(same, result.dtype)
    row = min(kept, key=lambda axis: abs(axis[1]), default=(1, 0, 0))
    if row[0] >= FEW and abs(row[1]) < abs(gone[-1][1]):
        _sum_across(emitter, view, write, kept, gone, row)
    elif kept or len(gone) > 1:
        words = _words(_merged(kept) or [(1, 0, 0)]) + _words(gone)
        kernel = sum_kernel("along", wide)
        emitter.strided(kernel, (view, write), 1, (1,), (0, 0), words, kind=REDUCE)
    else:
        _sum_all(emitter, view, write, gone[0][1])
    return emitter.cast(write, result.dtype)


def _axes(view: View, axes: Sequence[int], write: View) -> tuple[list[Axis], list[Axis]]:
    """Return what stays, as (dim, stride, stride of `write`), and what goes, as (dim, stride).

    In the order of the axes, without those of size 1; those that go are merged.
    """
    kept: list[Axis] = []
    gone: list[Axis] = []
    for axis, (dim, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        if dim != 1:
            (gone if axis in axes else kept).append((dim, stride))
    steps = dense_strides(tuple(dim for dim, _ in kept), write.itemsize)
    kept = [(*axis, step) for axis, step in zip(kept, steps, strict=True)]
    return kept, _merged(gone)


def _merged(axes: list[Axis]) -> list[Axis]:
    """Return `axes`, neighbours made one where all strides allow it."""
    result: list[Axis] = []
    for dim, *strides in axes:
        if result and result[-1][1:] == tuple(dim * stride for stride in strides):
            dim *= result.pop()[0]
        result.append((dim, *strides))
    return result


def _words(axes: list[Axis]) -> Dims:
    """Return axes as loops read them, see axes.h."""
    return (len(axes), *(word for axis in axes for word in axis))


def _sum_all(emitter: Emitter, view: View, write: View, stride: int) -> None:
    """Emit the sum of everything along one axis, which a block may do piece by piece."""
    n = view.size
    stream = write
    if n >= FROM:
        stream = fresh(CODES["u8"], (STREAM_BYTES,))
    emitter.strided(
        sum_kernel("all", view.dtype),
        (view, stream, write),
        1,
        (n, n, 0),
        (stride, 0, 0),
        kind=REDUCE,
    )


def _sum_across(
    emitter: Emitter, view: View, write: View, kept: list[Axis], gone: list[Axis], row: Axis
) -> None:
    """Emit the sums of rows along the axis `row` of those that stay."""
    item = view.itemsize
    others = _merged([axis for axis in kept if axis is not row])
    tile = min(row[0], TILE_BYTES // item)
    rows = prod(dim for dim, _ in gone)
    lanes, leaf = (4, 64) if view.dtype.kind == "c" else (8, 128)
    levels = 0
    while rows > leaf:
        rows -= rows // 2 - rows // 2 % lanes
        levels += 1
    scratch = fresh(view.dtype, ((lanes + 1 + levels) * tile,))
    words = _words([*others, row]) + _words(gone)
    kernel = sum_kernel("across", view.dtype)
    emitter.strided(kernel, (view, scratch, write), 1, (tile,), (0, 0, 0), words, kind=REDUCE)
