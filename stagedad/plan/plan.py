"""A plan: everything that running a graph on arrays of certain layouts needs, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

# The rules register themselves.
from stagedad.plan import (  # noqa: F401
    elementwise,
    functions,
    indexing,
    linear,
    products,
    reducing,
    scanning,
    shaping,
)
from stagedad.plan._buffers import measure, number_slots, place, poison, prune
from stagedad.plan._lower import lower
from stagedad.plan._peephole import subtract_negated
from stagedad.plan._reuse import reuse as write_in_place
from stagedad.plan._step import Step, estimate
from stagedad.plan._view import MOST_BYTES
from stagedad.plan.blocks import form_blocks
from stagedad.plan.step import ARENA, Layout
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
    steps = prune(subtract_negated(lowered.steps))
    if reuse:
        steps = write_in_place(steps)
    steps = form_blocks(steps)
    measure(steps)
    arena_bytes = place(steps, reuse=reuse)
    if arena_bytes > MOST_BYTES:
        raise out_of_memory(steps, arena_bytes)
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
        estimate=estimate(steps),
    )


def out_of_memory(steps: Sequence[Step], nbytes: int) -> MemoryError:
    """Return the exception for a workspace that cannot be had; it names the largest value."""
    error = MemoryError(f"{nbytes} bytes of workspace")
    writes = [
        (view.buffer.nbytes, step)
        for step in steps
        for view in step.operands[step.inputs :]
        if view.buffer.space == ARENA and not view.buffer.local
    ]
    if writes:
        most, step = max(writes, key=itemgetter(0))
        error.add_note(f"the largest value, of {most} bytes, is in {step.origin}")
    return error
