"""Reading TOML, so that what is none is a DeclarationError with a place.

What tomllib raises has sometimes no place, and never an entry and key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stagedad.errors import DeclarationError


def texts_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the texts of the files at `paths` by the names of the files.

    Raises: DeclarationError for what is not UTF-8, and for two files of one name.
    """
    texts: dict[str, str] = {}
    for path in paths:
        if path.name in texts:
            problem = f"{path.name}:1:1: two files of this name"
            raise DeclarationError(problem, file=path.name, line=1, column=1)
        data = path.read_bytes()
        try:
            texts[path.name] = data.decode()
        except UnicodeDecodeError as error:
            line, column = data.count(b"\n", 0, error.start) + 1, error.start
            column -= data.rfind(b"\n", 0, error.start)
            problem = f"{path.name}:{line}:{column}: not UTF-8"
            raise DeclarationError(problem, file=path.name, line=line, column=column) from None
    return texts


def read_toml(file: str, text: str) -> dict[str, Any]:
    """Return what `text` says.

    Raises: DeclarationError, where the text is broken with the entry and key nearest to it.
    """
    try:
        text.encode()
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Beside its own error, tomllib lets through those of surrogates, of numbers of
        # thousands of digits, and of thousands of brackets.
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        place = re.search(r"line (\d+), column (\d+)", reason)
        if place:
            line, column = map(int, place.groups())
        else:
            at = _suspect(text, error)
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        if isinstance(error, UnicodeEncodeError):
            reason = "a surrogate is no character"
        entry, key = _nearest(text, line)
        where = ": ".join([f"{file}:{line}:{column}", *filter(None, (entry, key))])
        raise DeclarationError(
            f"{where}: not TOML: {reason.split(' (at')[0]}",
            op=entry, file=file, entry=entry, key=key, line=line, column=column,
        ) from None  # fmt: skip


def _suspect(text: str, error: Exception) -> int:
    """Return where that is which tomllib could not read and did not say where."""
    if isinstance(error, UnicodeEncodeError):
        return error.start
    digits, brackets = r"\d[\d_]{4299,}", r"(?:[\[{][^\[\]{}\n]*){100,}"
    open_string = r"(?m)(?<==)[ \t]*(['\"])(?!\1)(?:(?!\1).)*$"
    for pattern in (digits, brackets, open_string):
        match = re.search(pattern, text)
        if match:
            return match.start()
    return len(text)


def _nearest(text: str, line: int) -> tuple[str | None, str | None]:
    """Return the entry and key that a line of broken TOML seems to belong to."""
    entry = key = None
    for above in text.split("\n")[:line]:
        header = re.match(r"\s*\[\s*[\"']?(\w+)[\"']?\s*(?:\.\s*([\w.]+)\s*)?\]", above)
        pair = re.match(r"\s*([\w.]+)\s*=", above)
        if header:
            entry, section, key = header[1], header[2], None
        elif pair and entry:
            key = f"{section}.{pair[1]}" if section else pair[1]
    return entry, key
