"""`joint`: a gradient's two programs as one, for callers who want value and vjp together."""

from __future__ import annotations

from typing import Any

from stagedad.ir import Graph, Node, Value
from stagedad.ops import OPS
from stagedad.transform.cse import cse
from stagedad.transform.dce import dce
from stagedad.transform.gradient import Capture, Gradient
from stagedad.types import TensorType

__all__ = ["joint"]


class _Zero:
    """A cotangent that is zero whatever the inputs are; knows what array it would be."""

    def __init__(self, type_: TensorType | None) -> None:
        self.type = type_


def joint(gradient: Gradient) -> Graph:
    """Return f and df as one graph.

    Inputs: those of f, then the cotangents of the real outputs in `df_input_vjps` order.
    Outputs: the real outputs, then df's.  The cotangents of temporaries, which only a higher
    order has use for, are structural zeros here and vanish from the program.
    """
    graph = Graph()
    inputs = [graph.add_input(value.type, name=value.name) for value in gradient.f.inputs]
    cotangents: list[Value | _Zero] = []
    slots = gradient.df.inputs[len(gradient.df_input_captures) :]
    for offset, slot in zip(gradient.df_input_vjps, slots, strict=True):
        if offset < gradient.f_real_outputs:
            cotangents.append(graph.add_input(slot.type, name=slot.name))
        else:
            cotangents.append(_Zero(slot.type))
    outputs = graph.inline(gradient.f, inputs)
    captured = [
        (inputs if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]
    values: dict[Value, Any] = dict(zip(gradient.df.inputs, captured + cotangents, strict=True))
    for node in gradient.df.nodes():
        _clone(graph, node, values)
    for value in outputs[: gradient.f_real_outputs]:
        graph.register_output(value)
    for value in gradient.df.outputs:
        graph.register_output(_array(graph, values[value]))
    cse(graph)
    dce(graph)
    return graph


def _clone(graph: Graph, node: Node, values: dict[Value, Any]) -> None:
    """Append the node to `graph`, or see that zeros make it needless."""
    operands = [values[value] for value in node.inputs]
    if any(isinstance(operand, _Zero) for operand in operands):
        made = _with_zeros(node, operands)
        if made is not None:
            values[node.output] = made
            return
        for value, operand in zip(node.inputs, operands, strict=True):
            values[value] = _array(graph, operand)
    node.clone_into(graph, values)


def _with_zeros(node: Node, operands: list[Any]) -> Value | _Zero | None:
    """What the node gives where some operands are zeros; None if there is no short form."""
    if len(node.outputs) != 1:
        return None
    type_ = node.output.type
    zeros = [isinstance(operand, _Zero) for operand in operands]
    linear = node.kind in OPS and "linear" in OPS[node.kind].traits
    if (all(zeros) and linear) or (node.kind in ("mul", "mul0") and any(zeros)):
        return _Zero(type_)
    if node.kind == "add" and node.attributes["alpha"] == 1:
        other = operands[zeros.index(False)]
        if other.type is type_ and type_ is not None:
            return other  # type: ignore[no-any-return]
    return None


def _array(graph: Graph, value: Value | _Zero) -> Value:
    if not isinstance(value, _Zero):
        return value
    if value.type is None or not value.type.is_static:
        raise ValueError("joint: a temporary's cotangent is zero, of unknown shape")
    zero = value.type.dtype.type(0).item()
    made: Value = graph.insert(
        "constant", value=zero, dtype=value.type.dtype, shape=value.type.shape, is_zero=1
    )
    return made
