"""Staged: a transformed function, with a program for each signature it was called with."""

from __future__ import annotations

import functools
import importlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from threading import Lock, RLock
from types import MethodType
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from stagedad.errors import TraceError
from stagedad.front._call import Caller, Shortcut, direct
from stagedad.front._reach import Reach
from stagedad.front.capture import Captured, capture
from stagedad.front.location import place
from stagedad.front.lowering import Lowered
from stagedad.front.signature import Leaf, Signature, parameter_names, signature
from stagedad.front.tracing import Traced, current_trace, known_type, owner
from stagedad.front.tree import Tree, unflatten
from stagedad.run import CacheInfo, Profile, Program, adopt

_RECENT: Final = 8
"""Signatures that a call tries without looking into the cache."""


_all: WeakSet[Staged] = WeakSet()
_all_lock: Final = Lock()


def clear_all() -> None:
    """Forget every signature of every transformed function."""
    with _all_lock:
        alive = list(_all)
    for each in alive:
        each.cache_clear()


class Entry:
    """One signature's graph and, once it has run by itself, its program."""

    def __init__(self, captured: Captured, lowered: Lowered) -> None:
        self.graph = lowered.graph
        self.outer: list[Traced] = captured.outer
        self.reach: Reach = captured.reach
        self.lowered = lowered
        self.used = 0
        """How many hits the function had counted when this was used last."""
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The compiled graph.  Two threads may both compile it; either result serves."""
        if self._program is None:
            self._program = adopt(self.graph)
        return self._program


@direct
class Staged(Caller):
    """A function under a transform.  See `jit`, `grad` and `value_and_grad`.

    Calls may come from many threads.  It pickles where the function does, and
    binds to instances as a function does.
    """

    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        lower: Callable[[Captured, Signature], Lowered],
        rebuild: tuple[Any, ...],
        max_signatures: int,
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        if getattr(self, "__name__", None) is None:
            self.__name__ = type(function).__name__
        self._function = function
        self._lower = lower
        self._rebuild = rebuild
        self._max_signatures = max_signatures
        self._entries: dict[Signature, Entry] = {}
        self._misses = 0
        self._generation = 0  # how often the cache was cleared
        # Held while the cache changes and never while the user's code is called.  Taken
        # again by the same thread only in a finaliser that the collector runs meanwhile.
        self._lock = RLock()
        with _all_lock:
            _all.add(self)

    def _positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the call as the transform needs it; a hook."""
        return args, kwargs

    def _check(self, key: Signature) -> None:
        """Raise if the transform does not take such arguments, before tracing; a hook."""

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call with any arguments: find or make the entry of their signature, and run it."""
        generation = self._generation
        given = len(args), tuple(kwargs)  # before names become positions
        key, entry, operands = self._prepared(args, kwargs)
        if any(isinstance(operand, Traced) for operand in operands):
            return _inlined(entry, operands)
        outputs = entry.program(*_arrays(key, operands))
        if current_trace() is None and not self._has_shortcut(entry, given):
            self._take_shortcut(_shortcut(key, entry, self._function, given), generation)
        return _result(entry.lowered, outputs)

    def _prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Signature, Entry, list[Any]]:
        """Return signature, entry and operands of a call; the entry is made if need be."""
        generation = self._generation
        args, kwargs = self._positional(args, kwargs)
        key, leaves = signature(args, kwargs)
        entry = self._known(key)
        if entry is None:
            self._check(key)
            captured = capture(self._function, key, leaves)
            entry = Entry(captured, self._lower(captured, key))
            self._remember(key, entry, generation)
        numeric = [
            value
            for value, leaf in zip(leaves, key.leaves, strict=True)
            if leaf.type is not None
        ]
        return key, entry, [*numeric, *entry.outer]

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Return where the time of such a call goes; its text is a table by line and node.

        What is timed is the program, after a first run; the way from Python to it, about a
        third of a microsecond, is not.
        """
        entry, arrays = self.prepared(args, kwargs)
        return entry.program.profile(*arrays)

    def prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Entry, list[np.ndarray[Any, Any]]]:
        """Return the entry of a call, which is traced if need be, and the program's inputs."""
        key, entry, operands = self._prepared(args, kwargs)
        if any(isinstance(operand, Traced) for operand in operands):
            raise TraceError(f"{self.__name__}: arguments are traced values here: {place()}")
        return entry, _arrays(key, operands)

    def _known(self, key: Signature) -> Entry | None:
        """Return the entry of a signature, unless what its function saw has changed."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not entry.reach.unchanged():  # may call properties of the user's
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
                    shortcuts = self._living_shortcuts()
                    shortcuts, self._shortcuts = self._shortcuts, shortcuts
            return None
        with self._lock:
            self._hits += 1
            entry.used = self._hits
        return entry

    def _remember(self, key: Signature, entry: Entry, generation: int) -> None:
        """Keep an entry that was traced, unless the cache was cleared since the call began."""
        dropped: list[Any] = []  # what finalisers run for, once the lock is free again
        with self._lock:
            if generation != self._generation:
                return
            self._misses += 1
            if entry.outer:
                return
            dropped.append(self._entries.get(key))
            entry.used = self._hits + 1
            self._entries[key] = entry
            while len(self._entries) > self._max_signatures:
                dropped.append(self._entries.pop(self._least_recently_used()))
            dropped.append(self._shortcuts)
            self._shortcuts = self._living_shortcuts()

    def _least_recently_used(self) -> Signature:
        """Return the key of the entry that was used least recently; the newest is none."""
        for shortcut in self._shortcuts:
            shortcut.entry.used = max(shortcut.entry.used, shortcut.used)
        return min(self._entries, key=lambda key: self._entries[key].used)

    def _living_shortcuts(self) -> tuple[Shortcut, ...]:
        """Return the shortcuts whose entries are still in the cache."""
        return tuple(
            [each for each in self._shortcuts if self._entries.get(each.key) is each.entry]
        )

    def _has_shortcut(self, entry: Entry, given: tuple[int, tuple[str, ...]]) -> bool:
        return any(each.entry is entry and each.given == given for each in self._shortcuts)

    def _take_shortcut(self, shortcut: Shortcut | None, generation: int) -> None:
        """Have `shortcut` tried first from now on."""
        if shortcut is None:
            return
        dropped = []  # what finalisers run for, once the lock is free again
        with self._lock:
            if (
                generation == self._generation
                and self._entries.get(shortcut.key) is shortcut.entry
            ):
                dropped.append(self._shortcuts)
                self._shortcuts = (shortcut, *self._shortcuts[: _RECENT - 1])

    def cache_info(self) -> CacheInfo:
        """Return hits, misses (calls that traced), and the bound and number of signatures."""
        return CacheInfo(self._hits, self._misses, self._max_signatures, len(self._entries))

    def cache_clear(self) -> None:
        """Forget every signature, also those of calls that are under way."""
        dropped: list[Any] = []  # what finalisers run for, once the lock is free again
        with self._lock:
            dropped += self._entries, self._shortcuts
            self._entries = {}
            self._shortcuts = ()
            self._generation += 1
            self._hits = self._misses = 0

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        # As a decorator it took the function's place, and is found by that name.
        found: Any = None
        try:
            found = importlib.import_module(self.__module__)
            for part in self.__qualname__.split("."):
                found = getattr(found, part)
        except (AttributeError, ImportError):
            found = None
        return self.__qualname__ if found is self else self._rebuild

    def __repr__(self) -> str:
        return f"<{self._rebuild[1][0].__name__} of {self._function!r}>"


def _arrays(key: Signature, operands: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the operands of a call outside of any trace as arrays."""
    leaves = [leaf for leaf in key.leaves if leaf.type is not None]
    return [
        value if leaf.kind == "array" else np.asarray(value, dtype=leaf.type.dtype)  # type: ignore[union-attr]
        for value, leaf in zip(operands, leaves, strict=True)
    ]


def _inlined(entry: Entry, operands: list[Any]) -> Any:
    """Record the entry's graph in the trace that its operands belong to."""
    trace = owner(operands)
    outputs = trace.inline(
        entry.graph, operands, [known_type(v).dtype for v in entry.graph.inputs]
    )
    return _structured(entry.lowered, outputs)


def _result(lowered: Lowered, outputs: tuple[np.ndarray[Any, Any], ...]) -> Any:
    arrays = [
        array[()] if scalar else array
        for array, scalar in zip(outputs, lowered.is_scalar, strict=True)
    ]
    return _structured(lowered, arrays)


def _structured(lowered: Lowered, arrays: Sequence[Any]) -> Any:
    following = iter(arrays)
    leaves = [next(following) if o.type is not None else o.static for o in lowered.outputs]
    return unflatten(lowered.tree, leaves)


def _shortcut(
    key: Signature, entry: Entry, function: Any, given: tuple[int, tuple[str, ...]]
) -> Shortcut | None:
    """Return the shortcut for calls with `given`: positional arguments, and names of others.

    None for a signature with containers that only Python takes apart.
    """
    positional, names = given
    args, kwargs = key.tree.children
    numbers = count()
    by_position = [_numbered(child, numbers) for child in args.children]
    by_name = dict(
        zip(kwargs.keys, [_numbered(child, numbers) for child in kwargs.children], strict=True)
    )
    if len(by_position) > positional:  # given by name, taken by position
        by_name.update(zip(parameter_names(function, args), by_position, strict=True))
    arguments = by_position[:positional] + [by_name.get(name) for name in names]
    if None in arguments:
        return None
    leaves = [
        (leaf.type, leaf.kind, leaf.static.value if leaf.static is not None else _class(leaf))
        for leaf in key.leaves
    ]
    lowered = entry.lowered
    following = count()
    outputs = [
        next(following) if o.type is not None else (None, o.static, ()) for o in lowered.outputs
    ]
    result = _numbered(lowered.tree, iter(outputs))
    finish = partial(_structured, lowered)
    return Shortcut(key, entry, given, leaves, arguments, result, finish)


def _class(leaf: Leaf) -> type:
    """Return the class of a number."""
    assert leaf.type is not None
    dtype = leaf.type.dtype
    return (
        dtype.type if leaf.kind != "weak" else {"f": float, "i": int, "c": complex}[dtype.kind]
    )


def _numbered(tree: Tree, numbers: Iterator[Any]) -> Any:
    """Return `tree` as what `numbers` gives for leaves and (container, keys, structures).

    None if there is an OrderedDict, whose order C code does not see.
    """
    if tree.kind is None:
        return next(numbers)
    if tree.kind is OrderedDict:
        return None
    children = tuple([_numbered(child, numbers) for child in tree.children])
    return None if None in children else (tree.kind, tree.keys, children)
