"""The sweeps behind `dce` and `cse`."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

from stagedad.ir._graph cimport Graph
from stagedad.ir._kinds cimport kind_name
from stagedad.ir._slabs cimport NONE, RETURN


def remove_dead(Graph graph not None, effects):
    """Destroy, from the last node to the first, those that nobody reads.  Returns how many.

    `effects` is the set of kinds that stay whatever reads them.
    """
    cdef int32_t node = graph.node_recs[RETURN].prev
    cdef int32_t before, value
    cdef int removed = 0
    graph.check_usable()
    while node != RETURN:
        before = graph.node_recs[node].prev
        value = graph.node_recs[node].first_output
        while value != NONE and graph.value_recs[value].first_use == NONE:
            value = graph.value_recs[value].next_output
        if value == NONE and not (effects and kind_name(graph.node_recs[node].kind) in effects):
            graph.free_node_record(node)
            removed += 1
        node = before
    return removed


def merge_equal(Graph graph not None, pure, commutative):
    """Make users of a node read an equal earlier one.  Returns how many nodes lost users.

    Equal: same kind, stage, operands, attributes and types.  Where the kind is in `commutative`
    and all attributes are at their defaults, operands may stand in any order.  Only
    kinds in `pure` are merged.
    """
    cdef dict first = {}
    cdef int32_t node = graph.node_recs[RETURN].next
    cdef int32_t i, value, kept
    cdef int merged = 0
    cdef bint moved
    cdef PyObject *own
    cdef str kind
    graph.check_usable()
    while node != RETURN:
        kind = kind_name(graph.node_recs[node].kind)
        if kind in pure:
            operands = []
            for i in range(graph.node_recs[node].input_count):
                operands.append(graph.use_recs[graph.node_recs[node].first_input + i].value)
            if kind in commutative and graph.node_recs[node].attributes == NULL:
                operands.sort()
            own = graph.node_recs[node].attributes
            attributes = () if own == NULL else attributes_key(<dict>own)
            types = []
            value = graph.node_recs[node].first_output
            while value != NONE:
                types.append(<size_t>graph.value_recs[value].type)
                value = graph.value_recs[value].next_output
            key = (graph.node_recs[node].kind, graph.node_recs[node].stage, tuple(operands),
                   attributes, tuple(types))
            kept = <int32_t>first.setdefault(key, node)
            if kept != node:
                moved = False
                kept = graph.node_recs[kept].first_output
                value = graph.node_recs[node].first_output
                while value != NONE:
                    if graph.replace_uses(value, kept, NONE):
                        moved = True
                    kept = graph.value_recs[kept].next_output
                    value = graph.value_recs[value].next_output
                merged += moved
        node = graph.node_recs[node].next
    return merged


def attributes_key(dict attributes):
    """Hashable content of attributes; arrays count by identity: they are held by reference."""
    parts = []
    for name in sorted(attributes):
        value = attributes[name]
        try:
            hash(value)
            # repr tells 0.0 from -0.0, and nan from itself never.
            parts.append((name, type(value).__name__, repr(value)))
        except TypeError:
            parts.append((name, id(value)))
    return tuple(parts)
