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
    return Signature((count, None if has_list else count), names, required)


def _macros() -> dict[str, Signature]:
    """Return how the macros are called, from their Python signatures."""
    result = {}
    for name, macro in macros.MACROS.items():
        count = len(inspect.signature(macro.function).parameters) - macro.implicit
        result[name] = Signature((count, count), uses=frozenset(macro.uses))
    return result


MACROS = _macros()
METADATA_MACROS = {
    name: signature for name, signature in MACROS.items() if macros.MACROS[name].implicit == 0
}
