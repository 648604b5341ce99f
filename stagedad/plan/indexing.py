"""Lowering reads and writes by position."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, broadcast, fresh, is_dense, merged
from stagedad.plan.kernels import (
    INT64,
    Kernel,
    check_indices_kernel,
    gather_kernel,
    scatter_add_kernel,
    scatter_kernel,
    take_last_kernel,
    ufunc_kernel,
)
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape
from stagedad.plan.shaping import part_of
from stagedad.types import TensorType


@rule("take", "take_last")
def take(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Copy entries of `axis` at indices that are checked as they are used."""
    source, indices = reads
    axis = attributes["axis"] % len(source.shape)
    write = fresh(source.dtype, static_shape(results[0]))
    if write.size == 0:
        return (_nothing(emitter, indices, axis, source.shape[axis], write),)
    entry = source.shape[axis + 1 :]
    item = source.dtype.itemsize
    if not is_dense(entry, source.strides[axis + 1 :], item):
        source = emitter.dense(source)
    indices = emitter.dense(emitter.cast(indices, INT64))
    extent, nbytes = source.shape[axis], prod(entry) * item
    dims, (from_, to) = merged(
        source.shape[:axis], [source.strides[:axis], write.strides[:axis]]
    )
    kernel = gather_kernel(source.dtype)
    operands: tuple[View, ...] = (source, indices, write)
    axes = list(zip(dims, from_, to, strict=True))
    around: list[Dims] = [(dim, a, 0, b) for dim, a, b in axes]
    if emitter.origin.op == "take_last" and indices.size > 1:
        kernel = take_last_kernel(source.dtype)
        operands = (source, indices, fresh(INT64, (extent,)), write)
        around = [(dim, a, 0, 0, b) for dim, a, b in axes]
    emitter.strided(
        kernel,
        operands,
        2,
        (indices.size, extent, nbytes),
        (source.strides[axis], 8, *(0,) * (len(operands) - 3), nbytes),
        _around(around),
        _out_of_bounds(emitter.origin.op, axis, extent),
    )
    return (write,)


@rule("take_add")
def take_add(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Zeros, then additions in the order of the indices."""
    g, indices = emitter.dense(reads[0]), emitter.dense(emitter.cast(reads[1], INT64))
    write = emitter.zero(fresh(g.dtype, static_shape(results[0])))
    axis = attributes["axis"] % len(write.shape)
    if g.size == 0:
        return (_nothing(emitter, indices, axis, write.shape[axis], write),)

    def add_to(total: View) -> None:
        _scatter(emitter, scatter_add_kernel(g.dtype), g, indices, total, axis)

    add_to(write)
    emitter.scattered[write] = add_to
    return (write,)


@rule("slice_set", "slice_add")
def slice_set(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Copy, then write into the slice."""
    self, value = reads
    write = _copied(emitter, self, results[0])
    part = part_of(write, attributes)
    value = broadcast(emitter.cast(value, write.dtype), part.shape)
    if emitter.origin.op == "slice_set":
        emitter.copy(value, part)
    else:
        kernel = ufunc_kernel(np.add, (write.dtype, write.dtype), "slice_add")
        emitter.call(kernel, (part, value), part)
    return (write,)


@rule("index_set", "index_add")
def index_set(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Copy, then write or add in the order of the indices."""
    self, indices, value = reads
    axis = attributes["axis"] % len(self.shape)
    extent = self.shape[axis]
    taken = self.shape[:axis] + indices.shape + self.shape[axis + 1 :]
    indices = emitter.dense(emitter.cast(indices, INT64))
    value = emitter.dense(broadcast(emitter.cast(value, results[0].dtype), taken))
    write = _copied(emitter, self, results[0])
    if value.size == 0:
        return (_nothing(emitter, indices, axis, extent, write),)
    if emitter.origin.op == "index_set":
        kernel = scatter_kernel(write.dtype)
    else:
        kernel = scatter_add_kernel(write.dtype)
    _scatter(emitter, kernel, value, indices, write, axis)
    return (write,)


def _copied(emitter: Emitter, view: View, result: TensorType) -> View:
    """Emit a copy to be written into, which is none where nothing reads `view` afterwards.

    See plan/_reuse.
    """
    return emitter.copy(view, fresh(result.dtype, static_shape(result)))


def _nothing(emitter: Emitter, indices: View, axis: int, extent: int, write: View) -> View:
    """Emit a check of indices at which there is nothing to read or write.  Returns `write`."""
    indices = emitter.dense(emitter.cast(indices, INT64))
    if indices.size:
        emitter.strided(
            check_indices_kernel(),
            (indices,),
            1,
            (indices.size, extent),
            (8,),
            problem=_out_of_bounds(emitter.origin.op, axis, extent),
        )
    return write


def _scatter(
    emitter: Emitter, kernel: Kernel, g: View, indices: View, total: View, axis: int
) -> None:
    """Emit writes of `g` to the entries of `total` that `indices` name, or additions."""
    items = prod(total.shape[axis + 1 :])
    nbytes, extent = items * g.itemsize, total.shape[axis]
    lead = prod(total.shape[:axis])
    around = [(lead, indices.size * nbytes, 0, extent * nbytes)] if lead > 1 else []
    emitter.strided(
        kernel,
        (g, indices, total),
        2,
        (indices.size, extent, nbytes if kernel.name == "scatter" else items),
        (nbytes, 8, nbytes),
        _around(around),
        _out_of_bounds(emitter.origin.op, axis, extent),
    )


def _around(axes: Sequence[Dims]) -> Dims:
    """Return axes of (extent, strides) in the form of `Step.outer`."""
    if not axes:
        return ()
    return (len(axes), *(word for axis in axes for word in axis))


def _out_of_bounds(op: str, axis: int, extent: int) -> Callable[[Sequence[Any]], Exception]:
    def problem(arrays: Sequence[Any]) -> Exception:
        indices = arrays[min(1, len(arrays) - 1)]
        wrong = indices[(indices < -extent) | (indices >= extent)]
        return IndexError(
            f"{op}: index out of bounds: {wrong[0]}: axis {axis} of size {extent}"
        )

    return problem
