"""The handles: what Python holds of the values and nodes of a graph."""

from collections import namedtuple

import cython

from cpython.ref cimport Py_XDECREF, PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from stagedad.errors import ForeignValue, StaleHandle
from stagedad.types import as_type

from stagedad.ir._kinds cimport kind_name
from stagedad.ir._clone cimport (
    clone_node, clone_shell, is_inside, outer_reads, used_outside, value_map_for)
from stagedad.ir._slabs cimport (
    BODY, NONE, PARAM, RETURN, NodeRec, Slabs, check_place, checked_stage, describe, is_end,
    shared, shown)

from stagedad.ir._move import move_legally

cdef extern from *:
    """
    #ifndef STAGEDAD_DEBUG
    #define STAGEDAD_DEBUG 0
    #endif
    """
    const int STAGEDAD_DEBUG

cdef int64_t live_handles = 0            # counted in debug builds only
cdef object attributes_of = None         # the class, once it was asked for

Use = namedtuple("Use", "user offset")
Use.__doc__ = """One operand slot: `user.inputs[offset]` reads the value."""


def live_handle_count():
    """Return how many handles are alive, in a debug build; else None.  For tests of leaks."""
    return live_handles if STAGEDAD_DEBUG else None


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Value:
    """A handle to a value: the `offset`-th output of `node`.

    Invariant [use-list]: the uses of a value are exactly the operand slots that read it.
    """

    def __init__(self):
        raise TypeError("Value: made by a graph, not by hand")

    cdef int32_t live(self) except -1:
        cdef Slabs graph = self.graph
        if (graph is None or self.index >= graph.value_used
                or graph.value_recs[self.index].generation != self.generation
                or self.generation & 1 == 0):
            if graph is not None:
                graph.check_usable()
            raise StaleHandle("value: it was destroyed")
        return self.index

    cdef int32_t editable(self) except -1:
        """As `live`, for those who are about to change something."""
        cdef int32_t index = self.live()
        self.graph.check_editable()
        return index

    def __dealloc__(self):
        global live_handles
        if STAGEDAD_DEBUG and self.graph is not None:
            live_handles -= 1

    def __eq__(self, other):
        cdef Value that
        if not isinstance(other, Value):
            return NotImplemented
        that = <Value>other
        return (self.graph is that.graph and self.index == that.index
                and self.generation == that.generation)

    def __hash__(self):
        return hash((id(self.graph), self.index, self.generation))

    def __repr__(self):
        try:
            index = self.live()
        except ReferenceError:
            return "<stale Value>"
        return f"<Value {shown(self.graph, index)} : {self.type}>"

    @property
    def id(self):
        """Number of the value in its graph; never used again."""
        return self.graph.value_recs[self.live()].id

    @property
    def name(self):
        """The name, or None.  Setting a name that is taken adds a suffix `.1`, `.2`, ...

        Given:  %1 = f(%a)
        Do:     %1.name = "y"
        Gives:  %y = f(%a)
        """
        return self.graph.names.get(self.live())

    @name.setter
    def name(self, name):
        self.graph.set_name(self.editable(), name)

    @property
    def type(self):
        """The TensorType, or None for unknown; may be set to a TensorType, its text or None.

        Given:  %1 = f(%a)
        Do:     %1.type = "f64[3]"
        Gives:  %1 : f64[3] = f(%a)
        """
        cdef PyObject *type = self.graph.value_recs[self.live()].type
        return None if type == NULL else <object>type

    @type.setter
    def type(self, type):
        cdef int32_t index
        cdef PyObject *old
        type = as_type(type)
        index = self.editable()
        old = self.graph.value_recs[index].type
        self.graph.value_recs[index].type = NULL
        if type is not None:
            self.graph.value_recs[index].type = shared(<PyObject *>type)
        Py_XDECREF(old)

    @property
    def stage(self):
        """0 forward, 1 reverse, ..."""
        return self.graph.value_recs[self.live()].stage

    @stage.setter
    def stage(self, stage):
        cdef int32_t wanted = checked_stage(stage)
        self.graph.value_recs[self.editable()].stage = wanted

    @property
    def node(self):
        """The node that computes it; of kind `param` for an input."""
        return node_handle(self.graph, self.graph.value_recs[self.live()].node)

    @property
    def offset(self):
        """Which output of `node` it is."""
        return self.graph.value_recs[self.live()].offset

    @property
    def uses(self):
        """The operand slots that read it, in the order they were made: a tuple of Use."""
        cdef Slabs graph = self.graph
        cdef int32_t use
        cdef int32_t user
        cdef list found = []
        cdef list offsets = []
        use = graph.value_recs[self.live()].first_use    # nothing collects garbage from here
        while use != NONE:
            user = graph.use_recs[use].user
            found.append(node_handle(graph, user))
            offsets.append(use - graph.node_recs[user].first_input)
            use = graph.use_recs[use].next
        return tuple([Use(node, offset) for node, offset in zip(found, offsets)])

    def has_uses(self):
        """Return whether any operand slot or output reads it.  O(1)."""
        return self.graph.value_recs[self.live()].first_use != NONE

    def replace_all_uses_with(self, Value new not None, Node except_=None):
        """Make the users of this value read `new`.  Returns how many uses moved.

        `except_` names one node that goes on reading this value, so that a node built from a
        value can take its place.

        Given:  %2 = f(%1)
                %3 = g(%2, %2)
        Do:     %2.replace_all_uses_with(%1)
        Gives:  %2 = f(%1)
                %3 = g(%1, %1)

        Cost: O(uses); no allocation.  Raises: ForeignValue if `new` is of another graph.
        """
        cdef int32_t old = self.editable()
        cdef int32_t into = own_value(self.graph, new)
        cdef int32_t kept = NONE if except_ is None else own_node(self.graph, except_)
        return self.graph.replace_uses(old, into, kept)


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Node:
    """A handle to a node: one operation, its operands, attributes and outputs.

    Invariant [order]: operands are computed before the node, in the graph's order.
    Invariant [stage]: a node's stage is at least the stage of each operand.
    """

    def __init__(self):
        raise TypeError("Node: made by a graph, not by hand")

    cdef int32_t live(self) except -1:
        cdef Slabs graph = self.graph
        if (graph is None or self.index >= graph.node_used
                or graph.node_recs[self.index].generation != self.generation
                or self.generation & 1 == 0):
            if graph is not None:
                graph.check_usable()
            raise StaleHandle("node: it was destroyed")
        return self.index

    cdef int32_t editable(self) except -1:
        """As `live`, for those who are about to change something."""
        cdef int32_t index = self.live()
        self.graph.check_editable()
        return index

    def __dealloc__(self):
        global live_handles
        if STAGEDAD_DEBUG and self.graph is not None:
            live_handles -= 1

    def __eq__(self, other):
        cdef Node that
        if not isinstance(other, Node):
            return NotImplemented
        that = <Node>other
        return (self.graph is that.graph and self.index == that.index
                and self.generation == that.generation)

    def __hash__(self):
        return hash((id(self.graph), self.index, self.generation, 1))

    def __repr__(self):
        try:
            index = self.live()
        except ReferenceError:
            return "<stale Node>"
        return f"<Node {describe(self.graph, index)}>"

    def __str__(self):
        return describe(self.graph, self.live())

    @property
    def kind(self):
        """Canonical name of the op; `param` and `return` for the graph's own two nodes."""
        return kind_name(self.graph.node_recs[self.live()].kind)

    @property
    def inputs(self):
        """The operands, as a tuple made for this call."""
        return input_handles(self.graph, self.live())

    @property
    def outputs(self):
        """The outputs, as a tuple made for this call."""
        return output_handles(self.graph, self.live())

    @property
    def output(self):
        """The only output.  Raises ValueError if there is not exactly one."""
        cdef int32_t index = self.live()
        if self.graph.node_recs[index].output_count != 1:
            raise ValueError(
                f"{self.kind}: has {self.graph.node_recs[index].output_count} outputs, not one"
            )
        return value_handle(self.graph, self.graph.node_recs[index].first_output)

    @property
    def stage(self):
        """0 forward, 1 reverse, ...; the `return` node is beyond every stage."""
        return self.graph.node_recs[self.live()].stage

    @stage.setter
    def stage(self, stage):
        cdef int32_t wanted = checked_stage(stage)
        cdef int32_t index = self.editable()
        if is_end(self.graph, index):
            raise ValueError(f"stage: that of `{self.kind}` is fixed")
        self.graph.node_recs[index].stage = wanted

    @property
    def attributes(self):
        """The attributes, declared defaults included: a mutable mapping."""
        global attributes_of
        self.live()
        if attributes_of is None:
            from stagedad.ir._attributes import Attributes as attributes_of
        return attributes_of(self)

    @property
    def location(self):
        """(file, line) of the user's code, or None."""
        cdef PyObject *location = self.graph.node_recs[self.live()].location
        return None if location == NULL else <object>location

    @location.setter
    def location(self, location):
        cdef int32_t index = self.editable()
        cdef PyObject *old = self.graph.node_recs[index].location
        check_place(location, None)
        self.graph.node_recs[index].location = (
            NULL if location is None else shared(<PyObject *>location))
        Py_XDECREF(old)

    @property
    def scope(self):
        """Path of the scope that the node was made in, or None."""
        cdef PyObject *scope = self.graph.node_recs[self.live()].scope
        return None if scope == NULL else <object>scope

    @scope.setter
    def scope(self, scope):
        cdef int32_t index = self.editable()
        cdef PyObject *old = self.graph.node_recs[index].scope
        check_place(None, scope)
        self.graph.node_recs[index].scope = NULL if scope is None else shared(<PyObject *>scope)
        Py_XDECREF(old)

    @property
    def origin(self):
        """What it is of the derivative of: the id of a value of `Gradient.f`; or None."""
        cdef int32_t origin = self.graph.node_recs[self.live()].origin
        return None if origin == NONE else origin

    @origin.setter
    def origin(self, origin):
        cdef int32_t index = self.editable()
        if origin is not None and (
                not isinstance(origin, int) or not 0 <= origin <= 0x7FFFFFFF):
            raise ValueError(f"node: an origin is the id of a value, or None: {origin!r}")
        self.graph.node_recs[index].origin = NONE if origin is None else origin

    @property
    def blocks(self):
        """The blocks, in order: a tuple made for this call."""
        if self.graph.node_recs[self.live()].first_block == NONE:
            return ()
        from stagedad.ir._blocks import blocks_of
        return blocks_of(self)

    @property
    def block(self):
        """The block of another node that it is in; None for the graph's own sequence."""
        if self.graph.node_recs[self.live()].block <= BODY:
            return None
        from stagedad.ir._blocks import block_around
        return block_around(self)

    @property
    def closed_over(self):
        """The values that its blocks read from outside, each once, in order: a tuple."""
        cdef int32_t index = self.live()
        return tuple([value_handle(self.graph, value)
                      for value in outer_reads(self.graph, index)])

    @property
    def attached(self):
        """Whether the node is in an order: the graph's, or that of a block."""
        return self.graph.node_recs[self.live()].block != NONE

    @property
    def next(self):
        """The node after it in its block, or None: where to go on scanning."""
        return self._neighbour(False)

    @property
    def prev(self):
        """The node before it in its block, or None."""
        return self._neighbour(True)

    def _neighbour(self, bint backward):
        cdef int32_t index = self.live()
        cdef NodeRec *rec = &self.graph.node_recs[index]
        cdef int32_t found
        if rec.kind == PARAM:
            if backward:
                return None
            found = self.graph.node_recs[self.graph.block_recs[rec.block].back].next
        elif rec.kind == RETURN and not backward:
            return None
        else:
            found = rec.prev if backward else rec.next
        if found == NONE or is_end(self.graph, found):
            return None
        return node_handle(self.graph, found)

    def has_uses(self):
        """Return whether any output is used."""
        cdef int32_t value = self.graph.node_recs[self.live()].first_output
        while value != NONE:
            if self.graph.value_recs[value].first_use != NONE:
                return True
            value = self.graph.value_recs[value].next_output
        return False

    def add_input(self, Value value not None):
        """Append an operand.

        Given:  %3 = f(%1, %2)
        Do:     node.add_input(%4)
        Gives:  %3 = f(%1, %2, %4)
        """
        cdef int32_t index = self.editable()
        if self.graph.node_recs[index].kind == PARAM:
            raise ValueError("add_input: the param node has no operands\nhint: graph.add_input")
        self.graph.push_input(index, own_value(self.graph, value))

    def replace_input(self, Py_ssize_t i, Value value not None):
        """Make operand `i` read `value`.  Returns the value that it read.

        Given:  %3 = f(%1, %2)
        Do:     node.replace_input(1, %4)
        Gives:  %3 = f(%1, %4)
        """
        cdef int32_t use = operand(self.graph, self.editable(), i)
        cdef int32_t new = own_value(self.graph, value)
        cdef int32_t old = self.graph.use_recs[use].value
        self.graph.unlink(use)
        self.graph.link(use, new)
        return value_handle(self.graph, old)

    def replace_input_with(self, Value old not None, Value new not None):
        """Make every operand that reads `old` read `new`.  Returns how many there were.

        Given:  %3 = f(%1, %2, %1)
        Do:     node.replace_input_with(%1, %4)
        Gives:  %3 = f(%4, %2, %4)
        """
        cdef int32_t index = self.editable()
        cdef int32_t from_ = own_value(self.graph, old)
        cdef int32_t into = own_value(self.graph, new)
        cdef int32_t first = self.graph.node_recs[index].first_input
        cdef int32_t i
        cdef int moved = 0
        for i in range(self.graph.node_recs[index].input_count):
            if self.graph.use_recs[first + i].value == from_:
                self.graph.unlink(first + i)
                self.graph.link(first + i, into)
                moved += 1
        return moved

    def remove_input(self, Py_ssize_t i):
        """Remove operand `i`; later operands move up.

        Given:  %4 = f(%1, %2, %3)
        Do:     node.remove_input(0)
        Gives:  %4 = f(%2, %3)
        """
        cdef int32_t index = self.editable()
        cdef int32_t use = operand(self.graph, index, i)
        cdef NodeRec *rec = &self.graph.node_recs[index]
        self.graph.unlink(use)
        for slot in range(use + 1, rec.first_input + rec.input_count):
            self.graph.move_use(slot, slot - 1)
        rec.input_count -= 1

    def remove_all_inputs(self):
        """Remove every operand.

        Given:  %3 = f(%1, %2)
        Do:     node.remove_all_inputs()
        Gives:  %3 = f()
        """
        cdef int32_t index = self.editable()
        cdef NodeRec *rec = &self.graph.node_recs[index]
        cdef int32_t i
        for i in range(rec.input_count):
            self.graph.unlink(rec.first_input + i)
        rec.input_count = 0

    def add_output(self, type=None):
        """Append an output of this type.  Returns the Value.

        Given:  %1 = f(%a)
        Do:     node.add_output("f64[]")
        Gives:  %1, %2 : f64[] = f(%a)
        """
        cdef int32_t index
        type = as_type(type)
        index = self.editable()
        if self.graph.node_recs[index].kind == RETURN:
            raise ValueError("add_output: the return node has none\nhint: register_output")
        return value_handle(
            self.graph, self.graph.new_value(index, self.graph.current_stage, type)
        )

    def erase_output(self, Py_ssize_t i):
        """Remove output `i`, which must be unused; later outputs move up.

        Given:  %1, %2, %3 = f(%a)
        Do:     node.erase_output(1)
        Gives:  %1, %3 = f(%a)
        """
        cdef int32_t index = self.editable()
        cdef Slabs graph = self.graph
        cdef NodeRec *rec = &graph.node_recs[index]
        cdef int32_t before = NONE
        cdef int32_t value = rec.first_output
        cdef int32_t later
        if not 0 <= i < rec.output_count:
            raise IndexError(f"{self.kind}: has {rec.output_count} outputs: no output {i}")
        for _ in range(i):
            before = value
            value = graph.value_recs[value].next_output
        if graph.value_recs[value].first_use != NONE:
            raise ValueError(f"erase_output: {shown(graph, value)} is used")
        later = graph.value_recs[value].next_output
        if before == NONE:
            rec.first_output = later
        else:
            graph.value_recs[before].next_output = later
        if later == NONE:
            rec.last_output = before
        while later != NONE:
            graph.value_recs[later].offset -= 1
            later = graph.value_recs[later].next_output
        rec.output_count -= 1
        graph.free_value_record(value)
        graph.bury()

    def replace_all_uses_with(self, Node other not None):
        """Make the users of this node's outputs read those of `other`, pair by pair.

        Given:  %2 = f(%1)
                %3 = g(%1)
                %4 = h(%2)
        Do:     node_of_2.replace_all_uses_with(node_of_3)
        Gives:  %2 = f(%1)
                %3 = g(%1)
                %4 = h(%3)

        Returns how many uses moved.  Raises: ValueError if the nodes have not as many outputs.
        """
        cdef Slabs graph = self.graph
        cdef int32_t index = self.editable()
        cdef int32_t into = own_node(graph, other)
        cdef int32_t old, new
        cdef int moved = 0
        if graph.node_recs[index].output_count != graph.node_recs[into].output_count:
            raise ValueError(
                f"replace_all_uses_with: {graph.node_recs[index].output_count} outputs by "
                f"{graph.node_recs[into].output_count}")
        old = graph.node_recs[index].first_output
        new = graph.node_recs[into].first_output
        while old != NONE:
            moved += graph.replace_uses(old, new, NONE)
            old = graph.value_recs[old].next_output
            new = graph.value_recs[new].next_output
        return moved

    def add_block(self):
        """Append an empty block.  Returns the Block.

        Given:  %1 = f(%a)
        Do:     node.add_block()
        Gives:  %1 = f(%a)
                  block0() {
                    return ()
                  }
        """
        from stagedad.ir._blocks import add_block
        return add_block(self)

    def erase_block(self, Py_ssize_t i):
        """Destroy block `i` with all nodes in it; later blocks move up.

        Raises: ValueError if a node outside reads a value of the block.

        Given:  %1 = f(%a)
                  block0() {
                    return (%a)
                  }
                  block1(%2) {
                    return (%2)
                  }
        Do:     node.erase_block(0)
        Gives:  %1 = f(%a)
                  block0(%2) {
                    return (%2)
                  }
        """
        from stagedad.ir._blocks import erase_block
        erase_block(self, i)

    def insert_before(self, Node other not None):
        """Put this unattached node into the order right before `other`.  Returns the node.

        Given:  %1 = f(%a)
        Do:     graph.create("g", %a).insert_before(node)
        Gives:  %2 = g(%a)
                %1 = f(%a)
        """
        cdef int32_t anchor = placed(self.graph, other)
        attach_checked(self.graph, self, anchor)
        return self

    def insert_after(self, Node other not None):
        """Put this unattached node into the order right after `other`.  Returns the node.

        After the `param` node means at the beginning.

        Given:  %1 = f(%a)
                %2 = g(%1)
        Do:     graph.create("h", %1).insert_after(node_of_1)
        Gives:  %1 = f(%a)
                %3 = h(%1)
                %2 = g(%1)
        """
        attach_checked(self.graph, self, successor(self.graph, other))
        return self

    def move_before(self, Node other not None, check=False):
        """Move this node right before `other`.  Returns whether it was moved.

        Without `check` the node moves alone, whatever it reads.  With `check`, nodes in between
        that depend on it (or it on them) move along as far as needed, and where no legal order
        exists nothing moves.

        Given:  %1 = f(%0)
                %2 = g(%1)
                %3 = h(%0)
        Do:     node_of_1.move_before(node_of_3, check=True)
        Gives:  %1 = f(%0)
                %3 = h(%0)
                %2 = g(%1)
        """
        return self._move(other, False, check)

    def move_after(self, Node other not None, check=False):
        """Move this node right after `other`; see `move_before`.

        Given:  %1 = f(%a)
                %2 = g(%a)
        Do:     node_of_1.move_after(node_of_2)
        Gives:  %2 = g(%a)
                %1 = f(%a)
        """
        return self._move(other, True, check)

    def _move(self, Node other, bint after, check):
        """Move this node beside `other`."""
        cdef int32_t index = self.editable()
        cdef Slabs graph = self.graph
        cdef int32_t before
        before = successor(graph, other) if after else placed(graph, other)
        if is_end(graph, index):
            raise ValueError(f"move: `{self.kind}` stays where it is")
        if graph.node_recs[index].block == NONE:
            raise ValueError(
                f"move: `{describe(graph, index)}` is not in the graph\nhint: append")
        if check and graph.node_recs[index].block != graph.node_recs[other.index].block:
            raise ValueError("move: with check=True a node stays in its block")
        if is_inside(graph, other.index, index) and other.index != index:
            raise ValueError(f"move: `{describe(graph, index)}` into a block of its own")
        if check:
            return move_legally(graph, index, other.index, after)
        if before != index and other.index != index:
            graph.detach(index)
            graph.attach(index, before)
        return True

    def is_before(self, Node other not None):
        """Return whether this node comes before `other` in the graph's order.

        A node in a block stands where the node does that owns the block.  Neither of a node
        and what is in its blocks is before the other.

        Cost: O(1); of nodes in different blocks, the depth of the deeper one.
        """
        cdef Slabs graph = self.graph
        cdef int32_t first = own_node(graph, self)
        cdef int32_t second = own_node(graph, other)
        cdef int32_t up, _
        for index in (first, second):
            if graph.node_recs[index].block == NONE:
                raise ValueError(f"is_before: `{describe(graph, index)}` is not in the graph")
        up = depth(graph, first) - depth(graph, second)
        for _ in range(up):
            first = graph.block_recs[graph.node_recs[first].block].owner
        for _ in range(-up):
            second = graph.block_recs[graph.node_recs[second].block].owner
        while graph.node_recs[first].block != graph.node_recs[second].block:
            if graph.node_recs[first].block <= BODY or graph.node_recs[second].block <= BODY:
                raise ValueError("is_before: one of the nodes is in an unattached one")
            first = graph.block_recs[graph.node_recs[first].block].owner
            second = graph.block_recs[graph.node_recs[second].block].owner
        if graph.node_recs[first].block == NONE and first != second:
            raise ValueError("is_before: the nodes are in two unattached ones")
        return graph.node_recs[first].position < graph.node_recs[second].position

    def is_after(self, Node other not None):
        """Return whether this node comes after `other`; see `is_before`."""
        return other.is_before(self)

    def destroy(self):
        """Remove the node from its graph, with its blocks; its outputs must be unused.

        Handles to it become stale.

        Given:  %1 = f(%a)
                %2 = g(%1)
        Do:     node_of_2.destroy()
        Gives:  %1 = f(%a)
        """
        cdef int32_t index = self.editable()
        cdef int32_t value, block
        if is_end(self.graph, index):
            raise ValueError(f"destroy: `{self.kind}` belongs to the graph")
        value = self.graph.node_recs[index].first_output
        while value != NONE and self.graph.value_recs[value].first_use == NONE:
            value = self.graph.value_recs[value].next_output
        block = self.graph.node_recs[index].first_block
        while value == NONE and block != NONE:
            value = used_outside(self.graph, block)
            block = self.graph.block_recs[block].next
        if value != NONE:
            raise ValueError(
                f"destroy: {shown(self.graph, value)} is used\nhint: replace_all_uses_with"
            )
        self.graph.free_node_record(index)

    def clone_into(self, Slabs graph not None, value_map):
        """Insert a copy of this node into `graph`, operands mapped by `value_map`.

        So is what its blocks read from outside.  The outputs are added to `value_map`.  The
        clone has the attributes, names, location and scope of this node, and the stage of
        `graph`.  Returns the clone.

        Given:  graph(%a, %b)
                %1 = f(%a)
                %2 = g(%1)
        Do:     node_of_1.clone_into(graph, {%a: %b})
        Gives:  graph(%a, %b)
                %1 = f(%a)
                %2 = g(%1)
                %3 = f(%b)
        """
        cdef int32_t index = self.live()
        cdef int32_t new, i, around, before
        cdef int32_t *values
        cdef list needed, mapped
        if is_end(self.graph, index):
            raise ValueError(f"clone_into: `{self.kind}` belongs to its graph")
        needed = [*self.inputs, *self.closed_over]
        mapped = []
        for each in needed:
            try:
                mapped.append(value_map[each])
            except KeyError:
                raise KeyError(f"clone_into: {each!r} is not in value_map") from None
            if not isinstance(mapped[len(mapped) - 1], Value):
                raise TypeError(f"clone_into: value_map has no Value for {each!r}")
        # A mapping may run any Python: from here on there is none.
        graph.check_editable()
        index = self.live()
        for each in needed:
            (<Value>each).live()
        for each in mapped:
            own_value(graph, <Value>each)
        before = graph.end_of_point()
        around = graph.block_recs[graph.point].owner
        if graph is self.graph and around != NONE and is_inside(graph, around, index):
            raise ValueError("clone_into: a node into a block of its own")
        graph.busy += 1
        self.graph.busy += 1
        try:
            if self.graph.node_recs[index].first_block == NONE:
                # No map over all values: this is called node by node.
                new = clone_shell(graph, self.graph, index)
                for each in mapped:
                    graph.push_input(new, (<Value>each).index)
                graph.attach(new, before)
            else:
                values = value_map_for(self.graph)
                try:
                    for i in range(<int32_t>len(needed)):
                        values[(<Value>needed[i]).index] = (<Value>mapped[i]).index
                    new = clone_node(graph, self.graph, index, values)
                finally:
                    free(values)
        finally:
            graph.busy -= 1
            self.graph.busy -= 1
        clone = node_handle(graph, new)
        value_map.update(zip(self.outputs, clone.outputs, strict=True))
        return clone


cdef int32_t depth(Slabs graph, int32_t node) noexcept:
    """How many blocks are around a node; the graph's own does not count."""
    cdef int32_t found = 0
    cdef int32_t block = graph.node_recs[node].block
    while block > BODY:
        node = graph.block_recs[block].owner
        block = graph.node_recs[node].block
        found += 1
    return found


cdef int32_t placed(Slabs graph, Node anchor) except -1:
    """Index of a node before which something may stand."""
    cdef int32_t index = own_node(graph, anchor)
    if graph.node_recs[index].kind == PARAM:
        raise ValueError("insert: nothing comes before the inputs")
    if graph.node_recs[index].block == NONE:
        raise ValueError(f"insert: `{describe(graph, index)}` is not in the graph")
    return index


cdef int32_t successor(Slabs graph, Node anchor) except -1:
    """Index of what follows `anchor` in the ring."""
    cdef int32_t index = own_node(graph, anchor)
    cdef NodeRec *rec = &graph.node_recs[index]
    if rec.kind == RETURN:
        raise ValueError("insert: nothing comes after the outputs")
    if rec.kind == PARAM:
        return graph.node_recs[graph.block_recs[rec.block].back].next
    if rec.block == NONE:
        raise ValueError(f"insert: `{describe(graph, index)}` is not in the graph")
    return graph.node_recs[index].next


cdef int32_t operand(Slabs graph, int32_t node, Py_ssize_t i) except -1:
    cdef NodeRec *rec = &graph.node_recs[node]
    if not 0 <= i < rec.input_count:
        raise IndexError(
            f"{kind_name(rec.kind)}: has {rec.input_count} operands: no operand {i}"
        )
    return rec.first_input + <int32_t>i


cdef int32_t own_value(Slabs graph, Value value) except -1:
    cdef int32_t index = value.live()
    if value.graph is not graph:
        raise ForeignValue(f"graph: {shown(value.graph, index)} is of another graph")
    return index


cdef int32_t own_node(Slabs graph, Node node) except -1:
    cdef int32_t index = node.live()
    if node.graph is not graph:
        raise ForeignValue(f"graph: `{describe(node.graph, index)}` is of another graph")
    return index


cdef int attach_checked(Slabs graph, Node node, int32_t before) except -1:
    cdef int32_t index = own_node(graph, node)
    graph.check_editable()
    if is_end(graph, index):
        raise ValueError(f"insert: `{node.kind}` stays where it is")
    if graph.node_recs[index].block != NONE:
        raise ValueError(
            f"insert: `{describe(graph, index)}` is in the graph already\nhint: move_before"
        )
    if graph.node_recs[index].first_block != NONE and is_inside(graph, before, index):
        raise ValueError(f"insert: `{describe(graph, index)}` into a block of its own")
    return graph.attach(index, before)


cdef Node node_handle(Slabs graph, int32_t index):
    global live_handles
    cdef Node node = Node.__new__(Node)
    if STAGEDAD_DEBUG:
        live_handles += 1
    node.graph = graph
    node.index = index
    node.generation = graph.node_recs[index].generation
    return node


cdef Value value_handle(Slabs graph, int32_t index):
    global live_handles
    cdef Value value = Value.__new__(Value)
    if STAGEDAD_DEBUG:
        live_handles += 1
    value.graph = graph
    value.index = index
    value.generation = graph.value_recs[index].generation
    return value


cdef tuple output_handles(Slabs graph, int32_t node):
    cdef list found = []
    cdef int32_t value
    graph.check_usable()                 # a list was made: the graph may be gone
    value = graph.node_recs[node].first_output
    while value != NONE:
        found.append(value_handle(graph, value))
        value = graph.value_recs[value].next_output
    return tuple(found)


cdef tuple input_handles(Slabs graph, int32_t node):
    cdef list found = []
    cdef int32_t i
    graph.check_usable()
    for i in range(graph.node_recs[node].input_count):
        found.append(
            value_handle(graph, graph.use_recs[graph.node_recs[node].first_input + i].value)
        )
    return tuple(found)
