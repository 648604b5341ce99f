"""Macros of ops along an axis: running products, recurrences, convolutions."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from stagedad.ops.macros import macro
from stagedad.ops.type_rules import normal_axes

if TYPE_CHECKING:
    from stagedad.ops.builder import Builder

SLICE = ("slice",)
SHIFT = ("slice", "unslice")
BEFORE = ("slice", "concatenate", "constant", "constant_like", "broadcast_to", "broadcast_like")


@macro(*BEFORE)
def product_before(b: Builder, products: Any, axis: Any) -> Any:
    """Return running products up to the element before, given those with it.

    Shapes: products [.., n, ..] -> the same; 1 comes first
    """
    dims = b.static(b.shape(products), "cumprod")
    if 0 in dims:
        return products
    first = tuple(1 if number == axis % len(dims) else dim for number, dim in enumerate(dims))
    one = b.broadcast_to(b.number(1, products), first)
    rest = _part(b, products, axis, 0, dims[axis] - 1)
    return b.call("concatenate", (one, rest), {"axis": axis})


@macro("cumprod", "transpose", "reshape", "reshape_like", "mul", *BEFORE)
def product_of_others(b: Builder, self: Any, axis: Any) -> Any:
    """Return for each element the product of all others that `axis` reduces it with.

    Shapes: self [all] -> [all]
    """
    dims = b.static(b.shape(self), "prod")
    reduced = normal_axes("prod", axis, len(dims))
    if not reduced:
        return b.broadcast_to(b.number(1, self), dims)
    kept = [number for number in range(len(dims)) if number not in reduced]
    order = (*kept, *reduced)
    turned = tuple(dims[number] for number in order)
    rows = (*turned[: len(kept)], prod(turned[len(kept) :]))
    if order != tuple(range(len(dims))):
        self = b.call("transpose", (self,), {"axes": order})
    self = b.reshape(self, rows)
    before = product_before(b, b.call("cumprod", (self,), {"axis": -1}), -1)
    turn = _reversed(b, self, -1)
    behind = product_before(b, b.call("cumprod", (turn,), {"axis": -1}), -1)
    found = b.reshape(b.call("mul", (before, _reversed(b, behind, -1))), turned)
    if order == tuple(range(len(dims))):
        return found
    back = tuple(sorted(range(len(dims)), key=order.__getitem__))
    return b.call("transpose", (found,), {"axes": back})


@macro("mul", "conj", *SHIFT)
def recurrence_cotangent(b: Builder, flow: Any, result: Any, axis: Any, reverse: Any) -> Any:
    """Return the cotangent of the factors, given `flow`, that of the terms.

    Forward, factor i multiplies y[i - 1] into y[i]; in reverse y[i] into y[i - 1].
    """
    result = b.conj(result)
    if reverse:
        return b.call("mul", (_delayed(b, flow, axis), result))
    return b.call("mul", (flow, _delayed(b, result, axis)))


@macro("mul", *SHIFT)
def recurrence_tangent(b: Builder, factor: Any, result: Any, axis: Any, reverse: Any) -> Any:
    """Return what the tangent of the factors adds to that of the terms."""
    if factor is b.zero:
        return b.zero
    if reverse:
        return _delayed(b, b.call("mul", (factor, result)), axis, back=True)
    return b.call("mul", (factor, _delayed(b, result, axis)))


@macro(*SLICE)
def reversed_vector(b: Builder, value: Any) -> Any:
    """Return a vector from its end to its start.

    Shapes: value [n] -> [n]
    """
    return value if value is b.zero else _reversed(b, value, 0)


def _part(b: Builder, value: Any, axis: int, start: int, stop: int) -> Any:
    """Return `value` from start to stop along an axis."""
    dims = b.static(b.shape(value), "slice")
    if value is b.zero or (start, stop) == (0, dims[axis]):
        return value
    first, last = [0] * len(dims), list(dims)
    first[axis], last[axis] = start, stop
    slices = {"start": tuple(first), "stop": tuple(last), "step": (1,) * len(dims)}
    return b.call("slice", (value,), slices)


def _reversed(b: Builder, value: Any, axis: int) -> Any:
    """Return `value` the other way round along an axis."""
    dims = b.static(b.shape(value), "slice")
    if 0 in dims:
        return value
    start, stop, step = [0] * len(dims), list[Any](dims), [1] * len(dims)
    start[axis], stop[axis], step[axis] = dims[axis] - 1, None, -1
    slices = {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}
    return b.call("slice", (value,), slices)


def _delayed(b: Builder, value: Any, axis: int, *, back: bool = False) -> Any:
    """Return `value` one place later along an axis (`back`: earlier), 0 coming in."""
    if value is b.zero:
        return value
    dims = b.static(b.shape(value), "recurrence")
    size = dims[axis]
    if 0 in dims:
        return value
    kept = _part(b, value, axis, 1, size) if back else _part(b, value, axis, 0, size - 1)
    first, last = [0] * len(dims), list(dims)
    first[axis], last[axis] = (0, size - 1) if back else (1, size)
    slices = {"start": tuple(first), "stop": tuple(last), "step": (1,) * len(dims)}
    return b.call("unslice", (kept,), {"shape": dims, **slices})
