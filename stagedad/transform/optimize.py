"""All passes, in the order in which they help each other."""

from stagedad.ir import Graph
from stagedad.transform.cse import cse
from stagedad.transform.dce import dce
from stagedad.transform.fold import fold
from stagedad.transform.registry import graph_pass
from stagedad.transform.simplify import simplify

__all__ = ["optimize"]


@graph_pass
def optimize(graph: Graph) -> bool:
    """Run dce, fold, simplify and cse, then dce again.  Returns whether anything changed.

    Results stay bit-identical.
    """
    changed = dce(graph)
    changed |= fold(graph)
    changed |= simplify(graph)
    changed |= cse(graph)
    return dce(graph) or changed
