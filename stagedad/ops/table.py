"""The table of ops, made from the generated module; lookup, checks, the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError, suggestion
from stagedad.ops import reference
from stagedad.ops.attributes import check_attributes
from stagedad.ops.op import REQUIRED, Argument, Formula, Op
from stagedad.ops.rules import RULES
from stagedad.types import TensorType

try:
    from stagedad.ops._gen_table import TABLE
except ModuleNotFoundError as error:
    raise ImportError(
        "stagedad.ops: the generated table is missing\n"
        "hint: build it from the declarations: python stagedad/ops/build.py"
    ) from error


def make_op(
    entry: Mapping[str, Any],
    ufunc: np.ufunc | None = None,
    function: Callable[..., Any] | None = None,
    typing: Callable[..., Any] | None = None,
) -> Op:
    """Return the op of a checked entry, as the loader gives it.

    What it computes by and the types are those that are given, or else NumPy's by its name.
    """
    fields = dict(entry)
    fields["arguments"] = tuple(Argument(*argument) for argument in entry["arguments"])
    fields["attributes"] = {
        name: default[0] if default else REQUIRED for name, default in entry["attributes"]
    }
    for key in ("partials", "vjps"):
        fields[key] = {name: _formula(parts) for name, parts in entry[key].items()}
    for key in ("jvp", "flops"):
        if isinstance(entry[key], tuple):
            fields[key] = _formula(entry[key])
    fields["points"] = _numbers(entry["points"])
    fields["traits"] = frozenset(entry["traits"])
    found = attrgetter(entry["numpy"])(np) if entry["numpy"] else None
    fields["ufunc"] = found if isinstance(found, np.ufunc) else ufunc
    return Op(**fields, function=function, typing=typing)


def _numbers(value: Any) -> Any:
    """Return nested literals with the numbers that no literal is for, which are text."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_numbers, value))
    return float(value) if value in ("inf", "-inf", "nan") else value


def _formula(parts: tuple[str, Any, tuple[str, ...], tuple[str, ...]]) -> Formula:
    text, tree, reads, uses = parts
    return Formula(text, tree, frozenset(reads), frozenset(uses))


ENTRIES: dict[str, dict[str, Any]] = dict(TABLE)
"""The entries that the ops are made of, by kind."""

OPS: dict[str, Op] = {kind: make_op(entry) for kind, entry in TABLE.items()}
"""Every op by its kind."""

MOST_DIMS = 64
"""NumPy's limit."""

_KIND = {alias: op.kind for op in OPS.values() for alias in op.aliases}


def add_op(op: Op) -> None:
    """Put a new op into the table."""
    OPS[op.kind] = op
    _KIND.update(dict.fromkeys(op.aliases, op.kind))


def resolve(kind: str) -> str:
    """Return the kind that `kind` is an alias of; any other text as it is."""
    return _KIND.get(kind, kind)


def complete(op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of `op`: those given, and the defaults of the others.

    Raises: TypeError if one is unknown or missing.
    """
    result = {**op.attributes, **attributes}
    if len(result) > len(op.attributes):
        name = next(name for name in attributes if name not in op.attributes)
        hint = suggestion(name, op.attributes) or f"it has {', '.join(op.attributes) or 'none'}"
        raise TypeError(f"{op.kind}: no attribute: {name}\nhint: {hint}")
    for name, value in result.items():
        if value is REQUIRED:
            raise TypeError(f"{op.kind}: missing attribute: {name}")
    return result


def _check_count(op: Op, count: int) -> None:
    expected = len(op.arguments)
    if any(argument.is_list for argument in op.arguments):
        if count < expected:
            raise TypeError(f"{op.kind}: takes {expected} operands or more: {count}")
    elif count != expected:
        plural = "" if expected == 1 else "s"
        raise TypeError(f"{op.kind}: takes {expected} operand{plural}: {count}")


def infer(
    kind: str, types: Sequence[TensorType | None], attributes: Mapping[str, Any]
) -> tuple[TensorType | None, ...]:
    """Return the types of the results of `kind`; (None,) if it is no known op.

    Raises: TypeError for a wrong number of operands or an attribute that is unknown or
            of the wrong kind; ShapeError for axes, dims and steps that fit nothing;
            ShapeError, DTypeError, DeviceError where the op does not take `types`.
    """
    op = OPS.get(_KIND.get(kind, kind))
    if op is None:
        return (None,)
    _check_count(op, len(types))
    complete_attributes = complete(op, attributes)
    if attributes:
        check_attributes(op, attributes)
    result: tuple[TensorType | None, ...] = RULES[op.type_rule](op, types, complete_attributes)
    for type in result:
        if type is not None and type.shape is not None and len(type.shape) > MOST_DIMS:
            raise ShapeError(op.kind, f"more than {MOST_DIMS} dims", len(type.shape))
    return result


def evaluate(
    kind: str, arrays: Sequence[np.ndarray[Any, Any]], attributes: Mapping[str, Any]
) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the results of op `kind` by NumPy itself.

    Raises: KeyError if it is no known op; TypeError as `infer`; what NumPy raises.
    """
    op = OPS[_KIND.get(kind, kind)]
    _check_count(op, len(arrays))
    results = reference.evaluate_op(op, arrays, complete(op, attributes))
    if op.function is not None:
        _check_results(op, arrays, attributes, results)
    return results


def _check_results(
    op: Op, arrays: Sequence[Any], attributes: Mapping[str, Any], results: Sequence[Any]
) -> None:
    """Check that a user's function gives what the type rule said: memory is laid out by it."""
    types = tuple(map(TensorType.of, arrays))
    try:
        told = _told(op.kind, types, tuple(attributes.items()))
    except TypeError:  # an attribute that is not hashable, or what the rule says again
        told = infer(op.kind, types, attributes)
    for type, result in zip(told, results, strict=True):
        if type is not None and result.dtype != type.dtype:
            problem = f"{op.kind}: its function gives {result.dtype}, not {type.dtype}"
            raise DTypeError(
                problem, op=op.kind, hint="the dtype of a result is that of its type"
            )
        if type is not None and result.shape != type.shape:
            raise ShapeError(op.kind, "its function gives, for its type", result.shape, type)


@lru_cache(maxsize=256)
def _told(
    kind: str, types: tuple[TensorType, ...], attributes: tuple[tuple[str, Any], ...]
) -> tuple[TensorType | None, ...]:
    """As `infer`; a rule may call the function itself, which is not to run twice a run."""
    return infer(kind, types, dict(attributes))
