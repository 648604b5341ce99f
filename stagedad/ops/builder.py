"""Emission of ops as formulas mean it: structural zeros, numbers, nothing superfluous.

A formula is expanded by an emitter, which makes nodes of a graph, a template or
a tape, or just computes:

    emitter.emit(kind, operands, attributes) -> operand, or a tuple of them

An operand is any object with `.type`, a TensorType or None.  The builder stands
before it: a zero cotangent emits nothing, a number becomes a constant, and what
would change nothing (conj of a real value, sum_to of the shape it has) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NoReturn, Protocol

import numpy as np

from stagedad.errors import DeclarationError, NotDifferentiable
from stagedad.ops.table import OPS
from stagedad.types import DType, Shape, TensorType, canonical_dtype


class Emitter(Protocol):
    """What turns the ops of a formula into something."""

    def emit(self, kind: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        """Make one op; return its result, or a tuple where it has several."""


class _Zero(Enum):
    ZERO = "zero"

    def __repr__(self) -> str:
        return "ZERO"

    __str__ = __repr__


ZERO: Final = _Zero.ZERO
"""A cotangent or tangent that is structurally zero: no array, no shape."""

NUMBER = (int, float, complex)
LIKE = {
    "broadcast_to": "broadcast_like",
    "reshape": "reshape_like",
    "sum_to": "sum_to_like",
}


class ShapeOf:
    """The shape of an operand, where it is not wholly known."""

    __slots__ = ("operand",)

    def __init__(self, operand: Any) -> None:
        self.operand = operand


class Builder:
    """Calls of ops by formulas and macros, on their way to an emitter."""

    __slots__ = ("emitter", "wanted")

    zero = ZERO

    def __init__(self, emitter: Emitter, wanted: Sequence[bool] | None = None) -> None:
        self.emitter, self.wanted = emitter, wanted

    def call(
        self, kind: str, operands: tuple[Any, ...], attributes: Mapping[str, Any] | None = None
    ) -> Any:
        """Return op `kind` of operands, which may be zeros or numbers too."""
        given = dict(attributes) if attributes else {}
        if kind in _SPECIAL:
            return getattr(self, kind)(*operands, *given.values())
        if any(operand is ZERO for operand in operands):
            return self._with_zeros(kind, operands, given)
        return self.emit(kind, operands, given)

    def emit(self, kind: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        """Emit op `kind`, with numbers among the operands made constants."""
        for value in attributes.values():
            if isinstance(value, ShapeOf):
                _unknown_shape(kind)
        if any(isinstance(operand, NUMBER) for operand in operands):
            like = self._reference(kind, operands)
            operands = tuple(
                self.number(operand, like) if isinstance(operand, NUMBER) else operand
                for operand in operands
            )
        return self.emitter.emit(kind, operands, attributes)

    def number(self, value: complex, like: Any) -> Any:
        """Return `value` as a constant that does not change the dtype of `like`."""
        if like.type is None:
            return self.emitter.emit("constant_like", (like,), {"value": value})
        dtype = canonical_dtype(np.result_type(like.type.dtype, value))
        return self.emitter.emit("constant", (), {"value": value, "dtype": dtype})

    def zeros(self, shape: Any, like: Any) -> Any:
        """Return zeros of `shape` in the dtype of `like`, for where a zero must be an array."""
        if isinstance(shape, ShapeOf):
            return self.emitter.emit("zeros_like", (shape.operand,), {})
        if like.type is None:
            return self.broadcast_to(self.number(0, like), shape)
        dtype = like.type.dtype
        zero = dtype.type(0).item()
        given = {"value": zero, "dtype": dtype, "shape": shape, "is_zero": 1}
        return self.emitter.emit("constant", (), given)

    def sum_to(self, value: Any, shape: Any) -> Any:
        """Return `value` summed to `shape`, if it has another."""
        return self._shaped("sum_to", value, shape)

    def broadcast_to(self, value: Any, shape: Any) -> Any:
        """Return `value` broadcast to `shape`, if it has another."""
        return self._shaped("broadcast_to", value, shape)

    def reshape(self, value: Any, shape: Any) -> Any:
        """Return `value` reshaped to `shape`, if it has another."""
        return self._shaped("reshape", value, shape)

    def conj(self, value: Any) -> Any:
        """Return the conjugate; a value that is not known to be complex is its own."""
        if isinstance(value, NUMBER):
            return value.conjugate()
        if value is ZERO or value.type is None or value.type.dtype.kind != "c":
            return value
        return self.emitter.emit("conj", (value,), {})

    def astype(self, value: Any, dtype: DType | None) -> Any:
        """Return `value` in `dtype`, by its real part if need be; None: as it is.

        A dtype that carries no cotangents gives zero.
        """
        if dtype is None or value is ZERO:
            return value
        if isinstance(value, NUMBER):
            if value == 0:
                return ZERO
            raise DeclarationError(f"astype: of a number only: {value}", op="astype")
        if dtype.kind not in "fc":
            return ZERO
        if value.type is not None and value.type.dtype.kind == "c" and dtype.kind != "c":
            value = self.emitter.emit("real", (value,), {})
        if value.type is not None and value.type.dtype == dtype:
            return value
        return self.emitter.emit("astype", (value,), {"dtype": dtype})

    def mask(self, condition: Any, like: Any) -> Any:
        """Return 1 where `condition` holds and 0 elsewhere, in the dtype of `like`."""
        if like.type is not None:
            return self.emitter.emit("astype", (condition,), {"dtype": like.type.dtype})
        one, zero = self.number(1, like), self.number(0, like)
        return self.emitter.emit("where", (condition, one, zero), {})

    def product(self, value: Any, factor: Any, *, masked: bool = False) -> Any:
        """Return value * factor, where a factor that is a number may need no product."""
        if value is ZERO or factor is ZERO:
            return ZERO
        if isinstance(factor, NUMBER):
            if factor == 1:
                return value
            if factor == -1:
                return self.emitter.emit("neg", (value,), {})
            if factor == 0:
                return ZERO
            return self.emitter.emit("mul", (value, self.number(factor, value)), {})
        return self.emitter.emit("mul0" if masked else "mul", (value, factor), {})

    def shape(self, operand: Any) -> Any:
        """Return the shape as a tuple, or a `ShapeOf` where it is not wholly known."""
        if isinstance(operand, NUMBER):
            return ()
        type = operand.type
        return type.shape if type is not None and type.is_static else ShapeOf(operand)

    def dims(self, shape: Any) -> Shape:
        """Return what is known of a shape: None, or dims that may be None."""
        if isinstance(shape, ShapeOf):
            type: TensorType | None = shape.operand.type
            return None if type is None else type.shape
        known: Shape = shape
        return known

    def ndim(self, shape: Any, kind: str) -> int:
        """Return the number of dims.

        Raises: NotDifferentiable naming `kind` if it is not known.
        """
        dims = self.dims(shape)
        return _unknown_shape(kind) if dims is None else len(dims)

    def static(self, shape: Any, kind: str) -> tuple[int, ...]:
        """Return a shape that is wholly known.

        Raises: NotDifferentiable naming `kind` if it is not.
        """
        if isinstance(shape, ShapeOf):
            _unknown_shape(kind)
        known: tuple[int, ...] = shape
        return known

    def _shaped(self, kind: str, value: Any, shape: Any) -> Any:
        if value is ZERO:
            return ZERO
        if isinstance(shape, ShapeOf):
            if value is shape.operand:
                return value
            return self.emitter.emit(LIKE[kind], (value, shape.operand), {})
        if value.type is not None and value.type.shape == shape:
            return value
        return self.emitter.emit(kind, (value,), {"shape": shape})

    def _with_zeros(
        self, kind: str, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> Any:
        """Return an op some of whose operands are structural zeros."""
        op = OPS[kind]
        if kind in ("add", "sub"):
            left, right = operands
            scale = attributes.get("alpha", 1)
            factor = scale if kind == "add" else -scale
            return left if right is ZERO else self.product(right, factor)
        if kind == "where":
            condition, *branches = operands
            if all(branch is ZERO or branch == 0 for branch in branches):
                return ZERO
            filled = (0 if branch is ZERO else branch for branch in branches)
            return self.emit(kind, (condition, *filled), attributes)
        if "multilinear" in op.traits or (kind == "div" and operands[0] is ZERO):
            return ZERO
        if "linear" in op.traits and operands[0] is ZERO:
            active = zip(op.arguments, operands, strict=False)
            if all(
                operand is ZERO or (argument.rule != "formula" and not argument.is_list)
                for argument, operand in active
            ):
                return ZERO
        raise DeclarationError(f"{kind}: of a structural zero", op=kind)

    def _reference(self, kind: str, operands: tuple[Any, ...]) -> Any:
        """Return the operand whose dtype the numbers beside it take."""
        others = operands[1:] if kind == "where" else operands
        found = [operand for operand in others if not isinstance(operand, NUMBER)]
        if not found:
            raise DeclarationError(f"{kind}: of numbers only", op=kind)
        for operand in found:
            if operand.type is not None and operand.type.is_inexact:
                return operand
        return found[-1]


def _unknown_shape(kind: str) -> NoReturn:
    problem = f"{kind}: the derivative needs the shape of its operands"
    raise NotDifferentiable(problem, op=kind, hint="give the inputs of the graph types")


# Ops that may be left out: the builder's methods of the same names.
_SPECIAL = frozenset({"sum_to", "broadcast_to", "reshape", "conj", "astype"})
