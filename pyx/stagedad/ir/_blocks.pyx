"""Blocks: the sequences of nodes that a node owns, as the branches of `cond` are."""

import cython

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free

from stagedad.errors import ForeignValue, StaleHandle

from stagedad.ir._clone cimport (
    clone_block, clone_input, clone_outputs, used_outside, value_map_for)
from stagedad.ir._graph cimport Graph, checked_input, empty_graph
from stagedad.ir._handles cimport (
    Node, Value, attach_checked, input_handles, node_handle, output_handles, own_value,
    value_handle)
from stagedad.ir._slabs cimport BODY, NONE, RETURN, Slabs, is_end, shown

from stagedad.ir._walk import iterate


@cython.final
@cython.no_gc
cdef class Block:
    """A handle to a block of a node: inputs, nodes in order, outputs.

    Its nodes may read what comes before their owner, in the graph or in blocks around it; what
    is computed in a block is read in it alone.  What the inputs and outputs mean is for the
    kind of the owner to say.

    Invariant [blocks]: a block has one owner; a value is read within its block, at any depth.
    """
    cdef readonly Graph graph
    cdef int32_t index
    cdef uint32_t generation
    cdef object __weakref__

    def __init__(self):
        raise TypeError("Block: made by node.add_block()")

    cdef int32_t live(self) except -1:
        if self.graph is None or self.index >= self.graph.block_used or (
                self.graph.block_recs[self.index].generation != self.generation
                or self.generation & 1 == 0):
            if self.graph is not None:
                self.graph.check_usable()
            raise StaleHandle("block: it was destroyed")
        return self.index

    cdef int32_t param(self) except -1:
        return self.graph.block_recs[self.live()].param

    cdef int32_t back(self) except -1:
        return self.graph.block_recs[self.live()].back

    def __eq__(self, other):
        cdef Block that
        if not isinstance(other, Block):
            return NotImplemented
        that = <Block>other
        return (self.graph is that.graph and self.index == that.index
                and self.generation == that.generation)

    def __hash__(self):
        return hash((id(self.graph), self.index, self.generation, 2))

    def __repr__(self):
        try:
            index = self.live()
        except ReferenceError:
            return "<stale Block>"
        return f"<Block of {self.graph.block_recs[index].size} nodes in `{self.node}`>"

    @property
    def node(self):
        """The node that owns it."""
        return node_handle(self.graph, self.graph.block_recs[self.live()].owner)

    @property
    def inputs(self):
        """The inputs, as a tuple made for this call."""
        return output_handles(self.graph, self.param())

    @property
    def outputs(self):
        """The outputs, as a tuple made for this call."""
        return input_handles(self.graph, self.back())

    def nodes(self):
        """Iterate over the nodes in order; destroying or moving the current one is safe."""
        self.live()
        return iterate(self.graph, self.index, self.generation, False)

    def __iter__(self):
        return self.nodes()

    def __reversed__(self):
        self.live()
        return iterate(self.graph, self.index, self.generation, True)

    def __len__(self):
        return self.graph.block_recs[self.live()].size

    def __bool__(self):
        return True

    def add_input(self, type=None, name=None):
        """Append an input; as `Graph.add_input`.

        Given:  %1 = f(%a)
                  block0(%2) {
                    return (%2)
                  }
        Do:     block.add_input()
        Gives:  %1 = f(%a)
                  block0(%2, %3) {
                    return (%2)
                  }
        """
        type = checked_input(type, name)
        self.live()
        self.graph.check_editable()
        return value_handle(self.graph, self.graph.add_param(self.param(), type, name))

    def erase_input(self, Py_ssize_t i):
        """Remove input `i`, which must be unused; later inputs move up.

        Given:  %1 = f(%a)
                  block0(%2, %3) {
                    return (%3)
                  }
        Do:     block.erase_input(0)
        Gives:  %1 = f(%a)
                  block0(%3) {
                    return (%3)
                  }
        """
        node_handle(self.graph, self.param()).erase_output(i)

    def register_output(self, Value value not None):
        """Append `value` to the outputs; returns its offset.

        Given:  %1 = f(%a)
                  block0(%2) {
                    return (%2)
                  }
        Do:     block.register_output(%a)
        Gives:  %1 = f(%a)
                  block0(%2) {
                    return (%2, %a)
                  }
        """
        cdef int32_t back = self.back()
        self.graph.check_editable()
        self.graph.push_input(back, own_value(self.graph, value))
        return self.graph.node_recs[back].input_count - 1

    def erase_output(self, Py_ssize_t i):
        """Remove output `i`; later outputs move up.

        Given:  %1 = f(%a)
                  block0(%2) {
                    return (%a, %2)
                  }
        Do:     block.erase_output(0)
        Gives:  %1 = f(%a)
                  block0(%2) {
                    return (%2)
                  }
        """
        node_handle(self.graph, self.back()).remove_input(i)

    def append(self, Node node not None):
        """Put an unattached node at the end.  Returns the node.

        Given:  %1 = f(%a)
                  block0() {
                    %2 = g(%a)
                    return (%2)
                  }
        Do:     block.append(graph.create("h", %a))
        Gives:  %1 = f(%a)
                  block0() {
                    %2 = g(%a)
                    %3 = h(%a)
                    return (%2)
                  }
        """
        attach_checked(self.graph, node, self.back())
        return node

    def prepend(self, Node node not None):
        """Put an unattached node at the beginning.  Returns the node.

        Given:  %1 = f(%a)
                  block0() {
                    %2 = g(%a)
                    return (%2)
                  }
        Do:     block.prepend(graph.create("h", %a))
        Gives:  %1 = f(%a)
                  block0() {
                    %3 = h(%a)
                    %2 = g(%a)
                    return (%2)
                  }
        """
        attach_checked(self.graph, node, self.graph.node_recs[self.back()].next)
        return node

    def insert(self, str kind not None, *inputs, outputs=None, location=None, scope=None,
               **attributes):
        """Create a node at the end; as `Graph.insert`.

        Given:  %1 = f(%a)
                  block0() {
                    return ()
                  }
        Do:     block.insert("g", %a)
        Gives:  %1 = f(%a)
                  block0() {
                    %2 = g(%a)
                    return ()
                  }
        """
        # Not by `inside`: where new nodes go is of the graph, and other threads may insert.
        cdef Graph graph = self.graph
        cdef int32_t node
        self.live()
        node = graph.build(kind, inputs, outputs, location, scope, attributes, None)
        graph.place(node, self.index, self.generation)
        return graph.given(node)


cdef Block block_handle(Slabs graph, int32_t index):
    cdef Block block = Block.__new__(Block)
    block.graph = <Graph>graph
    block.index = index
    block.generation = graph.block_recs[index].generation
    return block


def blocks_of(Node node not None):
    """The blocks of a node, as a tuple."""
    cdef int32_t block
    cdef list found = []
    block = node.graph.node_recs[node.live()].first_block
    while block != NONE:
        found.append(block_handle(node.graph, block))
        block = node.graph.block_recs[block].next
    return tuple(found)


def block_around(Node node not None):
    """The block that a node is in; None for the graph's own, and for an unattached node."""
    cdef int32_t block = node.graph.node_recs[node.live()].block
    return None if block <= BODY else block_handle(node.graph, block)


def add_block(Node node not None):
    """Append an empty block to a node."""
    cdef int32_t index = node.editable()
    if is_end(node.graph, index):
        raise ValueError(f"add_block: `{node.kind}` has none")
    return block_handle(node.graph, node.graph.new_block(index))


def erase_block(Node node not None, Py_ssize_t i):
    """Destroy block `i` of a node, with what is in it."""
    cdef int32_t index = node.editable()
    cdef Slabs graph = node.graph
    cdef int32_t block = graph.node_recs[index].first_block
    cdef int32_t before = NONE
    cdef int32_t value
    cdef Py_ssize_t _
    for _ in range(i if i > 0 else 0):
        if block == NONE:
            break
        before, block = block, graph.block_recs[block].next
    if i < 0 or block == NONE:
        raise IndexError(f"{node.kind}: has {len(blocks_of(node))} blocks: no block {i}")
    value = used_outside(graph, block)
    if value != NONE:
        raise ValueError(f"erase_block: {shown(graph, value)} is used outside the block")
    node_handle(graph, graph.block_recs[block].back).remove_all_inputs()
    graph.busy += 1
    try:
        while True:                      # what is inside, from the last node to the first
            value = graph.node_recs[graph.block_recs[block].back].prev
            if is_end(graph, value):
                break
            graph.free_node_record(value)
    finally:
        graph.busy -= 1
    # Only the first block of a node is freed: make it that for a moment.
    if before != NONE:
        graph.block_recs[before].next = graph.block_recs[block].next
        graph.block_recs[block].next = graph.node_recs[index].first_block
        graph.node_recs[index].first_block = block
    graph.free_block_record(index)
    graph.bury()


def point_of(Graph graph not None, Block block not None):
    """What `graph.inside(block)` sets: the index of the block and its generation."""
    block.live()
    if block.graph is not graph:
        raise ForeignValue("inside: the block is of another graph")
    return block.index, block.generation


def block_graph(Block block not None, tuple outer not None):
    """A block as a graph of its own: inputs are the values `outer`, then the block's."""
    cdef Graph source = block.graph
    cdef Graph new = empty_graph()
    cdef int32_t index = block.live()
    cdef int32_t *value_map = value_map_for(source)
    source.busy += 1
    try:
        for value in outer:
            value_map[(<Value>value).index] = clone_input(
                new, source, own_value(source, <Value?>value))
        for value in block.inputs:
            value_map[(<Value>value).index] = clone_input(new, source, (<Value>value).index)
        clone_block(new, source, index, value_map)
        clone_outputs(new, source, index, value_map, RETURN)
    finally:
        source.busy -= 1
        free(value_map)
    new.is_for_reals = source.is_for_reals
    return new
