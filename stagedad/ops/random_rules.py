"""Type rules of random draws."""

# ruff: noqa: ARG001  (every rule takes op, types and attributes)
from __future__ import annotations

from operator import index

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.ops.type_rules import Attributes, Results, Types, normal_shape
from stagedad.types import DType, TensorType, canonical_dtype

KEY = TensorType("uint64", (2,))


def random_key(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give a key: two words."""
    return (KEY,)


def draws(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape and the dtype that are asked for."""
    _check_key(op, types)
    dtype = _asked(op, attributes, "float64")
    if dtype.char not in "fd":
        raise DTypeError(f"{op.kind}: draws float32 and float64: {dtype}", op=op.kind)
    return (TensorType(dtype, normal_shape(attributes["shape"])),)


def draws_integers(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape and the dtype that are asked for, if it has room for the bounds."""
    _check_key(op, types)
    dtype = _asked(op, attributes, "int64")
    if dtype.kind not in "iu":
        raise DTypeError(f"{op.kind}: draws integers: {dtype}", op=op.kind)
    low, high = index(attributes["low"]), index(attributes["high"])
    info = np.iinfo(dtype)
    if not info.min <= low < high <= int(info.max) + 1:
        raise ValueError(f"{op.kind}: not bounds of {dtype}: low={low}, high={high}")
    return (TensorType(dtype, normal_shape(attributes["shape"])),)


def random_permutation(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give a vector of positions."""
    _check_key(op, types)
    return (TensorType("int64", (index(attributes["count"]),)),)


def _asked(op: Op, attributes: Attributes, default: str) -> DType:
    dtype = attributes["dtype"]
    return canonical_dtype(default if dtype is None else dtype, op.kind)


def _check_key(op: Op, types: Types) -> None:
    (key,) = types
    if key is None:
        return
    if key.dtype != KEY.dtype:
        raise DTypeError(f"{op.kind}: a key is of uint64: {key}", op=op.kind)
    if key.shape is not None and (len(key.shape) != 1 or key.shape[0] not in (2, None)):
        raise ShapeError(op.kind, "a key has two words", key.shape)
