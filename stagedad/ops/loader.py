"""From declarations (TOML) to checked entries, as plain literals.

Runs when the package is built and when a user adds an op.  Whatever is wrong
raises DeclarationError with file, entry, key, line and column: a declaration
that loads has names that resolve, calls of the right arity, and one rule for
every tensor argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from stagedad.ops.calls import Entry, call_signature
from stagedad.ops.draft import Draft
from stagedad.ops.places import Places
from stagedad.ops.toml import read_toml, texts_of


def load(paths: Iterable[Path], known: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """Return the entries of the files at `paths`, by kind, checked against each other.

    Formulas may also use the ops of `known` entries, which are not returned.

    Raises: DeclarationError at the first thing that is wrong.
    """
    return load_texts(texts_of(paths), known)


def load_texts(
    texts: Mapping[str, str], known: Mapping[str, Entry] | None = None
) -> dict[str, Entry]:
    """Return the entries of `texts` (file name -> TOML), as `load` does."""
    drafts: dict[str, Draft] = {}
    for file, text in texts.items():
        for kind, raw in read_toml(file, text).items():
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
    orders: dict[str, float] = dict.fromkeys(entries, inf)
    for kind, entry in known.items():
        orders[kind] = inf if entry["max_order"] is None else entry["max_order"]
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
                order = 1 + min((orders[use] for use in uses[kind]), default=inf)
                # An auxiliary result has no derivative, so that what reads it has none more.
                order = min(order, 1.0 if _reads_aux(entries[kind]) else inf)
            if order < orders[kind]:
                orders[kind], changed = order, True
    return {kind: None if orders[kind] == inf else int(orders[kind]) for kind in entries}


def _uses(entry: Entry) -> set[str]:
    return {use for _, _, _, uses in _formulas(entry) for use in uses}


def _reads_aux(entry: Entry) -> bool:
    kinds = entry["facts"].get("outputs", {})
    reads = {name for _, _, reads, _ in _formulas(entry) for name in reads}
    return any(kinds.get(name) == "aux" for name in reads)


def _formulas(entry: Entry) -> list[tuple[Any, ...]]:
    formulas = [*entry["partials"].values(), *entry["vjps"].values()]
    return [*formulas, entry["jvp"]] if isinstance(entry["jvp"], tuple) else formulas


def _place(text: str, kind: str, key: str | None, offset: int | None) -> tuple[int, int]:
    """Return line and column of a key of an entry, or of `offset` in its value."""
    path = (kind, *key.split(".", 1)) if key else (kind,)
    return Places(text).find(path, offset)
