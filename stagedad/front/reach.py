"""What a function can see besides its arguments: collected when it is traced.

From the function go closure cells, referenced globals, defaults and a bound
`self`, and so on through every Python function found there that belongs to the
user (neither the standard library nor an installed package, unless it is the
function's own).  Of the user's modules, whether globals, held in closures or
imported inside a function, go the names that these functions mention.  Lists,
tuples, dicts and the attributes of instances, whatever class they are of, are
entered to depth 3 and 100 entries; methods and class attributes are those of the
user's classes.  A change of
anything recorded means: trace again.  Of arrays that is another array, shape or
dtype; their contents are operands of the graph.

Beyond the reach, and therefore constant until `cache_clear()`: what is looked up
by a computed name (`globals()["K"]`, `getattr(cfg, name)`, `importlib`), the
environment (`os.environ`), files, clocks, deques and other containers that are not
lists, tuples, dicts and sets, the state of random generators, locks, queues and
loggers, what compiled classes keep to themselves, modules, classes and functions of
installed packages and of NumPy, and whatever lies deeper than depth 3 or behind
100 entries.
"""

from __future__ import annotations

import functools
import importlib.util
import opcode
import sys
from collections.abc import Iterator
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

import numpy as np

from stagedad.front._reach import Reach

# ORDER WHERE: pyx/stagedad/front/_reach.pxd.
CELL, ENTRY, ITEM, LENGTH, CODE, ATTRIBUTE, CONTENTS = range(7)

DEPTH: Final = 3
ENTRIES: Final = 100
PLACES: Final = 4096
SMALL: Final = 4096
"""Closed-over arrays to this many bytes are compared where the graph does not read them."""

_PLAIN: Final = (int, float, complex, str, bytes, type(None), np.generic, np.dtype, np.ufunc)
# What instances of these modules' classes hold changes by itself, or is no setting.
_OPAQUE: Final = frozenset(
    {
        "_io", "_thread", "asyncio", "concurrent", "contextvars", "io", "logging",
        "multiprocessing", "queue", "random", "re", "selectors", "socket", "subprocess",
        "threading", "typing", "weakref",
    }
)  # fmt: skip
_BUILT_IN: Final = frozenset({dict, list, tuple, set, frozenset})
_OWN: Final = __name__.partition(".")[0]
_IMPORT_NAME: Final = opcode.opmap["IMPORT_NAME"]


class _Mentions(NamedTuple):
    """What a code object and those inside it look up."""

    names: frozenset[str]
    imports: frozenset[tuple[str, int]]
    """Modules imported by statements, and how many dots stand before their names."""


_mentions_of: dict[CodeType, _Mentions] = {}


def reach(function: Any, statics: tuple[Any, ...] = ()) -> Reach:
    """Return what `function`, called with `statics` among its arguments, can see."""
    walk = _Walk(getattr(function, "__module__", None))
    walk.visit(function, 0)
    for static in statics:
        walk.visit(static, 0)
    walk.modules_at_last()
    return walk.reach


def watch_contents(found: Reach, constants: Any) -> None:
    """Have the contents of small closed-over arrays compared, where they were read in Python.

    An array that the graph holds is read at each run.  One that it does not hold
    may have been read as `w[0]`, or as a copy, while tracing.
    """
    for array in found.closed_over():
        if array.nbytes <= SMALL and (constants.local or not constants.holds(array)):
            found.watch(array)
    for array in constants.watched:
        # A small one is watched above already, unless it is a view of a large one.
        if array.nbytes > SMALL or array.base is not None:
            found.watch(array)


class _Walk:
    def __init__(self, module: Any) -> None:
        self.module: str | None = module if isinstance(module, str) else None
        self.package = self.module and self.module.partition(".")[0]
        self.reach = Reach()
        self.seen: dict[int, tuple[int, Any]] = {}  # id -> the least depth, and the object
        self.names: set[str] = set()
        self.modules: dict[int, ModuleType] = {}
        self.recorded: set[tuple[int, str]] = set()

    def visit(self, value: Any, depth: int) -> None:
        """Record what can be seen through `value`, which itself is recorded."""
        if isinstance(value, _PLAIN):
            return
        if isinstance(value, (FunctionType, type, ModuleType)):
            depth = 0
        before = self.seen.get(id(value))
        # What was met too deep to be entered may be met again further up.
        if (before is not None and before[0] <= depth) or len(self.reach) > PLACES:
            return
        self.seen[id(value)] = (depth, value)
        if isinstance(value, np.ndarray):
            self.reach.reached(value)
            if type(value) is not np.ndarray and depth < DEPTH:
                self._instance(value, depth + 1)
        elif isinstance(value, ModuleType):
            if self._is_user(value.__name__):
                self.modules[id(value)] = value
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.visit(value.__self__, depth)
            self.visit(value.__func__, depth)
        elif isinstance(value, BuiltinMethodType):
            if not isinstance(value.__self__, ModuleType):
                self.visit(value.__self__, depth)
        elif _is_generator(value):
            self.reach.generators.append(value)
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
        self._attributes(function, 1)
        for cell in function.__closure__ or ():
            self.visit(self.reach.add(CELL, cell), 0)
        names, imports = _mentions(function.__code__)
        self.names |= names
        for name in names:
            self._global(function.__globals__, name)
        for name, dots in imports:
            self._import(function.__globals__, name, dots)

    def _global(self, scope: dict[str, Any], name: str) -> None:
        if name in scope and (id(scope), name) not in self.recorded:
            self.recorded.add((id(scope), name))
            self.visit(self.reach.add(ENTRY, scope, name), 0)

    def _import(self, scope: dict[str, Any], name: str, dots: int) -> None:
        """Record what a statement `import name` inside a function finds.

        A module that is not loaded yet is a change once it is, so that the second call
        traces again and sees what is in it.
        """
        if dots:
            try:
                name = importlib.util.resolve_name("." * dots + name, scope.get("__package__"))
            except ImportError:
                return  # the statement raises, too
        while name and self._is_user(name):
            if (id(sys.modules), name) not in self.recorded:
                self.recorded.add((id(sys.modules), name))
                self.visit(self.reach.add(ENTRY, sys.modules, name), 0)
            name = name.rpartition(".")[0]

    def modules_at_last(self) -> None:
        """Record the names that functions mention in the user's modules found anywhere.

        Which function reads which module is not known: `m = cfg; m.k` mentions `k`.
        """
        before = -1
        while before < len(self.recorded):  # what is found may mention and hold more
            before = len(self.recorded)
            for module in list(self.modules.values()):
                for name in self.names.intersection(module.__dict__):
                    self._global(module.__dict__, name)

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
        # A subclass of a container may have attributes, too.
        if type(value) not in _BUILT_IN:
            self._instance(value, below)

    def _instance(self, value: Any, below: int) -> None:
        kind = type(value)
        attributes = _dict_of(value)
        if attributes is not None and "__wrapped__" in attributes:
            # A transformed function is seen through, whatever class it is of.
            self.visit(attributes["__wrapped__"], below - 1)
        if self._is_opaque(kind):
            return
        self._attributes(value, below)
        for base in kind.__mro__:
            for name, member in list(base.__dict__.items()):
                if isinstance(member, MemberDescriptorType) and not name.startswith("__"):
                    self.visit(self.reach.add(ATTRIBUTE, value, name), below)
        self.visit(kind, 0)

    def _attributes(self, value: Any, below: int) -> None:
        """Record the `__dict__` of an instance or a function."""
        attributes = _dict_of(value)
        if attributes or (attributes is not None and not isinstance(value, FunctionType)):
            self.reach.add(LENGTH, attributes)
            for name in list(attributes)[:ENTRIES]:
                self.visit(self.reach.add(ENTRY, attributes, name), below)

    def _is_opaque(self, kind: type) -> bool:
        module = kind.__module__
        top = module.partition(".")[0] if isinstance(module, str) else ""
        if top == _OWN:
            return module != self.module
        return top in _OPAQUE or (top == "numpy" and kind.__name__.startswith("_"))

    def _is_user(self, module: str | None) -> bool:
        if module is None:
            return True
        top = module.partition(".")[0]
        if top == _OWN:
            return bool(module == self.module)  # a function shipped with this package
        if top == self.package:
            return True
        if top in ("numpy", "builtins") or top in sys.stdlib_module_names:
            return False
        return not _is_installed(top)


def _mentions(code: CodeType) -> _Mentions:
    """Return what `code`, and code inside it, may look up."""
    found = _mentions_of.get(code)
    if found is None:
        every = list(_codes(code))
        found = _Mentions(
            frozenset(name for each in every for name in each.co_names),
            frozenset(pair for each in every for pair in _imports(each)),
        )
        if len(_mentions_of) >= PLACES:
            _mentions_of.clear()
        _mentions_of[code] = found
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imports(code: CodeType) -> Iterator[tuple[str, int]]:
    """Yield the module's name and the dots before it, of each import statement."""
    if _IMPORT_NAME not in code.co_code:
        return
    from dis import get_instructions  # slow, and few functions import

    dots: Any = 0  # the two constants that are loaded before an import
    names: Any = None
    for instruction in get_instructions(code):
        if instruction.opcode == _IMPORT_NAME:
            yield instruction.argval, dots
        if instruction.opname != "EXTENDED_ARG":
            dots, names = names, instruction.argval


def _dict_of(value: Any) -> dict[str, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def _is_generator(value: Any) -> bool:
    """Whether `value` is a random generator of NumPy, old or new."""
    # Looked up, because NumPy loads its random module when first asked for.
    module = sys.modules.get("numpy.random")
    return module is not None and isinstance(value, (module.Generator, module.RandomState))


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
