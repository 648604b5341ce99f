"""Control flow: the kinds whose nodes say what their blocks mean.

`cond(%p)` runs its first block where `%p` is true, else its second; the outputs of that block
are its outputs.  The blocks have no inputs: they read what is around them.

`while_loop(%a, %b, ...)` carries values.  Its first block takes them and gives one boolean; as
long as it is true, the second takes them and gives their next values.  The outputs are the
values at the end, which are those given if the first block says no at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stagedad.errors import VerifyError
from stagedad.ir._handles import Node, Value
from stagedad.ir._verify import compatible
from stagedad.types import TensorType

__all__ = ["CONTROL", "check_control"]


def _cond(node: Node) -> str | None:
    if len(node.inputs) != 1 or not _is_boolean(node.inputs[0]):
        return "takes one operand, b1[]"
    if len(node.blocks) != 2:
        return f"has {len(node.blocks)} blocks, to have two"
    for i, block in enumerate(node.blocks):
        if block.inputs:
            return f"block {i} has inputs"
        problem = _mismatch(node.outputs, block.outputs)
        if problem is not None:
            return f"block {i}: {problem}"
    return None


def _while_loop(node: Node) -> str | None:
    if len(node.blocks) != 2:
        return f"has {len(node.blocks)} blocks, to have two"
    problem = _mismatch(node.outputs, node.inputs)
    if problem is not None:
        return problem
    condition, body = node.blocks
    for i, block in enumerate(node.blocks):
        problem = _mismatch(block.inputs, node.inputs)
        if problem is not None:
            return f"inputs of block {i}: {problem}"
    if len(condition.outputs) != 1 or not _is_boolean(condition.outputs[0]):
        return "block 0 gives one value, b1[]"
    problem = _mismatch(node.outputs, body.outputs)
    return None if problem is None else f"block 1: {problem}"


CONTROL: dict[str, Callable[[Node], str | None]] = {"cond": _cond, "while_loop": _while_loop}
"""Kind -> what is wrong with a node of it, or None."""

_BOOLEAN = TensorType("b1", ())


def check_control(node: Node) -> None:
    """Raise VerifyError if a node of a kind in `CONTROL` is not as its kind says."""
    problem = CONTROL[node.kind](node)
    if problem is not None:
        raise VerifyError(f"verify: [control] {problem}: `{node}`")


def _is_boolean(value: Value) -> bool:
    return value.type is None or compatible(value.type, _BOOLEAN)


def _mismatch(values: Sequence[Value], others: Sequence[Value]) -> str | None:
    """What keeps the one from standing for the other, one by one."""
    if len(values) != len(others):
        return f"{len(others)} values for {len(values)}"
    for i, (value, other) in enumerate(zip(values, others, strict=True)):
        if value.type and other.type and not compatible(value.type, other.type):
            return f"value {i} is {other.type}, to be {value.type}"
    return None
