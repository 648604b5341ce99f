"""Looking over a graph without a handle a node."""

from libc.stdint cimport int32_t

from stagedad.ir._kinds cimport kind_name
from stagedad.ir._slabs cimport NONE, RETURN, Slabs


def plain_kinds(Slabs graph not None):
    """The kinds of the graph's nodes, as a set; None if one of them has blocks."""
    cdef set found = set()
    cdef int32_t node
    cdef int32_t last = NONE
    graph.check_usable()
    node = graph.node_recs[RETURN].next
    while node != RETURN:
        if graph.node_recs[node].first_block != NONE:
            return None
        if graph.node_recs[node].kind != last:
            last = graph.node_recs[node].kind
            found.add(kind_name(last))
        node = graph.node_recs[node].next
    return found
