"""What the attributes of ops may be: one check a name, whatever the op.

The checks need no operand, so that a graph of unknown types has sound attributes
too; what depends on the operands' shapes is for ops/type_rules.py.  They look and
convert nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import ShapeError
from stagedad.ops.op import Op
from stagedad.types import canonical_dtype

# Tuples, because `int | float` is put together anew at each call.
_SEQUENCE: Final = (tuple, list)
_FLAG: Final = (int, np.bool_, np.integer)
_NUMBER: Final = (int, float, complex)

_MOST_RESULTS: Final = 65535
"""What a node of a graph has room for."""


def check_attributes(op: Op, attributes: Mapping[str, Any]) -> None:
    """Check the attributes that were given to `op`, whose names it has.

    Raises: TypeError naming op and attribute for a value of the wrong kind (DTypeError
            for a dtype); ShapeError for axes, dims and steps that fit no operand.
    """
    for name, value in attributes.items():
        check = _CHECKS.get(name)
        if check is not None:
            check(op, name, value)
    if "step" in attributes and "step" in op.attributes:
        _check_slices(op, attributes)


def _axis(op: Op, name: str, value: Any) -> None:
    """None where that is the default; an int; several where the default is no int."""
    if type(value) is int:
        return
    default = op.attributes[name]
    if value is None and default is None:
        return
    if isinstance(value, _SEQUENCE) and type(default) is not int:
        numbers = [_integer(op, name, each, value) for each in value]
        if len(set(numbers)) < len(numbers):
            raise ShapeError(f"{op.kind}: {name} twice: {value}", op=op.kind)
        return
    _integer(op, name, value, value)


def _axes(op: Op, name: str, value: Any) -> None:
    """None or a permutation, which has as many axes as the operand."""
    if value is None:
        return
    _axis(op, name, _sequence(op, name, value))
    count = len(value)
    if sorted([each % count for each in value if -count <= each < count]) != [*range(count)]:
        raise ShapeError(f"{op.kind}: {name} are no permutation: {value}", op=op.kind)


def _shape(op: Op, name: str, value: Any) -> None:
    if value is None and op.attributes[name] is None:
        return
    # -1 stands for the one dim that the size decides.
    lowest = -1 if op.kind == "reshape" else 0
    dims = [
        _integer(op, name, dim, value)
        for dim in (value if isinstance(value, _SEQUENCE) else (value,))
    ]
    if any(dim < lowest for dim in dims):
        raise ShapeError(op.kind, f"negative dim in {name}", tuple(dims))
    if dims.count(-1) > 1:
        raise ShapeError(op.kind, f"not a {name}", tuple(dims))


def _bound(op: Op, name: str, value: Any) -> None:
    """One int or None an axis."""
    for each in _sequence(op, name, value):
        if each is not None:
            _integer(op, name, each, value)
            if name == "step" and each == 0:
                raise ShapeError(f"{op.kind}: step is zero: {value}", op=op.kind)


def _sections(op: Op, name: str, value: Any) -> None:
    """How many parts, or where to cut: np.split clips what is out of range."""
    if isinstance(value, _SEQUENCE):
        count = 1 + len([_integer(op, name, each, value) for each in value])
    else:
        count = _integer(op, name, value, value)
    if not 1 <= count <= _MOST_RESULTS:
        raise ShapeError(op.kind, f"not 1 to {_MOST_RESULTS} parts", count)


def _check_slices(op: Op, attributes: Mapping[str, Any]) -> None:
    counts = [len(attributes[name]) for name in ("start", "stop", "step")]
    if len(set(counts)) > 1:
        raise ShapeError(op.kind, "start, stop and step differ in length", *counts)


def _flag(op: Op, name: str, value: Any) -> None:
    if not isinstance(value, _FLAG):
        raise TypeError(f"{op.kind}: {name} is not True or False: {value!r}")


def _dtype(op: Op, name: str, value: Any) -> None:
    if value is not None or op.attributes[name] is not None:
        canonical_dtype(value, f"{op.kind}: {name}")


def _number(op: Op, name: str, value: Any) -> None:
    if isinstance(value, np.generic):
        canonical_dtype(value.dtype, f"{op.kind}: {name}")
    elif not isinstance(value, _NUMBER):
        raise TypeError(f"{op.kind}: {name} is not a number: {type(value).__name__}")


def _value(op: Op, name: str, value: Any) -> None:
    """A number; or an array, where nothing else decides the shape."""
    if op.kind == "constant" and isinstance(value, np.ndarray):
        canonical_dtype(value.dtype, f"{op.kind}: {name}")
    else:
        _number(op, name, value)


def _integer(op: Op, name: str, value: Any, whole: Any) -> int:
    if type(value) is int:
        return value
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{op.kind}: {name} is not of integers: {whole!r}") from None


def _sequence(op: Op, name: str, value: Any) -> tuple[Any, ...] | list[Any]:
    if not isinstance(value, _SEQUENCE):
        raise TypeError(f"{op.kind}: {name} is not a tuple: {value!r}")
    return value


def _whole(op: Op, name: str, value: Any) -> None:
    """An int, or None where that is the default."""
    if value is not None or op.attributes[name] is not None:
        _integer(op, name, value, value)


def _limit(op: Op, name: str, value: Any) -> None:
    """A number, or None where that is the default."""
    if value is not None or op.attributes[name] is not None:
        _number(op, name, value)


_CHOICES: Final = {
    "UPLO": ("L", "U"),
    "norm": (None, "backward", "ortho", "forward"),
    "which": ("first", "last", "largest"),
}


def _choice(op: Op, name: str, value: Any) -> None:
    if value not in _CHOICES[name]:
        known = ", ".join(map(repr, _CHOICES[name]))
        raise TypeError(f"{op.kind}: {name} is none of {known}: {value!r}")


def _numbers(op: Op, name: str, value: Any) -> None:
    """An int or several."""
    for each in value if isinstance(value, _SEQUENCE) else (value,):
        _integer(op, name, each, value)


def _count(op: Op, name: str, value: Any) -> None:
    if _integer(op, name, value, value) < 0:
        raise TypeError(f"{op.kind}: {name} is negative: {value}")


def _state(op: Op, name: str, value: Any) -> None:
    """An array to count in."""
    if (
        type(value) is not np.ndarray
        or value.dtype != np.uint64
        or value.shape != (2,)
        or not value.flags.writeable
    ):
        raise TypeError(f"{op.kind}: {name} is not a writeable uint64 array of two: {value!r}")


_CHECKS: Final[dict[str, Callable[[Op, str, Any], None]]] = {
    "UPLO": _choice,
    "alpha": _number,
    "axes": _axes,
    "axis": _axis,
    "count": _count,
    "draw": _count,
    "dtype": _dtype,
    "high": _whole,
    "indices_or_sections": _sections,
    "is_zero": _flag,
    "k": _whole,
    "keepdims": _flag,
    "kth": _numbers,
    "low": _whole,
    "lower": _flag,
    "n": _whole,
    "norm": _choice,
    "order": _count,
    "rcond": _limit,
    "reverse": _flag,
    "right": _flag,
    "scale": _number,
    "shape": _shape,
    "sign": _whole,
    "stable": _flag,
    "start": _bound,
    "state": _state,
    "step": _bound,
    "stop": _bound,
    "value": _value,
    "which": _choice,
}
