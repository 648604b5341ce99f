"""`numpy.linalg` for functions that are traced: see `stagedad.numpy`."""

from __future__ import annotations

from typing import Any

import numpy.linalg as _linalg

from stagedad.numpy._wrap import namespace as _namespace

_names = dict(_namespace(_linalg, __name__, dir(_linalg)))
globals().update(_names)
__all__ = sorted(_names)


def __getattr__(name: str) -> Any:
    """Say that there is no such name; type checkers learn from this that names are dynamic."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
