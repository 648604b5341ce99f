"""Python's operators on traced arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front._traced import quick_two
from stagedad.front.elementwise import apply, astype, is_weak, positive, power
from stagedad.front.location import place
from stagedad.front.numbers import bitwise
from stagedad.front.products import matmul
from stagedad.front.tracing import Traced

# With anything else an operator leaves the other operand to answer.
_OPERANDS: Final = (Traced, np.ndarray, np.generic, int, float, complex, list, tuple)


def _binary(kind: str) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        recorded = quick_two(kind, self, other)
        if recorded is not None:
            return recorded
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return apply(kind, self, other, operator=True)

    return operator


def _reflected(kind: str) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        recorded = quick_two(kind, other, self)
        if recorded is not None:
            return recorded
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return apply(kind, other, self, operator=True)

    return operator


def _in_place(kind: str) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        result = (
            power(self, other) if kind == "pow" else apply(kind, self, other, operator=True)
        )
        return _assigned(self, result, kind)

    return operator


def _bits(kind: str, *, reflected: bool = False) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        result = bitwise(kind, *pair)
        result._weak = all(map(is_weak, pair)) and result.dtype.kind != "b"
        return result

    return operator


def _bits_in_place(kind: str) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return _assigned(self, bitwise(kind, self, other), kind)

    return operator


class Operators(Traced):
    """The operators of `Tracer`."""

    __slots__ = ()
    # Elements compare, so that values are no keys, as with arrays.
    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__, __iadd__ = _binary("add"), _reflected("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = _binary("sub"), _reflected("sub"), _in_place("sub")
    __mul__, __rmul__, __imul__ = _binary("mul"), _reflected("mul"), _in_place("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __itruediv__ = _in_place("div")
    __ipow__ = _in_place("pow")
    __rpow__ = _reflected("pow")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")

    def __eq__(self, other: object) -> Any:
        return apply("equal", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return (
            apply("not_equal", self, other) if isinstance(other, _OPERANDS) else NotImplemented
        )

    def __pow__(self, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return power(self, other, operator=True)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __imatmul__(self, other: Any) -> Any:
        return _assigned(self, matmul(self, other), "matmul")

    def __neg__(self) -> Any:
        return apply("neg", self, operator=True)

    def __pos__(self) -> Any:
        return positive(self, operator=True)

    def __abs__(self) -> Any:
        return apply("abs", self, operator=True)

    def __invert__(self) -> Any:
        return bitwise("invert", self)

    def __divmod__(self, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return other // self, other % self

    __and__ = __rand__ = _bits("bitwise_and")
    __or__ = __ror__ = _bits("bitwise_or")
    __xor__ = __rxor__ = _bits("bitwise_xor")
    __iand__, __ior__ = _bits_in_place("bitwise_and"), _bits_in_place("bitwise_or")
    __ixor__ = _bits_in_place("bitwise_xor")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __ifloordiv__, __imod__ = _in_place("floor_divide"), _in_place("remainder")
    __lshift__, __rlshift__ = _bits("left_shift"), _bits("left_shift", reflected=True)
    __rshift__, __rrshift__ = _bits("right_shift"), _bits("right_shift", reflected=True)
    __ilshift__, __irshift__ = _bits_in_place("left_shift"), _bits_in_place("right_shift")


def _assigned(target: Traced, result: Traced, kind: str) -> Traced:
    """Give `target` the value of `result`, as `target op= ...` does to an array.

    A scalar is no array: the name is bound to the result, as in NumPy.
    """
    if not target.shape:
        return result
    if result.shape != target.shape:
        raise ShapeError(f"{kind} in place", "does not broadcast", target.shape, result.shape)
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"{kind} in place: cannot cast {result.dtype} to {target.dtype}",
            hint="x = x.astype(...) first",
        )
    if target._shared or result._trace is not target._trace:
        raise TraceError(
            f"{kind} in place: an array that shares memory with others, or belongs to an outer "
            f"function, cannot change yet: {target.type} ({place()})",
            hint="write x = x + ... for x += ...",
        )
    target._value = astype(result, target.dtype)._value
    return target
