"""Operations that make one array of several: concatenate, stack, where, array, ..."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from stagedad.errors import ShapeError, TraceError
from stagedad.front.elementwise import (
    apply,
    astype,
    common_dtype,
    has_traced,
    is_weak,
    ndim_of,
    operand,
    shape_of,
    values,
)
from stagedad.front.location import place
from stagedad.front.reducing import NO_VALUE, refuse
from stagedad.front.shaping import axes_of, broadcast_to, expanded, flattened, reshape
from stagedad.front.tracing import Traced, new_tracer, owner
from stagedad.types import canonical_dtype


def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
    casting: str = "same_kind",
) -> Traced:  # fmt: skip
    """Record `np.concatenate`; operands may be lists with traced values in them."""
    refuse("concatenate", out=out)
    del casting
    parts = [_strong(operand(each, "concatenate")) for each in sequence(arrays)]
    if axis is None:
        parts = [flattened(each) for each in parts]
        axis = 0
    if not parts:
        raise ValueError("concatenate: nothing to join")
    first = shape_of(parts[0])
    (along,) = axes_of(axis, len(first), "concatenate")
    for each in parts:
        shape = shape_of(each)
        if len(shape) != len(first) or any(
            one != two and i != along
            for i, (one, two) in enumerate(zip(shape, first, strict=True))
        ):
            raise ShapeError(
                "concatenate", f"do not join along axis {axis}", *map(shape_of, parts)
            )
    if not any(isinstance(each, Traced) for each in parts):
        raise TraceError(f"concatenate: no traced value among the operands: {place()}")
    target = common_dtype(parts) if dtype is None else canonical_dtype(dtype)
    parts = [
        astype(each, target) if isinstance(each, Traced) else np.asarray(each, dtype=target)
        for each in parts
    ]
    trace = owner(parts)
    attributes = {"axis": along} if along else None
    return trace.emit("concatenate", [trace.value(each) for each in parts], attributes)


def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None,
    casting: str = "same_kind",
) -> Traced:  # fmt: skip
    """Record `np.stack`."""
    refuse("stack", out=out)
    del casting
    parts = [operand(each, "stack") for each in sequence(arrays)]
    shapes = {shape_of(each) for each in parts}
    if len(shapes) != 1:
        raise ShapeError("stack", "shapes differ", *map(shape_of, parts))
    (along,) = axes_of(axis, len(shapes.pop()) + 1, "stack")
    return concatenate([expanded(each, along) for each in parts], along, dtype=dtype)


def hstack(tup: Any, **kwargs: Any) -> Traced:
    """Record `np.hstack`."""
    parts = [_at_least_1d(operand(each, "hstack")) for each in sequence(tup)]
    return concatenate(parts, 0 if ndim_of(parts[0]) == 1 else 1, **kwargs)


def vstack(tup: Any, **kwargs: Any) -> Traced:
    """Record `np.vstack`."""
    parts = [operand(each, "vstack") for each in sequence(tup)]
    return concatenate([_rows(each) for each in parts], 0, **kwargs)


def column_stack(tup: Any) -> Traced:
    """Record `np.column_stack`."""
    parts = [_at_least_1d(operand(each, "column_stack")) for each in sequence(tup)]
    return concatenate([expanded(x, 1) if ndim_of(x) == 1 else x for x in parts], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Traced:
    """Record `np.append`."""
    return concatenate([arr, values], axis)


def array_of(nested: Any, dtype: Any = None) -> Traced:
    """Return nested sequences of traced and plain values as one traced array."""
    result = _array(nested)
    return result if dtype is None else astype(result, dtype)


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = None, subok: Any = False,
    ndmin: int = 0, like: Any = None,
) -> Traced:  # fmt: skip
    """Record `np.array` of a traced value or of sequences with traced values in them."""
    del order, subok, like, copy
    if isinstance(object, Traced):
        result = new_tracer(object._trace, object._value)
    else:
        result = _array(object)
    if dtype is not None:
        result = astype(result, dtype)
    if result.ndim < ndmin:
        result = reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return result


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None,
    like: Any = None,
) -> Traced:  # fmt: skip
    """Record `np.asarray`: the same value where nothing has to change."""
    del order, device, like
    is_same = isinstance(a, Traced) and (dtype is None or canonical_dtype(dtype) == a.dtype)
    if is_same and not copy and not a._weak:
        return a  # type: ignore[no-any-return]
    return array(a, dtype)


def where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE, /) -> Traced:
    """Record `np.where` with three arguments: no gradient enters a branch not taken."""
    if x is NO_VALUE or y is NO_VALUE:
        raise TraceError(
            f"where: the indices of a traced condition are not known: {place()}",
            op="where",
            hint="give both branches: np.where(condition, x, y)",
        )
    test = operand(condition, "where")
    if np.result_type(test if not isinstance(test, Traced) else test.dtype) != np.bool_:
        test = (
            apply("not_equal", test, 0) if isinstance(test, Traced) else np.asarray(test) != 0
        )
    branches = [operand(x, "where"), operand(y, "where")]
    trace = owner([test, *branches])
    if all(is_weak(each) for each in branches):
        dtype = common_dtype(branches)
        branches = [astype(b, dtype) for b in branches]
    return trace.emit("where", [trace.value(test), *values(trace, branches)])


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Traced:
    """Record `np.select`: the first condition that holds has the choice."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            f"select: not one choice a condition: {len(condlist)}, {len(choicelist)}"
        )
    tests = [operand(each, "select") for each in condlist]
    for each in tests:
        if np.result_type(each.dtype if isinstance(each, Traced) else each) != np.bool_:
            raise TypeError(f"select: a condition is not of booleans: {place()}")
    choices = [operand(each, "select") for each in (*choicelist, default)]
    dtype = common_dtype(choices)
    found: Any = astype(choices.pop(), dtype)
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        known = astype(choice, dtype)
        traced = any(isinstance(each, Traced) for each in (test, known, found))
        found = where(test, known, found) if traced else np.where(test, known, found)
    return found  # type: ignore[no-any-return]


def clip(
    a: Any, a_min: Any = NO_VALUE, a_max: Any = NO_VALUE, out: Any = None, *,
    min: Any = NO_VALUE, max: Any = NO_VALUE, **kwargs: Any,
) -> Traced:  # fmt: skip
    """Record `np.clip`; where the value is a bound, they share the gradient."""
    refuse("clip", out=out, **kwargs)
    low = min if a_min is NO_VALUE else a_min
    high = max if a_max is NO_VALUE else a_max
    result = a if isinstance(a, Traced) else operand(a, "clip")
    for kind, bound in (("maximum", low), ("minimum", high)):
        if bound is not None and bound is not NO_VALUE:
            if isinstance(result, Traced) or has_traced(bound):
                result = apply(kind, result, bound)
            else:
                result = getattr(np, kind)(result, bound)
    if result is a:
        result = apply("copy", a)
    return result


def full(shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Traced:
    """Record `np.full` with a traced value to fill in."""
    refuse("full", **{k: v for k, v in kwargs.items() if k != "order"})
    fill = operand(fill_value, "full")
    target = fill.dtype if dtype is None else canonical_dtype(dtype)
    shape = (shape,) if ndim_of(shape) == 0 else tuple(shape)
    # A copy, because the array that NumPy makes is writeable.
    return apply("copy", broadcast_to(astype(fill, target), shape))


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    """Record `np.full_like`; a plain array if `fill_value` is plain."""
    del order, subok, device
    dims = shape_of(a) if shape is None else shape
    target = _dtype(a) if dtype is None else dtype
    if has_traced(fill_value):
        return full(dims, fill_value, target)
    return np.full(dims, fill_value, target)


def filled_like(fill: int) -> Any:
    """Return `np.zeros_like` or `np.ones_like` of traced values: plain arrays."""

    def like(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        return full_like(a, fill, dtype, order, subok, shape, device=device)

    return like


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    """Record `np.split`; sections must divide the axis."""
    source = operand(ary, "split")
    (along,) = axes_of(axis, source.ndim, "split")
    if ndim_of(indices_or_sections) == 0:
        sections: Any = index(indices_or_sections)
    else:
        sections = tuple([index(cut) for cut in indices_or_sections])
    attributes = {"indices_or_sections": sections, **({"axis": along} if along else {})}
    trace = owner([source])
    return trace.emit_all("split", [trace.value(source)], attributes)


def _array(nested: Any) -> Traced:
    parts: list[Any] = []
    for item in nested:
        known = _array(item) if _is_sequence(item) and has_traced(item) else item
        parts.append(_strong(operand(known, "array")))
    if len({shape_of(each) for each in parts}) > 1:
        raise ShapeError("array", "rows of different shapes", *map(shape_of, parts))
    if ndim_of(parts[0]) == 0:
        return _vector(parts)
    return concatenate([expanded(each, 0) for each in parts])


def _vector(scalars: Sequence[Any]) -> Traced:
    """Join scalars; neighbouring plain ones become one constant."""
    dtype = common_dtype(scalars)
    parts: list[Any] = []
    plain: list[Any] = []
    for each in [*scalars, None]:
        if each is not None and not isinstance(each, Traced):
            plain.append(each)
            continue
        if plain:
            parts.append(np.array(plain, dtype=dtype))
            plain = []
        if each is not None:
            parts.append(reshape(astype(each, dtype), (1,)))
    return concatenate(parts)


def _strong(value: Any) -> Any:
    """Return `value` as NumPy takes it in a list: Python numbers in their own dtype."""
    if isinstance(value, Traced):
        return new_tracer(value._trace, value._value) if value._weak else value
    return np.asarray(value)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def sequence(arrays: Any) -> Sequence[Any]:
    """Return a sequence of operands, or the rows of one, as a list."""
    if isinstance(arrays, (Traced, np.ndarray)):
        return [arrays[i] for i in range(len(arrays))]  # type: ignore[arg-type, index]
    return list(arrays)


def _at_least_1d(value: Any) -> Any:
    return expanded(value, 0) if ndim_of(value) == 0 else value


def _rows(value: Any) -> Any:
    if ndim_of(value) == 0:
        return expanded(expanded(value, 0), 0)
    return expanded(value, 0) if ndim_of(value) == 1 else value


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, Traced) else np.asarray(value).dtype
