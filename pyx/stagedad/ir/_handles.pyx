"""The handles: what Python holds of the values and nodes of a graph."""

from collections import namedtuple
from collections.abc import MutableMapping

import cython

from cpython.ref cimport Py_XDECREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t

from stagedad.errors import ForeignValue, StaleHandle
from stagedad.ops import REQUIRED
from stagedad.types import as_type

from stagedad.ir._kinds cimport attribute_defaults, infer_types, kind_name, own_attributes
from stagedad.ir._slabs cimport (
    NONE, PARAM, RETURN, NodeRec, Slabs, check_place, checked_stage, describe, shared, shown)

from stagedad.ir._move import move_legally

cdef extern from *:
    """
    #ifndef STAGEDAD_DEBUG
    #define STAGEDAD_DEBUG 0
    #endif
    """
    const int STAGEDAD_DEBUG

cdef int64_t live_handles = 0            # counted in debug builds only

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
                or graph.value_recs[self.index].generation != self.generation):
            if graph is not None:
                graph.check_usable()
            raise StaleHandle("value: it was destroyed")
        return self.index

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
        """The name, or None.  Setting a name that is taken adds a suffix `.1`, `.2`, ..."""
        return self.graph.names.get(self.live())

    @name.setter
    def name(self, name):
        self.graph.set_name(self.live(), name)

    @property
    def type(self):
        """The TensorType, or None for unknown; may be set to a TensorType, its text or None."""
        cdef PyObject *type = self.graph.value_recs[self.live()].type
        return None if type == NULL else <object>type

    @type.setter
    def type(self, type):
        cdef int32_t index = self.live()
        cdef PyObject *old
        type = as_type(type)
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
        self.graph.value_recs[self.live()].stage = checked_stage(stage)

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
        cdef int32_t use = graph.value_recs[self.live()].first_use
        cdef int32_t user
        cdef list found = []
        while use != NONE:
            user = graph.use_recs[use].user
            found.append(Use(node_handle(graph, user), use - graph.node_recs[user].first_input))
            use = graph.use_recs[use].next
        return tuple(found)

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
        cdef int32_t old = self.live()
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
                or graph.node_recs[self.index].generation != self.generation):
            if graph is not None:
                graph.check_usable()
            raise StaleHandle("node: it was destroyed")
        return self.index

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
        self.graph.node_recs[self.live()].stage = checked_stage(stage)

    @property
    def attributes(self):
        """The attributes, declared defaults included: a mutable mapping."""
        self.live()
        return Attributes(self)

    @property
    def location(self):
        """(file, line) of the user's code, or None."""
        cdef PyObject *location = self.graph.node_recs[self.live()].location
        return None if location == NULL else <object>location

    @location.setter
    def location(self, location):
        cdef int32_t index = self.live()
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
        cdef int32_t index = self.live()
        cdef PyObject *old = self.graph.node_recs[index].scope
        check_place(None, scope)
        self.graph.node_recs[index].scope = NULL if scope is None else shared(<PyObject *>scope)
        Py_XDECREF(old)

    @property
    def blocks(self):
        """The sub-blocks; no op of the table has any yet."""
        self.live()
        return ()

    @property
    def attached(self):
        """Whether the node is in the graph's order."""
        cdef int32_t index = self.live()
        return index <= RETURN or self.graph.node_recs[index].next != NONE

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
        cdef int32_t index = self.live()
        if index == PARAM:
            raise ValueError("add_input: the param node has no operands\nhint: graph.add_input")
        self.graph.push_input(index, own_value(self.graph, value))

    def replace_input(self, Py_ssize_t i, Value value not None):
        """Make operand `i` read `value`.  Returns the value that it read.

        Given:  %3 = f(%1, %2)
        Do:     node.replace_input(1, %4)
        Gives:  %3 = f(%1, %4)
        """
        cdef int32_t use = operand(self.graph, self.live(), i)
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
        cdef int32_t index = self.live()
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
        cdef int32_t index = self.live()
        cdef int32_t use = operand(self.graph, index, i)
        cdef NodeRec *rec = &self.graph.node_recs[index]
        self.graph.unlink(use)
        for slot in range(use + 1, rec.first_input + rec.input_count):
            self.graph.move_use(slot, slot - 1)
        rec.input_count -= 1

    def remove_all_inputs(self):
        """Remove every operand."""
        cdef int32_t index = self.live()
        cdef NodeRec *rec = &self.graph.node_recs[index]
        cdef int32_t i
        for i in range(rec.input_count):
            self.graph.unlink(rec.first_input + i)
        rec.input_count = 0

    def add_output(self, type=None):
        """Append an output of this type.  Returns the Value."""
        cdef int32_t index = self.live()
        type = as_type(type)
        if index == RETURN:
            raise ValueError("add_output: the return node has none\nhint: register_output")
        return value_handle(
            self.graph, self.graph.new_value(index, self.graph.current_stage, type)
        )

    def erase_output(self, Py_ssize_t i):
        """Remove output `i`, which must be unused; later outputs move up."""
        cdef int32_t index = self.live()
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

    def insert_before(self, Node other not None):
        """Put this unattached node into the order right before `other`.  Returns the node."""
        cdef int32_t anchor = placed(self.graph, other)
        attach_checked(self.graph, self, anchor)
        return self

    def insert_after(self, Node other not None):
        """Put this unattached node into the order right after `other`.  Returns the node.

        After the `param` node means at the beginning.
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
        """Move this node right after `other`; see `move_before`."""
        return self._move(other, True, check)

    def _move(self, Node other, bint after, check):
        """Move this node beside `other`."""
        cdef int32_t index = self.live()
        cdef int32_t before
        before = successor(self.graph, other) if after else placed(self.graph, other)
        if index <= RETURN:
            raise ValueError(f"move: `{kind_name(index)}` stays where it is")
        if self.graph.node_recs[index].next == NONE:
            raise ValueError(
                f"move: `{describe(self.graph, index)}` is not in the graph\nhint: append")
        if check:
            return move_legally(self.graph, index, other.index, after)
        if before != index and other.index != index:
            self.graph.detach(index)
            self.graph.attach(index, before)
        return True

    def is_before(self, Node other not None):
        """Return whether this node comes before `other` in the graph's order.  O(1)."""
        cdef int32_t first = own_node(self.graph, self)
        cdef int32_t second = own_node(self.graph, other)
        for index in (first, second):
            if not attached_or_own(self.graph, index):
                raise ValueError(
                    f"is_before: `{describe(self.graph, index)}` is not in the graph")
        return self.graph.node_recs[first].position < self.graph.node_recs[second].position

    def is_after(self, Node other not None):
        """Return whether this node comes after `other` in the graph's order.  O(1)."""
        return other.is_before(self)

    def destroy(self):
        """Remove the node from its graph; its outputs must be unused.  Handles become stale."""
        cdef int32_t index = self.live()
        cdef int32_t value
        if index <= RETURN:
            raise ValueError(f"destroy: `{kind_name(index)}` belongs to the graph")
        value = self.graph.node_recs[index].first_output
        while value != NONE:
            if self.graph.value_recs[value].first_use != NONE:
                raise ValueError(
                    f"destroy: {shown(self.graph, value)} is used\nhint: replace_all_uses_with"
                )
            value = self.graph.value_recs[value].next_output
        self.graph.free_node_record(index)

    def clone_into(self, Slabs graph not None, value_map):
        """Append a copy of this node to `graph`, operands mapped by `value_map`.

        The outputs are added to `value_map`.  The clone has the attributes, names, location and
        scope of this node, and the stage of `graph`.  Returns the clone.
        """
        cdef int32_t index = self.live()
        cdef int32_t new
        if index <= RETURN:
            raise ValueError(f"clone_into: `{kind_name(index)}` belongs to its graph")
        graph.check_usable()
        mapped = []
        for operand_ in self.inputs:
            try:
                mapped.append(value_map[operand_])
            except KeyError:
                raise KeyError(f"clone_into: {operand_!r} is not in value_map") from None
            own_value(graph, <Value?>mapped[len(mapped) - 1])
        new = graph.clone_shell(self.graph, index)
        for value in mapped:
            graph.push_input(new, (<Value>value).index)
        value_map.update(zip(self.outputs, output_handles(graph, new), strict=True))
        return node_handle(graph, new)


cdef bint attached_or_own(Slabs graph, int32_t node) noexcept:
    return node <= RETURN or graph.node_recs[node].next != NONE


cdef int32_t placed(Slabs graph, Node anchor) except -1:
    """Index of a node before which something may stand."""
    cdef int32_t index = own_node(graph, anchor)
    if index == PARAM:
        raise ValueError("insert: nothing comes before the inputs")
    if not attached_or_own(graph, index):
        raise ValueError(f"insert: `{describe(graph, index)}` is not in the graph")
    return index


cdef int32_t successor(Slabs graph, Node anchor) except -1:
    """Index of what follows `anchor` in the ring."""
    cdef int32_t index = own_node(graph, anchor)
    if index == RETURN:
        raise ValueError("insert: nothing comes after the outputs")
    if index == PARAM:
        return graph.node_recs[RETURN].next
    if not attached_or_own(graph, index):
        raise ValueError(f"insert: `{describe(graph, index)}` is not in the graph")
    return graph.node_recs[index].next


cdef int32_t operand(Slabs graph, int32_t node, Py_ssize_t i) except -1:
    cdef NodeRec *rec = &graph.node_recs[node]
    if not 0 <= i < rec.input_count:
        raise IndexError(
            f"{kind_name(rec.kind)}: has {rec.input_count} operands: no operand {i}"
        )
    return rec.first_input + <int32_t>i


class Attributes(MutableMapping):
    """The attributes of one node, as a mapping that shows declared defaults."""

    __slots__ = ("node",)

    def __init__(self, node):
        self.node = node

    def explicit(self):
        """Return a copy of the attributes that differ from their default."""
        cdef Node node = self.node
        cdef PyObject *own = node.graph.node_recs[node.live()].attributes
        return {} if own == NULL else dict(<dict>own)

    def merged(self):
        """Return every attribute that has a value, in the order of the declaration."""
        cdef Node node = self.node
        own = self.explicit()
        defaults = attribute_defaults(node.graph.node_recs[node.live()].kind)
        if defaults is None:
            return own
        every = {k: own.pop(k, v) for k, v in defaults.items() if k in own or v is not REQUIRED}
        every.update(own)
        return every

    def __getitem__(self, name):
        cdef Node node = self.node
        cdef NodeRec *rec = &node.graph.node_recs[node.live()]
        cdef dict defaults
        if rec.attributes != NULL and name in <dict>rec.attributes:
            return (<dict>rec.attributes)[name]
        defaults = attribute_defaults(rec.kind)
        if defaults is None or defaults.get(name, REQUIRED) is REQUIRED:
            raise KeyError(name)
        return defaults[name]

    def __setitem__(self, name, value):
        own = self.explicit()
        own[name] = value
        self.assign(own)

    def assign(self, own):
        """Replace all attributes; the outputs get the types that now follow."""
        cdef Node node = self.node
        cdef int32_t index = node.live()
        cdef int32_t kind = node.graph.node_recs[index].kind
        own = own_attributes(kind, own)
        if attribute_defaults(kind) is not None:
            types = infer_types(kind, tuple([value.type for value in node.inputs]), own)
            for value, type_ in zip(node.outputs, types):
                if type_ is not None:
                    value.type = type_
        node.graph.set_attributes(index, own)

    def __delitem__(self, name):
        own = self.explicit()
        del own[name]
        self.assign(own)

    def __iter__(self):
        return iter(self.merged())

    def __len__(self):
        return len(self.merged())

    def __repr__(self):
        return repr(self.merged())


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
    if index <= RETURN:
        raise ValueError(f"insert: `{kind_name(index)}` stays where it is")
    if graph.node_recs[index].next != NONE:
        raise ValueError(
            f"insert: `{describe(graph, index)}` is in the graph already\nhint: move_before"
        )
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
    cdef int32_t value = graph.node_recs[node].first_output
    while value != NONE:
        found.append(value_handle(graph, value))
        value = graph.value_recs[value].next_output
    return tuple(found)


cdef tuple input_handles(Slabs graph, int32_t node):
    cdef list found = []
    cdef int32_t i
    for i in range(graph.node_recs[node].input_count):
        found.append(
            value_handle(graph, graph.use_recs[graph.node_recs[node].first_input + i].value)
        )
    return tuple(found)


def iterate(Slabs graph, bint backward):
    """Yield the nodes; what follows is looked up after the caller has edited."""
    cdef int32_t node, following
    cdef uint32_t generation, following_generation
    cdef uint32_t epoch
    cdef int64_t position
    node = graph.node_recs[RETURN].prev if backward else graph.node_recs[RETURN].next
    while node != RETURN:
        generation = graph.node_recs[node].generation
        position = graph.node_recs[node].position
        epoch = graph.epoch
        following = graph.node_recs[node].prev if backward else graph.node_recs[node].next
        following_generation = graph.node_recs[following].generation
        yield node_handle(graph, node)
        graph.check_usable()
        if (graph.node_recs[node].generation == generation
                and graph.node_recs[node].next != NONE):
            node = graph.node_recs[node].prev if backward else graph.node_recs[node].next
        elif (graph.node_recs[following].generation == following_generation
              and (following == RETURN or graph.node_recs[following].next != NONE)):
            node = following
        elif graph.epoch != epoch:
            raise RuntimeError("nodes: the graph was re-indexed and the current node destroyed")
        else:                                    # both gone: the first one beyond the position
            node = graph.node_recs[RETURN].prev if backward else graph.node_recs[RETURN].next
            while node != RETURN and (
                graph.node_recs[node].position >= position if backward
                else graph.node_recs[node].position <= position
            ):
                node = graph.node_recs[node].prev if backward else graph.node_recs[node].next
