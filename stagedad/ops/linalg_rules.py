"""Type rules of linear algebra: stacks of matrices, whose last two axes count."""

# ruff: noqa: ARG001  (every rule takes op, types and attributes)
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.ops.type_rules import UNKNOWN, Attributes, Results, Types, _device, _real
from stagedad.types import DType, TensorType, broadcast_shapes


def triangle(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the type of matrices."""
    (self,) = types
    if self is not None:
        _matrix(op, self)
    return (self,)


def square_matrix(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape of square matrices."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _square(op, self)
    return (self.with_dtype(_floating(op, self)),)


def determinant(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give one number a matrix."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _square(op, self)
    return (_result(self, _floating(op, self), ()),)


def slogdet(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give a sign, complex for complex matrices, and a real logarithm."""
    (self,) = types
    if self is None:
        return UNKNOWN * 2
    _square(op, self)
    dtype = _floating(op, self)
    return _result(self, dtype, ()), _result(self, _real(dtype), ())


def solve(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give the shape of `other`, its leading axes broadcast with those of `self`."""
    self, other = types
    if self is None or other is None:
        return UNKNOWN
    _square(op, self)
    dtype = _floating(op, self, other)
    device = _device(op, [self, other])
    if self.shape is None or other.shape is None:
        return (TensorType(dtype, None, device),)
    if not other.shape:
        raise ShapeError(op.kind, "0-d operand", self.shape, other.shape)
    # As NumPy 2 has it: exactly one axis means a vector.
    core = other.shape if len(other.shape) == 1 else other.shape[-2:]
    if None not in (self.shape[-1], core[0]) and self.shape[-1] != core[0]:
        raise ShapeError(op.kind, "rows differ", self.shape, other.shape)
    try:
        batch = broadcast_shapes(op.kind, self.shape[:-2], other.shape[: -len(core)])
    except ShapeError:
        problem = "leading dims do not broadcast"
        raise ShapeError(op.kind, problem, self.shape, other.shape) from None
    assert batch is not None
    return (TensorType(dtype, batch + core, device),)


def eigenvalues(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give one number a row: real of Hermitian matrices, complex of others."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _square(op, self)
    dtype = _floating(op, self)
    dtype = _real(dtype) if _is_hermitian(op) else _complex(dtype)
    return (_result(self, dtype, self.shape and self.shape[-1:]),)


def eigenvectors(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give eigenvalues, and as many columns."""
    (self,) = types
    if self is None:
        return UNKNOWN * 2
    _square(op, self)
    dtype = _floating(op, self)
    if not _is_hermitian(op):
        dtype = _complex(dtype)
    values = _real(dtype) if _is_hermitian(op) else dtype
    return _result(self, values, self.shape and self.shape[-1:]), self.with_dtype(dtype)


def svdvals(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give one real number a row or column, whichever are fewer."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _matrix(op, self)
    return (_result(self, _real(_floating(op, self)), _fewer(self)),)


def svd(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give [.., m, k], [.., k] and [.., k, n] of [.., m, n], k being the smaller."""
    (self,) = types
    if self is None:
        return UNKNOWN * 3
    _matrix(op, self)
    dtype = _floating(op, self)
    values = _result(self, _real(dtype), _fewer(self))
    if self.shape is None:
        return self.with_dtype(dtype), values, self.with_dtype(dtype)
    rows, columns = self.shape[-2:]
    few = _fewer(self)
    assert few is not None
    return (
        _result(self, dtype, (rows, *few)),
        values,
        _result(self, dtype, (*few, columns)),
    )


def qr(op: Op, types: Types, attributes: Attributes) -> Results:
    """Give [.., m, k] and [.., k, n] of [.., m, n], k being the smaller."""
    left, _, right = svd(op, types, attributes) if types[0] is not None else UNKNOWN * 3
    return left, right


def pinv(op: Op, types: Types, attributes: Attributes) -> Results:
    """Transpose the matrices."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _matrix(op, self)
    core = None if self.shape is None else self.shape[:-3:-1]
    return (_result(self, _floating(op, self), core),)


def over_gaps(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape of `self`, square matrices with a number in `values` for each row."""
    self, values = types
    if self is None or values is None:
        return UNKNOWN
    _square(op, self)
    return over_columns(op, types, attributes)


def over_columns(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape of `self`, matrices with a number in `values` for each column.

    Raises: DTypeError for integers, of which no decomposition makes any.
    """
    self, values = types
    if self is None or values is None:
        return UNKNOWN
    _matrix(op, self)
    if not (self.is_inexact and values.is_inexact):
        problem = f"{op.kind}: not defined for: {self.dtype}, {values.dtype}"
        raise DTypeError(problem, op=op.kind)
    dtype = _floating(op, self, values)
    if self.shape is not None and values.shape is not None:
        wanted = (*self.shape[:-2], self.shape[-1])
        if len(wanted) != len(values.shape) or any(
            a != b for a, b in zip(wanted, values.shape, strict=True) if None not in (a, b)
        ):
            raise ShapeError(op.kind, "not one value a column", self.shape, values.shape)
    return (self.with_dtype(dtype),)


def gauge_pivot(op: Op, types: Types, attributes: Attributes) -> Results:
    """Keep the shape, in real numbers."""
    (self,) = types
    if self is None:
        return UNKNOWN
    _matrix(op, self)
    return (self.with_dtype(_real(_floating(op, self))),)


def _is_hermitian(op: Op) -> bool:
    return op.kind.endswith("h")


def _matrix(op: Op, type: TensorType) -> None:
    if type.shape is not None and len(type.shape) < 2:
        raise ShapeError(op.kind, "not a matrix", type.shape)


def _square(op: Op, type: TensorType) -> None:
    _matrix(op, type)
    if type.shape is not None:
        rows, columns = type.shape[-2:]
        if None not in (rows, columns) and rows != columns:
            raise ShapeError(op.kind, "not square", type.shape)


def _fewer(type: TensorType) -> tuple[int | None, ...] | None:
    if type.shape is None:
        return None
    rows, columns = type.shape[-2:]
    return (None if rows is None or columns is None else min(rows, columns),)


def _result(self: TensorType, dtype: DType, core: tuple[int | None, ...] | None) -> TensorType:
    """Return the type of a result with `core` in the place of the last two axes."""
    shape = None if self.shape is None or core is None else self.shape[:-2] + core
    return TensorType(dtype, shape, self.device)


def _floating(op: Op, *types: TensorType) -> DType:
    """Return the dtype that numpy.linalg computes in: integers as float64.

    Raises: DTypeError for half precision, of which LAPACK has none.
    """
    known: Sequence[Any] = [
        type.dtype if type.is_inexact else np.dtype(np.float64) for type in types
    ]
    if any(dtype.itemsize == 2 for dtype in known):
        hint = "x.astype(np.float32)"
        raise DTypeError(f"{op.kind}: not defined for: float16", op=op.kind, hint=hint)
    return np.result_type(*known)


def _complex(dtype: DType) -> DType:
    return np.result_type(dtype, np.complex64)
