"""Operations that move elements without computing: reshape, transpose, broadcast, ..."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from stagedad.errors import ShapeError
from stagedad.front.elementwise import ndim_of, operand, shape_of
from stagedad.front.tracing import Traced, new_tracer


def view(source: Traced, kind: str, **attributes: Any) -> Traced:
    """Record an operation whose result shares memory with `source` in NumPy."""
    if not source._trace.alive:
        raise source._trace.leaked(kind)
    result = source._trace.emit(kind, (source._value,), attributes)
    return shared(result, source)


def shared(result: Traced, source: Traced) -> Traced:
    """Note that `result` is a view of `source`, where both are more than a scalar."""
    result._shared = source._shared = True
    return result


def alias(source: Traced) -> Traced:
    """Return another array object with the memory of `source`."""
    return shared(new_tracer(source._trace, source._value), source)


def integers(value: Any, op: str) -> tuple[int, ...]:
    """Return a shape or axes argument as a tuple of ints.

    Raises: TraceError, by `__index__`, if a traced value is among them.
    """
    if isinstance(value, (tuple, list, range, np.ndarray)):
        return tuple([index(item) for item in value])
    try:
        return (index(value),)
    except TypeError as error:
        if isinstance(value, Traced):
            raise
        raise TypeError(f"{op}: not an integer: {value!r}") from error


def axes_of(axis: Any, ndim: int, op: str) -> tuple[int, ...]:
    """Return axes as NumPy counts them: non-negative, without repeats."""
    found = []
    for given in integers(axis, op):
        if not -ndim <= given < ndim:
            raise np.exceptions.AxisError(given, ndim)
        found.append(given % ndim)
    if len(set(found)) != len(found):
        raise ValueError(f"{op}: repeated axis: {axis}")
    return tuple(found)


def reshape(a: Any, shape: Any, order: str = "C", copy: bool | None = None) -> Traced:
    """Record `np.reshape`; one dim may be -1."""
    source = operand(a, "reshape")
    if order not in ("C", "A", "K", "F"):
        raise ValueError(f"reshape: order={order!r}\nhint: 'C', 'F' or 'A'")
    del copy
    wanted = list(integers(shape, "reshape"))
    if wanted.count(-1) > 1:
        raise ShapeError("reshape", "more than one unknown dim", tuple(wanted))
    if -1 in wanted:
        rest = 1
        for dim in wanted:
            rest *= dim if dim != -1 else 1
        if rest == 0 or source.size % rest:
            raise ShapeError("reshape", "does not fit", source.shape, tuple(wanted))
        wanted[wanted.index(-1)] = source.size // rest
    if tuple(wanted) == source.shape:
        return alias(source)
    if order == "F" and source.ndim + len(wanted) > 2:
        return transpose(reshape(transpose(source), wanted[::-1]))
    return view(source, "reshape", shape=tuple(wanted))


def ravel(a: Any, order: str = "C") -> Traced:
    """Record `np.ravel`."""
    return reshape(a, (-1,) if operand(a, "ravel").size else (0,), order)


def transpose(a: Any, axes: Any = None) -> Traced:
    """Record `np.transpose`."""
    source = operand(a, "transpose")
    if axes is None:
        return view(source, "transpose") if source.ndim > 1 else alias(source)
    order = axes_of(axes, source.ndim, "transpose")
    if len(order) != source.ndim:
        raise ValueError(f"transpose: axes do not match: {axes} for {source.type}")
    return view(source, "transpose", axes=order)


def swapaxes(a: Any, axis1: int, axis2: int) -> Traced:
    """Record `np.swapaxes`."""
    source = operand(a, "swapaxes")
    order = list(range(source.ndim))
    (one,), (two,) = (axes_of(axis, source.ndim, "swapaxes") for axis in (axis1, axis2))
    order[one], order[two] = order[two], order[one]
    return transpose(source, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Traced:
    """Record `np.moveaxis`."""
    array = operand(a, "moveaxis")
    before = axes_of(source, array.ndim, "moveaxis")
    after = axes_of(destination, array.ndim, "moveaxis")
    if len(before) != len(after):
        raise ValueError(f"moveaxis: axes do not match: {source}, {destination}")
    order = [axis for axis in range(array.ndim) if axis not in before]
    for to, origin in sorted(zip(after, before, strict=True)):
        order.insert(to, origin)
    return transpose(array, order)


def expand_dims(a: Any, axis: Any) -> Traced:
    """Record `np.expand_dims`."""
    source = operand(a, "expand_dims")
    count = len(integers(axis, "expand_dims"))
    new = axes_of(axis, source.ndim + count, "expand_dims")
    return view(source, "expand_dims", axis=new)


def reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    """Return a traced or plain operand in another shape."""
    return reshape(value, shape) if isinstance(value, Traced) else np.reshape(value, shape)


def stretched(value: Any, shape: tuple[int, ...]) -> Any:
    """Return a traced or plain operand broadcast to a shape."""
    if isinstance(value, Traced):
        return broadcast_to(value, shape)
    return np.broadcast_to(value, shape)


def moved(value: Any, source: Any, destination: Any) -> Any:
    """Return a traced or plain operand with axes in other places."""
    move = moveaxis if isinstance(value, Traced) else np.moveaxis
    return move(value, source, destination)


def expanded(value: Any, axis: int) -> Any:
    """Return a traced or plain operand with one axis more."""
    return (
        expand_dims(value, axis) if isinstance(value, Traced) else np.expand_dims(value, axis)
    )


def flattened(value: Any) -> Any:
    """Return a traced or plain operand as a vector."""
    return ravel(value) if isinstance(value, Traced) else np.ravel(value)


def squeeze(a: Any, axis: Any = None) -> Traced:
    """Record `np.squeeze`."""
    source = operand(a, "squeeze")
    if axis is None:
        gone = tuple([i for i, dim in enumerate(source.shape) if dim == 1])
    else:
        gone = axes_of(axis, source.ndim, "squeeze")
    if any(source.shape[i] != 1 for i in gone):
        raise ShapeError("squeeze", f"axis {axis} is not of length 1", source.shape)
    return view(source, "squeeze", axis=gone) if gone else alias(source)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Traced:
    """Record `np.broadcast_to`."""
    del subok
    source = operand(array, "broadcast_to")
    wanted = integers(shape, "broadcast_to")
    return (
        alias(source) if wanted == source.shape else view(source, "broadcast_to", shape=wanted)
    )


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Record `np.broadcast_arrays`."""
    del subok
    arrays = [operand(each, "broadcast_arrays") for each in args]
    shape = np.broadcast_shapes(*[shape_of(each) for each in arrays])
    return tuple(
        [
            broadcast_to(each, shape)
            if isinstance(each, Traced)
            else np.broadcast_to(each, shape)
            for each in arrays
        ]
    )


def at_least(ndim: int, op: str) -> Any:
    """Return `np.atleast_1d` or `np.atleast_2d` for traced values."""

    def promote(*arrays: Any) -> Any:
        raised: list[Any] = []
        for each in arrays:
            source = operand(each, op)
            lead = ndim - ndim_of(source)
            if not isinstance(source, Traced):
                raised.append(np.array(source, ndmin=ndim))
            else:
                raised.append(reshape(source, (1,) * max(lead, 0) + source.shape))
        return raised[0] if len(raised) == 1 else tuple(raised)

    return promote


def flip(m: Any, axis: Any = None) -> Traced:
    """Record `np.flip`."""
    source = operand(m, "flip")
    turned = range(source.ndim) if axis is None else axes_of(axis, source.ndim, "flip")
    key = tuple([slice(None, None, -1 if i in turned else 1) for i in range(source.ndim)])
    return source[key]  # type: ignore[no-any-return]
