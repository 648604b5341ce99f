"""Table C of the report: what it costs to build a graph, to differentiate it, to be ready.

Kept apart from pytest-benchmark: these figures are CPU time by the node or ratios, and memory
is among them.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from bench import targets
from bench.measure import once

MILLION = 1_000_000


class Line(NamedTuple):
    """One line of the table; `unit` goes for `measured` and `limit`."""

    work: str
    measured: float
    limit: float
    unit: str
    remark: str = ""

    @property
    def missed(self) -> str | None:
        """What to say if the target is missed."""
        if self.measured <= self.limit:
            return None
        ratio = self.measured / self.limit
        return f"{self.work}: {self.measured:.3g} {self.unit}, {ratio:.1f} x the limit"


def transforming(*, everything: bool) -> list[str]:
    """Print table C, with graphs of 10^6 nodes too if `everything`. Returns what missed."""
    try:
        import bench.graphs as _importable  # noqa: F401
    except ImportError as error:
        print(f"skipped: table C: stagedad cannot be imported: {error}")
        return []
    print("\nC. transforming, CPU time\n\n| work | measured | limit | peers | verdict |")
    print("|---|---|---|---|---|")
    missed = []
    for line in (*_life(), *_differentiate(everything), *_ready(everything), *_growth()):
        cells = [line.work, f"{line.measured:.3g} {line.unit}", f"{line.limit:.3g} {line.unit}"]
        cells += [line.remark, "met" if line.missed is None else "missed"]
        print("| " + " | ".join(cells) + " |", flush=True)
        missed += [] if line.missed is None else [line.missed]
    return missed


def _life() -> list[Line]:
    """Create, hold and free a graph of 10^6 nodes."""
    from bench import graphs

    graphs.chain(1_000)
    before = _resident()
    held: list[object] = []
    create = once(lambda: held.append(graphs.chain(MILLION)))
    after = _resident()
    free = once(held.clear)
    lines = [Line("create a node, of 10^6", create / MILLION * 1e6, targets.CREATE, "us")]
    if before is not None and after is not None:
        size = (after - before) / MILLION
        lines.append(Line("memory of a node, of 10^6", size, targets.BYTES, "bytes"))
    return [*lines, Line("free a node, of 10^6", free / MILLION * 1e6, targets.FREE, "us")]


def _differentiate(everything: bool) -> list[Line]:
    """Differentiate chains by both inputs, beside CasADi's MX in turn, by the forward node."""
    import stagedad as sd
    from bench import graphs

    lines = []
    for nodes in (1_000, 10_000, 100_000, *([MILLION] if everything else [])):
        graph = graphs.chain(nodes)
        reverse = _reverse_of_casadi(nodes) if nodes < MILLION else None
        ours, theirs = [], []
        for _ in range(max(3, min(25, 100_000 // nodes))):
            ours.append(once(lambda: sd.differentiate(graph, [True, True])))  # noqa: B023
            if reverse is not None:
                theirs.append(once(reverse))
        limit, remark = targets.DIFFERENTIATE, ""
        if theirs:
            casadi = median(theirs) / nodes * 1e6
            limit *= max(1.0, casadi / targets.DIFFERENTIATE_IN_CASADI)
            remark = f"CasADi {casadi:.3g} us ({targets.DIFFERENTIATE_IN_CASADI} us)"
        taken = median(ours) / nodes * 1e6
        lines.append(Line(f"differentiate, a node of {nodes:,}", taken, limit, "us", remark))
    return lines


def _ready(everything: bool) -> list[Line]:
    """From a function of 1,000 operations, never seen, to its first value and gradient."""
    import numpy

    import stagedad.numpy
    from bench import graphs

    def first(np: Any, value_and_grad: Callable[..., Any], x: Any) -> float:
        function = graphs.operations(1_000, np)
        return once(lambda: value_and_grad(function)(x)) * 1e3

    x = numpy.linspace(0, 1, 16)
    ours = median(first(stagedad.numpy, stagedad.value_and_grad, x) for _ in range(9))
    remark = ""
    if everything:
        try:
            import jax
        except ImportError:
            remark = "JAX is not installed"
        else:

            def compiled(function: Any) -> Callable[[Any], Any]:
                staged = jax.jit(jax.value_and_grad(function))
                return lambda x: jax.block_until_ready(staged(x))

            remark = f"JAX {first(jax.numpy, compiled, jax.numpy.asarray(x)):.3g} ms"
    work = "1,000 operations, from trace to first value and gradient"
    return [Line(work, ours, targets.FIRST_RESULT, "ms", remark)]


def _growth() -> list[Line]:
    """Later calls of `s += x[i] * x[i]`, value and gradient: four times the elements."""
    import numpy

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

    short, long = later(500), later(2_000)
    remark = f"{short * 1e6:.3g} us, {long * 1e6:.3g} us"
    return [Line("s += x[i] * x[i], 2,000 over 500", long / short, targets.GROWTH, "x", remark)]


def _reverse_of_casadi(nodes: int) -> Callable[[], object] | None:
    """Give the reverse sweep of CasADi over the same chain in matrices, or None."""
    try:
        import casadi
    except ImportError:
        return None
    a, b, g = (casadi.MX.sym(name, 16) for name in "abg")
    c = a
    for i in range(nodes):
        c = (c * b, c + b, c - b)[i % 3]
    return lambda: casadi.reverse([c], [a, b], [[g]])


def _resident() -> int | None:
    """Bytes of memory the process holds, where the system says."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return None
