"""From declarations (TOML) to checked entries, as plain literals.

Runs when the package is built and when a user adds an op.  Whatever is wrong
raises DeclarationError with file, entry, key, line and column: a declaration
that loads has names that resolve, calls of the right arity, and one rule for
every tensor argument.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stagedad.errors import DeclarationError
from stagedad.ops.calls import Entry, call_signature
from stagedad.ops.draft import Draft


def load(paths: Iterable[Path], known: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """Return the entries of the files at `paths`, by kind, checked against each other.

    Formulas may also use the ops of `known` entries, which are not returned.

    Raises: DeclarationError at the first thing that is wrong.
    """
    return load_texts({path.name: path.read_text(encoding="utf-8") for path in paths}, known)


def load_texts(
    texts: Mapping[str, str], known: Mapping[str, Entry] | None = None
) -> dict[str, Entry]:
    """Return the entries of `texts` (file name -> TOML), as `load` does."""
    drafts: dict[str, Draft] = {}
    for file, text in texts.items():
        for kind, raw in _read(file, text).items():
            draft = Draft(file, kind, raw, partial(_place, text, kind))
            if kind in drafts:
                draft.fail("signature", f"declared in {drafts[kind].file} already")
            drafts[kind] = draft
    return finish(drafts, known or {})


def finish(drafts: Mapping[str, Draft], known: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries of `drafts`, checked against each other and those that are known."""
    for draft in drafts.values():
        draft.check_keys()
        draft.read_signature()
    _check_names(drafts, known)
    ops = {kind: call_signature(entry) for kind, entry in known.items()}
    ops |= {kind: draft.call_signature() for kind, draft in drafts.items()}
    entries = {kind: draft.entry(ops) for kind, draft in drafts.items()}
    for kind, order in _orders(entries, known).items():
        entries[kind]["max_order"] = order
    return entries


def _read(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = map(int, place.groups()) if place else (None, None)
        where = f"{file}:{line}:{column}" if place else file
        problem = f"{where}: not TOML: {str(error).split(' (at')[0]}"
        raise DeclarationError(problem, file=file, line=line, column=column) from None


def _check_names(drafts: Mapping[str, Draft], known: Mapping[str, Entry]) -> None:
    owner = {alias: kind for kind, entry in known.items() for alias in entry["aliases"]}
    owner |= {kind: kind for kind in known}
    for kind, draft in drafts.items():
        if kind in owner:
            what = "is an op" if owner[kind] == kind else f"names {owner[kind]}"
            draft.fail(None, f"'{kind}' {what} already", "another name")
        for alias in draft.raw.get("aliases", ()):
            if alias in drafts or alias in owner:
                draft.fail("aliases", f"'{alias}' names {owner.get(alias, alias)} already")
            owner[alias] = kind


def _orders(entries: Mapping[str, Entry], known: Mapping[str, Entry]) -> dict[str, int | None]:
    """Return how often each op can be differentiated; None: without end.

    An op has one order more than the least of those that its formulas emit.  The
    greatest fixed point is wanted (exp emits itself), so all start without end.
    Arguments without a derivative count only where no other has one.
    """
    orders: dict[str, float] = dict.fromkeys(entries, float("inf"))
    for kind, entry in known.items():
        orders[kind] = float("inf") if entry["max_order"] is None else entry["max_order"]
    rules = {
        kind: [rule for _, _, rule in entry["arguments"]] for kind, entry in entries.items()
    }
    uses = {kind: _uses(entry) for kind, entry in entries.items()}
    changed = True
    while changed:
        changed = False
        for kind in entries:
            if "not_implemented" in rules[kind] and "formula" not in rules[kind]:
                order = 0.0
            else:
                order = 1 + min((orders[use] for use in uses[kind]), default=float("inf"))
            if order < orders[kind]:
                orders[kind], changed = order, True
    return {
        kind: None if orders[kind] == float("inf") else int(orders[kind]) for kind in entries
    }


def _uses(entry: Entry) -> set[str]:
    formulas = [*entry["partials"].values(), *entry["vjps"].values()]
    if isinstance(entry["jvp"], tuple):
        formulas.append(entry["jvp"])
    return {use for _, _, _, uses in formulas for use in uses}


def _place(text: str, kind: str, key: str | None, offset: int | None) -> tuple[int, int]:
    """Return line and column, from 1, of a key or of `offset` in its value.

    tomllib keeps no places, so the text is searched: for the header, then the key.
    """
    lines = text.splitlines()
    header = re.compile(rf"\s*\[\s*[\"']?{re.escape(kind)}[\"']?\s*(\.\s*([\w.]+)\s*)?\]")
    number, section = 0, ""
    found: tuple[int, int] | None = None
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("["):
            match = header.match(line)
            section = (f"{match[2]}." if match and match[2] else "") if match else "?"
            if match and found is None:
                found = (number, 1)
        elif key is not None and section != "?" and found:
            match = re.match(r"\s*([\w.\"']+)\s*=\s*([\"']{0,3})", line)
            if match and section + re.sub(r"[\"' ]", "", match[1]) == key:
                start = match.start(1) if offset is None else match.end() + offset
                return number, start + 1
    return found or (1, 1)
