from collections.abc import Iterator

from stagedad.ir._graph import Graph
from stagedad.ir._handles import Node

def iterate(graph: Graph, block: int, alive: int, backward: bool) -> Iterator[Node]: ...
def walk(graph: Graph) -> Iterator[Node]: ...
