"""The caches of the whole process: what they hold, and how to empty them.

Every one is bounded.  Those of a function or a program are asked by their own
`cache_info`; here are those that all share, and the way to empty everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from stagedad import types
from stagedad.front import _location, elementwise, reach, signature, staged, tree
from stagedad.ir import _kinds
from stagedad.plan import kernels
from stagedad.run import clear_programs, idle_memory, limit_idle_memory
from stagedad.transform.differentiate import TEMPLATES_LIMIT, _templates


class CacheSize(NamedTuple):
    """How many entries a cache has (bytes, of memory), and its bound."""

    currsize: int
    maxsize: int


class _Cache(NamedTuple):
    size: Callable[[], int]
    bound: int
    clear: Callable[[], Any]


def _of_dict(entries: dict[Any, Any], bound: int) -> _Cache:
    return _Cache(lambda: len(entries), bound, entries.clear)


def _of_lru(function: Any) -> _Cache:
    bound = function.cache_info().maxsize
    return _Cache(lambda: function.cache_info().currsize, bound, function.cache_clear)


_CACHES: Final = {
    "types": _of_dict(types._recent, types._RECENT_LIMIT),
    "inferred types": _Cache(
        _kinds.inferred_count, _kinds.INFERRED_LIMIT, _kinds.clear_inferred
    ),
    "places": _Cache(_location.place_count, _location.PLACES, _location.clear_places),
    "structures": _of_dict(tree._trees, tree._TREES_LIMIT),
    "leaves": _of_dict(signature._array_leaves, signature._LEAVES_LIMIT),
    "dtypes of literals": _of_dict(elementwise._literal_dtypes, elementwise.LITERALS_LIMIT),
    "names in code": _of_dict(reach._mentions_of, reach.PLACES),
    **{
        f"kernels, {name.strip('_')}": _of_lru(function)
        for name, function in vars(kernels).items()
        if hasattr(function, "cache_clear")
    },
    **{
        f"rules, {policy}": _of_dict(rules, TEMPLATES_LIMIT)
        for policy, rules in _templates.items()
    },
}


def cache_info() -> dict[str, CacheSize]:
    """Return size and bound of every cache that the whole process shares.

    Entries, but for `workspace`: bytes that programs keep for their next runs.
    """
    found = {name: CacheSize(cache.size(), cache.bound) for name, cache in _CACHES.items()}
    return {**found, "workspace": CacheSize(*idle_memory())}


def clear_caches() -> None:
    """Empty all caches of the process: of shared knowledge, of functions and of programs.

    Transformed functions trace again, programs plan again, and idle workspace is freed.
    Calls that are under way in other threads end as they began.
    """
    staged.clear_all()
    clear_programs()
    bound = limit_idle_memory(0)
    limit_idle_memory(bound)
    for cache in _CACHES.values():
        cache.clear()
