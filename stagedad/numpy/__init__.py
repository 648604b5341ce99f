"""NumPy for functions that are traced: `import stagedad.numpy as np`.

Every public name of NumPy is here.  On plain arguments a function is NumPy's.
On traced values, also inside lists, it records an operation, or raises TraceError
where it cannot; it never makes plain numbers of them.  Types, dtypes and
constants are NumPy's own objects.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as _numpy

from stagedad.numpy import linalg as linalg
from stagedad.numpy._wrap import namespace as _namespace

_names = dict(_namespace(_numpy, __name__, dir(_numpy)))
globals().update(_names)

_OURS: Final = frozenset({"fft", "random"})
_PLAIN: Final = frozenset({
    "char", "ctypeslib", "dtypes", "emath", "exceptions", "lib", "ma", "polynomial", "rec",
    "strings", "testing", "typing",
})  # fmt: skip
"""Modules without functions of traced values; what they get of them raises in NumPy."""

__version__ = _numpy.__version__
__all__ = sorted({"linalg", *_names})


def __getattr__(name: str) -> Any:
    """Import the module `name` of NumPy when it is first asked for."""
    if name in _OURS:
        return import_module(f"{__name__}.{name}")
    if name in _PLAIN and name in dir(_numpy):
        return getattr(_numpy, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_OURS, *_PLAIN})
