"""Value and vjp as one graph, for callers who want them together."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stagedad.ir import Graph, Value
from stagedad.ops import OPS
from stagedad.transform import _passes
from stagedad.transform.cse import cse
from stagedad.transform.dce import dce
from stagedad.transform.differentiate import checked_flags, checked_policy, new_sweep
from stagedad.transform.gradient import Capture, Gradient
from stagedad.types import TensorType

__all__ = ["add_gradients", "joint"]

_LINEAR = frozenset(kind for kind, op in OPS.items() if "linear" in op.traits)
_PRODUCTS = frozenset(kind for kind, op in OPS.items() if "multilinear" in op.traits)


def joint(gradient: Gradient) -> Graph:
    """Return f and df as one graph.

    Inputs: those of f, then the cotangents of the real outputs in `df_input_vjps` order.
    Outputs: the real outputs, then df's.  The cotangents of temporaries, which only a higher
    order has use for, are structural zeros here and vanish from the program.
    """
    graph = Graph()
    inputs = [graph.add_input(value.type, name=value.name) for value in gradient.f.inputs]
    slots = gradient.df.inputs[len(gradient.df_input_captures) :]
    seeds = dict(zip(gradient.df_input_vjps, slots, strict=True))
    cotangents = {
        offset: graph.add_input(slot.type, name=slot.name)
        for offset, slot in seeds.items()
        if offset < gradient.f_real_outputs
    }
    outputs = graph.inline(gradient.f, inputs)
    zeros: dict[TensorType, Value] = {}
    for offset in seeds:
        if offset >= gradient.f_real_outputs:
            cotangents[offset] = _zero(graph, outputs[offset], zeros)
    captured = [
        (inputs if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]
    given = [cotangents[offset] for offset in gradient.df_input_vjps]
    cotangents_in = graph.inline(gradient.df, [*captured, *given])
    for value in (*outputs[: gradient.f_real_outputs], *cotangents_in):
        graph.register_output(value)
    _passes.drop_zeros(graph, _LINEAR, _PRODUCTS)
    cse(graph)
    dce(graph)
    return graph


def add_gradients(
    graph: Graph, requires_grad: Sequence[bool], *, nan_policy: str = "masked"
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Extend `graph` by its gradients, in place: the vjp where cotangents of outputs are 1.

    Returns the outputs and the cotangents of the inputs that are flagged; the graph is left
    without outputs, for the caller to register those it wants.  They are what `joint` of the
    pair gives; there is no pair, so a long graph costs half as much.  Types must be known.

    Raises: as `differentiate`; the graph is of no use then.
    """
    flags = checked_flags("add_gradients", graph, requires_grad)
    checked_policy("add_gradients", nan_policy)
    dce(graph)
    outputs = len(graph.outputs)
    sweep = new_sweep(graph, nan_policy, whole=True)
    sweep.activity(flags)
    sweep.captures(flags)
    sweep.emit(flags)
    if os.environ.get("STAGEDAD_CHECK") == "1":
        graph.verify()
    _passes.drop_zeros(graph, _LINEAR, _PRODUCTS)
    results = sweep.take_results()
    return results[:outputs], results[outputs:]


def _zero(graph: Graph, like: Value, zeros: dict[TensorType, Value]) -> Value:
    """Return a structural zero with the type of `like`, from `zeros` if it is there."""
    type_ = like.type
    if type_ is None or not type_.is_static:
        made: Value = graph.insert("zeros_like", like)
        return made
    if type_ not in zeros:
        zeros[type_] = graph.insert("constant", **_passes.zero_attributes(type_))
    return zeros[type_]
