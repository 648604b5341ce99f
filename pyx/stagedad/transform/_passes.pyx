"""The sweeps behind `dce` and `cse`."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free

from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport Node
from stagedad.ir._kinds cimport kind_index, kind_name
from stagedad.ir._clone cimport used_outside
from stagedad.ir._slabs cimport BODY, NONE, RETURN, first_station, is_static


def remove_dead(Graph graph not None, effects):
    """Destroy, from the last node to the first, those that nobody reads.  Returns how many.

    `effects` is the set of kinds that stay whatever reads them, and with them the nodes in
    whose blocks they are.
    """
    cdef int32_t node = graph.node_recs[RETURN].prev
    cdef int32_t before, block
    cdef int removed = 0
    graph.check_editable()
    while node != RETURN:
        if graph.node_recs[node].kind == RETURN:     # the beginning of a block is reached
            block = graph.node_recs[node].block
            node = graph.block_recs[block].owner
            block = graph.block_recs[block].next
            if block == NONE:
                node = graph.node_recs[node].prev
            else:
                node = graph.node_recs[graph.block_recs[block].back].prev
            continue
        before = graph.node_recs[node].prev
        if is_dead(graph, node, effects):
            graph.free_node_record(node)
            removed += 1
        elif graph.node_recs[node].first_block != NONE:
            block = graph.node_recs[node].first_block
            before = graph.node_recs[graph.block_recs[block].back].prev
        node = before
    return removed


cdef bint is_dead(Graph graph, int32_t node, effects) except -1:
    """Whether nothing reads a node, nor what is in its blocks, and it has no effect."""
    cdef int32_t value = graph.node_recs[node].first_output
    cdef int32_t block = graph.node_recs[node].first_block
    cdef int32_t inside
    while value != NONE:
        if graph.value_recs[value].first_use != NONE:
            return False
        value = graph.value_recs[value].next_output
    if effects and kind_name(graph.node_recs[node].kind) in effects:
        return False
    while block != NONE:
        if used_outside(graph, block) != NONE:
            return False
        inside = first_station(graph, block)
        while effects and inside != graph.block_recs[block].back:
            if kind_name(graph.node_recs[inside].kind) in effects:
                return False
            inside = graph.station(inside)
        block = graph.block_recs[block].next
    return True


def merge_equal(Graph graph not None, pure, commutative):
    """Make users of a node read an equal earlier one.  Returns how many nodes lost users.

    Equal: same kind, stage, operands, attributes and types.  Where the kind is in `commutative`
    and all attributes are at their defaults, operands may stand in any order.  Only
    kinds in `pure` are merged.  A node in a block may read what comes before its owner, not
    what another block computes.
    """
    cdef list around = [{}]              # what is known, by block, the innermost last
    cdef dict known
    cdef int32_t node = first_station(graph, BODY)
    cdef int32_t i, value, kept
    cdef int merged = 0
    cdef bint moved
    cdef PyObject *own
    cdef str kind
    graph.check_editable()
    while node != RETURN:
        if graph.node_recs[node].kind == RETURN:
            around.pop()
            if graph.block_recs[graph.node_recs[node].block].next != NONE:
                around.append({})
            node = graph.station(node)
            continue
        kind = kind_name(graph.node_recs[node].kind)
        if graph.node_recs[node].first_block != NONE:
            around.append({})
        elif kind in pure:
            operands = []
            for i in range(graph.node_recs[node].input_count):
                operands.append(graph.use_recs[graph.node_recs[node].first_input + i].value)
            if (kind in commutative and graph.node_recs[node].attributes == NULL
                    and not complex_output(graph, node)):
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
            kept = NONE
            for known in around:
                if key in known:
                    kept = <int32_t>known[key]
            if kept == NONE:
                (<dict>around[len(around) - 1])[key] = node
            else:
                moved = False
                kept = graph.node_recs[kept].first_output
                value = graph.node_recs[node].first_output
                while value != NONE:
                    if graph.replace_uses(value, kept, NONE):
                        moved = True
                    kept = graph.value_recs[kept].next_output
                    value = graph.value_recs[value].next_output
                merged += moved
        node = graph.station(node)
    return merged


cdef bint complex_output(Graph graph, int32_t node) except -1:
    """Whether the result is complex, or may be: a product may be contracted, hence ordered."""
    cdef int32_t value = graph.node_recs[node].first_output
    cdef PyObject *type = NULL if value == NONE else graph.value_recs[value].type
    return type == NULL or (<object>type).dtype.kind == "c"


def attributes_key(dict attributes):
    """Hashable content of attributes; arrays count by identity: they are held by reference."""
    parts = []
    for name in sorted(attributes):
        value = attributes[name]
        try:
            hash(value)
            # repr tells 0.0 from -0.0 and holds nan equal to itself; slow, so for these alone.
            if isinstance(value, (float, complex, tuple)):
                value = repr(value)
            parts.append((name, type(value), value))
        except TypeError:
            parts.append((name, id(value)))
    return tuple(parts)


def drop_zeros(Graph graph not None, linear, products):
    """Follow structural zeros through the graph.  Returns how many values lost their users.

    A zero is a constant marked `is_zero`, or `zeros_like`.  A sum with one is its other
    operand; a kind in `linear` of zeros alone, or one in `products` of any zero, is a zero.
    Types must be known for that; elsewhere the nodes stay and compute the same.
    """
    cdef int32_t node, value, operand, i, zeros, other
    cdef int32_t values = graph.value_used
    cdef int dropped = 0
    cdef dict made = {}
    cdef str kind
    cdef bint is_zero
    cdef uint8_t *zero
    graph.check_editable()
    zero = <uint8_t *>calloc(values + 1, 1)
    if zero == NULL:
        raise MemoryError("drop_zeros: out of memory")
    try:
        node = graph.node_recs[RETURN].next
        while node != RETURN:
            kind = kind_name(graph.node_recs[node].kind)
            value = graph.node_recs[node].first_output
            zeros = 0
            other = NONE
            for i in range(graph.node_recs[node].input_count):
                operand = graph.use_recs[graph.node_recs[node].first_input + i].value
                if zero[operand]:
                    zeros += 1
                else:
                    other = operand
            if kind == "zeros_like" or (kind == "constant" and marked_zero(graph, node)):
                zero[value] = True
            elif zeros and graph.node_recs[node].output_count == 1:
                if (kind == "add" and zeros == 1 and graph.node_recs[node].attributes == NULL
                        and other != NONE and graph.value_recs[value].type != NULL
                        and graph.value_recs[other].type == graph.value_recs[value].type):
                    dropped += graph.replace_uses(value, other, NONE) > 0
                else:
                    is_zero = kind in products or (
                        kind in linear and zeros == graph.node_recs[node].input_count)
                    zero[value] = is_zero and is_static(graph, value)
            node = graph.node_recs[node].next
        for value in range(values):
            if zero[value] and graph.value_recs[value].first_use != NONE:
                kind = kind_name(graph.node_recs[graph.value_recs[value].node].kind)
                if kind != "constant" and is_static(graph, value):
                    graph.replace_uses(value, zero_of_type(graph, value, made), NONE)
                    dropped += 1
    finally:
        free(zero)
    return dropped


cdef bint marked_zero(Graph graph, int32_t node) except -1:
    cdef PyObject *own = graph.node_recs[node].attributes
    return own != NULL and bool((<dict>own).get("is_zero"))


cdef int32_t zero_of_type(Graph graph, int32_t value, dict made) except -1:
    """A zero constant at the beginning of the graph, one a type."""
    cdef object type = <object>graph.value_recs[value].type
    cdef int32_t node
    if type not in made:
        node = graph.build("constant", (), None, None, None, zero_attributes(type), None)
        graph.node_recs[node].stage = 0
        graph.value_recs[graph.node_recs[node].first_output].stage = 0
        graph.attach(node, graph.node_recs[RETURN].next)
        made[type] = graph.node_recs[node].first_output
    return <int32_t>made[type]


def zero_attributes(type):
    """The attributes of the constant that is a structural zero of this type."""
    return {"value": type.dtype.type(0).item(), "dtype": type.dtype, "shape": type.shape,
            "is_zero": 1}


def hits(Graph graph not None, dict triggers):
    """Yield the nodes at which a rule may apply.

    `triggers` maps a kind to the kinds of operands' producers that call for a closer look; None
    among them stands for every node of that kind.  Nodes made or destroyed meanwhile are fine.
    """
    cdef dict by_index = {}
    cdef int32_t node, i, value
    cdef set wanted
    cdef object found
    for kind, producers in triggers.items():
        by_index[kind_index(kind)] = {
            None if each is None else kind_index(each) for each in producers
        }
    for handle in graph.nodes(nested=True):
        node = (<Node>handle).index
        found = by_index.get(graph.node_recs[node].kind)
        if found is None:
            continue
        wanted = <set>found
        if None in wanted:
            yield handle
            continue
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            if graph.node_recs[graph.value_recs[value].node].kind in wanted:
                yield handle
                break
