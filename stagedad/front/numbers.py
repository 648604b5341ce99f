"""Functions of single numbers that take more than one operation, or care for bits."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, TraceError
from stagedad.front.constants import number_dtype
from stagedad.front.elementwise import apply, array_operand, astype, operand, record_by
from stagedad.front.location import place
from stagedad.front.reducing import refuse
from stagedad.front.tracing import Traced, owner
from stagedad.ops.type_rules import ufunc_dtype

_LOGICAL = {
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "not_equal",
    "invert": "logical_not",
}


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the dtype of an operand, of a Python number the one it has on its own."""
    return getattr(value, "dtype", None) or number_dtype(value)


def bitwise(kind: str, *operands: Any) -> Traced:
    """Record an operation on bits; of booleans, a logical one.

    Raises: TraceError for floats, as NumPy raises TypeError.
    """
    known = [operand(each, kind) for each in operands]
    kinds = {dtype_of(each).kind for each in known}
    if not kinds <= set("biu"):
        names = ", ".join(str(dtype_of(each)) for each in known)
        raise TraceError(f"{kind}: not defined for: {names} ({place()})", op=kind)
    if kinds == {"b"} and kind in _LOGICAL:
        return apply(_LOGICAL[kind], *known)
    return apply(kind, *known)


def ldexp(x1: Any, x2: Any) -> Traced:
    """Record `np.ldexp`, whose exponents stay integers."""
    power = operand(x2, "ldexp")
    if dtype_of(power).kind not in "biu":
        raise DTypeError(f"ldexp: exponents are {dtype_of(power)} ({place()})", op="ldexp")
    if not isinstance(power, Traced):
        power = np.asarray(power)
    if not isinstance(x1, Traced):
        x1 = np.asarray(operand(x1, "ldexp"))
    trace = owner([x1, power])
    return trace.emit("ldexp", [trace.value(x1), trace.value(power)])


def frexp(x: Traced) -> tuple[Traced, Traced]:
    """Record `np.frexp`."""
    value = _floating(np.frexp, x)
    exponent = apply("frexp_exponent", value)
    return ldexp(value, apply("neg", exponent)), exponent


def modf(x: Traced) -> tuple[Traced, Traced]:
    """Record `np.modf`; the fractional part of an infinity is 0."""
    value = _floating(np.modf, x)
    zero = apply("copysign", 0.0, value)
    # The local import is of what is built on this module's own ground.
    from stagedad.front.joining import where

    part = where(apply("isinf", value), zero, apply("fmod", value, 1.0))
    return part, apply("trunc", value)


def divmod_(x1: Any, x2: Any) -> tuple[Traced, Traced]:
    """Record `np.divmod`."""
    return apply("floor_divide", x1, x2), apply("remainder", x1, x2)


def round_(a: Any, decimals: Any = 0, out: Any = None) -> Traced:
    """Record `np.round`, which scales, rounds half to even, and scales back."""
    refuse("round", out=out)
    places = index(decimals)
    value = operand(a, "round")
    if value.dtype.kind == "b":
        raise TraceError(f"round: not of booleans on traced values: {place()}", op="round")
    if value.dtype.kind in "iu":
        if places >= 0:
            return apply("copy", value)
        raise TraceError(
            f"round: integers to negative places on traced values: {place()}",
            op="round",
            hint="np.round(x.astype(float), decimals)",
        )
    if places == 0:
        return apply("rint", value)
    scale = 10.0 ** abs(places)
    up, down = ("mul", "div") if places > 0 else ("div", "mul")
    return apply(down, apply("rint", apply(up, value, scale)), scale)


def fix(x: Any, out: Any = None) -> Traced:
    """Record `np.fix`."""
    refuse("fix", out=out)
    return apply("trunc", x)


def sinc(x: Any) -> Traced:
    """Record `np.sinc`."""
    return apply("sinc", x)


def angle(z: Any, deg: Any = False) -> Traced:
    """Record `np.angle`; its gradient at 0 is 0."""
    value = operand(z, "angle")
    if value.dtype.kind == "c":
        found = apply("arctan2", apply("imag", value), apply("real", value))
    else:
        found = apply("arctan2", 0, value)
    return apply("mul", found, 180 / np.pi) if deg else found


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Traced:
    """Record `np.nan_to_num`: no gradient where a number was put in the place."""
    if not copy:
        raise TraceError(
            f"nan_to_num: `copy=False` is not supported on traced values: {place()}",
            op="nan_to_num",
            hint="use the value that the call returns",
        )
    value = operand(x, "nan_to_num")
    if value.dtype.kind == "c":
        parts = [
            nan_to_num(apply(kind, value), True, nan, posinf, neginf)
            for kind in ("real", "imag")
        ]
        imaginary = apply("mul", astype(parts[1], value.dtype), 1j)
        return apply("add", astype(parts[0], value.dtype), imaginary)
    if value.dtype.kind != "f":
        return apply("copy", value)
    from stagedad.front.joining import where

    most = float(np.finfo(value.dtype).max)
    replaced = where(apply("isnan", value), nan, value)
    for infinity, given in ((np.inf, posinf), (-np.inf, neginf)):
        other = np.copysign(most, infinity).item() if given is None else given
        replaced = where(apply("equal", value, infinity), other, replaced)
    return replaced


def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    """Record `np.isclose`."""
    left, right = array_operand(a, "isclose"), array_operand(b, "isclose")
    bound = np.add(atol, np.multiply(rtol, np.abs(right)))
    near = np.logical_and(np.abs(np.subtract(left, right)) <= bound, np.isfinite(right))
    found = np.logical_or(near, np.equal(left, right))
    if equal_nan:
        found = np.logical_or(found, np.logical_and(np.isnan(left), np.isnan(right)))
    return found


def polyval(p: Any, x: Any) -> Any:
    """Record `np.polyval`, by Horner's rule."""
    weights, at = array_operand(p, "polyval"), array_operand(x, "polyval")
    total: Any = np.zeros(at.shape, at.dtype)
    for number in range(weights.shape[0]):
        total = total * at + weights[number]
    return total


def isposinf(x: Any, out: Any = None) -> Traced:
    """Record `np.isposinf`."""
    refuse("isposinf", out=out)
    return _infinite("isposinf", x, "greater")


def isneginf(x: Any, out: Any = None) -> Traced:
    """Record `np.isneginf`."""
    refuse("isneginf", out=out)
    return _infinite("isneginf", x, "less")


def iscomplex(x: Any) -> Traced:
    """Record `np.iscomplex`."""
    return apply("not_equal", apply("imag", x), 0)


def isreal(x: Any) -> Traced:
    """Record `np.isreal`."""
    return apply("equal", apply("imag", x), 0)


def _infinite(op: str, x: Any, side: str) -> Traced:
    value = operand(x, op)
    if value.dtype.kind == "c":
        raise DTypeError(f"{op}: not of complex numbers: {value.dtype} ({place()})", op=op)
    return apply("logical_and", apply("isinf", value), apply(side, value, 0))


def _floating(ufunc: np.ufunc, x: Any) -> Traced:
    """Return an operand in the dtype that `ufunc` computes in."""
    value = operand(x, ufunc.__name__)
    return astype(  # type: ignore[no-any-return]
        value, ufunc_dtype(ufunc, ufunc.__name__, (value.dtype,))
    )


def _fill() -> None:
    def recorder(kind: str) -> Any:
        return lambda *operands: bitwise(kind, *operands)

    for kind in (*_LOGICAL, "left_shift", "right_shift"):
        record_by(getattr(np, kind), recorder(kind))
    record_by(np.ldexp, ldexp)
    record_by(np.frexp, frexp)
    record_by(np.modf, modf)
    record_by(np.divmod, divmod_)


_fill()
