"""What a plan asks of a graph beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stagedad.errors import KernelError
from stagedad.ir.control import CONTROL, check_control
from stagedad.ops import OPS
from stagedad.ops.registry import advice
from stagedad.plan._graphs import plain_kinds

if TYPE_CHECKING:
    from stagedad.ir import Graph, Node

_EFFECTS = frozenset(kind for kind, op in OPS.items() if "effect" in op.traits)
_PLAIN = frozenset(OPS) - frozenset(CONTROL)

DEEPEST = 50
"""Blocks within blocks that are planned, one call within the other."""


def held_arrays(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that `constant` nodes hold by reference, in the order of the text.

    A program reads them at each run: they are inputs that the caller does not see.
    """
    return list(graph.constants)


def has_effects(graph: Graph) -> bool:
    """Return whether a run of `graph` changes anything, so that two runs are not alike."""
    return any(node.kind in _EFFECTS for node in graph.nodes(nested=True))


def check_kinds(graph: Graph) -> None:
    """Raise KernelError, naming op and location, if a node is no op of the table.

    Raises: VerifyError for control flow whose blocks are not as they should be.
    """
    kinds = plain_kinds(graph)
    if kinds is not None and kinds <= _PLAIN:
        return
    for node in graph.nodes(nested=True):
        if node.kind in CONTROL:
            check_control(node)
            if _depth(node) > DEEPEST:
                raise KernelError(
                    f"{node.kind}: blocks nest more than {DEEPEST} deep", op=node.kind
                )
        elif node.kind not in OPS or node.blocks:
            where = f"%{node.outputs[0].id}" if node.outputs else "no outputs"
            if node.location is not None:
                where = f"{node.location[0]}:{node.location[1]}"
            raise KernelError(
                f"{node.kind}: no kernel{' for its blocks' if node.blocks else ''}: {where}",
                op=node.kind,
                hint=None if node.kind in OPS else advice(node.kind),
            )


def _depth(node: Node) -> int:
    """How many blocks are around a node."""
    depth = 0
    while node.block is not None:
        node = node.block.node
        depth += 1
    return depth
