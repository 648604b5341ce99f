"""Table C of the report: what it costs to build a graph, to differentiate it, to be ready.

Kept apart from pytest-benchmark: these figures are CPU time by the node or ratios, and memory
is among them. The libraries take turns, and take part once they give the right numbers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import chain as joined
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy

from bench import peers, targets
from bench.agree import difference
from bench.measure import in_turn, once
from bench.peers import Transforming
from bench.peers.numpy_hand import chain, operations

MILLION = 1_000_000
NODES = (1_000, 10_000, 100_000)
LARGEST = {"JAX": 10_000, "JAX's compiler": 1_000, "TorchScript": 1_000}
"""Nodes up to which a library takes part: JAX needs half a second a thousand, its compiler ten
times that and nine gigabytes at 10^4, TorchScript four times as long for twice as many."""
LARGEST_OF_ALL = {"JAX": 100_000, "JAX's compiler": 1_000, "TorchScript": 10_000}
OPERATIONS = 1_000

Libraries = dict[str, Transforming]


class Line(NamedTuple):
    """One line of the table; `unit` goes for all figures but the ratio."""

    work: str
    unit: str
    measured: Mapping[str, float]
    """By library; that of `stagedad` counts."""
    limit: float | None = None
    stated: Mapping[str, float] = {}
    """What the peers took where the target was set."""

    @property
    def ours(self) -> float:
        """What stagedad takes."""
        return self.measured["stagedad"]

    @property
    def scaled(self) -> tuple[float | None, str]:
        """The limit here, by the peer that slowed down least since the target was set."""
        ratios = {name: self.measured[name] / self.stated[name] for name in self._comparable}
        least = min(ratios, key=lambda name: ratios[name], default=None)
        if self.limit is None or least is None or ratios[least] <= 1:
            return self.limit, "none"
        return self.limit * ratios[least], least

    @property
    def missed(self) -> str | None:
        """What to say if the target is missed."""
        limit, by = self.scaled
        if limit is None or self.ours <= limit:
            return None
        scaled = "" if by == "none" else f" ({self.limit:.3g} scaled by {by})"
        return (
            f"{self.work}: {self.ours:.3g} {self.unit}, {self.ours / limit:.1f} x the limit "
            f"{limit:.3g}{scaled}"
        )

    def cells(self, names: Iterable[str]) -> list[str]:
        """Write the line, with a column for each of `names`."""
        limit, by = self.scaled
        shown = [self.work, self._figure("stagedad"), *map(self._figure, names)]
        others = [figure for name, figure in self.measured.items() if name != "stagedad"]
        shown.append(f"{self.ours / min(others):.3g}" if others else "-")
        shown += ["-" if each is None else f"{each:.3g}" for each in (self.limit, limit)]
        verdict = "-" if limit is None else "met" if self.missed is None else "missed"
        return [*shown, by, verdict]

    @property
    def _comparable(self) -> list[str]:
        return [
            name for name in targets.SCALES if name in self.measured and name in self.stated
        ]

    def _figure(self, name: str) -> str:
        if name not in self.measured:
            return "-"
        figure = f"{self.measured[name]:.3g} {self.unit}"
        return f"{figure} ({self.stated[name]:.3g})" if name in self.stated else figure


def transforming(*, everything: bool) -> list[str]:
    """Print table C, with the longest graphs too if `everything`. Returns what missed."""
    libraries, notes = _libraries()
    if "stagedad" not in libraries:
        print("skipped: table C: " + "; ".join(notes))
        return []
    others = [name for name in libraries if name != "stagedad"]
    heads = ["work", "stagedad", *others, "/ best peer", "target", "here", "by", "verdict"]
    print("\nC. transforming, CPU time, the same work in turn\n\n| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    missed = []
    largest = LARGEST_OF_ALL if everything else LARGEST
    for line in joined(
        _life(libraries),
        _differentiate(libraries, largest, everything),
        _first(libraries),
        _growth(),
    ):
        print("| " + " | ".join(line.cells(others)) + " |", flush=True)
        missed += [] if line.missed is None else [line.missed]
    print(
        "\nIn brackets: what the peer took where the targets were set. Peers create graphs of\n"
        "10^5 nodes. JAX differentiates while it traces; what makes the result run is its\n"
        "compiler. TorchScript's differentiation is quadratic in the nodes."
    )
    for note in notes:
        print(note)
    for name, nodes in largest.items():
        if name.partition("'")[0] in libraries:
            print(f"left out: {name}: graphs of more than {nodes:,} nodes")
    return missed


def _libraries() -> tuple[Libraries, list[str]]:
    """Give the libraries that are there and right; say why the others are not."""
    random = numpy.random.default_rng(7)
    a, b, g = random.uniform(0.5, 1, (3, 16))
    found, notes = {}, []
    for name in peers.TRANSFORMERS:
        try:
            library = peers.transforming(name)
        except peers.Missing as missing:
            notes.append(f"skipped: {missing}")
            continue
        for what, got, wanted in (
            (
                "chain",
                library.results(library.differentiate(20)(), a, b, g),
                chain(a, b, g, 20),
            ),
            ("operations", library.first(31, a)(), operations(31, a)),
        ):
            wrong = difference(float, tuple(got), wanted)
            if wrong is not None:
                notes.append(f"WRONG, not timed: {name}: {what}: {wrong}")
                break
        else:
            found[name] = library
    return found, notes


def _life(libraries: Libraries) -> list[Line]:
    """Create, hold and free a graph: of 10^6 nodes, and 10^5 where nothing is promised."""
    create, size, free = {}, {}, {}
    for name, library in libraries.items():
        if library.create is not None:
            nodes = MILLION if name == "stagedad" else MILLION // 10
            create[name], size[name], free[name] = _life_in_a_process(name, nodes)
    lines = [Line("create a node, of 10^6", "us", create, targets.CREATE)]
    if all(size.values()):
        lines.append(Line("memory of a node, of 10^6", "bytes", size, targets.BYTES))
    return [*lines, Line("free a node, of 10^6", "us", free, targets.FREE)]


def _life_in_a_process(name: str, nodes: int) -> tuple[float, float, float]:
    """Give what `life` gives, in a process where no memory was freed before."""
    root = str(Path(__file__).parents[1])
    code = f"import sys; sys.path.append({root!r}); from bench.transforming import life; "
    code += f"print(*life({name!r}, {nodes}))"
    run = subprocess.run([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, check=True)
    create, size, free = map(float, run.stdout.split())
    return create, size, free


def life(name: str, nodes: int) -> tuple[float, float, float]:
    """Give microseconds and bytes of a node, and microseconds to free it."""
    create = peers.transforming(name).create
    assert create is not None
    create(1_000)
    before = _resident()
    held: list[object] = []
    made = once(lambda: held.append(create(nodes)))
    after = _resident()
    freed = once(held.clear)
    return made / nodes * 1e6, (after - before) / nodes, freed / nodes * 1e6


def _differentiate(
    libraries: Libraries, largest: Mapping[str, int], everything: bool
) -> Iterable[Line]:
    """Differentiate chains by both inputs, and make the result run, by the forward node."""
    for nodes in (*NODES, *([MILLION] if everything else [])):
        bounds = {"stagedad": MILLION, **largest}
        room = {
            name: library
            for name, library in libraries.items()
            if nodes <= bounds.get(name, NODES[-1])
        }
        works = {name: library.differentiate(nodes) for name, library in room.items()}
        yield Line(
            f"differentiate, a node of {nodes:,}",
            "us",
            _by_node(works, nodes),
            targets.DIFFERENTIATE,
            targets.DIFFERENTIATED if nodes == 10_000 else {},
        )
        if nodes < MILLION:
            if nodes > largest["JAX's compiler"]:
                room.pop("JAX", None)
            ready = {name: library.ready for name, library in room.items()}
            runs = {name: make(works[name]()) for name, make in ready.items() if make}
            yield Line(f"make it run, a node of {nodes:,}", "us", _by_node(runs, nodes))


def _by_node(works: Mapping[str, Callable[[], object]], nodes: int) -> dict[str, float]:
    return {name: taken / nodes * 1e6 for name, taken in in_turn(works).items()}


def _first(libraries: Libraries) -> list[Line]:
    """From a function of 1,000 operations, never seen, to its first value and gradient."""
    x = numpy.linspace(0, 1, 16)
    fresh = {name: _anew(library, x) for name, library in libraries.items()}
    measured = {name: taken * 1e3 for name, taken in in_turn(fresh).items()}
    work = f"{OPERATIONS:,} operations, from function to first value and gradient"
    return [Line(work, "ms", measured, targets.FIRST_RESULT, targets.FIRST_RESULTS)]


def _anew(library: Transforming, x: Any) -> Callable[[], object]:
    return lambda: library.first(OPERATIONS, x)()


def _growth() -> list[Line]:
    """Later calls of `s += x[i] * x[i]`, value and gradient: four times the elements."""
    import stagedad as sd

    def squares(x: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            s = s + x[i] * x[i]
        return s

    def later(elements: int) -> float:
        x = numpy.linspace(0, 1, elements)
        staged = sd.value_and_grad(squares)
        staged(x)
        return median(once(lambda: staged(x)) for _ in range(25))

    growth = {"stagedad": later(2_000) / later(500)}
    return [Line("s += x[i] * x[i], 2,000 over 500", "x", growth, targets.GROWTH)]


def _resident() -> int:
    """Bytes of memory the process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0
