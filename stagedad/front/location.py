"""Where in the user's code a value was made."""

from __future__ import annotations

import sys
import warnings
from os.path import dirname, sep
from typing import Any

import numpy as np

from stagedad.front._location import find

# Code of these folders works for the user's code: a node belongs to whoever called it.
_INSIDE = tuple(
    [
        dirname(file) + separator
        for file in (dirname(__file__), np.__file__)
        for separator in ("/", "\\")
    ]
)

# So does that of packages whose functions call ufuncs for the user.
_CALLERS = ("scipy", "numba")

_warned: dict[Any, Any] = {}  # what the warnings module keeps a file, to warn once a line


def user_location() -> tuple[str, int]:
    """Return file and line of the nearest frame outside of stagedad and NumPy.

    Cost: a dict look-up a frame, and a search among its lines.
    """
    return find(is_outside)


def place() -> str:
    """Return the user's file and line as messages write them."""
    file, line = user_location()
    return f"{file}:{line}"


def is_outside(file: str) -> bool:
    """Return whether code of `file` is the user's."""
    if file.startswith(_INSIDE) or file.startswith("<frozen"):
        return False
    for name in _CALLERS:
        home = getattr(sys.modules.get(name), "__file__", None)
        if home and file.startswith(dirname(home) + sep):
            return False
    return True


def warn(message: str) -> None:
    """Issue a UserWarning at the user's line, by default once a line."""
    warnings.warn_explicit(message, UserWarning, *user_location(), registry=_warned)
