"""`Program.profile`: where the time of a run goes, by node and by the user's line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from time import perf_counter
from typing import Any, Final

import numpy as np

from stagedad.plan import Plan, Step
from stagedad.plan.step import BLOCK, POISON
from stagedad.run._interpreter import Code
from stagedad.run._profile import time_runs

Array = np.ndarray[Any, Any]
Place = tuple[str, int]

SECONDS: Final = 0.05
"""About how long the runs of a profile take, if their number is not given."""

MOST_RUNS: Final = 1000


@dataclass(frozen=True, slots=True)
class Spent:
    """What one node, or one line of the user's code, costs a run."""

    what: str
    """The op of a node; the ops of a line, the dearest first."""
    node: int
    """Id of the node's value, as in the text of the graph; -1: of none, or of a line."""
    location: Place | None
    nanoseconds: float
    calls: int
    """How often loops are entered."""
    bytes: int
    """What the loops read and write; a value that is read twice counts twice."""

    @property
    def source(self) -> str:
        """The text of the line, if its file can be read."""
        return "" if self.location is None else linecache.getline(*self.location).strip()


@dataclass(frozen=True, slots=True)
class Profile:
    """Costs of a run, the least of `runs`.  Its text is a table by line, then one by node.

    The instructions were timed in runs of their own, with a clock between them, which
    keeps short ones from overlapping: their sum may exceed `nanoseconds`.
    """

    runs: int
    nanoseconds: float
    """Of a run without a clock in it."""
    nodes: tuple[Spent, ...]
    """In the order of the program."""

    @property
    def lines(self) -> tuple[Spent, ...]:
        """By line of the user's code, the dearest first."""
        grouped = _grouped(self.nodes, lambda node: node.location)
        return tuple(sorted(grouped, key=lambda spent: -spent.nanoseconds))

    def __str__(self) -> str:
        counted = sum(node.nanoseconds for node in self.nodes)
        head = (
            f"{_time(self.nanoseconds)} a run, {_time(counted)} in instructions, "
            f"least of {self.runs} runs"
        )
        names = _short_names(self.nodes)
        by_line = [_row(line, counted, names[line.location], line.what, line.source)
                   for line in self.lines]  # fmt: skip
        dearest = sorted(self.nodes, key=lambda spent: -spent.nanoseconds)[:MOST_ROWS]
        by_node = [
            _row(node, counted, _name(node), names[node.location], "") for node in dearest
        ]
        left = len(self.nodes) - len(dearest)
        more = [f"... and {left} nodes that take less"] if left else []
        return "\n".join(
            [head, "", *_table(["line", "ops", "source"], by_line),
             "", *_table(["node", "line", ""], by_node), *more]
        )  # fmt: skip


MOST_ROWS: Final = 20
"""Nodes in the text of a profile."""


def profile(code: Code, arrays: tuple[Array, ...], runs: int | None) -> Profile:
    """Return what `code` costs on arrays that fit it.

    Raises: ValueError for less than one run; what a run raises.
    """
    if runs is not None and runs < 1:
        raise ValueError(f"profile: one run or more: {runs}")
    targets = tuple([np.empty(want.shape, want.dtype) for want in code.plan.outputs])
    time_runs(code, arrays, targets, 1)  # caches are warm from here on
    if runs is None:
        start = perf_counter()
        time_runs(code, arrays, targets, 1)
        taken = perf_counter() - start
        runs = max(1, min(MOST_RUNS, int(SECONDS / max(taken, 1e-9))))
    whole, by_step = time_runs(code, arrays, targets, runs)
    return Profile(runs, whole, tuple(_by_node(code.plan, by_step)))


def _by_node(plan: Plan, by_step: Sequence[float]) -> list[Spent]:
    """Return the costs of nodes, which may have become several steps."""
    found = []
    blocks = 1  # how often the steps of the block are entered
    inside = 0
    for step, nanoseconds in zip(plan.steps, by_step, strict=True):
        if step.kind == POISON:
            continue
        if step.kind == BLOCK:
            n, length = step.dims
            blocks, inside = -(-n // length), step.count
            calls, moved = 0, 0
        else:
            calls = blocks if inside else step.calls
            inside -= inside > 0
            moved = _bytes(step)
        origin = step.origin
        found.append(Spent(origin.op, origin.node, origin.location, nanoseconds, calls, moved))
    return _grouped(found, lambda spent: (spent.what, spent.node))


def _bytes(step: Step) -> int:
    """Return the bytes that a step reads and writes; what strides of 0 repeat counts once."""
    total = 0
    for view in step.operands:
        size = 1
        for dim, stride in zip(view.shape, view.strides, strict=True):
            size *= dim if stride else min(dim, 1)
        total += size * view.itemsize
    return total


def _grouped(spent: Iterable[Spent], key: Callable[[Spent], Any]) -> list[Spent]:
    """Return sums over those of the same key, in the order in which the keys come."""
    groups: dict[Any, list[Spent]] = {}
    for each in spent:
        groups.setdefault(key(each), []).append(each)
    return [_sum(group) for group in groups.values()]


def _sum(group: Sequence[Spent]) -> Spent:
    first = group[0]
    shares: dict[str, float] = {}
    for each in group:
        shares[each.what] = shares.get(each.what, 0) + each.nanoseconds
    same_node = all(each.node == first.node for each in group)
    return Spent(
        ", ".join(sorted(shares, key=lambda op: -shares[op])),
        first.node if same_node else -1,
        first.location,
        sum(each.nanoseconds for each in group),
        sum(each.calls for each in group),
        sum(each.bytes for each in group),
    )


# -- as text --------------------------------------------------------------------------


def _short_names(spent: Iterable[Spent]) -> dict[Place | None, str]:
    """Return file names without folders, as long as these tell the files apart."""
    places = {each.location for each in spent}
    files = {place[0] for place in places if place is not None}
    short = {file: PurePath(file).name for file in files}
    if len(set(short.values())) < len(files):
        short = {file: file for file in files}
    return {place: "" if place is None else f"{short[place[0]]}:{place[1]}" for place in places}


def _name(node: Spent) -> str:
    return f"%{node.node} = {node.what}" if node.node >= 0 else node.what


def _row(spent: Spent, total: float, *texts: str) -> list[str]:
    share = 100 * spent.nanoseconds / total if total else 0.0
    first, *others = texts
    return [
        _time(spent.nanoseconds), f"{share:.1f}%", f"{spent.calls:,}", _size(spent.bytes),
        first, *[_cut(text) for text in others],
    ]  # fmt: skip


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    whole = [["time", "share", "calls", "bytes", *names], *rows]
    widths = [max(len(row[i]) for row in whole) for i in range(len(whole[0]))]
    lines = []
    for row in whole:
        cells = [
            cell.rjust(width) if i < 4 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _cut(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
