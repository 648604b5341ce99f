"""Cloning between graphs, and what a node's blocks have to do with the outside.

Nothing here recurses: blocks may nest as deeply as memory allows.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t
from libc.stdlib cimport malloc
from libc.string cimport memset

from stagedad.errors import VerifyError

from stagedad.ir._slabs cimport (
    NONE, PARAM, RETURN, Slabs, describe, first_station, shared, shown)


cdef int32_t *value_map_for(Slabs source) except NULL:
    """Map from the values of `source` to nothing yet; the caller frees it."""
    cdef size_t size = (source.value_used + 1) * sizeof(int32_t)
    cdef int32_t *value_map = <int32_t *>malloc(size)
    if value_map == NULL:
        raise MemoryError("graph: out of memory")
    memset(value_map, 0xFF, size)        # NONE everywhere
    return value_map


cdef int copy_name(Slabs graph, Slabs source, int32_t value, int32_t new) except -1:
    if source.names:
        name = source.names.get(value)
        if name is not None:
            graph.set_name(new, name)
    return 0


cdef int32_t clone_value(Slabs graph, Slabs source, int32_t value, int32_t node) except -1:
    """Append an output to `node`, with the type and name of a value of `source`."""
    cdef PyObject *type = source.value_recs[value].type
    cdef int32_t new
    new = graph.new_value(node, graph.current_stage, None if type == NULL else <object>type)
    copy_name(graph, source, value, new)
    return new


cdef int32_t clone_input(Slabs graph, Slabs source, int32_t value) except -1:
    """Add an input to the graph, with the type and name of a value of `source`."""
    return clone_value(graph, source, value, PARAM)


cdef int32_t clone_shell(Slabs graph, Slabs source, int32_t node) except -1:
    """Make a node like one of `source`, outputs and all; no operands, blocks or place yet."""
    cdef int32_t new = graph.new_node(source.node_recs[node].kind, graph.current_stage)
    cdef int32_t value
    graph.reserve_inputs(new, source.node_recs[node].input_count)
    graph.node_recs[new].attributes = shared(source.node_recs[node].attributes)
    graph.node_recs[new].location = shared(source.node_recs[node].location)
    graph.node_recs[new].scope = shared(source.node_recs[node].scope)
    graph.node_recs[new].origin = source.node_recs[node].origin
    value = source.node_recs[node].first_output
    while value != NONE:
        clone_value(graph, source, value, new)
        value = source.value_recs[value].next_output
    return new


cdef int32_t clone_single(
        Slabs graph, Slabs source, int32_t node, int32_t *value_map, int32_t before) except -1:
    """Clone a node without its blocks and put it before `before`."""
    cdef int32_t new, value, mapped
    check_operands(source, node, value_map)
    new = clone_shell(graph, source, node)
    push_mapped(graph, source, node, value_map, new)
    graph.attach(new, before)
    value = source.node_recs[node].first_output
    mapped = graph.node_recs[new].first_output
    while value != NONE:
        value_map[value] = mapped
        value = source.value_recs[value].next_output
        mapped = graph.value_recs[mapped].next_output
    return new


cdef int check_operands(Slabs source, int32_t node, int32_t *value_map) except -1:
    cdef int32_t i, value
    for i in range(source.node_recs[node].input_count):
        value = source.use_recs[source.node_recs[node].first_input + i].value
        if value_map[value] == NONE:
            raise VerifyError(
                f"clone: the inputs given do not suffice: `{describe(source, node)}` "
                f"reads {shown(source, value)}, which is not computed"
            )
    return 0


cdef int push_mapped(
        Slabs graph, Slabs source, int32_t node, int32_t *value_map, int32_t new) except -1:
    """Give `new` the operands of `node`, mapped."""
    cdef int32_t i
    for i in range(source.node_recs[node].input_count):
        graph.push_input(
            new, value_map[source.use_recs[source.node_recs[node].first_input + i].value])
    return 0


cdef int32_t clone_node(
        Slabs graph, Slabs source, int32_t node, int32_t *value_map) except -1:
    """Insert a clone of a node of `source`; operands and outputs go through `value_map`.

    The clone gets the graph's current stage, in its blocks too.  `source` may be `graph`.
    Where it fails, nothing is inserted.
    """
    cdef int32_t new = clone_single(graph, source, node, value_map, graph.end_of_point())
    if source.node_recs[node].first_block == NONE:
        return new
    try:
        return clone_blocks(graph, source, node, value_map, new)
    except BaseException:
        graph.free_node_record(new)
        raise


cdef int32_t clone_blocks(
        Slabs graph, Slabs source, int32_t node, int32_t *value_map, int32_t new) except -1:
    """Give the clone `new` of a node blocks like those of `node`."""
    cdef int32_t block = source.node_recs[node].first_block
    cdef int32_t into, inside, made
    into = enter(graph, source, block, value_map, new)
    inside = first_station(source, block)
    while True:
        if source.node_recs[inside].kind != RETURN:
            made = clone_single(
                graph, source, inside, value_map, graph.block_recs[into].back)
            block = source.node_recs[inside].first_block
            if block != NONE:
                into = enter(graph, source, block, value_map, made)
                inside = first_station(source, block)
            else:
                inside = source.node_recs[inside].next
            continue
        check_operands(source, inside, value_map)
        push_mapped(graph, source, inside, value_map, graph.block_recs[into].back)
        block = source.node_recs[inside].block
        inside = source.block_recs[block].owner
        made = graph.block_recs[into].owner
        block = source.block_recs[block].next
        if block != NONE:
            into = enter(graph, source, block, value_map, made)
            inside = first_station(source, block)
        elif inside == node:
            return new
        else:
            inside = source.node_recs[inside].next
            into = graph.node_recs[made].block


cdef int32_t enter(
        Slabs graph, Slabs source, int32_t block, int32_t *value_map, int32_t owner) except -1:
    """Give `owner` a block with the inputs of a block of `source`."""
    cdef int32_t into = graph.new_block(owner)
    cdef int32_t value = source.node_recs[source.block_recs[block].param].first_output
    while value != NONE:
        value_map[value] = clone_value(graph, source, value, graph.block_recs[into].param)
        value = source.value_recs[value].next_output
    return into


cdef int clone_block(Slabs graph, Slabs source, int32_t block, int32_t *value_map) except -1:
    """Insert clones of the nodes of a block; where that fails, none of them."""
    cdef int32_t back = source.block_recs[block].back
    cdef int32_t node = source.node_recs[back].next
    cdef int32_t end = graph.end_of_point()
    cdef int32_t last = graph.node_recs[end].prev
    graph.busy += 1
    source.busy += 1
    try:
        while node != back:
            clone_node(graph, source, node, value_map)
            node = source.node_recs[node].next
        check_operands(source, back, value_map)
    except BaseException:
        while graph.node_recs[end].prev != last:
            graph.free_node_record(graph.node_recs[end].prev)
        raise
    finally:
        graph.busy -= 1
        source.busy -= 1
    return 0


cdef int clone_outputs(
        Slabs graph, Slabs source, int32_t block, int32_t *value_map, int32_t into) except -1:
    """Append the outputs of a block to the operands of the node `into`."""
    check_operands(source, source.block_recs[block].back, value_map)
    return push_mapped(graph, source, source.block_recs[block].back, value_map, into)


cdef bint is_inside(Slabs graph, int32_t node, int32_t root) noexcept:
    """Whether `node` is `root`, or in one of its blocks at any depth."""
    while node != root:
        if graph.node_recs[node].block == NONE:
            return False
        node = graph.block_recs[graph.node_recs[node].block].owner
        if node == NONE:
            return False
    return True


cdef list outer_reads(Slabs graph, int32_t node):
    """The values that the blocks of `node` read from outside it, each once, in order."""
    cdef int32_t inside, i, value
    cdef dict found = {}
    graph.check_usable()                 # a dict was made: the graph may be gone
    if graph.node_recs[node].first_block == NONE:
        return []
    inside = first_station(graph, graph.node_recs[node].first_block)
    while inside != graph.node_recs[node].next:      # what follows the last block
        for i in range(graph.node_recs[inside].input_count):
            value = graph.use_recs[graph.node_recs[inside].first_input + i].value
            if value not in found and not is_inside(graph, graph.value_recs[value].node, node):
                found[value] = None
        inside = graph.station(inside)
    return list(found)


cdef int32_t used_outside(Slabs graph, int32_t block) noexcept:
    """A value computed in `block`, at any depth, that something outside it reads, or NONE.

    Only a broken graph has one.
    """
    cdef int32_t back = graph.block_recs[block].back
    cdef int32_t inside = graph.node_recs[back].next
    cdef int32_t value, use
    while True:
        if graph.node_recs[inside].kind == RETURN:
            value = graph.node_recs[
                graph.block_recs[graph.node_recs[inside].block].param].first_output
        else:
            value = graph.node_recs[inside].first_output
        while value != NONE:
            use = graph.value_recs[value].first_use
            while use != NONE:
                if not is_within(graph, graph.use_recs[use].user, block):
                    return value
                use = graph.use_recs[use].next
            value = graph.value_recs[value].next_output
        if inside == back:
            return NONE
        inside = graph.station(inside)


cdef bint is_within(Slabs graph, int32_t node, int32_t block) noexcept:
    """Whether `node` is in `block`, at any depth."""
    cdef int32_t around
    while node != NONE:
        around = graph.node_recs[node].block
        if around == block:
            return True
        if around == NONE:
            return False
        node = graph.block_recs[around].owner
    return False
