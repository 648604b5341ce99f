"""Lowering ops that move elements: views wherever strides can say it, copies elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.ops.type_rules import part_bounds
from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, broadcast, fresh, reshape, sliced
from stagedad.plan.kernels import ufunc_kernel
from stagedad.plan.rule import Operands, Results, rule, static_shape


@rule("copy", "stop_gradient")
def same(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Nothing to do: values are never changed, and outputs are copied anyway."""
    return reads[:1]


@rule("transpose")
def transpose(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Permute the strides."""
    view = reads[0]
    ndim = len(view.shape)
    axes = attributes["axes"]
    order = range(ndim)[::-1] if axes is None else [axis % ndim for axis in axes]
    strides = tuple(view.strides[axis] for axis in order)
    return (View(view.buffer, view.dtype, static_shape(results[0]), strides, view.offset),)


@rule("reshape", "reshape_like", "expand_dims", "squeeze")
def reshaped(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Cut the axes anew; a copy where strides cannot say it."""
    shape = static_shape(results[0])
    view = reshape(reads[0], shape)
    if view is None:
        view = reshape(emitter.dense(reads[0]), shape)
        assert view is not None
    return (view,)


@rule("broadcast_to", "broadcast_like")
def broadcast_to(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Stretch with strides of 0."""
    return (broadcast(reads[0], static_shape(results[0])),)


@rule("zeros_like")
def zeros_like(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """One zero, stretched."""
    return (emitter.zeros(results[0]),)


@rule("constant_like")
def constant_like(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """One number of the plan."""
    return (emitter.number(attributes["value"], results[0].dtype),)


@rule("slice")
def slice_(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Move the offset, multiply the strides."""
    return (part_of(reads[0], attributes),)


@rule("split")
def split(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Move the offset, part by part."""
    view = reads[0]
    axis = attributes["axis"] % len(view.shape)
    parts: list[View] = []
    bounds = part_bounds(attributes["indices_or_sections"], view.shape[axis])
    for (start, _), result in zip(bounds, results, strict=True):
        shape = static_shape(result)
        # An empty part may start where there is no memory.
        offset = view.offset + (start * view.strides[axis] if shape[axis] else 0)
        parts.append(View(view.buffer, view.dtype, shape, view.strides, offset))
    return parts


@rule("unslice")
def unslice(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Zeros, then a copy into the slice."""
    view, dtype = reads[0], results[0].dtype
    write = emitter.zero(fresh(dtype, static_shape(results[0])))
    emitter.copy(view, part_of(write, attributes))

    def add_to(total: View) -> None:
        part = part_of(total, attributes)
        emitter.call(ufunc_kernel(np.add, (dtype, dtype), "unslice"), (part, view), part)

    emitter.scattered[write] = add_to
    return (write,)


@rule("concatenate")
def concatenate(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """A copy of each piece into its part."""
    write = fresh(results[0].dtype, static_shape(results[0]))
    axis = attributes["axis"] % len(write.shape)
    offset = 0
    for view in reads:
        part = View(write.buffer, write.dtype, view.shape, write.strides, offset)
        emitter.copy(view, part)
        offset += view.shape[axis] * write.strides[axis]
    return (write,)


def part_of(view: View, attributes: Mapping[str, Any]) -> View:
    """Return the part that the attributes of `slice` select."""
    return sliced(view, attributes["start"], attributes["stop"], attributes["step"])
