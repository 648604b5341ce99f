"""Keys that are equal only where the values cannot be told apart.

`1`, `1.0` and `True` are equal keys of a dict, as are `0.0` and `-0.0`, and what a class of
the user's compares is its own affair.  A trace follows the values themselves.
"""

from __future__ import annotations

import struct
from types import BuiltinMethodType, MethodType
from typing import Any, Final

import numpy as np

_BY_VALUE: Final = frozenset({str, bytes, int, bool, type(None)})
# Immutable, and their text says all there is to say.
_BY_TEXT: Final = frozenset(
    {
        ("builtins", "range"),
        ("datetime", "date"),
        ("datetime", "timedelta"),
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
    }
)


class Exact:
    """A value as a part of a key."""

    __slots__ = ("_hash", "_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = exact(value)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Exact) and self._key == other._key)


class _Same:
    """An object as itself, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def exact(value: Any) -> Any:
    """Return a hashable key of `value`, made without any code of the user's.

    By value go strings, numbers, and tuples, frozen sets (in their order) and frozen
    dataclasses of such; bound methods by function and object; the rest by identity.
    """
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, struct.pack("d", value)
    if kind is complex:
        return kind, struct.pack("dd", value.real, value.imag)
    if kind is tuple or kind is frozenset:
        return kind, tuple([exact(item) for item in value])
    if (kind.__module__, kind.__qualname__) in _BY_TEXT:
        return kind, repr(value)
    if kind is MethodType:
        return kind, _Same(value.__self__), _Same(value.__func__)
    if kind is BuiltinMethodType:
        return kind, _Same(value.__self__), value.__qualname__
    if isinstance(value, np.generic) and value.dtype.kind not in "VO":
        return kind, value.dtype.str, value.tobytes()
    if _is_frozen(kind):
        attributes = getattr(value, "__dict__", None)
        if attributes is None:
            names = kind.__dataclass_fields__
            attributes = {name: getattr(value, name, None) for name in names}
        return kind, tuple([(name, exact(item)) for name, item in attributes.items()])
    return kind, _Same(value)


def _is_frozen(kind: Any) -> bool:
    """Whether an instance of `kind` is its fields, and they stay."""
    settings = kind.__dict__.get("__dataclass_params__")
    return (
        settings is not None
        and settings.frozen
        and all("__dataclass_fields__" in base.__dict__ for base in kind.__mro__[:-1])
    )
