"""`verify(graph)`: check every named invariant of the IR."""

from stagedad.errors import VerifyError
from stagedad.ir import _verify
from stagedad.ir._graph import Graph
from stagedad.ir._verify import check_order
from stagedad.ir.text import print_graph

__all__ = ["check_order", "verify"]


def verify(graph: Graph) -> None:
    """Check every invariant.  Raises VerifyError naming invariant and node, with the graph."""
    try:
        _verify.verify(graph)
    except VerifyError as error:
        if len(graph) <= 1000:
            error.add_note(print_graph(graph))
        raise
