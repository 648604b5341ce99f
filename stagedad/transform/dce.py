"""Dead code elimination."""

from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.transform import _passes
from stagedad.transform.registry import graph_pass

_EFFECTS = frozenset(kind for kind, op in OPS.items() if "effect" in op.traits)


@graph_pass
def dce(graph: Graph) -> bool:
    """Remove the nodes whose outputs nobody reads.  Returns whether there were any.

    Before:  graph(%a : f64[]) {
               %1 : f64[] = exp(%a)
               %2 : f64[] = tanh(%1)
               %3 : f64[] = mul(%a, %a)
               return (%3)
             }
    After:   graph(%a : f64[]) {
               %3 : f64[] = mul(%a, %a)
               return (%3)
             }

    Cost: O(nodes + uses).  Nodes with an effect stay.
    """
    return bool(_passes.remove_dead(graph, _EFFECTS))
