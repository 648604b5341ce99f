"""Lowering reads and writes by position."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, fresh, is_dense, merged
from stagedad.plan.kernels import INT64, gather_kernel, scatter_add_kernel
from stagedad.plan.rule import Operands, Results, rule, static_shape


@rule("take")
def take(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Copy entries of `axis` at indices that are checked as they are used."""
    source, indices = reads
    axis = attributes["axis"] % len(source.shape)
    write = fresh(source.dtype, static_shape(results[0]))
    if write.size == 0:
        return (write,)
    entry = source.shape[axis + 1 :]
    item = source.dtype.itemsize
    if not is_dense(entry, source.strides[axis + 1 :], item):
        source = emitter.dense(source)
    indices = emitter.dense(emitter.cast(indices, INT64))
    extent, nbytes = source.shape[axis], prod(entry) * item
    dims, (from_, to) = merged(
        source.shape[:axis], [source.strides[:axis], write.strides[:axis]]
    )
    emitter.strided(
        gather_kernel(source.dtype),
        (source, indices, write),
        2,
        (indices.size, extent, nbytes),
        (source.strides[axis], 8, nbytes),
        _around([(dim, a, 0, b) for dim, a, b in zip(dims, from_, to, strict=True)]),
        _out_of_bounds("take", axis, extent),
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
        return (write,)

    def add_to(total: View) -> None:
        _scatter_add(emitter, g, indices, total, axis)

    add_to(write)
    emitter.scattered[write] = add_to
    return (write,)


def _scatter_add(emitter: Emitter, g: View, indices: View, total: View, axis: int) -> None:
    """Emit additions of `g` to the entries of `total` that `indices` name."""
    items = prod(total.shape[axis + 1 :])
    nbytes, extent = items * g.itemsize, total.shape[axis]
    lead = prod(total.shape[:axis])
    around = [(lead, indices.size * nbytes, 0, extent * nbytes)] if lead > 1 else []
    emitter.strided(
        scatter_add_kernel(g.dtype),
        (g, indices, total),
        2,
        (indices.size, extent, items),
        (nbytes, 8, nbytes),
        _around(around),
        _out_of_bounds("take_add", axis, extent),
    )


def _around(axes: list[tuple[int, int, int, int]]) -> tuple[int, ...]:
    """Return axes of (extent, strides) in the form of `Step.outer`."""
    if not axes:
        return ()
    return (len(axes), *(word for axis in axes for word in axis))


def _out_of_bounds(op: str, axis: int, extent: int) -> Callable[[Sequence[Any]], Exception]:
    def problem(arrays: Sequence[Any]) -> Exception:
        indices = arrays[1]
        wrong = indices[(indices < -extent) | (indices >= extent)]
        return IndexError(
            f"{op}: index out of bounds: {wrong[0]}: axis {axis} of size {extent}"
        )

    return problem
