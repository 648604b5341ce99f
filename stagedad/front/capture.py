"""Run a function once on traced arguments and keep the graph it wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagedad.errors import TraceError
from stagedad.front._reach import Reach
from stagedad.front.constants import plain_operand
from stagedad.front.elementwise import operand
from stagedad.front.location import place, warn
from stagedad.front.reach import reach, watch_contents
from stagedad.front.signature import Signature, function_name
from stagedad.front.tracing import Trace, Traced, known_type, tracing
from stagedad.front.tree import Tree, flatten, unflatten
from stagedad.ir import Graph, Value
from stagedad.types import TensorType

_NUMERIC = (Traced, np.ndarray, np.generic, bool, int, float, complex)


class Output(NamedTuple):
    """One leaf of a result: an output of the graph, or a static value (of None type)."""

    type: TensorType | None
    static: Any = None
    is_scalar: bool = False
    """Whether it is a scalar of NumPy or Python, as a 0-d result mostly is."""


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
    statics = tuple(leaf.static.value for leaf in signature.leaves if leaf.static is not None)
    found = reach(function, statics)
    generators = _generators(found)
    positions = [_position(each) for each in generators]
    with tracing(function_name(function), found) as trace:
        args, kwargs = _traced_arguments(trace, function, signature, leaves)
        kinds = [leaf.kind for leaf in signature.leaves if leaf.type is not None]
        given_arrays = {
            value
            for value, kind in zip(trace.graph.inputs, kinds, strict=True)
            if kind == "array"
        }
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
        outputs = [_output(trace, leaf, given_arrays) for leaf in results]
        for each, position in zip(generators, positions, strict=True):
            if position != _position(each):
                _warn_of_draws(trace.name, each)
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
        hint="np.stack, np.concatenate, np.where and stagedad.numpy.array make traced arrays",
    )


def _output(trace: Trace, leaf: Any, given_arrays: set[Value]) -> Output:
    """Register a leaf of the result as an output of the graph, unless it is static.

    NumPy's functions make scalars of 0-d arrays; one that is handed on stays an array.
    """
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
    is_array = value in given_arrays or isinstance(known, np.ndarray)
    return Output(value.type, None, known_type(value).shape == () and not is_array)


def _generators(found: Reach) -> list[Any]:
    """Return the random generators to look after: NumPy's global one, and those found."""
    shared = _global_generator()
    others = [each for each in found.generators if each is not shared]
    return others if shared is None else [shared, *others]


def _global_generator() -> Any:
    """Return the generator behind `np.random.normal` and so on; None if it was never loaded."""
    return getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)


def _position(generator: Any) -> str:
    """Return where a random generator stands."""
    if hasattr(generator, "get_state"):
        state = generator.get_state(legacy=False)
    else:
        state = generator.bit_generator.state
    inner = state["state"]
    if "pos" in inner:  # a Mersenne twister: its key changes where pos wraps
        state = {**state, "state": (inner["pos"], int(inner["key"][0]))}
    return str(state)


def _warn_of_draws(name: str, generator: Any) -> None:
    is_shared = generator is _global_generator()
    what = "NumPy's global random generator" if is_shared else "a random generator"
    warn(f"{name}: {what} was used while tracing; its draws are constants of the trace now")
