"""Iteration over nodes that survives edits of the graph."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from stagedad.ir._handles cimport Node, node_handle
from stagedad.ir._slabs cimport BODY, NONE, Slabs


def iterate(Slabs graph, int32_t block, uint32_t alive, bint backward):
    """Yield the nodes of a block; what follows is looked up after the caller has edited.

    `alive` is the block's generation.
    """
    cdef int32_t head, node, following
    cdef uint32_t generation, following_generation
    cdef uint32_t epoch
    cdef int64_t position
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
        yield node_handle(graph, node)
        graph.check_usable()
        if graph.block_recs[block].generation != alive:
            return
        if (graph.node_recs[node].generation == generation
                and graph.node_recs[node].block == block):
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
    cdef list stack = [iterate(graph, BODY, graph.block_recs[BODY].generation, False)]
    cdef list inside
    while stack:
        for handle in stack[len(stack) - 1]:
            yield handle
            graph.check_usable()
            node = <Node>handle
            if graph.node_recs[node.index].generation != node.generation:
                continue                         # destroyed meanwhile
            block = graph.node_recs[node.index].first_block
            if block == NONE:
                continue
            inside = []
            while block != NONE:
                inside.append(
                    iterate(graph, block, graph.block_recs[block].generation, False))
                block = graph.block_recs[block].next
            inside.reverse()
            stack.extend(inside)
            break
        else:
            stack.pop()
