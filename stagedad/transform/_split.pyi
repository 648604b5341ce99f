from collections.abc import Iterable

from stagedad.ir import Graph, Value

def split_stage(
    graph: Graph, stage: int, captures: Iterable[Value], outputs: Iterable[Value]
) -> Graph: ...
