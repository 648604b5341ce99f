"""Lowering reductions.

Note [sums]: one axis at a time, the last one first, so that every partial sum
is pairwise.  Along the axis NumPy's add loop does it (128 elements in 8 chains,
halves above that); across rows `sum_rows` halves down to 8 rows.  Either way
the error grows with the logarithm of the count, at least as good as `np.sum` of
a contiguous copy, and the order depends on the shape alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from stagedad.ops.type_rules import normal_axes
from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, fresh, loop_axes, merged
from stagedad.plan.kernels import copy_kernel, sum_rows_kernel, ufunc_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape
from stagedad.plan.step import SUM
from stagedad.types import CODES, TensorType

FEW = 16
"""Fewer elements than this are summed across rows; as many rows, along them."""

TILE_BYTES = 4096
"""Column tile of a sum over rows: the row, its partial sums and the target stay in L1."""


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
    first = tuple(1 if axis in axes else dim for axis, dim in enumerate(view.shape))
    start = View(view.buffer, view.dtype, first, view.strides, view.offset)
    target = View(write.buffer, write.dtype, first)
    emitter.call(copy_kernel(view.dtype), [start], target)
    if prod(view.shape[axis] for axis in axes) > 1:
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


def _sum(emitter: Emitter, view: View, axes: Sequence[int], result: TensorType) -> View:
    """Return the sum of `view` along `axes`, in the type of `result`."""
    shape = static_shape(result)
    wide = _accumulator(result).dtype
    count = prod(view.shape[axis] for axis in axes)
    if count == 0 or 0 in shape:
        return emitter.zeros(result)
    view = emitter.cast(view, wide)
    dims, strides, flags = _split_axes(view, axes)
    while True in flags:
        at = len(flags) - 1 - flags[::-1].index(True)
        view = _sum_axis(emitter, view, dims, strides, at)
        del dims[at], flags[at]
        view, (dims, strides, flags) = view, _merge_again(view, dims, flags)
    if not view.dense or view.size != prod(shape):
        # Nothing was reduced but axes of size 1.
        kept = [stride for axis, stride in enumerate(view.strides) if view.shape[axis] != 1]
        left = iter(kept)
        spread = tuple(0 if dim == 1 else next(left) for dim in shape)
        return emitter.cast(
            View(view.buffer, view.dtype, shape, spread, view.offset), result.dtype
        )
    return emitter.cast(View(view.buffer, view.dtype, shape, None, view.offset), result.dtype)


def _split_axes(view: View, axes: Sequence[int]) -> tuple[list[int], list[int], list[bool]]:
    """Return dims, strides, and whether each is reduced, merged within each sort."""
    dims: list[int] = []
    strides: list[int] = []
    flags: list[bool] = []
    for axis, (dim, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        reduced = axis in axes
        if dim == 1:
            continue
        if dims and flags[-1] == reduced and strides[-1] == dim * stride:
            dims[-1] *= dim
            strides[-1] = stride
        else:
            dims.append(dim)
            strides.append(stride)
            flags.append(reduced)
    return dims, strides, flags


def _merge_again(
    view: View, dims: list[int], flags: list[bool]
) -> tuple[list[int], list[int], list[bool]]:
    """Split the axes of a dense intermediate result anew."""
    whole = View(view.buffer, view.dtype, tuple(dims))
    reduced = [axis for axis, flag in enumerate(flags) if flag]
    return _split_axes(whole, reduced)


def _sum_axis(
    emitter: Emitter, view: View, dims: list[int], strides: list[int], at: int
) -> View:
    """Emit the sum along axis `at` into a new dense temporary."""
    dtype = view.dtype
    item = dtype.itemsize
    rows, row = dims[at], strides[at]
    kept = tuple(dims[:at] + dims[at + 1 :])
    steps = tuple(strides[:at] + strides[at + 1 :])
    write = fresh(dtype, kept)
    left, (from_, to) = merged(kept, [steps, write.strides])
    inner = left[-1] if left else 1
    along = inner < FEW if row != item else (rows >= FEW or inner < 4 * rows)
    if along:
        _sum_along(emitter, view, write, rows, row, (left, from_, to))
    else:
        _sum_across(emitter, view, write, rows, row, (left, from_, to))
    return write


Axes = tuple[list[int], list[int], list[int]]


def _sum_along(
    emitter: Emitter, view: View, write: View, rows: int, row: int, axes: Axes
) -> None:
    """Emit one pairwise sum for each element of the result."""
    dtype = view.dtype
    kernel = ufunc_kernel(np.add, (dtype, dtype), "sum")
    operands = (write, view, write)
    if not axes[0]:
        dims = (rows, dtype.itemsize)
        emitter.strided(kernel, operands, 2, dims, (0, row, 0), kind=SUM)
        return
    emitter.zero(write)
    outer = _outer([(dim, (to, from_, to)) for dim, from_, to in zip(*axes, strict=True)])
    emitter.strided(kernel, operands, 2, (rows,), (0, row, 0), outer)


def _sum_across(
    emitter: Emitter, view: View, write: View, rows: int, row: int, axes: Axes
) -> None:
    """Emit sums of whole rows."""
    dtype = view.dtype
    item = dtype.itemsize
    dims, from_, to = axes
    tile = min(dims[-1], TILE_BYTES // item)
    levels = max(1, (rows - 1).bit_length() - 2)
    scratch = fresh(dtype, (levels * tile,))
    outer = _outer(
        [
            (dim, (step, 0, target))
            for dim, step, target in zip(dims[:-1], from_[:-1], to[:-1], strict=True)
        ]
    )
    emitter.strided(
        sum_rows_kernel(dtype),
        (view, scratch, write),
        1,
        (rows, dims[-1], tile),
        (row, from_[-1], tile * item, to[-1]),
        outer,
    )


def _outer(axes: list[tuple[int, Dims]]) -> Dims:
    """Return axes in the form of `Step.outer`."""
    if not axes:
        return ()
    words = [len(axes)]
    for dim, strides in axes:
        words.append(dim)
        words.extend(strides)
    return tuple(words)
