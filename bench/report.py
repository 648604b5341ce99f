"""Print the tables of performance targets with the measured column filled.

    python bench/report.py            # a few minutes
    python bench/report.py --all      # slow peers and graphs of a million nodes too
    python bench/report.py --only chain,transforming

Every peer is checked against the gradient written by hand before it is timed; peers are timed
interleaved, medians of many repeats. A target is scaled to this machine by a peer measured in
the same run, see targets.py. The exit status does not depend on the figures.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

sys.path.append(str(Path(__file__).parents[1]))  # last: an installed stagedad comes first

from bench.measure import interleaved, one_thread

if __name__ == "__main__":
    one_thread()

import numpy

from bench import peers
from bench.agree import difference
from bench.peers import Step
from bench.rows import ROWS, Row
from bench.targets import CHAIN, MODELS, Target

USUAL = ("numpy f", "numpy", "autograd", "jax", "casadi buffers", "stagedad")
TABLES = ("chain", "models", "transforming")
DOORS = ("stagedad joint", "stagedad buffers")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables asked for, then what missed its target."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="slow peers and the longest graphs")
    parser.add_argument("--only", default=",".join(TABLES), metavar="TABLES")
    parser.add_argument("--seconds", type=float, default=1.0, help="for a peer and a size")
    options = parser.parse_args(arguments)
    names = tuple(peers.PEERS) if options.all else (*USUAL, *DOORS)
    tables = options.only.split(",")
    if unknown := set(tables) - set(TABLES):
        parser.error(
            f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}"
        )
    print(
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {numpy.__version__}"
    )
    missed = []
    if "transforming" in tables:  # first: memory is measured before anything else grows it
        from bench.transforming import transforming

        missed += transforming(everything=options.all)
    present = _present(names)
    if "chain" in tables:
        title = "A. value and vjp of a chain of 100 products, sums and differences"
        missed += _table(title, CHAIN, present, options.seconds)
    if "models" in tables:
        missed += _table(
            "B. value and gradient of small models", MODELS, present, options.seconds
        )
    print("\nMissed targets: " + ("none" if not missed else ""))
    for line in missed:
        print(f"- {line}")


def _present(names: Sequence[str]) -> list[str]:
    """Give the peers that can be loaded; say why the others cannot."""
    present = []
    for name in names:
        try:
            peers.load(name)
        except peers.Missing as missing:
            print(f"skipped: {missing}")
        else:
            present.append(name)
    return present


def _table(
    title: str, targets: Sequence[Target], names: Sequence[str], seconds: float
) -> list[str]:
    """Print one table, a line as soon as it is measured. Returns the targets missed."""
    print(f"\n{title}\n")
    heads = ["row", *names, "/ numpy", "first call", "target", "here", "by", "verdict"]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    missed, notes = [], []
    for target in targets:
        row = ROWS[target.row]
        steps, first, problems = _steps(row, target.size, names)
        notes += problems
        times = {k: t * 1e6 for k, t in interleaved(steps, seconds=seconds).items()}
        limit, by = target.scaled(times)
        ours = times.get("stagedad")
        label = f"{row.name} {target.size:,}"
        verdict = "-" if ours is None else "met" if ours <= limit else f"{ours / limit:.1f} x"
        cells = [label, *(_time(times.get(name), target.stated.get(name)) for name in names)]
        cells.append("-" if ours is None else f"{ours / times['numpy']:.2f}")
        cells.append(_time(first.get("stagedad")))
        cells += [_time(target.limit), _time(limit), by, verdict]
        print("| " + " | ".join(cells) + " |", flush=True)
        if ours is not None and ours > limit:
            missed.append(
                f"{label}: {_time(ours)}, {ours / limit:.1f} x the limit {_time(limit)} "
                f"({_time(target.limit)} scaled by {by}); "
                f"{ours / times['numpy']:.2f} of hand-written NumPy"
            )
    print("\nIn brackets: what the peer took where the targets were set.")
    for note in notes:
        print(note)
    return missed


def _steps(
    row: Row, size: int, names: Sequence[str]
) -> tuple[dict[str, Step], dict[str, float], list[str]]:
    """Make the steps of the peers that agree; microseconds of first calls; who is left out."""
    expected = peers.load("numpy")(row, size)()
    dtype = row.arguments(size)[0].dtype
    steps: dict[str, Step] = {}
    first: dict[str, float] = {}
    problems = []
    for name in names:
        start = perf_counter()
        try:
            step = peers.load(name)(row, size)
        except peers.Missing as missing:
            problems.append(f"left out: {missing}")
            continue
        got = step()
        taken = perf_counter() - start  # what is traced or compiled in make belongs to it
        if name == "numpy f":
            got, against = (got,), expected[:1]
        else:
            against = expected
        wrong = difference(dtype, got, against)
        if wrong is not None:
            problems.append(f"WRONG, not timed: {name}: {row.name} {size:,}: {wrong}")
            continue
        steps[name], first[name] = step, taken * 1e6
    return steps, first, problems


def _time(microseconds: float | None, stated: float | None = None) -> str:
    """Write microseconds in three digits with a unit, and the stated figure in brackets."""
    if microseconds is None:
        return "-"
    digits = f"{microseconds / 1e3:.3g} ms" if microseconds >= 1e3 else f"{microseconds:.3g} us"
    return digits if stated is None else f"{digits} ({_time(stated)})"


if __name__ == "__main__":
    main()
