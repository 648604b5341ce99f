"""What exists: one declaration an op, read by every other layer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from stagedad.ops.op import REQUIRED, Argument, Formula, Op
from stagedad.ops.registry import find, kind_of, kinds
from stagedad.ops.table import OPS, complete, evaluate, infer, resolve

__all__ = [
    "OPS",
    "REQUIRED",
    "Argument",
    "Formula",
    "Op",
    "complete",
    "evaluate",
    "find",
    "infer",
    "kind_of",
    "resolve",
]


class _Ops(ModuleType):
    """The module as a read-only collection of kinds, as `sd.ops` is used."""

    def __iter__(self) -> Iterator[str]:
        return iter(kinds())

    def __len__(self) -> int:
        return len(kinds())

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, str) and find(kind) is not None

    def __getitem__(self, kind: str) -> Op:
        return OPS[find(kind) or kind]


sys.modules[__name__].__class__ = _Ops
