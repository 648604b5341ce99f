"""Iteration over nodes that survives edits of the graph."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from stagedad.ir._handles cimport Node, node_handle
from stagedad.ir._slabs cimport BODY, NONE, Slabs


def iterate(Slabs graph, int32_t block, uint32_t alive, bint backward):
    """Yield the nodes of a block; what follows is looked up after the caller has edited.

    `alive` is the block's generation.  A node that is moved while it is the current one is not
    met again.

    Whoever makes Python objects lets the collector, and so other threads, edit the graph: the
    records are looked at again after each such place.
    """
    cdef int32_t head, node, following
    cdef uint32_t generation, following_generation
    cdef uint32_t epoch
    cdef int64_t position
    cdef set moved = None
    graph.check_usable()
    if graph.block_recs[block].generation != alive:
        return
    head = graph.block_recs[block].back
    node = graph.node_recs[head].prev if backward else graph.node_recs[head].next
    while node != head:
        generation = graph.node_recs[node].generation
        position = graph.node_recs[node].position
        epoch = graph.epoch
        following = graph.node_recs[node].prev if backward else graph.node_recs[node].next
        following_generation = graph.node_recs[following].generation
        if moved is None:
            yield node_handle(graph, node)
        elif (node, generation) not in moved:
            graph.check_usable()
            if graph.node_recs[node].generation == generation:
                yield node_handle(graph, node)
        graph.check_usable()
        if (graph.node_recs[node].generation == generation and graph.epoch == epoch
                and graph.node_recs[node].position != position):
            if moved is None:
                moved = set()
            moved.add((node, generation))
            graph.check_usable()
        if graph.block_recs[block].generation != alive:
            return
        if (graph.node_recs[node].generation == generation
                and graph.node_recs[node].block == block
                and (graph.node_recs[node].position == position or graph.epoch != epoch)):
            node = graph.node_recs[node].prev if backward else graph.node_recs[node].next
        elif (graph.node_recs[following].generation == following_generation
              and graph.node_recs[following].block == block):
            node = following
        elif graph.epoch != epoch:
            raise RuntimeError("nodes: the graph was re-indexed and the current node destroyed")
        else:                                    # both gone: the first one beyond the position
            node = graph.node_recs[head].prev if backward else graph.node_recs[head].next
            while node != head and (
                graph.node_recs[node].position >= position if backward
                else graph.node_recs[node].position <= position
            ):
                node = graph.node_recs[node].prev if backward else graph.node_recs[node].next


def walk(Slabs graph):
    """Yield every node, before what is in its blocks; edits are as safe as in `iterate`."""
    cdef int32_t block
    cdef Node node
    cdef list stack, found
    graph.check_usable()
    stack = [iterate(graph, BODY, graph.block_recs[BODY].generation, False)]
    while stack:
        for handle in stack[len(stack) - 1]:
            yield handle
            node = <Node>handle
            found = []                           # of index and generation, by turns
            graph.check_usable()
            if graph.node_recs[node.index].generation != node.generation:
                continue                         # destroyed meanwhile
            block = graph.node_recs[node.index].first_block
            if block == NONE:
                continue
            while block != NONE:
                found.append(block)
                found.append(graph.block_recs[block].generation)
                block = graph.block_recs[block].next
            while found:
                alive = found.pop()
                stack.append(iterate(graph, found.pop(), alive, False))
            break
        else:
            stack.pop()
