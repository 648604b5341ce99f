"""Ops that come to the table at run time: SciPy's on their first use, and those of users.

One lock guards additions; readers need none, since an op is made and checked before it is put
into the table, and is never taken out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from stagedad.errors import suggestion
from stagedad.ops.op import Op
from stagedad.ops.table import ENTRIES, OPS, add_op, make_op, resolve

if TYPE_CHECKING:
    from stagedad.ops.calls import Entry
    from stagedad.ops.draft import Draft

__all__ = [
    "LISTENERS",
    "advice",
    "declare",
    "find",
    "kind_of",
    "kinds",
    "load_scipy",
    "scipy_ops",
]

LISTENERS: Final[list[Callable[[str], Any]]] = []
"""Called with the kind of each new op: by what remembers that there was none."""

_lock = RLock()
_kinds: Final[dict[Any, str]] = {}
_scipy_loaded = False
_SPECIAL = "scipy.special"
_NONE: Final[Entry] = {"facts": {}}


def kind_of(function: Any) -> str | None:
    """Return the kind that records a ufunc of SciPy's or a user's; None if there is none.

    SciPy is not imported: whoever has a ufunc of its has done that.
    """
    found = _kinds.get(function)
    if found is None and not _scipy_loaded and _SPECIAL in sys.modules and load_scipy():
        found = _kinds.get(function)
    return found


def kinds() -> tuple[str, ...]:
    """Return the kinds there are, SciPy's too if the process uses it."""
    if _SPECIAL in sys.modules:
        load_scipy()
    return tuple(OPS)


def find(kind: str) -> str | None:
    """Return the kind in the table that `kind` names; None if there is none.

    One of SciPy's imports SciPy, if it is installed: a graph may name what this process has
    not used yet.
    """
    name = resolve(kind)
    if name in OPS:
        return name
    if not _scipy_loaded and kind in _scipy_names() and load_scipy():
        name = resolve(kind)
    return name if name in OPS else None


def advice(kind: str) -> str:
    """Return what to do about a kind that is no op of the table."""
    if kind in _scipy_names():
        return "it is an op of scipy.special, which is not installed here, or too old"
    near = suggestion(kind, OPS)
    register = "sd.register_op and sd.register_ufunc add ops, in every process that uses them"
    return f"{near} {register}" if near else register


def load_scipy() -> bool:
    """Bring SciPy's ops into the table; return whether SciPy is installed.

    Those that this SciPy lacks stay out.
    """
    global _scipy_loaded
    if _scipy_loaded:
        return True
    try:
        # Another thread may be importing it: this waits until it is whole.
        special = import_module(_SPECIAL)
    except ImportError:
        return False
    with _lock:
        if not _scipy_loaded:
            for kind, entry in _scipy_table().items():
                ufunc = _attribute(special, entry["scipy"])
                if ufunc is not None:
                    _publish(kind, entry, make_op(entry, ufunc), ufunc)
            for kind, entry in list(ENTRIES.items()):
                ufunc = entry["scipy"] and _attribute(special, entry["scipy"])
                if ufunc:
                    _kinds.setdefault(ufunc, kind)
            _scipy_loaded = True
    return True


def scipy_ops() -> dict[str, Op]:
    """Return SciPy's ops by kind, whether or not SciPy is installed."""
    return {kind: make_op(entry) for kind, entry in _scipy_table().items()}


def declare(draft: Draft, **parts: Any) -> Op:
    """Add the op of a draft and return it, or the same one that is there already.

    `parts` are its ufunc and functions; calls of the ufunc are recorded from then on.

    Raises: DeclarationError if the draft is wrong, or another op has the kind or a function.
    """
    # Checking is for builds and for those who register; importing stagedad does without.
    from stagedad.ops.loader import finish

    kind = draft.kind
    with _lock:
        before = OPS[kind] if "registered" in ENTRIES.get(kind, _NONE)["facts"] else None
        known = {**_scipy_table(), **ENTRIES}
        if before is not None:
            del known[kind]
        entry = finish({kind: draft}, known)[kind]
        entry["family"] = "registered"
        entry["facts"]["registered"] = f"{draft.file}:{draft.place(None, None)[0]}"
        if before is not None:
            if _is_alike(ENTRIES[kind], entry) and all(
                _is_same(getattr(before, name), part) for name, part in parts.items()
            ):
                return before
            place = before.facts["registered"]
            draft.fail(None, f"is another op since {place}", "another name: name=")
        keys = [parts["ufunc"], parts["function"]] if parts.get("ufunc") is not None else []
        for key in keys:
            if key is not None and kind_of(key) is not None:
                draft.fail(None, f"its function is op '{kind_of(key)}' already")
        op = make_op(entry, **parts)
        _publish(kind, entry, op, *keys)
        return op


def _publish(kind: str, entry: Entry, op: Op, *keys: Any) -> None:
    ENTRIES[kind] = entry
    add_op(op)
    for listener in LISTENERS:
        listener(kind)
    # Last: from here on calls of the function are recorded.
    _kinds.update(dict.fromkeys(keys, kind))


def _is_alike(old: Entry, new: Entry) -> bool:
    """Whether two entries say the same, wherever they stand."""
    return all(old[key] == new[key] for key in new if key != "facts")


def _is_same(old: Any, new: Any) -> bool:
    """Whether two functions are one, perhaps defined twice from one source, as in notebooks."""
    if old is new:
        return True
    code = getattr(old, "__code__", None)
    if code is None or code != getattr(new, "__code__", None):
        return False
    cells = [
        [cell.cell_contents for cell in function.__closure__ or ()] for function in (old, new)
    ]
    return (
        old.__module__ == new.__module__
        and old.__defaults__ == new.__defaults__
        and old.__kwdefaults__ == new.__kwdefaults__
        and len(cells[0]) == len(cells[1])
        and all(left is right for left, right in zip(*cells, strict=True))
    )


def _attribute(module: Any, path: str) -> Any:
    """Return what a dotted path names, or None."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


@cache
def _scipy_table() -> dict[str, dict[str, Any]]:
    # Nobody who does without SciPy pays for its import.
    table: dict[str, dict[str, Any]] = import_module("stagedad.ops._gen_scipy_table").TABLE
    return table


@cache
def _scipy_names() -> frozenset[str]:
    table = _scipy_table()
    return frozenset(table).union(*[entry["aliases"] for entry in table.values()])
