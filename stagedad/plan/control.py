"""Lowering `cond` and `while_loop`: each block becomes a plan of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from stagedad.errors import KernelError, ShapeError
from stagedad.ir._blocks import block_graph
from stagedad.plan.graphs import held_arrays
from stagedad.plan.rule import static_shape
from stagedad.plan.step import Layout
from stagedad.types import TensorType

if TYPE_CHECKING:
    from stagedad.ir import Graph, Node, Value
    from stagedad.plan._view import View
    from stagedad.plan.plan import Plan

PlanBlock = Callable[["Graph", Sequence[Layout]], "Plan"]


@dataclass(frozen=True, slots=True)
class SubProgram:
    """What the step of a node with blocks runs."""

    kind: str
    plans: tuple[Plan, ...]
    """Of the blocks: from what they read outside, their inputs and the arrays they hold."""
    own: int
    """Operands of the node; those of the step begin with them."""
    outer: int
    """Values that the blocks read from outside; the step's operands go on with them."""
    held: tuple[int, ...]
    """Arrays that the constants of each block hold: the rest of the operands."""


def lower_control(
    emitter: Any,
    node: Node,
    outer: tuple[Value, ...],
    operands: Sequence[View],
    outer_views: Sequence[View],
    held: Iterator[View],
    plan_block: PlanBlock,
) -> Sequence[View]:
    """Emit the step of `node`; returns the views of its outputs.

    The blocks are planned for the layouts at hand, so both branches of `cond` must give the
    same types, and the body of `while_loop` those it takes.
    """
    taken = [] if node.kind == "cond" else [_type(view) for view in operands]
    plans, counts, reads = [], [], [*operands, *outer_views]
    for block in node.blocks:
        graph = block_graph(block, outer)
        arrays = [*islice(held, len(held_arrays(graph)))]
        inputs = [*map(_type, outer_views), *taken, *map(_type, arrays)]
        plans.append(plan_block(graph, [Layout(t.dtype, static_shape(t)) for t in inputs]))
        counts.append(len(arrays))
        reads += arrays
    first, second = plans
    if node.kind == "cond":
        _check_decision(node, [_type(view) for view in operands])
        _check_types(node, "block 1", second.types, first.types)
    else:
        _check_decision(node, first.types)
        _check_types(node, "block 1", second.types, taken)
    described = SubProgram(node.kind, (first, second), len(operands), len(outer), tuple(counts))
    views: Sequence[View] = emitter.sub_program(described, reads, second.types)
    return views


def _type(view: View) -> TensorType:
    return TensorType(view.dtype, view.shape)


def _check_decision(node: Node, types: Sequence[TensorType]) -> None:
    """Raise unless what decides is one boolean."""
    if len(types) != 1 or types[0] is not TensorType("b1", ()):
        found = ", ".join(map(str, types))
        raise KernelError(f"{node.kind}: what decides is {found}, to be b1[]", op=node.kind)


def _check_types(
    node: Node, what: str, found: Sequence[TensorType], wanted: Sequence[TensorType]
) -> None:
    """Raise unless a block gives values of the types that are wanted."""
    if len(found) != len(wanted):
        raise KernelError(
            f"{node.kind}: {what} gives {len(found)} values, to be {len(wanted)}", op=node.kind
        )
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one is not other:
            raise ShapeError(
                node.kind,
                f"value {i} of {what} has another type than it is to have",
                one,
                other,
                hint="broadcast_to and astype in the block make them alike",
            )
