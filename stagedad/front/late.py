"""Recording calls of ops that come to the table at run time: SciPy's and users'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.front.elementwise import UFUNCS, apply, astype, in_dtype, is_weak, operand, values
from stagedad.front.location import place
from stagedad.front.tracing import Traced, owner
from stagedad.ir import Value
from stagedad.ops import OPS, kind_of


def recorder_of(ufunc: Any) -> Callable[..., Any] | None:
    """Return what records calls of `ufunc`; None if nothing does."""
    found = UFUNCS.get(ufunc)
    if found is None:
        kind = kind_of(ufunc)
        if kind is not None:
            found = UFUNCS[ufunc] = _recorder(kind, ufunc)
    return found


def record_call(kind: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Record op `kind` of operands of which one is traced; a tuple for several results."""
    known = [operand(each, kind) for each in operands]
    trace = owner(known)
    return _emitted(trace, kind, values(trace, known), attributes)


def _recorder(kind: str, ufunc: Any) -> Callable[..., Any]:
    op = OPS[kind]
    if op.ufunc is ufunc or op.function is ufunc:
        return lambda *operands: _record_ufunc(kind, operands)

    # SciPy's name of an op that has loops of NumPy: in the dtypes of SciPy's.
    def converted(value: Any) -> Traced:
        known = operand(value, kind)
        weak = float if is_weak(known) else known.dtype
        return apply(kind, astype(known, ufunc.resolve_dtypes((weak, None))[1]))

    return converted


def _record_ufunc(kind: str, operands: Sequence[Any]) -> Any:
    op = OPS[kind]
    assert op.ufunc is not None
    if len(operands) != op.ufunc.nin:
        raise TypeError(f"{kind}: takes {op.ufunc.nin} operands: {len(operands)} ({place()})")
    known = [operand(each, kind) for each in operands]
    trace = owner(known)
    return _emitted(trace, kind, _resolved(trace, op.ufunc, known), {})


def _resolved(trace: Any, ufunc: np.ufunc, known: Sequence[Any]) -> list[Value]:
    """Return operands as values, Python numbers in the dtypes of the loop that NumPy takes."""
    if not any(map(is_weak, known)):
        return values(trace, known)
    asked = [_PYTHON[_dtype(each).kind] if is_weak(each) else _dtype(each) for each in known]
    try:
        dtypes = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError:
        return values(trace, known)  # a loop may be compiled for them; or the type rule says no
    return [
        in_dtype(trace, each, dtype) if is_weak(each) else trace.value(each)
        for each, dtype in zip(known, dtypes, strict=False)
    ]


_PYTHON = {"b": bool, "i": int, "f": float, "c": complex}


def _dtype(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _emitted(
    trace: Any, kind: str, operands: Sequence[Value], attributes: Mapping[str, Any]
) -> Any:
    given = dict(attributes)
    if OPS[kind].has_one_result:
        return trace.emit(kind, operands, given)
    return tuple(trace.emit_all(kind, operands, given))
