"""A trace: one run of a user's function that writes down a graph.

`Trace` owns the graph being written; `Traced` is what every traced array is to
this package: a value of that graph.  `tracer.Tracer`, the class that users meet,
adds NumPy's interface.

Traces nest: a transform called inside a traced function opens a trace of its
own, one level deeper.  An operation belongs to the deepest trace among its
operands, and values of outer traces enter that trace's graph as further inputs
(`Trace.outer`), so that levels never mix.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from stagedad.errors import LeakedTracer, TraceError
from stagedad.front._traced import Traced, emit, emit_all, new_tracer, set_tracer_class
from stagedad.front.constants import Constants, number_dtype
from stagedad.front.location import place
from stagedad.ir import Graph, Value
from stagedad.ops import evaluate
from stagedad.types import TensorType

__all__ = [
    "Trace",
    "Traced",
    "current_trace",
    "known_type",
    "new_tracer",
    "owner",
    "set_tracer_class",
    "tracing",
]


class Trace:
    """The graph that a function's run is writing, and what it has met.

    `outer` lists the values of enclosing traces that became inputs, in the order
    of those inputs, behind the arguments'.
    """

    def __init__(self, name: str, parent: Trace | None, reached: Any = None) -> None:
        self.name = name
        self.parent = parent
        self.level: int = 0 if parent is None else parent.level + 1
        self.alive = True
        self.graph = Graph()
        self.outer: list[Traced] = []
        self.constants = Constants(self.graph, reached)
        self._outer_inputs: dict[tuple[int, int], Value] = {}
        self._concrete: dict[Value, Any] = {}
        self.started = place()

    def input(
        self, type_: TensorType, name: str | None, concrete: Any, weak: bool = False
    ) -> Traced:
        """Return a new input, which stands for `concrete` (an array, or an outer value)."""
        value = self.graph.add_input(type_, name=name)
        self._concrete[value] = concrete
        return new_tracer(self, value, weak)

    def emit(
        self, kind: str, values: Sequence[Value], attributes: dict[str, Any] | None = None
    ) -> Traced:
        """Record an operation with one result, at the user's line."""
        return emit(self, self.graph, kind, values, attributes)

    def emit_all(
        self, kind: str, values: Sequence[Value], attributes: dict[str, Any]
    ) -> list[Traced]:
        """Record an operation with a list of results, at the user's line."""
        return emit_all(self, self.graph, kind, values, attributes)

    def inline(
        self, graph: Graph, operands: Sequence[Any], dtypes: Sequence[np.dtype[Any]]
    ) -> list[Traced]:
        """Record the operations of `graph` on `operands`, whose numbers have `dtypes`."""
        if not self.alive:
            raise self.leaked("call")
        values = [
            self.value(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=True)
        ]
        return [new_tracer(self, value) for value in self.graph.inline(graph, values)]

    def value(self, operand: Any, dtype: np.dtype[Any] | None = None) -> Value:
        """Return `operand` as a value of this graph.

        A tracer of this trace is its value, one of an outer trace an input made for
        it, an array or number a constant (a number of `dtype`).
        """
        if isinstance(operand, Traced):
            if operand._trace is self:
                return operand._value
            return self._lifted(operand)
        if isinstance(operand, np.ndarray):
            return self.constants.array(operand)
        return self.constants.number(operand, dtype or number_dtype(operand))

    def _lifted(self, operand: Traced) -> Value:
        """Return the input that stands for a value of an enclosing trace."""
        home = operand._trace
        if not home.alive:
            raise home.leaked("use")
        ancestor = self.parent
        while ancestor is not None and ancestor is not home:
            ancestor = ancestor.parent
        if ancestor is None:
            raise TraceError(
                f"trace: a value traced in `{home.name}` met one traced in `{self.name}`, "
                f"which does not enclose it ({place()})",
                hint="pass the value as an argument of the function that uses it",
            )
        key = (id(home), operand._value.id)
        found = self._outer_inputs.get(key)
        if found is None:
            found = self.graph.add_input(operand.type)
            self._outer_inputs[key] = found
            self._concrete[found] = operand
            # A copy, because an in-place operation may give `operand` another value.
            self.outer.append(new_tracer(home, operand._value, operand._weak))
        return found

    def concrete(self, value: Value) -> Any:
        """Return the array that `value` stands for in this run.

        Computed when asked, because most values of most traces never are.
        """
        known = self._concrete
        waiting = [value]
        while waiting:
            current = waiting[-1]
            if current in known:
                if isinstance(known[current], Traced):
                    source = known[current]
                    known[current] = source._trace.concrete(source._value)
                waiting.pop()
                continue
            node = current.node
            missing = [v for v in node.inputs if not _is_array(known.get(v))]
            if missing:
                waiting.extend(missing)
                continue
            arrays = [known[operand] for operand in node.inputs]
            results = evaluate(node.kind, arrays, dict(node.attributes))
            for output, result in zip(node.outputs, results, strict=True):
                known[output] = np.asarray(result)
            waiting.pop()
        return known[value]

    def leaked(self, what: str) -> LeakedTracer:
        """Return the error for a value that outlived this trace."""
        return LeakedTracer(
            f"{what}: a value traced in `{self.name}` is used after its trace ended: {place()}",
            op=what,
            hint="return it from the function instead of storing it elsewhere",
            function=self.name,
        )

    def close(self) -> None:
        """End the trace: values that are still around raise LeakedTracer when used."""
        self.alive = False
        self._concrete.clear()
        self._outer_inputs.clear()


class _State(threading.local):
    current: Trace | None = None


_state: Final = _State()


def current_trace() -> Trace | None:
    """Return the deepest trace that this thread is writing, or None."""
    return _state.current


@contextmanager
def tracing(name: str, reached: Any = None) -> Iterator[Trace]:
    """Open a trace inside the current one, and close it at the end."""
    outer = _state.current
    trace = _state.current = Trace(name, outer, reached)
    try:
        yield trace
        trace.constants.seal(outer.constants if outer is not None else None)
    finally:
        _state.current = outer
        trace.close()


def owner(operands: Sequence[Any]) -> Trace:
    """Return the deepest trace among `operands`, of which one is traced."""
    best: Trace | None = None
    for operand in operands:
        if isinstance(operand, Traced):
            trace = operand._trace
            if best is None or trace.level > best.level:
                best = trace
    if best is None:
        raise TraceError("trace: no traced value among the operands")
    if not best.alive:
        raise best.leaked("use")
    return best


def known_type(value: Value) -> TensorType:
    """Return the type of a value in a traced graph, where every type is known."""
    found = value.type
    assert found is not None
    return found


def _is_array(known: Any) -> bool:
    return known is not None and not isinstance(known, Traced)
