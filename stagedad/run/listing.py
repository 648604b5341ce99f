"""A plan's instructions as records that people and tests read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stagedad.plan.step import (
    ARENA,
    BLOCK,
    INPUT,
    OBJECT,
    OUTPUT,
    POISON,
    POOL,
    REDUCE,
    SUB,
    ZERO,
)
from stagedad.types import TensorType

if TYPE_CHECKING:
    from stagedad.plan import Plan, Step

_SPACES: Final = {ARENA: "t", INPUT: "in", OUTPUT: "out", POOL: "const"}
_OWN_KINDS: Final = {ZERO: "fill", OBJECT: "object", BLOCK: "block", SUB: "sub-program"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a program.

    `kind` is loop (a ufunc's), gufunc, reduce, own (stagedad's loop), fill,
    block (the `calls` that follow go block by block), sub-program (the blocks
    of `cond` or `while_loop`) or object (a call of Python); `operands` are
    inputs, then outputs, as in0, t64 (a byte offset in the workspace), const8,
    out1.
    """

    kind: str
    op: str
    kernel: str
    operands: tuple[str, ...]
    types: tuple[TensorType, ...]
    node: int
    """Id of the value of the node that the instruction comes from; -1: of none."""
    location: tuple[str, int] | None
    calls: int
    """How often the loop is entered; of a block, how many instructions it holds."""

    def __str__(self) -> str:
        where = "" if self.location is None else f"  # {self.location[0]}:{self.location[1]}"
        return f"{self.kind} {self.kernel}({', '.join(self.operands)}){where}"


def listing(plan: Plan) -> list[Instruction]:
    """Return the instructions of `plan` in order, without those that STAGEDAD_CHECK adds."""
    return [_record(plan, step) for step in plan.steps if step.kind != POISON]


def _record(plan: Plan, step: Step) -> Instruction:
    names = []
    for slot in step.slots:
        space, index, offset = plan.slots[slot]
        if space in (INPUT, OUTPUT):
            names.append(f"{_SPACES[space]}{index}" + (f"+{offset}" if offset else ""))
        else:
            names.append(f"{_SPACES[space]}{offset}")
    return Instruction(
        _kind(step),
        step.origin.op,
        "" if step.kernel is None else step.kernel.name,
        tuple(names),
        tuple(TensorType(view.dtype, view.shape) for view in step.operands),
        step.origin.node,
        step.origin.location,
        step.calls,
    )


def _kind(step: Step) -> str:
    if step.kernel is None:
        return _OWN_KINDS[step.kind]
    if step.kernel.is_object_call:
        return "object"
    if step.kernel.ufunc is not None and step.kernel.ufunc.signature is not None:
        return "gufunc"
    if step.kind == REDUCE or (step.operands[0] is step.operands[-1] and not step.donates):
        return "reduce"
    return "own" if step.kernel.ufunc is None else "loop"
