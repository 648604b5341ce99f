"""Moves that keep the order legal, taking along what must come along."""

from libc.stdint cimport int32_t

from stagedad.ir._clone cimport outer_reads
from stagedad.ir._slabs cimport PARAM, RETURN, Slabs


def move_legally(Slabs graph not None, int32_t node, int32_t point, bint after):
    """Move `node` next to `point`, with the nodes between them that depend on it or it on them.

    Returns False, with nothing moved, if there is no legal order in which `node` stands right
    before (or `after`) `point`.

    Cost: O(nodes between the two, and their uses).
    """
    cdef bint down
    cdef bint split
    cdef int32_t current, anchor
    cdef list moving = [node]
    cdef set near          # what the next node must not touch, to stay where it is
    cdef set far           # what the point itself must not touch
    cdef int32_t head = graph.block_recs[graph.node_recs[node].block].back
    if graph.node_recs[point].kind == PARAM:
        point, after = graph.node_recs[head].next, False
    if point == head:
        point, after = graph.node_recs[head].prev, True
    if point == node:
        return True
    if not stages_allow(graph, node, point, after):
        return False
    # Walk towards the point; what cannot be passed joins.
    down = graph.node_recs[node].position < graph.node_recs[point].position
    near = {node} if down else producers(graph, node)
    far = set() if down != after else near
    current = step(graph, node, down)
    while current != point:
        if touches(graph, near, current, down):
            moving.append(current)
            for known in (near, far) if far is not near else (near,):
                if down:
                    known.add(current)
                else:
                    known.update(producers(graph, current))
        current = step(graph, current, down)
    # Right before a later point (or after an earlier one) only `node` stays on this side:
    # the others must get past the point.
    split = down != after
    if touches(graph, far, point, down):
        return False
    if split:
        place(graph, node, point, after)
        anchor = point
        for current in moving[1:]:
            place(graph, current, anchor, down)
            anchor = current
    else:
        anchor = point
        for current in moving:
            place(graph, current, anchor, after)
            anchor = current
            after = down
    return True


cdef int32_t step(Slabs graph, int32_t node, bint down) noexcept:
    return graph.node_recs[node].next if down else graph.node_recs[node].prev


cdef bint touches(Slabs graph, set known, int32_t other, bint down) except -1:
    """Going down: whether `other` reads a node of `known`.  Going up: whether it is one."""
    return other in known if not down else not known.isdisjoint(producers(graph, other))


cdef set producers(Slabs graph, int32_t node):
    """The nodes that compute the operands, and what the blocks read from outside."""
    cdef int32_t i, value
    cdef set found = set()
    for i in range(graph.node_recs[node].input_count):
        value = graph.use_recs[graph.node_recs[node].first_input + i].value
        found.add(graph.value_recs[value].node)
    for value in outer_reads(graph, node):
        found.add(graph.value_recs[value].node)
    return found


cdef bint stages_allow(Slabs graph, int32_t node, int32_t point, bint after) noexcept:
    """Whether the stages still rise with `node` beside `point`."""
    cdef int32_t stage = graph.node_recs[node].stage
    cdef int32_t before = point if after else graph.node_recs[point].prev
    cdef int32_t behind = graph.node_recs[point].next if after else point
    if before == node:
        before = graph.node_recs[node].prev
    if behind == node:
        behind = graph.node_recs[node].next
    return ((graph.node_recs[before].kind == RETURN or graph.node_recs[before].stage <= stage)
            and (graph.node_recs[behind].kind == RETURN
                 or stage <= graph.node_recs[behind].stage))


cdef int place(Slabs graph, int32_t node, int32_t anchor, bint after) except -1:
    graph.detach(node)
    graph.attach(node, graph.node_recs[anchor].next if after else anchor)
    return 0
