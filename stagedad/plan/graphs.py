"""What a plan asks of a graph beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stagedad.errors import KernelError
from stagedad.ops import OPS

if TYPE_CHECKING:
    from stagedad.ir import Graph


def held_arrays(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that `constant` nodes hold by reference, in node order.

    A program reads them at each run: they are inputs that the caller does not see.
    """
    return list(graph.constants)


def check_kinds(graph: Graph) -> None:
    """Raise KernelError, naming op and location, if a node is no op of the table."""
    for node in graph.nodes():
        if node.kind not in OPS:
            where = f"%{node.outputs[0].id}" if node.outputs else "no outputs"
            if node.location is not None:
                where = f"{node.location[0]}:{node.location[1]}"
            raise KernelError(
                f"{node.kind}: no kernel: {where}",
                op=node.kind,
                hint="the ops that run are listed by sd.ops",
            )
