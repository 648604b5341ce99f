"""Indexing of traced values: `x[key]` with NumPy's meaning of `key`.

Ints, slices, Ellipsis and None give `slice` and `reshape`.  Integer arrays give
`take`: one along its axis, several along the axes they index made into one.
Indices are read and checked against the bounds at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front._indexing import basic, plain_keys
from stagedad.front.elementwise import apply, has_traced, operand
from stagedad.front.location import place
from stagedad.front.shaping import alias, axes_of, moveaxis, reshape, shared
from stagedad.front.tracing import Trace, Traced, new_tracer, owner

_ALL: Final = slice(None)


def getitem(source: Traced, key: Any) -> Traced:
    """Record `source[key]`.

    Raises: IndexError as NumPy does; TraceError if the key has a traced mask.
    """
    keys = plain_keys(key, source.ndim)
    if keys is not None:
        return _viewed(source, keys)
    keys = _keys(source, key)
    if not any(isinstance(each, (np.ndarray, Traced)) for each in keys):
        return _viewed(source, keys)
    # Beside an index array an int is one too, so that every key stands for one axis now.
    arrays = [np.asarray(each) if _is_int(each) else each for each in keys]
    axes = [i for i, each in enumerate(arrays) if isinstance(each, (np.ndarray, Traced))]
    plain = [_ALL if i in axes else each for i, each in enumerate(arrays)]
    return _advanced(_basic(source, plain), [arrays[i] for i in axes], axes)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise"
) -> Traced:  # fmt: skip
    """Record `np.take`.  Raises: TraceError for `mode` of traced indices."""
    source: Traced = operand(a, "take")
    where: Any = operand(indices, "take")
    if out is not None or (mode != "raise" and isinstance(where, Traced)):
        raise TraceError(
            f"take: `out=` and `mode=` are not supported on traced values: {place()}"
        )
    where = where if isinstance(where, Traced) else np.asarray(where)
    if axis is None:
        source, axis = reshape(source, (source.size,)), 0
    if not -source.ndim <= axis < source.ndim:
        raise np.exceptions.AxisError(axis, source.ndim)
    if mode != "raise":
        if isinstance(indices, np.ndarray):
            source._trace.constants.watch(indices)
        where = np.take(np.arange(source.shape[axis]), where, mode=mode)
    return _advanced(source, [where], [axis % source.ndim])


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Traced:
    """Record `np.repeat`, as a `take`."""
    source = operand(a, "repeat")
    if axis is None:
        source, axis = reshape(source, (source.size,)), 0
    (along,) = axes_of(axis, source.ndim, "repeat")
    if isinstance(repeats, np.ndarray):
        source._trace.constants.watch(repeats)
    rows = np.repeat(np.arange(source.shape[along]), repeats)
    return _advanced(source, [rows], [along])


def _keys(source: Traced, key: Any) -> list[Any]:
    """Return one key an axis, or None for a new one; masks as the indices they mean."""
    given = [
        _index_array(each) if isinstance(each, (list, np.ndarray, Traced)) else each
        for each in (key if isinstance(key, tuple) else (key,))
    ]
    keys: list[Any] = []
    for number, known in enumerate(given):
        if isinstance(known, (bool, np.bool_)):
            raise TraceError(f"getitem: a boolean is no index here: {place()}", op="getitem")
        if isinstance(known, np.ndarray) and known.dtype.kind == "b":
            # Behind an Ellipsis axes are counted from the end.
            has_dots = any(each is Ellipsis for each in given[:number])
            counted = given[number:] if has_dots else given[:number]
            axes = sum([_axes_used(each) for each in counted])
            keys += _mask(source, known, source.ndim - axes if has_dots else axes)
        else:
            keys.append(known)
    used = sum(each is not None and each is not Ellipsis for each in keys)
    if used > source.ndim:
        raise IndexError(
            f"too many indices: array is {source.ndim}-dimensional, but {used} were indexed"
        )
    fill = [_ALL] * (source.ndim - used)
    dots = [i for i, each in enumerate(keys) if each is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return [*keys[: dots[0]], *fill, *keys[dots[0] + 1 :]] if dots else keys + fill


def _index_array(given: Any) -> Any:
    if isinstance(given, list) and not has_traced(given):
        given = np.asarray(given) if given else np.empty(0, np.intp)
    known = operand(given, "getitem")
    if isinstance(known, Traced) and known.dtype.kind == "b":
        raise TraceError(
            f"getitem: a traced boolean mask is not supported: {known.type} ({place()})",
            op="getitem",
            hint="np.where(mask, x, 0) keeps the shape",
        )
    if known.dtype.kind not in "iub":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return known


def _axes_used(key: Any) -> int:
    """Return how many axes a key stands for: a mask for all of its own."""
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype.kind == "b" else 1


def _mask(source: Traced, mask: np.ndarray[Any, Any], axis: int) -> list[Any]:
    """Return the index arrays that a plain mask of the axes from `axis` on means.

    It is watched for changes.
    """
    covered = source.shape[axis : axis + mask.ndim]
    if covered != mask.shape:
        raise IndexError(
            f"boolean index did not match indexed array along axes from {axis}: "
            f"{covered} and {mask.shape}"
        )
    source._trace.constants.watch(mask)
    return list(mask.nonzero())


def _viewed(source: Traced, keys: Sequence[Any]) -> Traced:
    result = _basic(source, keys)
    if result is source:
        return alias(source)
    return shared(result, source) if result.shape else result


def _basic(source: Traced, keys: Sequence[Any]) -> Traced:
    """Record ints, slices and None; `source` itself if they change nothing."""
    attributes, sliced, shape = basic(keys, source.shape)
    result = source
    trace = source._trace
    if attributes is not None:
        result = trace.emit("slice", (result._value,), attributes)
    if shape != sliced:
        result = trace.emit("reshape", (result._value,), {"shape": shape})
    return result


def _advanced(source: Traced, arrays: Sequence[Any], axes: Sequence[int]) -> Traced:
    """Record integer arrays that index `axes` of `source`, in NumPy's order of the result."""
    trace = owner([source, *arrays])
    if len(arrays) == 1:
        operands = (trace.value(source), trace.value(arrays[0]))
        return trace.emit("take", operands, {"axis": axes[0]} if axes[0] else None)
    count = len(axes)
    lengths = [source.shape[axis] for axis in axes]
    rest = [dim for axis, dim in enumerate(source.shape) if axis not in axes]
    front = moveaxis(new_tracer(source._trace, source._value), axes, range(count))
    rows = reshape(front, (int(np.prod(lengths)), *rest))
    flat = _linear(trace, arrays, lengths)
    picked = trace.emit("take", (trace.value(rows), trace.value(flat)))
    ndim = len(flat.shape)
    if list(axes) == list(range(axes[0], axes[0] + count)) and axes[0]:
        return moveaxis(picked, range(ndim), range(axes[0], axes[0] + ndim))
    return picked


def _linear(trace: Trace, arrays: Sequence[Any], lengths: Sequence[int]) -> Any:
    """Return where the element that `arrays` mean stands in the flattened axes."""
    if not any(isinstance(each, Traced) for each in arrays):
        for each in arrays:
            trace.constants.watch(each)
        return np.ravel_multi_index(
            tuple([_wrapped(each, n) for each, n in zip(arrays, lengths, strict=True)]), lengths
        )
    total: Any = None
    for each, length in zip(arrays, lengths, strict=True):
        # Reading from arange checks the bounds and resolves negative indices.
        table = trace.constants.array(np.arange(length))
        known = trace.emit("take", (table, trace.value(each)))
        total = known if total is None else apply("add", apply("mul", total, length), known)
    return total


def _wrapped(indices: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    outside = (indices < -length) | (indices >= length)
    if outside.any():
        raise IndexError(f"index {indices[outside].flat[0]} is out of bounds for size {length}")
    return np.where(indices < 0, indices + length, indices)


def _is_int(key: Any) -> bool:
    return key is not None and not isinstance(key, (slice, np.ndarray, Traced))
