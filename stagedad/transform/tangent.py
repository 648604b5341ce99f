"""Forward mode on graphs: a graph that computes the tangents beside the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stagedad.errors import NotDifferentiable
from stagedad.ir import Graph, Node, Value
from stagedad.ops import OPS
from stagedad.ops.formula import ZERO, bind, jvp
from stagedad.ops.registry import advice
from stagedad.transform._passes import zero_attributes
from stagedad.transform._reverse import located
from stagedad.transform.dce import dce
from stagedad.transform.differentiate import checked_flags, checked_policy
from stagedad.transform.templates import check_signature

__all__ = ["tangent"]


def tangent(graph: Graph, moves: Sequence[bool], *, nan_policy: str = "masked") -> Graph:
    """Return the graph of `graph` and its jvp: outputs, and how they move with the inputs.

    `moves` has one flag an input.  Inputs: those of `graph`, then the tangents of the flagged
    ones.  Outputs: those of `graph`, then the tangents of its float and complex outputs; one
    that no input moves is a structural zero.

    Shapes: the tangent of a value has its shape and dtype.
    Cost:   O(nodes + uses).
    Raises: ValueError, TypeError and NotDifferentiable as `differentiate`.
    """
    flags = checked_flags("tangent", graph, moves)
    checked_policy("tangent", nan_policy)
    source = graph.copy()
    dce(source)
    result = Graph()
    values: dict[Value, Value] = {}
    tangents: dict[Value, Value] = {}
    for value in source.inputs:
        values[value] = result.add_input(value.type, name=value.name)
    for value, flag in zip(source.inputs, flags, strict=True):
        if flag:
            name = None if value.name is None else f"t_{value.name}"
            tangents[value] = result.add_input(value.type, name=name)
    for node in source.nodes():
        node.clone_into(result, values)
        is_moved = any(value in tangents for value in (*node.inputs, *node.closed_over))
        if is_moved and node.blocks and any(map(_may_move, node.outputs)):
            problem = f"{node.kind}: what runs blocks has no jvp"
            raise located(NotDifferentiable(problem, op=node.kind), node)
        if is_moved:
            moved = _node_tangent(node, values, tangents, result, nan_policy == "masked")
            tangents.update(
                (value, each)
                for value, each in zip(node.outputs, moved, strict=True)
                if each is not ZERO
            )
    for value in source.outputs:
        result.register_output(values[value])
    for value in source.outputs:
        if value in tangents:
            result.register_output(tangents[value])
        elif value.type is None or value.type.is_inexact:
            result.register_output(_zero(result, values[value]))
    dce(result)
    return result


class _Emitter:
    """Puts what a formula emits at the end of a graph, in the place of the node it is for."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph = graph
        self.node = node

    def emit(self, kind: str, operands: tuple[Value, ...], attributes: dict[str, Any]) -> Any:
        location, scope = self.node.location, self.node.scope
        return self.graph.insert(kind, *operands, location=location, scope=scope, **attributes)


def _node_tangent(
    node: Node,
    values: dict[Value, Value],
    tangents: dict[Value, Value],
    graph: Graph,
    masked: bool,
) -> Sequence[Any]:
    """Return the tangent of each output of `node`, or ZERO."""
    still = (ZERO,) * len(node.outputs)
    op = OPS.get(node.kind)
    if not any(map(_may_move, node.outputs)):
        return still
    try:
        if op is None:
            problem = f"{node.kind}: is not an op of the table, so has no jvp"
            raise NotDifferentiable(problem, op=node.kind, hint=advice(node.kind))
        check_signature(
            node.kind,
            node.attributes.explicit(),
            tuple(value.type for value in node.inputs),
            tuple(value.type for value in node.outputs),
        )
        moving: dict[str, Any] = {}
        for i, argument in enumerate(op.arguments):
            if argument.rule == "non_differentiable":
                continue  # activity ends here, as it does in `differentiate`
            given = node.inputs[i:] if argument.is_list else node.inputs[i : i + 1]
            parts = tuple(tangents.get(value, ZERO) for value in given)
            moving[f"{argument.name}_t"] = parts if argument.is_list else parts[0]
        env = bind(
            op,
            [values[value] for value in node.inputs],
            node.attributes.explicit(),
            [values[value] for value in node.outputs],
            **moving,
        )
        moved = jvp(op, env, _Emitter(graph, node), masked)
    except NotDifferentiable as error:
        raise located(error, node) from None
    if moved is ZERO:
        return still
    return (moved,) if op.has_one_result else tuple(moved)


def _may_move(value: Value) -> bool:
    """Whether a value has a tangent, as far as its type says."""
    return value.type is None or value.type.is_inexact


def _zero(graph: Graph, like: Value) -> Value:
    made: Value
    if like.type is None or not like.type.is_static:
        made = graph.insert("zeros_like", like)
    else:
        made = graph.insert("constant", **zero_attributes(like.type))
    return made
