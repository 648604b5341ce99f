"""Common subexpression elimination."""

from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.transform import _passes
from stagedad.transform.registry import graph_pass

# Of an op that is not in the table nothing is known: it may draw a number or write a file.
# Scatters stay apart: the planner adds one to a sum in place, without making the array, where
# that sum is its only reader.
_PURE = frozenset(
    kind
    for kind, op in OPS.items()
    if not op.traits & {"effect", "random"} and kind not in ("unslice", "take_add")
)
_COMMUTATIVE = frozenset(kind for kind, op in OPS.items() if "commutative" in op.traits)


@graph_pass
def cse(graph: Graph) -> bool:
    """Merge pure nodes of one stage that compute the same thing.  Returns whether it did.

    The later node loses its uses and stays behind, dead, for `dce`.

    Before:  graph(%a : f64[]) {
               %1 : f64[] = exp(%a)
               %2 : f64[] = exp(%a)
               %3 : f64[] = add(%1, %2)
               return (%3)
             }
    After:   graph(%a : f64[]) {
               %1 : f64[] = exp(%a)
               %2 : f64[] = exp(%a)
               %3 : f64[] = add(%1, %1)
               return (%3)
             }

    Stages do not mix: merging a stage-1 node into stage 0 would turn a recomputation into a
    capture, which is not for this pass to decide.  Results stay bit-identical: operands are
    reordered only for ops declared commutative.
    """
    return bool(_passes.merge_equal(graph, _PURE, _COMMUTATIVE))
