"""Operations that move or repeat elements: roll, rot90, tile, pad, kron, block, ..."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front.elementwise import (
    apply,
    astype,
    ndim_of,
    operand,
    shape_of,
    size_of,
)
from stagedad.front.joining import concatenate, split, stack
from stagedad.front.location import place
from stagedad.front.shaping import (
    axes_of,
    broadcast_to,
    flip,
    integers,
    moveaxis,
    moved,
    reshape,
    reshaped,
    stretched,
    swapaxes,
)
from stagedad.front.tracing import Traced

_ALL: Final = slice(None)


def roll(a: Any, shift: Any, axis: Any = None) -> Traced:
    """Record `np.roll`: what leaves an axis at its end comes back at its start."""
    source = operand(a, "roll")
    if axis is None:
        flat = reshape(source, (source.size,))
        return reshape(_rolled(flat, sum(integers(shift, "roll")), 0), source.shape)
    along = integers(axis, "roll")
    pairs = np.broadcast_arrays(integers(shift, "roll"), along)
    result = source
    for steps, at in zip(*pairs, strict=True):
        (known,) = axes_of(int(at), source.ndim, "roll")
        result = _rolled(result, int(steps), known)
    return apply("copy", result) if result is source else result


def _rolled(source: Traced, shift: int, axis: int) -> Traced:
    length = source.shape[axis]
    steps = shift % length if length else 0
    if not steps:
        return source
    lead = (_ALL,) * axis
    array: Any = source
    front, back = array[(*lead, slice(-steps, None))], array[(*lead, slice(None, -steps))]
    return concatenate([front, back], axis)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Traced:
    """Record `np.rot90`."""
    source = operand(m, "rot90")
    first, second = axes_of(axes, source.ndim, "rot90")
    turns = index(k) % 4
    if turns == 0:
        return source[...]  # type: ignore[no-any-return]
    if turns == 2:
        return flip(source, (first, second))
    if turns == 1:
        return swapaxes(flip(source, second), first, second)
    return flip(swapaxes(source, first, second), second)


def rollaxis(a: Any, axis: int, start: int = 0) -> Traced:
    """Record `np.rollaxis`."""
    source = operand(a, "rollaxis")
    (at,) = axes_of(axis, source.ndim, "rollaxis")
    where = index(start) + (source.ndim if start < 0 else 0)
    if not 0 <= where <= source.ndim:
        raise np.exceptions.AxisError(f"rollaxis: start={start} of {source.ndim} axes")
    return moveaxis(source, at, where - 1 if at < where else where)


def tile(A: Any, reps: Any) -> Traced:  # noqa: N803 (NumPy's name)
    """Record `np.tile`: copies side by side along every axis."""
    source = operand(A, "tile")
    counts = integers(reps, "tile")
    ndim = max(len(counts), source.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    dims = (1,) * (ndim - source.ndim) + source.shape
    spaced = reshape(source, tuple(n for dim in dims for n in (1, dim)))
    pairs = tuple(n for count, dim in zip(counts, dims, strict=True) for n in (count, dim))
    whole = tuple(count * dim for count, dim in zip(counts, dims, strict=True))
    return reshape(apply("copy", broadcast_to(spaced, pairs)), whole)


def kron(a: Any, b: Any) -> Traced:
    """Record `np.kron`."""
    left, right = operand(a, "kron"), operand(b, "kron")
    ndim = max(ndim_of(left), ndim_of(right))
    rows, columns = ((1,) * (ndim - ndim_of(each)) + shape_of(each) for each in (left, right))
    left = reshaped(left, tuple(n for dim in rows for n in (dim, 1)))
    right = reshaped(right, tuple(n for dim in columns for n in (1, dim)))
    whole = tuple(m * n for m, n in zip(rows, columns, strict=True))
    return reshape(apply("mul", left, right), whole)


def fliplr(m: Any) -> Traced:
    """Record `np.fliplr`."""
    return flip(m, 1)


def flipud(m: Any) -> Traced:
    """Record `np.flipud`."""
    return flip(m, 0)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    """Record `np.array_split`: parts that differ by one element where they must."""
    source = operand(ary, "array_split")
    if ndim_of(indices_or_sections):
        return split(source, indices_or_sections, axis)
    (along,) = axes_of(axis, source.ndim, "array_split")
    count = index(indices_or_sections)
    if count < 1:
        raise ValueError(f"array_split: {count} parts")
    width, more = divmod(source.shape[along], count)
    sizes = [width + 1] * more + [width] * (count - more)
    return split(source, np.cumsum(sizes)[:-1].tolist(), along)


def _split_along(name: str, axis: int, least: int) -> Callable[..., list[Traced]]:
    """Return `np.hsplit`, `np.vsplit` or `np.dsplit`."""

    def along(ary: Any, indices_or_sections: Any) -> list[Traced]:
        source = operand(ary, name)
        if source.ndim < least:
            raise ValueError(f"{name}: an array of {least} or more axes: {source.type}")
        return split(source, indices_or_sections, min(axis, source.ndim - 1))

    return along


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Traced, ...]:
    """Record `np.unstack`."""
    source = operand(x, "unstack")
    (along,) = axes_of(axis, source.ndim, "unstack")
    lead = (_ALL,) * along
    return tuple([source[(*lead, i)] for i in range(source.shape[along])])


def dstack(tup: Any) -> Traced:
    """Record `np.dstack`."""
    return concatenate([_three(operand(each, "dstack")) for each in tup], 2)


def atleast_3d(*arys: Any) -> Any:
    """Record `np.atleast_3d`."""
    raised = [_three(operand(each, "atleast_3d")) for each in arys]
    return raised[0] if len(raised) == 1 else tuple(raised)


def _three(value: Any) -> Any:
    shape = shape_of(value)
    if len(shape) >= 3:
        return value
    return reshaped(value, [(1, 1, 1), (1, *shape, 1), (*shape, 1)][len(shape)])


def block(arrays: Any) -> Traced:
    """Record `np.block`: lists of lists, the innermost along the last axis."""
    depth = _depth(arrays)
    parts = [operand(each, "block") for each in _leaves(arrays)]
    ndim = max(depth, *[ndim_of(each) for each in parts])

    def joined(nested: Any, level: int) -> Any:
        if not isinstance(nested, list):
            known = operand(nested, "block")
            return reshaped(known, (1,) * (ndim - ndim_of(known)) + shape_of(known))
        rows = [joined(each, level + 1) for each in nested]
        if not any(isinstance(each, Traced) for each in rows):
            return np.concatenate(rows, axis=level - depth)
        return concatenate(rows, level - depth)

    return joined(arrays, 0)  # type: ignore[no-any-return]


def _depth(nested: Any) -> int:
    if isinstance(nested, tuple):
        raise TypeError("block: a tuple\nhint: lists say how the blocks lie")
    if not isinstance(nested, list):
        return 0
    if not nested:
        raise ValueError("block: an empty list")
    depths = {_depth(each) for each in nested}
    if len(depths) > 1:
        raise ValueError(f"block: lists of different depths: {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(nested: Any) -> list[Any]:
    if not isinstance(nested, list):
        return [nested]
    return [leaf for each in nested for leaf in _leaves(each)]


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Record `np.meshgrid`."""
    del copy
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing={indexing!r}\nhint: 'xy' or 'ij'")
    vectors = [operand(each, "meshgrid") for each in xi]
    count = len(vectors)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = 1, 0
    lengths = [int(np.prod(shape_of(each), dtype=int)) for each in vectors]
    made = [
        reshaped(each, tuple(lengths[i] if order[i] == at else 1 for at in range(count)))
        for i, each in enumerate(vectors)
    ]
    whole = tuple(lengths[order.index(at)] for at in range(count))
    if not sparse:
        made = [stretched(each, whole) for each in made]
    return tuple(made)


def resize(a: Any, new_shape: Any) -> Traced:
    """Record `np.resize`: the elements again and again until the shape is full."""
    source = operand(a, "resize")
    shape = integers(new_shape, "resize")
    size = int(np.prod(shape, dtype=int))
    if not source.size:
        raise TraceError(f"resize: no elements to repeat: {source.type} ({place()})")
    flat = reshape(source, (source.size,))
    return reshape(tile(flat, -(-size // source.size))[:size], shape)  # type: ignore[index]


def delete(arr: Any, obj: Any, axis: Any = None) -> Traced:
    """Record `np.delete` of positions that are known."""
    source = operand(arr, "delete")
    if axis is None:
        source, axis = reshape(source, (source.size,)), 0
    (along,) = axes_of(axis, source.ndim, "delete")
    if isinstance(obj, Traced):
        raise TraceError(f"delete: how many stay is not known: {place()}", op="delete")
    kept = np.delete(np.arange(source.shape[along]), obj)
    return source[(*(_ALL,) * along, kept)]  # type: ignore[no-any-return]


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Traced:
    """Record `np.insert` at positions that are known."""
    if isinstance(obj, Traced):
        raise TraceError(f"insert: at positions that are not known: {place()}", op="insert")
    source, new = operand(arr, "insert"), operand(values, "insert")
    # NumPy inserts numbers that say from where each element of the result comes.
    size = size_of(source)
    here = np.arange(size).reshape(shape_of(source))
    there = size + np.arange(size_of(new)).reshape(shape_of(new))
    origin = np.insert(here, obj, there, axis)
    target = getattr(source, "dtype", None) or np.asarray(source).dtype
    parts = [reshaped(source, (-1,)), reshaped(astype(new, target), (-1,))]
    return concatenate(parts)[origin]  # type: ignore[index, no-any-return]


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Traced:
    """Record `np.pad` with constants, or with elements of the array."""
    source = operand(array, "pad")
    odd = kwargs.get("reflect_type", "even") != "even"
    if mode not in ("constant", "empty", "edge", "reflect", "symmetric", "wrap") or odd:
        what = "reflect_type='odd'" if odd else f"mode={mode!r}"
        raise TraceError(
            f"pad: {what} is not supported on traced values: {source.type} ({place()})",
            op="pad",
            hint="np.concatenate joins what you compute",
        )
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0) if mode == "constant" else 0
        if kwargs:
            raise ValueError(f"pad: unsupported arguments for {mode!r}: {', '.join(kwargs)}")
        return _pad_constant(source, pad_width, values)
    # NumPy pads numbers that say from where each element of the result comes.
    origin = np.pad(np.arange(source.size).reshape(source.shape), pad_width, mode, **kwargs)
    return reshape(source, (source.size,))[origin]  # type: ignore[index, no-any-return]


def _pad_constant(source: Traced, pad_width: Any, values: Any) -> Traced:
    if isinstance(pad_width, dict):
        widths = np.zeros((source.ndim, 2), int)
        for axis, width in pad_width.items():
            widths[axis] = width
        pad_width = widths
    widths = np.broadcast_to(np.asarray(pad_width), (source.ndim, 2)).tolist()
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"pad: negative width: {pad_width}")
    ends = operand(values, "pad")
    pairs = stretched(ends, (source.ndim, 2))
    result = source
    for axis, pair in enumerate(widths):
        sides: list[list[Any]] = [[], []]
        for side, width in enumerate(pair):
            if width:
                shape = (*result.shape[:axis], width, *result.shape[axis + 1 :])
                sides[side] = [stretched(astype(pairs[axis, side], source.dtype), shape)]
        if sides != [[], []]:
            result = concatenate([*sides[0], result, *sides[1]], axis)
    return apply("copy", result) if result is source else result


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Record `np.apply_along_axis`: the function, once a row."""
    source = operand(arr, "apply_along_axis")
    (along,) = axes_of(axis, source.ndim, "apply_along_axis")
    rows = moveaxis(source, along, -1)
    lead = rows.shape[:-1]
    if 0 in lead:
        raise ValueError("apply_along_axis: no rows to apply the function to")
    made = [
        operand(func1d(rows[at], *args, **kwargs), "apply_along_axis")  # type: ignore[index]
        for at in np.ndindex(*lead)
    ]
    shape = shape_of(made[0])
    if not any(isinstance(each, Traced) for each in made):
        joined: Any = np.stack(made)
    else:
        joined = stack(made)
    whole = reshaped(joined, (*lead, *shape))
    ndim = len(lead)
    target = range(along, along + len(shape))
    return moved(whole, range(ndim, ndim + len(shape)), target)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Traced:  # noqa: N803
    """Record `np.vander`: powers by repeated products, so that 0 is no singular point."""
    source = operand(x, "vander")
    if source.ndim != 1:
        raise ValueError(f"vander: x must be a vector: {source.type}")
    count = source.size if N is None else index(N)
    dtype = np.result_type(source.dtype, int)
    known = astype(source, dtype)
    powers: list[Any] = [np.ones(source.size, dtype), known]
    while len(powers) < count:
        powers.append(apply("mul", powers[-1], known))
    if count < 2:
        return stack(powers, 1)[:, :count]  # type: ignore[index, no-any-return]
    return stack(powers[:count] if increasing else powers[count - 1 :: -1], 1)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Record `np.ix_` of integer vectors."""
    vectors = [operand(each, "ix_") for each in args]
    for each in vectors:
        if ndim_of(each) != 1:
            raise ValueError("ix_: vectors only")
        if isinstance(each, Traced) and each.dtype.kind == "b":
            raise TraceError(f"ix_: a traced mask has no known size: {place()}", op="ix_")
    count = len(vectors)
    found = []
    for at, each in enumerate(vectors):
        known = each
        if not isinstance(each, Traced) and each.dtype.kind == "b":
            (known,) = each.nonzero()
        found.append(reshaped(known, (1,) * at + (-1,) + (1,) * (count - at - 1)))
    return tuple(found)


def _of_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that reads of an array its shape alone."""

    def call(arr: Any, *args: Any, **kwargs: Any) -> Any:
        return function(np.broadcast_to(0, shape_of(arr)), *args, **kwargs)

    return call


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.roll: roll,
    np.rot90: rot90,
    np.rollaxis: rollaxis,
    np.tile: tile,
    np.kron: kron,
    np.fliplr: fliplr,
    np.flipud: flipud,
    np.array_split: array_split,
    np.hsplit: _split_along("hsplit", 1, 1),
    np.vsplit: _split_along("vsplit", 0, 2),
    np.dsplit: _split_along("dsplit", 2, 3),
    np.dstack: dstack,
    np.atleast_3d: atleast_3d,
    np.block: block,
    np.meshgrid: meshgrid,
    np.resize: resize,
    np.delete: delete,
    np.insert: insert,
    np.pad: pad,
    np.apply_along_axis: apply_along_axis,
    np.vander: vander,
    np.ix_: ix_,
    np.diag_indices_from: _of_shape(np.diag_indices_from),
    np.tril_indices_from: _of_shape(np.tril_indices_from),
    np.triu_indices_from: _of_shape(np.triu_indices_from),
}
if hasattr(np, "unstack"):
    FUNCTIONS[np.unstack] = unstack
