"""The IR: graphs of nodes and values, their text form and their invariants."""

from stagedad.ir._attributes import Attributes
from stagedad.ir._blocks import Block
from stagedad.ir._graph import Graph
from stagedad.ir._handles import Node, Use, Value, live_handle_count
from stagedad.ir._slabs import live_graph_count
from stagedad.ir.symbolic import SymbolicValue
from stagedad.ir.text import parse_graph, print_graph
from stagedad.ir.verify import verify

__all__ = [
    "Attributes",
    "Block",
    "Graph",
    "Node",
    "SymbolicValue",
    "Use",
    "Value",
    "live_graph_count",
    "live_handle_count",
    "parse_graph",
    "print_graph",
    "verify",
]
