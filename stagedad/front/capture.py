"""Run a function once on traced arguments and keep the graph it wrote."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagedad.errors import TraceError
from stagedad.front._reach import Reach
from stagedad.front.constants import plain_operand
from stagedad.front.elementwise import operand
from stagedad.front.location import place
from stagedad.front.reach import reach, watch_contents
from stagedad.front.signature import Signature, function_name
from stagedad.front.tracing import Trace, Traced, tracing
from stagedad.front.tree import Tree, flatten, unflatten
from stagedad.ir import Graph
from stagedad.types import TensorType

_NUMERIC = (Traced, np.ndarray, np.generic, bool, int, float, complex)


class Output(NamedTuple):
    """One leaf of a result: an output of the graph, or a static value (of None type)."""

    type: TensorType | None
    static: Any = None


@dataclass(slots=True)
class Captured:
    """What one run of a function gave.

    Inputs of the graph: the leaves of the signature that are not static, then
    `outer`, the values of enclosing traces that the function met.  Outputs: the
    leaves of the result that are not static.
    """

    graph: Graph
    outer: list[Traced]
    tree: Tree
    outputs: list[Output]
    reach: Reach


def capture(function: Callable[..., Any], signature: Signature, leaves: list[Any]) -> Captured:
    """Trace `function` at `leaves`.

    Raises: what the function raises; TraceError where a traced value meets code
            that cannot carry it, or if the result cannot be returned.
    """
    statics = tuple(leaf.static for leaf in signature.leaves if leaf.type is None)
    found = reach(function, statics)
    generator = _generator_position()
    with tracing(function_name(function), found) as trace:
        args, kwargs = _traced_arguments(trace, function, signature, leaves)
        try:
            result = function(*args, **kwargs)
        except ValueError as error:
            # What NumPy makes of our error when an element of a plain array is assigned.
            if isinstance(error.__cause__, TraceError):
                wanted = _assigned(error.__cause__)
                raise wanted.with_traceback(error.__traceback__) from None
            raise
        results: list[Any] = []
        tree = flatten(result, results)
        outputs = [_output(trace, leaf) for leaf in results]
        if generator is not None and generator != _generator_position():
            warnings.warn(
                f"{trace.name}: NumPy's global random generator was used while tracing; its "
                "draws are constants of the trace now",
                stacklevel=5,
            )
    watch_contents(found, trace.constants)
    return Captured(trace.graph, trace.outer, tree, outputs, found)


def _traced_arguments(
    trace: Trace, function: Any, signature: Signature, leaves: list[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = signature.input_names(function)
    inside: list[Any] = []
    for name, leaf, value in zip(names, signature.leaves, leaves, strict=True):
        if leaf.type is None:
            inside.append(value)
            continue
        concrete = value if isinstance(value, Traced) else np.asarray(value)
        inside.append(trace.input(leaf.type, name, concrete, leaf.kind == "weak"))
    args, kwargs = unflatten(signature.tree, inside)
    return args, kwargs


def _assigned(cause: TraceError) -> TraceError:
    return TraceError(
        f"setitem: a plain array cannot hold a traced value: {getattr(cause, 'place', '')}",
        op="setitem",
        hint="np.where, np.concatenate, np.stack and np.array make traced arrays",
    )


def _output(trace: Trace, leaf: Any) -> Output:
    """Register a leaf of the result as an output of the graph, unless it is static."""
    if not isinstance(leaf, _NUMERIC):
        if isinstance(leaf, str) or leaf is None or callable(leaf):
            return Output(None, leaf)
        raise TraceError(
            f"{trace.name}: cannot return a {type(leaf).__module__}.{type(leaf).__qualname__} "
            f"({place()})",
            hint="return arrays, numbers, and lists, tuples and dicts of them",
        )
    known = (
        operand(leaf, trace.name) if isinstance(leaf, Traced) else plain_operand(leaf, "return")
    )
    value = trace.value(known)
    trace.graph.register_output(value)
    return Output(value.type)


def _generator_position() -> Any:
    """Return where NumPy's global generator stands; None if it was never loaded."""
    random = sys.modules.get("numpy.random.mtrand")
    if random is None:
        return None
    state = random.get_state(legacy=False)
    inner = state["state"]
    return (inner["pos"], int(inner["key"][0])) if "pos" in inner else str(state)
