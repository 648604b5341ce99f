"""Where in the user's code a value was made."""

from __future__ import annotations

from os.path import dirname

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
    return not (file.startswith(_INSIDE) or file.startswith("<frozen"))
