"""Elementwise operations on traced values: operands, promotion, ufuncs.

Promotion is NumPy's (NEP 50): a Python number, traced or literal, is weak and
takes the dtype of the typed operands; among Python numbers alone it stays weak
under operators, and becomes a plain scalar in a ufunc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError
from stagedad.front._traced import quick
from stagedad.front.constants import number_dtype, plain_operand
from stagedad.front.location import place
from stagedad.front.tracing import Trace, Traced, new_tracer, owner
from stagedad.ir import Value
from stagedad.ops import OPS
from stagedad.types import canonical_dtype

DType = np.dtype[Any]

_PYTHON_NUMBERS: Final = frozenset({int, float, complex})
_EXAMPLE: Final[dict[str, Any]] = {"b": True, "i": 0, "u": 0, "f": 0.0, "c": 0j}
_COMPARISONS: Final = frozenset(
    {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
)
_literal_dtypes: dict[tuple[DType, type], DType] = {}
LITERALS_LIMIT: Final = 256


def has_traced(value: Any) -> bool:
    """Whether a traced value is in `value`, or in lists, tuples and dicts of it."""
    if isinstance(value, Traced):
        return True
    if isinstance(value, (list, tuple)):
        return any(has_traced(item) for item in value)
    if isinstance(value, dict):
        return any(has_traced(item) for item in value.values())
    return False


def operand(value: Any, op: str) -> Any:
    """Return `value` as a Traced, a number or a native ndarray.

    A list or tuple becomes an array, a traced one where it contains traced values.

    Raises: DTypeError if it is not numeric.
    """
    if isinstance(value, Traced):
        return value
    if isinstance(value, (list, tuple)) and has_traced(value):
        return _array_of(value)
    return plain_operand(value, op)


def array_operand(value: Any, op: str) -> Any:
    """As `operand`, with a number as a 0-d array."""
    known = operand(value, op)
    return known if isinstance(known, Traced) else np.asarray(known)


def common_dtype(operands: Sequence[Any]) -> DType:
    """Return what NumPy promotes traced values, arrays and numbers to."""
    return canonical_dtype(np.result_type(*[_promotion_operand(each) for each in operands]))


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an operand, traced or not."""
    return value.shape if isinstance(value, Traced) else np.shape(value)


def ndim_of(value: Any) -> int:
    """Return the number of axes of an operand."""
    return len(shape_of(value))


def size_of(value: Any) -> int:
    """Return the number of elements of an operand."""
    return value.size if isinstance(value, Traced) else int(np.size(value))


def is_weak(value: Any) -> bool:
    """Whether `value` is a Python number, traced or not."""
    return value._weak if isinstance(value, Traced) else type(value) in _PYTHON_NUMBERS


def values(trace: Trace, operands: Sequence[Any], *, strict: bool = False) -> list[Value]:
    """Return operands of one operation as values of `trace`, weak ones in the common dtype.

    `strict`: the others too.
    """
    weak = [is_weak(each) for each in operands]
    if not strict and True not in weak:
        return [trace.value(each) for each in operands]
    if len(operands) == 2 and not strict:
        for number, other in ((0, 1), (1, 0)):
            if weak[number] and not weak[other]:
                return _with_number(trace, operands, number)
    dtype = common_dtype(operands)
    found = []
    for each, flag in zip(operands, weak, strict=True):
        if flag or strict:
            found.append(in_dtype(trace, each, dtype))
        else:
            found.append(trace.value(each))
    return found


def _with_number(trace: Trace, operands: Sequence[Any], number: int) -> list[Value]:
    """Return two operands, of which the one at `number` is weak."""
    other = operands[1 - number]
    given = operands[number]
    weak_type = type(_EXAMPLE[given.dtype.kind]) if isinstance(given, Traced) else type(given)
    key = (other.dtype if hasattr(other, "dtype") else number_dtype(other), weak_type)
    dtype = _literal_dtypes.get(key)
    if dtype is None:
        if len(_literal_dtypes) >= LITERALS_LIMIT:
            _literal_dtypes.clear()
        dtype = _literal_dtypes[key] = common_dtype(operands)
    pair = [trace.value(other), in_dtype(trace, operands[number], dtype)]
    return pair if number == 1 else pair[::-1]


def in_dtype(trace: Trace, value: Any, dtype: DType) -> Value:
    """Return an operand as a value of `trace` in `dtype`."""
    if isinstance(value, Traced):
        own = trace.value(value)
        if value.dtype == dtype:
            return own
        return trace.emit("astype", (own,), {"dtype": dtype})._value
    if isinstance(value, np.ndarray):
        return trace.value(value if value.dtype == dtype else value.astype(dtype))
    return trace.value(value, dtype)


def apply(kind: str, *operands: Any, operator: bool = False) -> Traced:
    """Record an elementwise operation, of which one operand is traced.

    `operator`: Python's own, under which Python numbers stay weak.
    """
    recorded = quick(kind, operands)
    if recorded is not None:
        return recorded
    known = [operand(each, kind) for each in operands]
    if kind in _COMPARISONS:
        kind, known = _in_range(kind, known)
    trace = owner(known)
    result = trace.emit(kind, values(trace, known))
    if operator:
        result._weak = all(is_weak(each) for each in known) and result.dtype.kind != "b"
    return result


def _in_range(kind: str, known: list[Any]) -> tuple[str, list[Any]]:
    """Return a comparison whose Python integer fits the dtype that it meets.

    NumPy compares integers by their values: `u8 < 300` is true everywhere, as is
    `u8 <= 255`.
    """
    for number, other in ((1, 0), (0, 1)):
        literal, array = known[number], known[other]
        if type(literal) is not int or not isinstance(array, Traced):
            continue
        if array.dtype.kind not in "iu":
            break
        limits = np.iinfo(array.dtype)
        if limits.min <= literal <= limits.max:
            break
        is_above = literal > limits.max
        if kind in ("equal", "not_equal"):
            is_true = kind == "not_equal"
        else:
            is_true = (kind in ("less", "less_equal")) is (is_above is (number == 1))
        edge = limits.max if is_above else limits.min
        inside, outside = ("less_equal", "greater") if is_above else ("greater_equal", "less")
        return (inside if is_true else outside), [array, int(edge)]
    return kind, known


def astype(value: Any, dtype: Any) -> Any:
    """Return a traced value, array or number in another dtype."""
    target = canonical_dtype(dtype, "astype")
    if not isinstance(value, Traced):
        return np.asarray(value, target)
    if value.dtype == target:
        return new_tracer(value._trace, value._value)
    return value._trace.emit("astype", (value._value,), {"dtype": target})


def power(base: Any, exponent: Any, *, operator: bool = False) -> Traced:
    """Record `base ** exponent`, as NumPy does with squares and roots for 2 and 0.5."""
    if type(exponent) in (int, float) and isinstance(base, Traced) and base.dtype.kind in "fc":
        if exponent == 2:
            return apply("square", base, operator=operator)
        if exponent == 0.5:
            return apply("sqrt", base, operator=operator)
        if exponent == 1:
            return apply("copy", base, operator=operator)
    # The operator squares an array of booleans, which gives int8, where np.power gives int64.
    is_mask = operator and isinstance(base, Traced) and base.dtype.kind == "b" and base.shape
    if is_mask and type(exponent) is int and exponent == 2:
        return apply("square", base)
    return apply("pow", base, exponent, operator=operator)


def positive(value: Any, *, operator: bool = False) -> Traced:
    """Record `+value`.  Raises: DTypeError for booleans, as NumPy does."""
    known = operand(value, "positive")
    if known.dtype.kind == "b":
        raise DTypeError(f"positive: not defined for: bool ({place()})", op="positive")
    return apply("copy", known, operator=operator)


UFUNCS: Final[dict[Any, Callable[..., Any]]] = {}
"""NumPy's ufuncs -> functions that record them."""

_KINDS: Final[dict[Any, str]] = {}  # those that are recorded as one op, with its kind


def quick_ufunc(ufunc: Any, operands: tuple[Any, ...]) -> Traced | None:
    """Record a ufunc on plain operands; None for what takes a closer look."""
    kind = _KINDS.get(ufunc)
    return None if kind is None else quick(kind, operands)


def record_by(ufunc: Any, function: Callable[..., Any]) -> None:
    """Make `function` what records a ufunc, where it is more than one op on the operands."""
    UFUNCS[ufunc] = function
    _KINDS.pop(ufunc, None)


def _fill_ufuncs() -> None:
    def recorder(kind: str) -> Callable[..., Traced]:
        return lambda *operands: apply(kind, *operands)

    for kind, op in OPS.items():
        if op.ufunc is not None and op.ufunc not in UFUNCS:
            UFUNCS[op.ufunc] = recorder(kind)
            if op.has_one_result:
                _KINDS[op.ufunc] = kind
        for alias in op.aliases:
            other = getattr(np, alias, None)
            if isinstance(other, np.ufunc):
                UFUNCS.setdefault(other, recorder(kind))
    record_by(np.positive, positive)
    record_by(np.power, power)
    UFUNCS.setdefault(np.conjugate, recorder("conj"))


def _array_of(nested: Sequence[Any]) -> Traced:
    # Joining is built on this module.
    from stagedad.front.joining import array_of

    return array_of(nested)


def _promotion_operand(value: Any) -> Any:
    if isinstance(value, Traced):
        return _EXAMPLE[value.dtype.kind] if value._weak else value.dtype
    return value if type(value) in _PYTHON_NUMBERS else np.asarray(value).dtype


_fill_ufuncs()
