"""Type rules of ops that users add: what a ufunc or a function of theirs gives."""

# ruff: noqa: ARG001  (every rule takes op, types and attributes)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.ops.type_rules import _device as common_device
from stagedad.types import TensorType, broadcast_shapes, canonical_dtype

Types: TypeAlias = "Sequence[TensorType | None]"
Attributes: TypeAlias = "Mapping[str, Any]"
Results: TypeAlias = "tuple[TensorType | None, ...]"

CALLED = frozenset({"any_ufunc", "called", "told"})
"""The rules of this module: they ask functions that only ops made at run time have."""


def any_ufunc(op: Op, types: Types, attributes: Attributes) -> Results:
    """Broadcast the shapes and ask the ufunc for the dtypes of its results.

    numba compiles a loop when its ufunc is called, so that one may have to be.
    """
    known = [type for type in types if type is not None]
    if len(known) < len(types):
        return (None,) * len(op.results)
    shape = broadcast_shapes(op.kind, *(type.shape for type in known))
    assert op.ufunc is not None
    dtypes = [type.dtype for type in known]
    asked = (*dtypes, *[None] * op.ufunc.nout)
    try:
        try:
            resolved = op.ufunc.resolve_dtypes(asked)
        except TypeError:
            if op.function is None:
                raise
            with np.errstate(all="ignore"):
                op.function(*[np.ones(1, dtype) for dtype in dtypes])
            resolved = op.ufunc.resolve_dtypes(asked)
    except TypeError:
        names = ", ".join(map(str, dtypes))
        raise DTypeError(f"{op.kind}: not defined for: {names}", op=op.kind) from None
    device = common_device(op, known)
    return tuple(
        TensorType(canonical_dtype(dtype, op.kind), shape, device)
        for dtype in resolved[op.ufunc.nin :]
    )


def called(op: Op, types: Types, attributes: Attributes) -> Results:
    """Broadcast the shapes; the dtypes are those that the function gives for ones."""
    known = [type for type in types if type is not None]
    if len(known) < len(types):
        return (None,) * len(op.results)
    shape = broadcast_shapes(op.kind, *(type.shape for type in known))
    assert op.function is not None
    try:
        with np.errstate(all="ignore"):
            given = op.function(*[np.ones(1, type.dtype) for type in known], **attributes)
    except TypeError as error:
        names = ", ".join(str(type.dtype) for type in known)
        problem = f"{op.kind}: its function does not take: {names}: {error}"
        raise DTypeError(problem, op=op.kind) from error
    results = results_of(op, given)
    for result in results:
        if result.shape != (1,):
            raise ShapeError(
                op.kind, "is not elementwise: its function gives for (1,)", result.shape,
                hint="type= takes a function from the types of operands to that of the result",
            )  # fmt: skip
    device = common_device(op, known)
    return tuple(
        TensorType(canonical_dtype(result.dtype, op.kind), shape, device) for result in results
    )


def told(op: Op, types: Types, attributes: Attributes) -> Results:
    """Ask the function that was given as `type`."""
    if any(type is None for type in types):
        return (None,) * len(op.results)
    assert op.typing is not None
    given = op.typing(*types, **attributes)
    results = given if isinstance(given, tuple) else (given,)
    if len(results) != len(op.results) or not all(
        isinstance(result, TensorType) for result in results
    ):
        raise TypeError(
            f"{op.kind}: its type= gives no TensorType a result: {given!r}\n"
            f"hint: {len(op.results)} of sd.TensorType(dtype, shape)"
        )
    return results


def results_of(op: Op, given: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Return what the function of `op` gave as an array a result.

    Raises: TypeError if it gave more or fewer.
    """
    if len(op.results) == 1:
        return (np.asarray(given),)
    if not isinstance(given, tuple | list) or len(given) != len(op.results):
        raise TypeError(f"{op.kind}: its function gives no tuple of {len(op.results)} results")
    return tuple(map(np.asarray, given))
