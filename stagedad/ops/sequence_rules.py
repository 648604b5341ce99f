"""Type rules of ops along an axis: scans, sorts, searches, convolutions."""

# ruff: noqa: ARG001  (every rule takes op, types and attributes)
from __future__ import annotations

from functools import lru_cache
from operator import index

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.ops.type_rules import (
    UNKNOWN,
    Attributes,
    Results,
    Types,
    normal_axes,
    normal_shape,
)
from stagedad.types import DType, TensorType, broadcast_shapes, canonical_dtype, promote

POSITION = np.dtype("i8")


def scan(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape; the dtype is that of NumPy's running sum or product."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _check_axis(op, self, attributes)
    return (self.with_dtype(_scan_dtype(op, self.dtype)),)


def recurrence(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape, which both have; promote the dtypes."""
    left, right = types
    if left is None or right is None:
        return UNKNOWN
    for type in (left, right):
        _check_axis(op, type, attributes)
    dtype = promote(op.kind, left.dtype, right.dtype)
    if dtype.kind not in "fc":
        raise DTypeError(f"{op.kind}: not defined for: {left.dtype}, {right.dtype}", op=op.kind)
    if left.shape is not None and right.shape is not None:
        shape = broadcast_shapes(op.kind, left.shape, right.shape)
        if left.is_static and right.is_static and left.shape != right.shape:
            raise ShapeError(op.kind, "shapes differ", left.shape, right.shape)
        return (TensorType(dtype, shape, left.device),)
    return (TensorType(dtype, None, left.device),)


def convolve(op: Op, types: Types, attributes: Attributes) -> Results:
    """Add the lengths of two vectors, less 1; or subtract them, where one is to lie within."""
    left, right = types
    if left is None or right is None:
        return UNKNOWN
    dtype = promote(op.kind, left.dtype, right.dtype)
    dims = []
    for type in (left, right):
        if type.shape is None:
            return (TensorType(dtype, (None,), left.device),)
        if len(type.shape) != 1:
            raise ShapeError(op.kind, "not a vector", type.shape)
        if type.shape[0] == 0:
            raise ShapeError(op.kind, "an empty operand", left.shape, right.shape)
        dims.append(type.shape[0])
    one, other = dims
    if one is None or other is None:
        return (TensorType(dtype, (None,), left.device),)
    if op.kind == "convolve_valid":
        if one < other:
            raise ShapeError(op.kind, "the second is longer", left.shape, right.shape)
        return (TensorType(dtype, (one - other + 1,), left.device),)
    length = one + other - 1
    return (TensorType(dtype, (length,), left.device),)


def convolve_valid(op: Op, types: Types, attributes: Attributes) -> Results:
    """As `convolve`, of vectors of which the second is no longer than the first."""
    return convolve(op, types, attributes)


def sorted(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the type."""
    (self,) = types
    if self is not None:
        _check_axis(op, self, attributes)
    return (self,)


def positions(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape, of positions along an axis."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _check_axis(op, self, attributes)
    # As NumPy, which takes any `kth` of an array without elements.
    if "kth" in attributes and self.shape is not None and 0 not in self.shape:
        size = self.shape[attributes["axis"]]
        for kth in normal_shape(attributes["kth"]):
            if size is not None and not -size <= kth < size:
                raise ShapeError(op.kind, f"kth={kth} is out of bounds for", (size,))
    return (self.with_dtype(POSITION),)


def extremum_position(op: Op, types: Types, attributes: Attributes) -> Results:
    """Remove the axis, or keep it at 1; None stands for all, as one."""
    (self,) = types
    if self is None:
        return UNKNOWN
    axis, keepdims = attributes["axis"], bool(attributes["keepdims"])
    if self.shape is None:
        whole = axis is None and not keepdims
        return (TensorType(POSITION, () if whole else None, self.device),)
    axes = normal_axes(op.kind, None if axis is None else index(axis), len(self.shape))
    if any(self.shape[axis] == 0 for axis in axes):
        raise ShapeError(op.kind, "no elements to compare", self.shape)
    kept = (
        1 if number in axes else dim
        for number, dim in enumerate(self.shape)
        if keepdims or number not in axes
    )
    return (TensorType(POSITION, tuple(kept), self.device),)


def searchsorted(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give a position for each element of `other`."""
    self, other = types
    if self is not None and self.shape is not None and len(self.shape) != 1:
        raise ShapeError(op.kind, "not a vector", self.shape)
    if self is None or other is None:
        return UNKNOWN
    promote(op.kind, self.dtype, other.dtype)
    return (other.with_dtype(POSITION),)


def take_along_axis(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape of the indices, which off `axis` is the operand's."""
    self, indices = types
    _check_positions(op, indices)
    if self is None:
        return UNKNOWN
    if self.shape is None or indices is None or indices.shape is None:
        return (self.with_shape(None),)
    _check_along(op, self.shape, indices.shape, attributes)
    return (self.with_shape(indices.shape),)


def add_along_axis(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the attribute's shape, which off `axis` is the operand's."""
    shape = normal_shape(attributes["shape"])
    self, indices = types
    _check_positions(op, indices)
    if self is None:
        return UNKNOWN
    for type in (self, indices):
        if type is not None and type.shape is not None:
            _check_along(op, shape, type.shape, attributes)
    is_known = indices is not None and self.is_static and indices.is_static
    if indices is not None and is_known and self.shape != indices.shape:
        raise ShapeError(op.kind, "shapes differ", self.shape, indices.shape)
    return (self.with_shape(shape),)


def _check_axis(op: Op, type: TensorType, attributes: Attributes) -> None:
    if type.shape is not None:
        normal_axes(op.kind, index(attributes["axis"]), len(type.shape))


def _check_along(
    op: Op,
    shape: tuple[int | None, ...],
    other: tuple[int | None, ...],
    attributes: Attributes,
) -> None:
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(shape))
    if len(shape) != len(other) or any(
        a != b and None not in (a, b) and number != axis
        for number, (a, b) in enumerate(zip(shape, other, strict=True))
    ):
        raise ShapeError(op.kind, f"differ off axis {axis}", shape, other)


def _check_positions(op: Op, indices: TensorType | None) -> None:
    if indices is not None and indices.dtype.kind not in "iu":
        raise DTypeError(
            f"{op.kind}: indices are {indices.dtype}", op=op.kind, hint="indices are integers"
        )


@lru_cache(maxsize=256)
def _scan_dtype(op: Op, dtype: DType) -> DType:
    assert op.numpy is not None
    return canonical_dtype(getattr(np, op.numpy)(np.ones(1, dtype)).dtype, op.kind)
