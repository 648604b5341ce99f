"""What a function can see besides its arguments: collected when it is traced.

From the function go closure cells, referenced globals, defaults and a bound
`self`, and so on through every Python function found there that belongs to the
user (neither the standard library nor an installed package, unless it is the
function's own).  Lists, tuples, dicts and instances are entered to depth 3 and
100 entries.  A change of anything recorded means: trace again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from stagedad.front._reach import Reach

# ORDER WHERE: pyx/stagedad/front/_reach.pxd.
CELL, ENTRY, ITEM, LENGTH, CODE, ATTRIBUTE = range(6)

DEPTH: Final = 3
ENTRIES: Final = 100
PLACES: Final = 4096
SMALL: Final = 4096
"""Closed-over arrays to this many bytes are compared where the graph does not read them."""

_PLAIN: Final = (int, float, complex, str, bytes, type(None), np.generic, np.dtype, np.ufunc)
_OWN: Final = __name__.partition(".")[0]
_code_names: dict[CodeType, frozenset[str]] = {}


def reach(function: Any, statics: tuple[Any, ...] = ()) -> Reach:
    """Return what `function`, called with `statics` among its arguments, can see."""
    walk = _Walk(_package(function))
    walk.visit(function, 0)
    for static in statics:
        walk.visit(static, 0)
    return walk.reach


def watch_contents(found: Reach, constants: Any) -> None:
    """Have the contents of small closed-over arrays compared, where they were read in Python.

    An array that the graph holds is read at each run.  One that it does not hold
    may have been read as `w[0]`, or as a copy, while tracing.
    """
    for array in found.closed_over():
        if array.nbytes <= SMALL and (constants.has_local_arrays or not constants.holds(array)):
            found.watch(array)
    for array in constants.watched:
        if array.nbytes > SMALL:
            found.watch(array)


class _Walk:
    def __init__(self, package: str | None) -> None:
        self.package = package
        self.reach = Reach()
        self.seen: dict[int, Any] = {}

    def visit(self, value: Any, depth: int) -> None:
        """Record what can be seen through `value`, which itself is recorded."""
        if isinstance(value, (*_PLAIN, ModuleType)):
            return
        if id(value) in self.seen or len(self.reach) > PLACES:
            return
        self.seen[id(value)] = value
        if isinstance(value, np.ndarray):
            self.reach.reached(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.visit(value.__self__, depth)
            self.visit(value.__func__, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.visit(part, depth)
        elif isinstance(value, type):
            if self._is_user(value.__module__):
                self._class(value)
        elif depth < DEPTH:
            self._container(value, depth)

    def _function(self, function: FunctionType) -> None:
        if not self._is_user(function.__module__) and len(self.seen) > 1:
            return
        self.reach.add(CODE, function)
        for default in (function.__defaults__, function.__kwdefaults__):
            if default:
                self.visit(default, 0)
        for cell in function.__closure__ or ():
            self.visit(self.reach.add(CELL, cell), 0)
        names = _names(function.__code__)
        scope = function.__globals__
        for name in names:
            if name not in scope:
                continue
            value = scope[name]
            if isinstance(value, ModuleType):
                if self._is_user(value.__name__):
                    self._module(value, names)
            else:
                self.reach.add(ENTRY, scope, name)
                self.visit(value, 0)

    def _module(self, module: ModuleType, names: frozenset[str]) -> None:
        for name in names:
            value = module.__dict__.get(name)
            if value is not None and not isinstance(value, ModuleType):
                self.reach.add(ENTRY, module.__dict__, name)
                self.visit(value, 0)

    def _class(self, cls: type) -> None:
        for base in cls.__mro__:
            if not self._is_user(base.__module__):
                continue
            for name, value in list(vars(base).items()):
                if isinstance(value, (staticmethod, classmethod)):
                    self.visit(value.__func__, 0)
                elif isinstance(value, property):
                    for part in (value.fget, value.fset):
                        self.visit(part, 0)
                elif isinstance(value, FunctionType):
                    self.reach.add(ATTRIBUTE, base, name)
                    self.visit(value, 0)
                elif not name.startswith("__"):
                    self.reach.add(ATTRIBUTE, base, name)
                    self.visit(getattr(base, name, None), 1)

    def _container(self, value: Any, depth: int) -> None:
        below = depth + 1
        if isinstance(value, dict):
            self.reach.add(LENGTH, value)
            for key in list(value)[:ENTRIES]:
                self.visit(self.reach.add(ENTRY, value, key), below)
        elif isinstance(value, list):
            self.reach.add(LENGTH, value)
            for i in range(min(len(value), ENTRIES)):
                self.visit(self.reach.add(ITEM, value, i), below)
        elif isinstance(value, tuple):
            for item in value[:ENTRIES]:
                self.visit(item, below)
        elif isinstance(value, (set, frozenset)):
            self.reach.add(LENGTH, value)
        else:
            self._instance(value, below)

    def _instance(self, value: Any, below: int) -> None:
        # A transformed function is seen through, whatever class it is of.
        inner = getattr(value, "__wrapped__", None)
        if inner is not None:
            self.visit(inner, below - 1)
            return
        if not self._is_user(type(value).__module__):
            return
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self.reach.add(LENGTH, attributes)
            for name in list(attributes)[:ENTRIES]:
                self.visit(self.reach.add(ENTRY, attributes, name), below)
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if not name.startswith("__"):
                    self.visit(self.reach.add(ATTRIBUTE, value, name), below)
        self.visit(type(value), 0)

    def _is_user(self, module: str | None) -> bool:
        if module is None:
            return True
        top = module.partition(".")[0]
        if top == self.package:
            return True
        if top in (_OWN, "numpy", "builtins") or top in sys.stdlib_module_names:
            return False
        return not _is_installed(top)


def _names(code: CodeType) -> frozenset[str]:
    """Return the names that `code`, and code inside it, may look up."""
    found = _code_names.get(code)
    if found is None:
        found = frozenset(_all_names(code))
        if len(_code_names) < PLACES:
            _code_names[code] = found
    return found


def _all_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_names(constant)


@functools.lru_cache(maxsize=1024)
def _is_installed(top: str) -> bool:
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    return file is not None and file.startswith(_installed_folders())


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    import sysconfig  # slow to import, and few programs come here

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({sysconfig.get_path(name) for name in names})


def _package(function: Any) -> str | None:
    module = getattr(function, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else None
