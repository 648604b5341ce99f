"""What a call's arguments are: their structure, and what each leaf is.

Two calls with equal signatures run the same program.  A leaf is an array, a
NumPy scalar or a Python number, which become inputs of the graph, or anything
else, which is a static value and part of the signature as exact.py compares it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from stagedad.errors import DTypeError
from stagedad.front.exact import Exact
from stagedad.front.location import place
from stagedad.front.tracing import Traced
from stagedad.front.tree import Tree, flatten
from stagedad.types import CODES, TensorType, canonical_dtype

_WAY_OUT: Final = "convert it with np.asarray(x, dtype=float) first"


class Leaf(NamedTuple):
    """One leaf of the arguments."""

    type: TensorType | None
    """None of a static value."""
    kind: Any
    """`array`, `scalar` (of NumPy) or `weak` (of Python); of a static value, its class."""
    static: Exact | None = None


_NUMBERS: Final = {
    float: Leaf(TensorType(float, ()), "weak"),
    int: Leaf(TensorType(np.int64, ()), "weak"),
    complex: Leaf(TensorType(complex, ()), "weak"),
}
_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1
_array_leaves: dict[Any, Leaf] = {}
_LEAVES_LIMIT: Final = 4096


class Signature(NamedTuple):
    """Structure and leaves of `(args, kwargs)`; a key of caches."""

    tree: Tree
    leaves: tuple[Leaf, ...]

    def input_names(self, function: Any) -> list[str]:
        """Return the name of each leaf: the parameter's and the path in it."""
        args, kwargs = self.tree.children
        names: list[str] = []
        for parameter, child in zip(
            parameter_names(function, args), args.children, strict=True
        ):
            names += child.paths(parameter)
        for name, child in zip(kwargs.keys, kwargs.children, strict=True):
            names += child.paths(name)
        return names

    def leaves_of(self, position: int) -> range:
        """Return which leaves belong to the positional argument at `position`."""
        children = self.tree.children[0].children
        start = sum(child.count for child in children[:position])
        return range(start, start + children[position].count)


def signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Signature, list[Any]]:
    """Return the signature of a call, and its leaves.

    Raises: DTypeError for an array that stagedad does not carry; TypeError for a
            static value that is not hashable; OverflowError for an int beyond 64 bits.
    """
    leaves: list[Any] = []
    tree = flatten((args, kwargs), leaves)
    described = []
    for i, value in enumerate(leaves):
        leaf = _describe(value)
        if leaf is None:
            leaves[i], leaf = _converted(value)
        described.append(leaf)
    return Signature(tree, tuple(described)), leaves


def _describe(value: Any) -> Leaf | None:
    kind = type(value)
    if kind is np.ndarray:
        found = _array_leaves.get((value.dtype, value.shape))
        if found is None and value.dtype.isnative:
            if len(_array_leaves) >= _LEAVES_LIMIT:
                _array_leaves.clear()
            found = _array_leaves[value.dtype, value.shape] = Leaf(_type_of(value), "array")
        return found
    known = _NUMBERS.get(kind)
    if known is not None:
        if kind is int and not _LEAST <= value <= _GREATEST:
            raise OverflowError(
                f"call: an argument is an int of {value.bit_length()} bits, and int64 has 63 "
                f"and a sign: {place()}\nhint: pass float(...), or close over it"
            )
        return known
    if isinstance(value, Traced):
        if not value._trace.alive:
            raise value._trace.leaked("call")
        return Leaf(value.type, "weak" if value._weak else "array")
    return None


def _converted(value: Any) -> tuple[Any, Leaf]:
    if type(value) is np.ndarray:
        value = value.astype(canonical_dtype(value.dtype))
        return value, Leaf(_type_of(value), "array")
    if isinstance(value, np.generic):
        if value.dtype.kind == "V" or value.dtype.newbyteorder("=") not in CODES.values():
            raise _unsupported(value)
        return value, Leaf(_type_of(value), "scalar")
    if hasattr(value, "__array__") and not isinstance(value, type):
        # A subclass or a data frame: what it means beyond its numbers would be lost.
        raise _unsupported(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"call: an argument is a {type(value).__qualname__}, which is neither numeric nor "
            f"hashable: {place()}\nhint: close over it, or pass its arrays in lists and dicts"
        ) from None
    return value, Leaf(None, type(value), Exact(value))


def _type_of(value: Any) -> TensorType:
    try:
        return TensorType.of(value)
    except DTypeError:
        raise _unsupported(value) from None


def _unsupported(value: Any) -> DTypeError:
    dtype = f" of {value.dtype}" if isinstance(getattr(value, "dtype", None), np.dtype) else ""
    return DTypeError(
        f"call: an argument is a {type(value).__module__}.{type(value).__qualname__}{dtype}: "
        f"{place()}",
        hint=_WAY_OUT,
    )


def parameter_names(function: Any, args: Tree) -> list[str]:
    """Return a name for each positional argument; `args.0` and so on for those of `*args`."""
    count = len(args.children)
    names: list[str] = []
    for parameter in _parameters(function):
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{i}" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"x{i}" for i in range(len(names), count)]
    return names[:count]


def positional(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: Sequence[int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call with the arguments at `wanted` given by position, if they were by name."""
    if not kwargs or max(wanted, default=-1) < len(args):
        return args, kwargs
    found = _inspected(function)
    if found is None:
        return args, kwargs
    try:
        bound = found.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs  # the function's own message is better
    return bound.args, bound.kwargs


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    found = _inspected(function)
    return () if found is None else list(found.parameters.values())


def _inspected(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def function_name(function: Any) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "__name__", type(function).__name__))
