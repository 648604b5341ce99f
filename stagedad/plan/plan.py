"""A plan: everything that running a graph on arrays of certain layouts needs, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

# The rules register themselves.
from stagedad.plan import elementwise, indexing, linear, products, reducing, shaping  # noqa: F401
from stagedad.plan._buffers import measure, number_slots, place, poison, prune
from stagedad.plan._lower import lower
from stagedad.plan._step import Step
from stagedad.plan._view import MOST_BYTES
from stagedad.plan.blocks import form_blocks
from stagedad.plan.peephole import subtract_negated
from stagedad.plan.step import Layout
from stagedad.types import TensorType

if TYPE_CHECKING:
    from stagedad.ir import Graph


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, and the memory they work on."""

    inputs: tuple[Layout, ...]
    """Of the graph's inputs, then of the arrays held by constants."""
    outputs: tuple[Layout, ...]
    types: tuple[TensorType, ...]
    """Of the outputs."""
    steps: tuple[Step, ...]
    slots: tuple[tuple[int, int, int], ...]
    """Space, index and byte offset of each."""
    pool: bytes
    """The plan's own constants."""
    arena_bytes: int
    estimate: float
    """Nanoseconds of a run, roughly."""


def make_plan(
    graph: Graph, layouts: Sequence[Layout], *, reuse: bool = True, poisoned: bool = False
) -> Plan:
    """Return the plan of `graph` for arguments of `layouts`.

    `reuse=False` gives every temporary memory of its own; `poisoned` overwrites
    each after its last reader.  Both serve to check plans against each other.

    Cost: O(nodes), microseconds a node.
    Raises: as `lower`.
    """
    inside = partial(make_plan, reuse=reuse, poisoned=poisoned)
    lowered = lower(graph, layouts, inside)
    steps = form_blocks(prune(subtract_negated(lowered.steps)))
    measure(steps)
    arena_bytes = place(steps, reuse=reuse)
    if arena_bytes > MOST_BYTES:
        raise MemoryError(f"{arena_bytes} bytes of workspace")
    if poisoned:
        steps = poison(steps)
    slots = number_slots(steps)
    return Plan(
        inputs=tuple(layouts),
        outputs=tuple(Layout(view.dtype, view.shape) for view in lowered.outputs),
        types=lowered.types,
        steps=tuple(steps),
        slots=slots,
        pool=lowered.pool,
        arena_bytes=arena_bytes,
        estimate=sum([step.nanoseconds() for step in steps]),
    )
