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
_is_inside: dict[str, bool] = {}  # file name -> whether its frames are passed over


def user_location() -> tuple[str, int]:
    """Return file and line of the nearest frame outside of stagedad and NumPy.

    Cost: a dict look-up a frame.
    """
    return find(_is_inside, _decide)


def place() -> str:
    """Return the user's file and line as messages write them."""
    file, line = user_location()
    return f"{file}:{line}"


def _decide(file: str) -> bool:
    return file.startswith(_INSIDE) or file.startswith("<frozen")
