"""`explain`: what happens to a function's call besides computing, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import FunctionType
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError
from stagedad.front.constants import bases
from stagedad.front.reach import ATTRIBUTE, CELL, CODE, CONTENTS, ENTRY, ITEM
from stagedad.front.staged import Staged
from stagedad.front.transforms import jit
from stagedad.run import Finding, Program, findings
from stagedad.types import TensorType

_TITLES: Final = {
    "captured": "closed over",
    "donated": "written in place",
    "cast": "cast",
    "copied": "copied",
    "object": "called as an object",
}
_BY_VALUE: Final = (bool, int, float, complex, str, bytes, np.generic)
_HELD: Final = "held by reference, its contents are read at each run"
_COMPARED: Final = "read while tracing; other contents trace again"
_VALUE: Final = "a constant of the trace; another value traces again"
_MADE: Final = "made while tracing, a constant"
_LINES: Final = 20  # of text, a section


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a call of a function does besides computing.  Its text groups it by sort."""

    function: str
    findings: tuple[Finding, ...]
    instructions: int
    workspace_bytes: int
    watched: int
    """Places that are read again at each call: cells, globals, attributes, entries."""

    @property
    def captured(self) -> tuple[Finding, ...]:
        """Arrays and settings that the function closes over."""
        return self._of("captured")

    @property
    def donated(self) -> tuple[Finding, ...]:
        """Results that are written over an operand."""
        return self._of("donated")

    @property
    def cast(self) -> tuple[Finding, ...]:
        """Operands and results that change their dtype."""
        return self._of("cast")

    @property
    def copied(self) -> tuple[Finding, ...]:
        """Arrays that are copied."""
        return self._of("copied")

    @property
    def objects(self) -> tuple[Finding, ...]:
        """Ops for which Python is called."""
        return self._of("object")

    def _of(self, what: str) -> tuple[Finding, ...]:
        return tuple([each for each in self.findings if each.what == what])

    def __str__(self) -> str:
        lines = [
            f"{self.function}: {self.instructions} instructions, "
            f"{self.workspace_bytes:,} bytes of workspace; "
            f"{self.watched} places are read again at each call"
        ]
        for what, title in _TITLES.items():
            lines += _section(title, self._of(what))
        return "\n".join(lines)


def explain(f: Callable[..., Any] | Program, *args: Any, **kwargs: Any) -> Explanation:
    """Return what a call `f(*args, **kwargs)` does besides computing, and why.

    What it closes over, and which results are written in place, cast, copied or computed by
    a call of Python.  `f` is a transformed function, a function (taken as `jit(f)`), or a
    Program.  It is traced if it was not yet, and not run.

    Raises: as the call, but for what only a run can meet.

    >>> print(explain(lambda x: x.astype("f4") + 1, np.ones(3)).cast[0].why)
    f64 to f32, as the function asks
    """
    if isinstance(f, Program):
        program, found, name, watched = f, [], "program", 0
        plan = program.plan_for(*args, **kwargs)
    else:
        staged = f if isinstance(f, Staged) else jit(f)
        entry, arrays = staged.prepared(args, kwargs)
        found, watched = list(_captured(entry)), len(entry.reach)
        name = staged.__name__
        plan = entry.program.plan_for(*arrays)
    found += findings(plan)
    return Explanation(name, tuple(found), len(plan.steps), plan.arena_bytes, watched)


def _captured(entry: Any) -> Iterator[Finding]:
    """Yield what a function closes over, as far as its trace depends on it."""
    places = entry.reach.places()
    held = {id(base) for array in entry.graph.constants for base in bases(array)}
    compared = {id(array) for where, array, _, _ in places if where == CONTENTS}
    names = _cell_names(places)
    reached = set()
    for where, container, key, value in places:
        if where not in (CELL, ENTRY, ITEM, ATTRIBUTE):
            continue
        name = names.get(id(container), "a cell") if where == CELL else str(key)
        if isinstance(value, np.ndarray):
            reached.add(id(value))
            if id(value) in held:
                yield Finding("captured", name, _type_of(value), _HELD)
            elif id(value) in compared:
                yield Finding("captured", name, _type_of(value), _COMPARED)
        elif isinstance(value, _BY_VALUE):
            yield Finding("captured", name, None, f"{value!r}: {_VALUE}")
    for node in entry.graph.nodes():
        array = node.attributes["value"] if node.kind == "constant" else None
        if isinstance(array, np.ndarray) and not any(id(a) in reached for a in bases(array)):
            location = node.location
            yield Finding("captured", "array", _type_of(array), _MADE, location, node.output.id)


def _cell_names(places: Sequence[tuple[Any, ...]]) -> dict[int, str]:
    """Return the names of closure cells, by their ids."""
    names = {}
    for where, function, _, _ in places:
        if where == CODE and isinstance(function, FunctionType):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
            names.update({id(cell): name for name, cell in cells})
    return names


def _type_of(array: np.ndarray[Any, Any]) -> TensorType | None:
    try:
        return TensorType.of(array)
    except DTypeError:
        return None


def _section(title: str, found: Sequence[Finding]) -> list[str]:
    """Return one sort of findings as text, equal ones in one line."""
    if not found:
        return [f"{title}: nothing"]
    groups: dict[Any, list[Finding]] = {}
    for each in found:
        groups.setdefault((each.op, each.type, each.why, each.location), []).append(each)
    lines = [f"{title}:"]
    for (op, type_, why, location), group in list(groups.items())[:_LINES]:
        times = f"{len(group)} x " if len(group) > 1 else ""
        kind = "" if type_ is None else f" {type_}"
        where = "" if location is None else f" ({PurePath(location[0]).name}:{location[1]})"
        lines.append(f"  {times}{op}{kind}: {why}{where}")
    if len(groups) > _LINES:
        lines.append(f"  ... and {len(groups) - _LINES} more")
    return lines
