"""What a plan does besides computing: writes in place, casts, copies, calls of Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stagedad.plan import Plan, Step
from stagedad.plan.kernels import loops_enabled
from stagedad.plan.step import ARENA, INPUT, OBJECT, OUTPUT, POISON, POOL
from stagedad.types import TensorType, dtype_code


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that happens at an op, and why."""

    what: str
    """`donated`, `cast`, `copied` or `object`; `captured` of what a function closes over."""
    op: str
    """The op; of something captured, its name."""
    type: TensorType | None
    """Of the result."""
    why: str
    location: tuple[str, int] | None = None
    node: int = -1
    """Id of the node's value; -1: of none."""

    @property
    def bytes(self) -> int:
        """Bytes of the result."""
        return 0 if self.type is None else self.type.nbytes or 0


_COPIES: Final = {
    "input": "an argument that is not aligned is copied before a loop sees it",
    "matmul": "BLAS takes no operand that lies so",
    "concatenate": "the pieces are put together",
    "split": "the parts are taken apart",
    "unslice": "the slice is put among zeros",
    "max": "the reduction starts from the first elements",
    "min": "the reduction starts from the first elements",
    "take": "entries are to lie one after the other",
    "take_add": "entries are to lie one after the other",
    "reshape": "no strides say the new shape of what lies so",
}
_OUTPUTS: Final = {
    INPUT: "an output shares no memory with an argument or a closed-over array",
    POOL: "an output is a constant",
    OUTPUT: "an output is a view of another value, or returned twice",
    ARENA: "an output is a view of another value, or returned twice",
}


def findings(plan: Plan) -> list[Finding]:
    """Return what `plan` does besides computing, in the order of its steps."""
    return [each for step in plan.steps if step.kind != POISON for each in _of(step)]


def _of(step: Step) -> Iterator[Finding]:
    if not step.operands:
        return
    write = step.operands[-1]
    name = "" if step.kernel is None else step.kernel.name

    def finding(what: str, why: str) -> Finding:
        type_ = TensorType(write.dtype, write.shape)
        return Finding(what, step.origin.op, type_, why, step.origin.location, step.origin.node)

    if step.kind == OBJECT:
        yield finding("object", "the op has no loop: its NumPy function is called on copies")
    elif step.kernel is not None and step.kernel.is_object_call:
        off = "STAGEDAD_LOOPS=off" if not loops_enabled() else "NumPy gives out no loop of it"
        yield finding("object", f"{off}: {name} is called as an object")
    if name.startswith("cast_"):
        yield finding("cast", _why_cast(step))
    elif name.startswith("copy_"):
        yield finding("copied", _why_copy(step))
    if _is_in_place(step):
        yield finding("donated", _why_donated(step))


def _why_cast(step: Step) -> str:
    source, target = (dtype_code(view.dtype) for view in step.operands)
    if step.origin.op == "astype":
        return f"{source} to {target}, as the function asks"
    return f"{source} to {target}, in which {step.origin.op} computes here"


def _why_copy(step: Step) -> str:
    if step.origin.op == "return":
        return _OUTPUTS[step.operands[0].buffer.space]
    return _COPIES.get(step.origin.op, "the loop wants elements one after the other")


def _is_in_place(step: Step) -> bool:
    """Whether the step writes over an operand; sums that go on in one number are none."""
    write = step.operands[-1]
    if write.buffer.local or not step.donates or step.inputs == len(step.operands):
        return False
    return step.slots[-1] in step.slots[: step.inputs]


def _why_donated(step: Step) -> str:
    if step.operands[0].buffer is step.operands[-1].buffer:
        return "the entries are added to a sum that nobody else reads"
    return "written over an operand that nobody reads later"
