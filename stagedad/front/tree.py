"""Pytrees: nested lists, tuples, named tuples and dicts with values at the leaves.

`flatten` separates the leaves from the structure, `unflatten` puts others into
it.  Structures are hashable and cached, so that equal ones mostly are the same
object and serve as keys of caches.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from stagedad.front.exact import Exact


@final
class Tree:
    """The structure of a pytree.

    `kind` is the container's type, or None for a leaf; `keys` are a dict's keys
    in the dict's order, or a sequence's positions; `count` is the number of leaves.
    Structures are equal if they cannot be told apart: keys 1 and 1.0 differ, as do orders.
    """

    __slots__ = ("_hash", "_keys", "children", "count", "keys", "kind")

    def __init__(
        self, kind: type | None, keys: tuple[Any, ...], children: tuple[Tree, ...]
    ) -> None:
        self.kind, self.keys, self.children = kind, keys, children
        self.count: int = 1 if kind is None else sum(child.count for child in children)
        self._keys = keys if kind in (list, tuple) else _exact(keys)
        self._hash = hash((kind, self._keys, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tree):
            return NotImplemented
        mine = (self.kind, self._keys, self.children)
        return self._hash == other._hash and mine == (other.kind, other._keys, other.children)

    def __repr__(self) -> str:
        return f"Tree({self.unflatten(iter(['*'] * self.count))!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree, (self.kind, self.keys, self.children)

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """Return the structure with the next `count` of `leaves` at its leaves."""
        if self.kind is None:
            return next(leaves)
        parts = [child.unflatten(leaves) for child in self.children]
        if self.kind is list:
            return parts
        if self.kind is tuple:
            return tuple(parts)
        if self.kind is type(None):
            return None
        if issubclass(self.kind, dict):
            return self.kind(zip(self.keys, parts, strict=True))
        return self.kind(*parts)

    def paths(self, prefix: str) -> Iterator[str]:
        """Yield the name of each leaf: `params.w`, `x.0`."""
        if self.kind is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.paths(f"{prefix}.{_word(key)}")


def _exact(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return keys of a dict as keys of a cache; strings are what they are."""
    return tuple([key if type(key) is str else Exact(key) for key in keys])


LEAF: Final = Tree(None, (), ())
_trees: dict[Any, Tree] = {}
_TREES_LIMIT: Final = 4096
_NONE: Final = (type(None), 0, ())


def flatten(value: Any, leaves: list[Any]) -> Tree:
    """Append the leaves of `value` to `leaves` and return its structure.

    None is an empty container.  The keys of a dict are taken in the dict's own order.
    """
    shape = _shape(value, leaves)
    if shape is None:
        return LEAF
    tree = _trees.get(shape)
    return _tree(shape) if tree is None else tree


def _shape(value: Any, leaves: list[Any]) -> Any:
    """Return the structure as nested tuples, which hash at the speed of C; None for a leaf."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, len(value), tuple([_shape(item, leaves) for item in value])
    if kind is dict or kind is OrderedDict:
        items = list(value.items())
        keys = tuple([key if type(key) is str else Exact(key) for key, _ in items])
        return kind, keys, tuple([_shape(item, leaves) for _, item in items])
    if value is None:
        return _NONE
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind, kind._fields, tuple([_shape(item, leaves) for item in value])
    leaves.append(value)
    return None


def _tree(shape: Any) -> Tree:
    if shape is None:
        return LEAF
    found = _trees.get(shape)
    if found is None:
        kind, keys, children = shape
        if isinstance(keys, int):
            names: tuple[Any, ...] = tuple(range(keys))
        else:
            names = tuple([key if type(key) is str else key.value for key in keys])
        found = Tree(kind, names, tuple([_tree(child) for child in children]))
        if len(_trees) >= _TREES_LIMIT:
            _trees.clear()
        _trees[shape] = found
    return found


def unflatten(tree: Tree, leaves: list[Any] | tuple[Any, ...]) -> Any:
    """Return `tree` with `leaves` put in."""
    return leaves[0] if tree is LEAF else tree.unflatten(iter(leaves))


def tuple_tree(*children: Tree) -> Tree:
    """Return the structure of a tuple of `children`."""
    return Tree(tuple, tuple(range(len(children))), children)


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """Return `value` with `function` applied to each leaf."""
    leaves: list[Any] = []
    tree = flatten(value, leaves)
    return unflatten(tree, [function(leaf) for leaf in leaves])


def _word(key: Any) -> str:
    """Return `key` as a part of a name in graph text."""
    return re.sub(r"[^A-Za-z0-9_]", "_", str(key)) or "_"
