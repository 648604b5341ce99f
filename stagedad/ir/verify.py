"""`verify(graph)`: check every named invariant of the IR."""

from stagedad.errors import VerifyError
from stagedad.ir import _verify
from stagedad.ir._graph import Graph
from stagedad.ir._held import held_graphs
from stagedad.ir._verify import check_order
from stagedad.ir.control import CONTROL, check_control
from stagedad.ir.text import print_graph

__all__ = ["check_order", "verify"]


def verify(graph: Graph) -> None:
    """Check every invariant.  Raises VerifyError naming invariant and node, with the graph.

    The graphs that attributes hold are checked too.
    """
    for each in (graph, *held_graphs(graph)):
        try:
            _verify.verify(each)
            for node in _verify.nodes_of(each, CONTROL):
                check_control(node)
        except VerifyError as error:
            if len(each) <= 1000:
                error.add_note(print_graph(each))
            raise
