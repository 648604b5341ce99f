"""Where the keys and values of a TOML text stand, which tomllib does not tell.

For texts that tomllib has read: what they say is not checked again.
"""

from __future__ import annotations

import re
import tomllib
from typing import TypeAlias

Path: TypeAlias = "tuple[str, ...]"

_BARE = re.compile(r"[\w-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_ESCAPES = {"u": 6, "U": 10}


class Places:
    """Offsets of the keys and values of one text, by their paths."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}
        self._at = 0
        self._document()

    def find(self, path: Path, offset: int | None = None) -> tuple[int, int]:
        """Return line and column, from 1, of the key at `path`, or of the nearest above it.

        With an `offset`, of that character of its value, if that is a string.
        """
        while path and path not in self.keys:
            path, offset = path[:-1], None
        at = self.keys.get(path, 0)
        if offset is not None and self.text[self.values[path]] in "\"'":
            at = self._character(self.values[path], offset)
        return self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)

    def _document(self) -> None:
        above: Path = ()
        while self._skip_blank():
            if self.text[self._at] != "[":
                self._pair(above)
                continue
            start = self._at
            self._at += 2 if self.text.startswith("[[", start) else 1
            above = self._path()
            while self.text.startswith("]", self._at):
                self._at += 1
            self._note(above, start)

    def _note(self, path: Path, start: int) -> None:
        for length in range(1, len(path) + 1):
            self.keys.setdefault(path[:length], start)

    def _pair(self, above: Path) -> None:
        start = self._at
        path = above + self._path()
        self._note(path, start)
        self._at += 1
        self._skip_blank()
        self.values[path] = self._at
        self._value(path)

    def _path(self) -> Path:
        parts = []
        while True:
            self._skip_blank()
            start = self._at
            if self.text[start] in "\"'":
                self._string()
                parts.append(tomllib.loads(f"name = {self.text[start : self._at]}")["name"])
            else:
                parts.append(self._match(_BARE))
            self._skip_blank()
            if self.text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _value(self, path: Path) -> None:
        first = self.text[self._at]
        if first in "\"'":
            self._string()
        elif first in "[{":
            self._at += 1
            self._skip_blank()
            while self.text[self._at] not in "]}":
                if first == "{":
                    self._pair(path)
                else:
                    self._value(path)
                self._skip_blank()
                if self.text[self._at] == ",":
                    self._at += 1
                    self._skip_blank()
            self._at += 1
        else:
            self._match(_SCALAR)

    def _string(self) -> None:
        start, quote = self._at, self.text[self._at]
        fence = quote * 3 if self.text.startswith(quote * 3, start) else quote
        self._at += len(fence)
        while not self.text.startswith(fence, self._at):
            self._at += 2 if quote == '"' and self.text[self._at] == "\\" else 1
        self._at += len(fence)
        # Up to two quotes may stand before those that end a long string.
        while len(fence) == 3 and self.text.startswith(quote, self._at):
            self._at += 1

    def _character(self, start: int, offset: int) -> int:
        """Return the place of the character number `offset` of the string at `start`."""
        text, quote = self.text, self.text[start]
        is_long = text.startswith(quote * 3, start)
        at = start + (3 if is_long else 1)
        at += is_long and text.startswith("\n", at)
        for _ in range(offset):
            if text.startswith(quote * 3 if is_long else quote, at):
                break
            at = self._step(at, quote)
        return self._step(at, quote, most=0)

    def _step(self, at: int, quote: str, most: int = 1) -> int:
        """Return where the next character begins; most=0: where that at `at` does."""
        text = self.text
        while quote == '"' and text.startswith("\\", at):
            gap = re.compile(r"\\[ \t]*\n\s*").match(text, at)
            if gap is None:
                return at + most * _ESCAPES.get(text[at + 1], 2)
            at = gap.end()
        return at + most

    def _skip_blank(self) -> bool:
        """Pass over blanks, line ends and comments; return whether something follows."""
        self._match(_BLANK)
        return self._at < len(self.text)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]
