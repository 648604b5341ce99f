"""Type rules: from the types of operands to those of results, one function a rule.

A rule sees an operand whose type is unknown as None and answers None for what
it cannot tell.  It raises what NumPy would, before anything runs: ShapeError,
DTypeError.  Attributes were checked for themselves (ops/attributes.py).
"""

# ruff: noqa: ARG001  (every rule takes op, types and attributes)
from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np

from stagedad.errors import DeviceError, DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.types import (
    DType,
    Shape,
    TensorType,
    broadcast_shapes,
    canonical_dtype,
    promote,
)

Types: TypeAlias = "Sequence[TensorType | None]"
Attributes: TypeAlias = "Mapping[str, Any]"
Results: TypeAlias = "tuple[TensorType | None, ...]"

BOOL = np.dtype(bool)
UNKNOWN: Results = (None,)


def elementwise(op: Op, types: Types, attributes: Attributes) -> Results:
    """Broadcast the shapes and ask the ufunc for the dtype."""
    known = [type for type in types if type is not None]
    if len(known) < len(types):
        return (TensorType(BOOL),) if "comparison" in op.traits else UNKNOWN
    shape = broadcast_shapes(op.kind, *(type.shape for type in known))
    assert op.ufunc is not None
    dtype = ufunc_dtype(op.ufunc, op.kind, tuple(type.dtype for type in known))
    return (TensorType(dtype, shape, _device(op, known)),)


def scaled_sum(op: Op, types: Types, attributes: Attributes) -> Results:
    """As `elementwise`, of self and alpha * other."""
    alpha = attributes["alpha"]
    if isinstance(alpha, np.generic):
        alpha = alpha.item()
    if alpha == 1 or types[1] is None:
        return elementwise(op, types, attributes)
    scaled = canonical_dtype(np.result_type(types[1].dtype, alpha), op.kind)
    return elementwise(op, (types[0], types[1].with_dtype(scaled)), attributes)


def where(op: Op, types: Types, attributes: Attributes) -> Results:
    """Broadcast the shapes; the dtype is that of the branches."""
    if any(type is None for type in types):
        return UNKNOWN
    known = [type for type in types if type is not None]
    shape = broadcast_shapes(op.kind, *(type.shape for type in known))
    dtype = promote(op.kind, known[1].dtype, known[2].dtype)
    return (TensorType(dtype, shape, _device(op, known)),)


def mul0(op: Op, types: Types, attributes: Attributes) -> Results:
    """Type as mul does."""
    left, right = types
    if left is None or right is None:
        return UNKNOWN
    shape = broadcast_shapes(op.kind, left.shape, right.shape)
    dtype = promote(op.kind, left.dtype, right.dtype)
    return (TensorType(dtype, shape, _device(op, [left, right])),)


def real_function(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; the dtype is that of NumPy's functions of real numbers."""
    (self,) = types
    if self is None:
        return UNKNOWN
    return (self.with_dtype(real_function_dtype(op.kind, self.dtype)),)


def inexact_function(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; integers become float64, as beside a Python float."""
    (self,) = types
    if self is None:
        return UNKNOWN
    return (self.with_dtype(canonical_dtype(np.result_type(self.dtype, 1.0), op.kind)),)


def integers(op: Op, types: Types, attributes: Attributes) -> Results:
    """As `elementwise`, of an op that floats have no loop for."""
    return elementwise(op, types, attributes)


def frexp_exponent(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give C's int, for what is a real float once promoted."""
    (self,) = types
    if self is None:
        return (TensorType(np.dtype("i4")),)
    ufunc_dtype(np.frexp, op.kind, (self.dtype,))
    return (self.with_dtype(np.dtype("i4")),)


def same(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the type."""
    return (types[0],)


def real_part(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; complex becomes the float of half the size."""
    return UNKNOWN if types[0] is None else (types[0].with_dtype(_real(types[0].dtype)),)


def astype(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape, if known; the dtype is the attribute's."""
    dtype = canonical_dtype(attributes["dtype"], op.kind)
    return (TensorType(dtype) if types[0] is None else types[0].with_dtype(dtype),)


def reduction(op: Op, types: Types, attributes: Attributes) -> Results:
    """Remove the reduced axes, or keep them at 1."""
    (self,) = types
    if self is None:
        return UNKNOWN
    return _reduced(op, self.with_dtype(_reduced_dtype(op, self.dtype)), attributes)


def real_reduction(op: Op, types: Types, attributes: Attributes) -> Results:
    """As `reduction`, in the dtype of NumPy's functions of real numbers."""
    (self,) = types
    if self is None:
        return UNKNOWN
    dtype = real_function_dtype(op.kind, self.dtype)
    return _reduced(op, self.with_dtype(dtype), attributes)


def _reduced(op: Op, self: TensorType, attributes: Attributes) -> Results:
    dtype = self.dtype
    axis, keepdims = attributes["axis"], bool(attributes["keepdims"])
    if self.shape is None:
        whole = axis is None and not keepdims
        return (TensorType(dtype, () if whole else None, self.device),)
    axes = normal_axes(op.kind, axis, len(self.shape))
    if op.kind in ("max", "min") and any(self.shape[axis] == 0 for axis in axes):
        raise ShapeError(op.kind, "no elements to compare", self.shape)
    kept = (
        1 if number in axes else dim
        for number, dim in enumerate(self.shape)
        if keepdims or number not in axes
    )
    return (TensorType(dtype, tuple(kept), self.device),)


def sum_to(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape, which must broadcast to the operand's."""
    shape = normal_shape(attributes["shape"])
    (self,) = types
    if self is None:
        return UNKNOWN
    _check_stretch(op.kind, shape, self.shape)
    return (self.with_shape(shape),)


def sum_to_like(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape of `like`, which must broadcast to the operand's."""
    self, like = types
    if self is None:
        return UNKNOWN
    shape = None if like is None else like.shape
    _check_stretch(op.kind, shape, self.shape)
    return (self.with_shape(shape),)


def broadcast_to(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape, to which the operand's must broadcast."""
    shape = normal_shape(attributes["shape"])
    (self,) = types
    if self is None:
        return UNKNOWN
    _check_stretch(op.kind, self.shape, shape)
    return (self.with_shape(shape),)


def broadcast_like(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape of `like`, to which the operand's must broadcast."""
    self, like = types
    if self is None:
        return UNKNOWN
    shape = None if like is None else like.shape
    _check_stretch(op.kind, self.shape, shape)
    return (self.with_shape(shape),)


def reshape(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape; one dim may be -1."""
    asked = attributes["shape"]
    dims = [index(dim) for dim in (asked if isinstance(asked, tuple | list) else (asked,))]
    (self,) = types
    if self is None:
        return UNKNOWN
    if self.size is None:
        return (self.with_shape(tuple(None if dim == -1 else dim for dim in dims)),)
    if -1 in dims:
        rest = prod(dim for dim in dims if dim != -1)
        if rest == 0 or self.size % rest:
            raise ShapeError(op.kind, "sizes differ", self.shape, tuple(dims))
        dims[dims.index(-1)] = self.size // rest
    if prod(dims) != self.size:
        raise ShapeError(op.kind, "sizes differ", self.shape, tuple(dims))
    return (self.with_shape(tuple(dims)),)


def reshape_like(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape of `like`, whose size must be the same."""
    self, like = types
    if self is None:
        return UNKNOWN
    shape = None if like is None else like.shape
    if like is not None and None not in (self.size, like.size) and self.size != like.size:
        raise ShapeError(op.kind, "sizes differ", self.shape, shape)
    return (self.with_shape(shape),)


def transpose(op: Op, types: Types, attributes: Attributes) -> Results:
    """Permute the dims; reverse them where `axes` is None."""
    (self,) = types
    if self is None or self.shape is None:
        return (self,)
    axes = attributes["axes"]
    if axes is None:
        return (self.with_shape(self.shape[::-1]),)
    numbers = normal_axes(op.kind, tuple(axes), len(self.shape))
    if len(numbers) != len(self.shape):
        raise ShapeError(op.kind, f"axes {tuple(axes)} do not fit", self.shape)
    return (self.with_shape(tuple(self.shape[axis] for axis in numbers)),)


def expand_dims(op: Op, types: Types, attributes: Attributes) -> Results:
    """Insert dims of 1, so that they stand at `axis` of the result."""
    (self,) = types
    if self is None or self.shape is None:
        return (self,)
    asked = attributes["axis"]
    count = len(asked) if isinstance(asked, tuple | list) else 1
    axes = normal_axes(op.kind, asked, len(self.shape) + count)
    rest = iter(self.shape)
    dims = (1 if number in axes else next(rest) for number in range(len(self.shape) + count))
    return (self.with_shape(tuple(dims)),)


def squeeze(op: Op, types: Types, attributes: Attributes) -> Results:
    """Remove dims of 1: those at `axis`, or all."""
    (self,) = types
    if self is None or self.shape is None:
        return (self,)
    axis = attributes["axis"]
    if axis is None:
        if None in self.shape:
            return (self.with_shape(None),)
        return (self.with_shape(tuple(dim for dim in self.shape if dim != 1)),)
    axes = normal_axes(op.kind, axis, len(self.shape))
    if any(self.shape[number] not in (1, None) for number in axes):
        raise ShapeError(op.kind, f"axis {axis} is not of size 1", self.shape)
    dims = (dim for number, dim in enumerate(self.shape) if number not in axes)
    return (self.with_shape(tuple(dims)),)


def concatenate(op: Op, types: Types, attributes: Attributes) -> Results:
    """Add the dims along `axis`; the others must agree."""
    if not types:
        raise TypeError(f"{op.kind}: no operands")
    known = [type for type in types if type is not None]
    if len(known) < len(types):
        return UNKNOWN
    dtype = promote(op.kind, *(type.dtype for type in known))
    device = _device(op, known)
    shapes = [type.shape for type in known if type.shape is not None]
    if len(shapes) < len(known):
        return (TensorType(dtype, None, device),)
    first = shapes[0]
    if not first:
        raise ShapeError(op.kind, "0-d operands", *shapes, hint="use stack or reshape")
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(first))
    result: list[int | None] = list(first)
    for shape in shapes[1:]:
        if len(shape) != len(first):
            raise ShapeError(op.kind, "ranks differ", *shapes)
        for number, dim in enumerate(shape):
            here = result[number]
            if number == axis:
                result[number] = None if here is None or dim is None else here + dim
            elif here is None:
                result[number] = dim
            elif dim is not None and dim != here:
                raise ShapeError(op.kind, f"differ off axis {axis}", *shapes)
    return (TensorType(dtype, tuple(result), device),)


def split(op: Op, types: Types, attributes: Attributes) -> Results:
    """Cut the dim at `axis`; the attributes alone decide into how many parts."""
    sections = attributes["indices_or_sections"]
    count = len(sections) + 1 if isinstance(sections, tuple | list) else index(sections)
    (self,) = types
    if self is None:
        return UNKNOWN * count
    if self.shape is None:
        return (self,) * count
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(self.shape))
    dim = self.shape[axis]
    sizes: list[int | None] = [None] * count
    if dim is not None:
        if not isinstance(sections, tuple | list) and dim % count:
            raise ShapeError(op.kind, f"{count} parts do not divide axis {axis}", self.shape)
        sizes = [max(stop - start, 0) for start, stop in part_bounds(sections, dim)]
    return tuple(
        self.with_shape((*self.shape[:axis], size, *self.shape[axis + 1 :])) for size in sizes
    )


def slice(op: Op, types: Types, attributes: Attributes) -> Results:
    """Count what each slice keeps."""
    (self,) = types
    if self is None or self.shape is None:
        return (self,)
    return (self.with_shape(sliced(op.kind, self.shape, attributes)),)


def unslice(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape, whose slice must be the operand's."""
    shape = normal_shape(attributes["shape"])
    (self,) = types
    kept = sliced(op.kind, shape, attributes)
    if self is None:
        return UNKNOWN
    if self.shape is not None and (
        len(self.shape) != len(kept)
        or any(a != b for a, b in zip(self.shape, kept, strict=True) if a is not None)
    ):
        raise ShapeError(op.kind, "does not fill the slice", self.shape, kept)
    return (self.with_shape(shape),)


def take(op: Op, types: Types, attributes: Attributes) -> Results:
    """Put the dims of the indices in the place of `axis`."""
    self, indices = types
    _check_indices(op, indices)
    if self is None or self.shape is None or indices is None or indices.shape is None:
        return UNKNOWN if self is None else (self.with_shape(None),)
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(self.shape))
    shape = self.shape[:axis] + indices.shape + self.shape[axis + 1 :]
    return (self.with_shape(shape),)


def take_add(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape; taking from it must give the operand's."""
    shape = normal_shape(attributes["shape"])
    self, indices = types
    _check_indices(op, indices)
    if self is None:
        return UNKNOWN
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(shape))
    if indices is not None and indices.shape is not None and self.shape is not None:
        taken = shape[:axis] + indices.shape + shape[axis + 1 :]
        if len(taken) != len(self.shape) or any(
            a != b for a, b in zip(taken, self.shape, strict=True) if None not in (a, b)
        ):
            raise ShapeError(op.kind, "does not fit what is taken", self.shape, taken)
    return (self.with_shape(shape),)


def slice_set(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; the value must broadcast to the slice."""
    self, value = types
    if self is None or value is None:
        return UNKNOWN
    if self.shape is not None:
        _check_stretch(op.kind, value.shape, sliced(op.kind, self.shape, attributes))
    return (_written(op, self, value),)


def index_set(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; the value must broadcast to what would be taken."""
    self, indices, value = types
    _check_indices(op, indices)
    if self is None or value is None:
        return UNKNOWN
    if self.shape is not None:
        (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(self.shape))
        if indices is not None and indices.shape is not None:
            taken = self.shape[:axis] + indices.shape + self.shape[axis + 1 :]
            _check_stretch(op.kind, value.shape, taken)
    return (_written(op, self, value),)


def matmul(op: Op, types: Types, attributes: Attributes) -> Results:
    """Contract the last axis of self with the last but one of other."""
    left, right = types
    if left is None or right is None:
        return UNKNOWN
    assert op.ufunc is not None
    dtype = ufunc_dtype(op.ufunc, op.kind, (left.dtype, right.dtype))
    device = _device(op, [left, right])
    if left.shape is None or right.shape is None:
        return (TensorType(dtype, None, device),)
    if not left.shape or not right.shape:
        raise ShapeError(op.kind, "0-d operand", left.shape, right.shape, hint="use *")
    rows, columns = left.shape[-2:-1], right.shape[-1:] if len(right.shape) > 1 else ()
    inner = right.shape[-2 if len(right.shape) > 1 else -1]
    if None not in (left.shape[-1], inner) and left.shape[-1] != inner:
        raise ShapeError(op.kind, "inner dims differ", left.shape, right.shape)
    try:
        batch = broadcast_shapes(op.kind, left.shape[:-2], right.shape[:-2])
    except ShapeError:
        problem = "leading dims do not broadcast"
        raise ShapeError(op.kind, problem, left.shape, right.shape) from None
    assert batch is not None
    return (TensorType(dtype, batch + rows + columns, device),)


def constant(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the type of the value, in the attribute's dtype if there is one."""
    value, dtype = attributes["value"], attributes["dtype"]
    if not isinstance(value, np.ndarray):
        value = np.asarray(value)
    known = canonical_dtype(value.dtype if dtype is None else dtype, op.kind)
    shape = value.shape if attributes["shape"] is None else tuple(attributes["shape"])
    if attributes["shape"] is not None and value.shape != ():
        raise ShapeError(op.kind, "shape fills with a number, not an array", value.shape, shape)
    return (TensorType(known, shape),)


def constant_like(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give a 0-d type of the operand's dtype."""
    return UNKNOWN if types[0] is None else (types[0].with_shape(()),)


@lru_cache(maxsize=4096)
def ufunc_dtype(ufunc: np.ufunc, kind: str, dtypes: tuple[DType, ...]) -> DType:
    """Return the dtype of the result of `ufunc`, as NumPy resolves it.

    Raises: DTypeError if it has no loop for `dtypes`.
    """
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
    except TypeError:
        names = ", ".join(map(str, dtypes))
        raise DTypeError(f"{kind}: not defined for: {names}", op=kind) from None
    return canonical_dtype(resolved[ufunc.nin], kind)


def real_function_dtype(kind: str, dtype: DType) -> DType:
    """Return the dtype of a function of real numbers, as NumPy has it for one.

    Raises: DTypeError for complex numbers.
    """
    return ufunc_dtype(np.cbrt, kind, (dtype,))


def part_bounds(sections: Any, dim: int) -> list[tuple[int, int]]:
    """Return start and stop of the parts of an axis of `dim` elements, as np.split cuts it.

    A part whose start is not before its stop is empty.
    """
    if not isinstance(sections, tuple | list):
        width = dim // index(sections)
        return [(number * width, (number + 1) * width) for number in range(index(sections))]
    cuts = [0, *map(index, sections), dim]
    return [builtins.slice(*pair).indices(dim)[:2] for pair in pairwise(cuts)]


def normal_axes(kind: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return `axis` (None, an int or several) as distinct numbers below `ndim`.

    Raises: ShapeError if one is out of range or there twice.
    """
    if axis is None:
        return tuple(range(ndim))
    asked = axis if isinstance(axis, tuple | list) else (axis,)
    numbers = tuple(index(number) for number in asked)
    if any(not -ndim <= number < ndim for number in numbers):
        raise ShapeError(f"{kind}: axis out of range for {ndim} dims: {axis}", op=kind)
    normal = tuple(number % ndim for number in numbers)
    if len(set(normal)) < len(normal):
        raise ShapeError(f"{kind}: axis twice: {axis}", op=kind)
    return normal


def normal_shape(shape: Any) -> tuple[int, ...]:
    """Return `shape` (an int or several) as a tuple of dims."""
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(index(dim) for dim in dims)


def sliced(
    kind: str, shape: tuple[int | None, ...], attributes: Attributes
) -> tuple[int | None, ...]:
    """Return the shape that the slices in `attributes` leave of `shape`."""
    parts = [tuple(attributes[name]) for name in ("start", "stop", "step")]
    if any(len(part) != len(shape) for part in parts):
        raise ShapeError(kind, f"{len(parts[0])} slices for", shape)
    result: list[int | None] = []
    for dim, start, stop, step in zip(shape, *parts, strict=True):
        if dim is None:
            result.append(None)
        else:
            kept = builtins.slice(start, stop, step).indices(dim)
            result.append(len(range(*kept)))
    return tuple(result)


def _real(dtype: DType) -> DType:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


@lru_cache(maxsize=256)
def _reduced_dtype(op: Op, dtype: DType) -> DType:
    """Return the dtype that NumPy reduces `dtype` to, by reducing one element."""
    assert op.numpy is not None
    try:
        reduced: DType = getattr(np, op.numpy)(np.ones(1, dtype)).dtype
    except TypeError:
        raise DTypeError(f"{op.kind}: not defined for: {dtype}", op=op.kind) from None
    return reduced


def _check_stretch(kind: str, small: Shape, large: Shape) -> None:
    """Raise ShapeError unless `small` can broadcast to `large`."""
    if small is None or large is None:
        return
    fits = len(small) <= len(large) and all(
        a in (1, b) or a is None or b is None
        for a, b in zip(reversed(small), reversed(large), strict=False)
    )
    if not fits:
        raise ShapeError(kind, "do not broadcast", small, large)


def _written(op: Op, self: TensorType, value: TensorType) -> TensorType:
    """Return the type of `self` when a `value` was written into it: it may widen the dtype."""
    _device(op, [self, value])
    return self.with_dtype(promote(op.kind, self.dtype, value.dtype))


def _check_indices(op: Op, indices: TensorType | None) -> None:
    if indices is not None and indices.dtype.kind not in "iu":
        hint = "indices are integers; for a mask use where"
        raise DTypeError(f"{op.kind}: indices are {indices.dtype}", op=op.kind, hint=hint)


def _device(op: Op, types: Sequence[TensorType]) -> str:
    device = types[0].device
    for type in types:
        if type.device != device:
            hint = "move one of them"
            problem = f"{op.kind}: on two devices: {device}, {type.device}"
            raise DeviceError(problem, op=op.kind, hint=hint)
    return device
