"""Lowering products, logical reductions, and running sums: a loop of two operands on itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.ops.type_rules import normal_axes
from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, fresh, loop_axes
from stagedad.plan.kernels import copy_kernel, ufunc_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape

_UFUNCS: dict[str, tuple[np.ufunc, int]] = {
    "prod": (np.multiply, 1),
    "all": (np.logical_and, 1),
    "any": (np.logical_or, 0),
    "cumsum": (np.add, 0),
    "cumprod": (np.multiply, 1),
}
"""Kind -> the ufunc, and what it leaves alone."""


@rule("prod", "all", "any")
def reduction(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Start from the neutral element, then take in all others."""
    ufunc, neutral = _UFUNCS[emitter.origin.op]
    (result,) = results
    axes = normal_axes(emitter.origin.op, attributes["axis"], len(reads[0].shape))
    view = emitter.cast(reads[0], result.dtype)
    kernel = ufunc_kernel(ufunc, (view.dtype, view.dtype), emitter.origin.op)
    shape = static_shape(result)
    write = fresh(view.dtype, shape)
    if write.size == 0:
        return (write,)
    start = emitter.number(neutral, view.dtype)
    emitter.copy(start, write)
    if view.size == 0:
        return (write,)
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(view.shape))
    target = View(write.buffer, write.dtype, kept)
    still = tuple(0 if axis in axes else stride for axis, stride in enumerate(target.strides))
    n, strides, outer = loop_axes(
        view.shape, [still, view.strides, still], [view.dtype.itemsize] * 3
    )
    emitter.strided(kernel, (write, view, write), 2, (n,), strides, outer)
    return (write,)


@rule("cumsum", "cumprod")
def scan(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Copy the first entry, then combine each entry with the result before it."""
    ufunc, _ = _UFUNCS[emitter.origin.op]
    (result,) = results
    view = emitter.cast(reads[0], result.dtype)
    axis = attributes["axis"] % len(view.shape)
    reverse = bool(attributes.get("reverse", False))
    kernel = ufunc_kernel(ufunc, (view.dtype, view.dtype), emitter.origin.op)
    if kernel.is_object_call:
        # A ufunc called as an object copies operands that overlap with its result.
        return emitter.object_call(emitter.origin.op, reads, dict(attributes), results)
    write = fresh(view.dtype, static_shape(result))
    if write.size == 0:
        return (write,)
    count = view.shape[axis]
    first = tuple(1 if number == axis else dim for number, dim in enumerate(view.shape))
    at = count - 1 if reverse else 0
    emitter.call(
        copy_kernel(view.dtype),
        [_moved(view, first, at * view.strides[axis])],
        _moved(write, first, at * write.strides[axis]),
    )
    if count > 1:
        _combine(emitter, kernel, view, write, axis, -1 if reverse else 1)
    return (write,)


def _combine(
    emitter: Emitter, kernel: Any, view: View, write: View, axis: int, turn: int
) -> None:
    """Emit the entries behind the first, along each line of `axis`."""
    count = view.shape[axis]
    begin = count - 1 if turn < 0 else 0
    rest = tuple(count - 1 if n == axis else dim for n, dim in enumerate(view.shape))
    from_, to = turn * view.strides[axis], turn * write.strides[axis]
    before = _moved(write, rest, begin * write.strides[axis])
    here = _moved(view, rest, (begin + turn) * view.strides[axis])
    after = _moved(write, rest, (begin + turn) * write.strides[axis])
    outer: list[int] = []
    lines = 0
    for number, dim in enumerate(view.shape):
        if number != axis and dim != 1:
            lines += 1
            outer += (dim, write.strides[number], view.strides[number], write.strides[number])
    words: Dims = (lines, *outer) if lines else ()
    emitter.strided(kernel, (before, here, after), 2, (count - 1,), (to, from_, to), words)


def _moved(view: View, shape: Dims, by: int) -> View:
    """Return the part of a view of `shape` that starts `by` bytes behind its start."""
    return View(view.buffer, view.dtype, shape, view.strides, view.offset + by)
