"""How formulas call ops and macros: the counts and names of what they take."""

from __future__ import annotations

import inspect
from typing import Any, TypeAlias

from stagedad.ops import (  # noqa: F401 (register macros)
    fft_macros,
    linalg_macros,
    macros,
    sequence_macros,
)
from stagedad.ops.expression import Signature

Entry: TypeAlias = "dict[str, Any]"


def call_signature(entry: Entry) -> Signature:
    """Return how formulas call the op of an entry."""
    count = len(entry["arguments"])
    has_list = any(is_list for _, is_list, _ in entry["arguments"])
    required = frozenset(name for name, default in entry["attributes"] if not default)
    names = tuple(name for name, _ in entry["attributes"])
    what = "list" if entry["returns_list"] or len(entry["results"]) > 1 else "array"
    return Signature((count, None if has_list else count), names, required, gives=what)


def _macros() -> dict[str, Signature]:
    """Return how the macros are called, from their Python signatures."""
    result = {}
    for name, macro in macros.MACROS.items():
        count = len(inspect.signature(macro.function).parameters) - macro.implicit
        what = None if macro.implicit else "metadata"  # those may give tuples
        result[name] = Signature((count, count), uses=frozenset(macro.uses), gives=what)
    return result


MACROS = _macros()
METADATA_MACROS = {
    name: signature for name, signature in MACROS.items() if macros.MACROS[name].implicit == 0
}
