"""The graph's storage: slabs of nodes, values and uses, and what keeps them whole."""

import re

from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from stagedad.errors import BusyError, StaleHandle

from stagedad.ir._kinds cimport kind_name

cdef int64_t STEP = <int64_t>1 << 32     # distance of the positions of appended nodes
cdef int64_t live_graphs = 0

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def live_graph_count():
    """Return how many graphs are alive: a leak counter for tests."""
    return live_graphs


cdef int32_t grown(int32_t room, int64_t wanted) except -1:
    cdef int64_t room_wanted = room + (room >> 3) + 16       # more would be wasted memory
    if room_wanted < wanted:
        room_wanted = wanted
    if room_wanted > INT32_MAX:
        raise MemoryError("graph: more than 2**31 records")
    return <int32_t>room_wanted


cdef void *resized(void *slab, int64_t room, size_t size) except NULL:
    cdef void *fresh = realloc(slab, room * size)
    if fresh == NULL:
        raise MemoryError("graph: out of memory")
    return fresh


cdef class Slabs:
    """Nodes, values, uses and blocks of one graph, by index.  Graph is their public face."""

    def __cinit__(self):
        global live_graphs
        cdef int32_t i
        live_graphs += 1
        self.free_node = self.free_value = self.free_block = NONE
        for i in range(CLASSES):
            self.free_runs[i] = NONE
        self.names = {}
        self.by_name = {}
        self.suffixes = {}
        self.dropped = []
        self.new_block(NONE)
        self.point_generation = self.block_recs[BODY].generation

    def __dealloc__(self):
        global live_graphs
        live_graphs -= 1
        release_slabs(self)

    # -- storage ---------------------------------------------------------------------------

    cdef int32_t new_node(self, int32_t kind, int32_t stage) except -1:
        cdef int32_t index = self.free_node
        cdef NodeRec *rec
        cdef uint32_t generation
        if index != NONE:
            self.free_node = self.node_recs[index].next
            generation = self.node_recs[index].generation
        else:
            if self.node_used == self.node_room:
                room = grown(self.node_room, 0)
                self.node_recs = <NodeRec *>resized(self.node_recs, room, sizeof(NodeRec))
                self.node_room = room
            index = self.node_used
            self.node_used += 1
            generation = 0
        rec = &self.node_recs[index]
        memset(rec, 0, sizeof(NodeRec))
        rec.kind = kind
        rec.stage = stage
        rec.prev = rec.next = rec.block = rec.first_block = rec.origin = NONE
        rec.first_input = rec.input_class = NONE
        rec.first_output = rec.last_output = NONE
        rec.generation = generation + 1          # odd while alive
        return index

    cdef int32_t new_value(self, int32_t node, int32_t stage, object type) except -1:
        """Append an output to `node`."""
        cdef int32_t index = self.free_value
        cdef ValueRec *rec
        cdef NodeRec *owner
        cdef uint32_t generation
        if index != NONE:
            self.free_value = self.value_recs[index].next_output
            generation = self.value_recs[index].generation
        else:
            if self.value_used == self.value_room:
                room = grown(self.value_room, 0)
                self.value_recs = <ValueRec *>resized(self.value_recs, room, sizeof(ValueRec))
                self.value_room = room
            index = self.value_used
            self.value_used += 1
            generation = 0
        rec = &self.value_recs[index]
        owner = &self.node_recs[node]
        rec.type = NULL
        if type is not None:
            Py_INCREF(type)
            rec.type = <PyObject *>type
        rec.id = self.next_id
        self.next_id += 1
        rec.node = node
        rec.offset = owner.output_count
        rec.stage = stage
        rec.first_use = rec.last_use = NONE
        rec.use_count = 0
        rec.next_output = NONE
        rec.generation = generation + 1
        if owner.last_output == NONE:
            owner.first_output = index
        else:
            self.value_recs[owner.last_output].next_output = index
        owner.last_output = index
        owner.output_count += 1
        return index

    cdef int32_t new_block(self, int32_t owner) except -1:
        """Append an empty block to the node `owner`; NONE makes the graph's own."""
        cdef int32_t index = self.free_block
        cdef int32_t last
        cdef uint32_t generation
        cdef BlockRec *rec
        cdef int32_t param = self.new_node(PARAM, 0 if owner == NONE else self.current_stage)
        cdef int32_t back = self.new_node(RETURN, INT32_MAX)
        if index != NONE:
            self.free_block = self.block_recs[index].next
            generation = self.block_recs[index].generation
        else:
            if self.block_used == self.block_room:
                room = grown(self.block_room, 0) if owner != NONE else 1
                self.block_recs = <BlockRec *>resized(self.block_recs, room, sizeof(BlockRec))
                self.block_room = room
            index = self.block_used
            self.block_used += 1
            generation = 0
        rec = &self.block_recs[index]
        memset(rec, 0, sizeof(BlockRec))
        rec.param = param
        rec.back = back
        rec.owner = owner
        rec.next = NONE
        rec.generation = generation + 1          # odd while alive
        self.node_recs[param].block = self.node_recs[back].block = index
        self.node_recs[param].position = INT64_MIN
        self.node_recs[back].position = INT64_MAX
        self.node_recs[back].prev = self.node_recs[back].next = back
        if owner != NONE:
            last = self.node_recs[owner].first_block
            if last == NONE:
                self.node_recs[owner].first_block = index
            else:
                while self.block_recs[last].next != NONE:
                    last = self.block_recs[last].next
                self.block_recs[last].next = index
        return index

    cdef int reserve_inputs(self, int32_t node, int32_t count) except -1:
        """Give `node` a run of at least `count` operand slots, moving its operands there."""
        cdef NodeRec *rec = &self.node_recs[node]
        cdef int32_t size_class = 0
        cdef int32_t start, i
        cdef int64_t slots
        if count == 0 or (rec.input_class != NONE and (<int64_t>1 << rec.input_class) >= count):
            return 0
        while (<int64_t>1 << size_class) < count:
            size_class += 1
        slots = <int64_t>1 << size_class
        start = self.free_runs[size_class]
        if start != NONE:
            self.free_runs[size_class] = self.use_recs[start].next
        else:
            if self.use_used + slots > self.use_room:
                room = grown(self.use_room, self.use_used + slots)
                self.use_recs = <UseRec *>resized(self.use_recs, room, sizeof(UseRec))
                self.use_room = room
            start = self.use_used
            self.use_used += <int32_t>slots
        for i in range(rec.input_count):
            self.move_use(rec.first_input + i, start + i)
        self.free_run(node)
        rec.first_input = start
        rec.input_class = size_class
        return 0

    cdef void free_run(self, int32_t node) noexcept:
        cdef NodeRec *rec = &self.node_recs[node]
        if rec.input_class != NONE:
            self.use_recs[rec.first_input].next = self.free_runs[rec.input_class]
            self.free_runs[rec.input_class] = rec.first_input
            rec.input_class = rec.first_input = NONE

    cdef void move_use(self, int32_t old, int32_t new) noexcept:
        """Move a linked use to another slot, keeping its place in its value's list."""
        cdef UseRec *rec = &self.use_recs[new]
        cdef ValueRec *value
        rec[0] = self.use_recs[old]
        value = &self.value_recs[rec.value]
        if rec.prev == NONE:
            value.first_use = new
        else:
            self.use_recs[rec.prev].next = new
        if rec.next == NONE:
            value.last_use = new
        else:
            self.use_recs[rec.next].prev = new

    cdef int push_input(self, int32_t node, int32_t value) except -1:
        cdef NodeRec *rec = &self.node_recs[node]
        cdef int32_t use
        self.reserve_inputs(node, rec.input_count + 1)
        use = rec.first_input + rec.input_count
        self.use_recs[use].user = node
        self.link(use, value)
        rec.input_count += 1
        return 0

    cdef void link(self, int32_t use, int32_t value) noexcept:
        cdef ValueRec *rec = &self.value_recs[value]
        cdef UseRec *slot = &self.use_recs[use]
        slot.value = value
        slot.prev = rec.last_use
        slot.next = NONE
        if rec.last_use == NONE:
            rec.first_use = use
        else:
            self.use_recs[rec.last_use].next = use
        rec.last_use = use
        rec.use_count += 1

    cdef void unlink(self, int32_t use) noexcept:
        cdef UseRec *slot = &self.use_recs[use]
        cdef ValueRec *rec = &self.value_recs[slot.value]
        if slot.prev == NONE:
            rec.first_use = slot.next
        else:
            self.use_recs[slot.prev].next = slot.next
        if slot.next == NONE:
            rec.last_use = slot.prev
        else:
            self.use_recs[slot.next].prev = slot.prev
        rec.use_count -= 1

    cdef int attach(self, int32_t node, int32_t before) except -1:
        """Put an unattached node into a ring, before `before` (its return node: at the end)."""
        cdef NodeRec *rec = &self.node_recs[node]
        cdef int32_t block = self.node_recs[before].block
        cdef int32_t head = self.block_recs[block].back
        cdef int32_t after = self.node_recs[before].prev
        cdef int64_t low = self.node_recs[after].position
        cdef int64_t high = self.node_recs[before].position
        cdef bint full = False
        if after == head and before == head:
            rec.position = 0
        elif before == head:
            full = low > INT64_MAX - 2 * STEP
            rec.position = low if full else low + STEP
        elif after == head:
            full = high < INT64_MIN + 2 * STEP
            rec.position = high if full else high - STEP
        else:
            rec.position = low + (high - low) // 2
            full = rec.position == low
        rec.block = block
        rec.prev = after
        rec.next = before
        self.node_recs[after].next = node
        self.node_recs[before].prev = node
        self.block_recs[block].size += 1
        if full:
            self.reindex(block)
        return 0

    cdef void detach(self, int32_t node) noexcept:
        cdef NodeRec *rec = &self.node_recs[node]
        if rec.block == NONE:
            return
        self.node_recs[rec.prev].next = rec.next
        self.node_recs[rec.next].prev = rec.prev
        self.block_recs[rec.block].size -= 1
        rec.prev = rec.next = rec.block = NONE

    cdef void reindex(self, int32_t block) noexcept:
        """Spread the positions evenly: amortised O(1), for it makes room for many inserts."""
        cdef int32_t head = self.block_recs[block].back
        cdef int32_t node = self.node_recs[head].next
        cdef int64_t position = -(<int64_t>self.block_recs[block].size // 2) * STEP
        while node != head:
            self.node_recs[node].position = position
            position += STEP
            node = self.node_recs[node].next
        self.epoch += 1

    cdef int32_t station(self, int32_t node) noexcept:
        """What comes after `node` in a walk over all blocks, or NONE.

        A walk visits each node, then what is in its blocks, and the return node of each block
        (the graph's own too) when the block ends.  It needs no stack: blocks know their owner.
        """
        cdef NodeRec *rec = &self.node_recs[node]
        cdef BlockRec *block
        if rec.kind != RETURN:
            if rec.first_block == NONE:
                return rec.next
            return self.node_recs[self.block_recs[rec.first_block].back].next
        block = &self.block_recs[rec.block]
        if block.next != NONE:
            return self.node_recs[self.block_recs[block.next].back].next
        return NONE if block.owner == NONE else self.node_recs[block.owner].next

    cdef int32_t end_of_point(self) except -1:
        """The return node before which new nodes go."""
        return self.end_of(self.point, self.point_generation)

    cdef int32_t end_of(self, int32_t block, uint32_t generation) except -1:
        """The return node of a block, which must still be of this generation."""
        self.check_usable()
        if block != BODY and self.block_recs[block].generation != generation:
            raise StaleHandle("insert: the block that nodes went into was destroyed")
        return self.block_recs[block].back

    cdef int free_node_record(self, int32_t node) except -1:
        """Unlink and free a node none of whose values is used elsewhere, with its blocks.

        What is inside goes first, from the last node to the first: a loop, for blocks may
        nest deeply.
        """
        cdef int32_t inside = node
        cdef int32_t block, last, i
        while True:
            block = self.node_recs[inside].first_block
            if block != NONE:
                last = self.block_recs[block].back
                for i in range(self.node_recs[last].input_count):
                    self.unlink(self.node_recs[last].first_input + i)
                self.node_recs[last].input_count = 0
                last = self.node_recs[last].prev
                if self.node_recs[last].kind == RETURN:
                    self.free_block_record(inside)
                else:
                    inside = last
            else:
                last = self.node_recs[inside].block
                self.free_single(inside)
                if inside == node:
                    return self.bury()
                inside = self.block_recs[last].owner

    cdef int free_block_record(self, int32_t node) except -1:
        """Free the first block of `node`, which must be empty."""
        cdef int32_t block = self.node_recs[node].first_block
        cdef BlockRec *rec = &self.block_recs[block]
        self.node_recs[node].first_block = rec.next
        self.free_single(rec.param)
        self.free_single(rec.back)
        rec.generation += 1
        rec.next = self.free_block
        self.free_block = block
        return 0

    cdef int drop(self, PyObject *thing) except -1:
        """Let a reference go, but not before `bury`: what goes may run code that edits."""
        if thing != NULL:
            self.dropped.append(<object>thing)
            Py_XDECREF(thing)
        return 0

    cdef int bury(self) except -1:
        """Let go of what was dropped; the last thing that an edit does."""
        cdef list dead = self.dropped
        self.dropped = []
        dead.clear()
        return 0

    cdef int free_single(self, int32_t node) except -1:
        """Unlink and free a node that has no blocks."""
        cdef NodeRec *rec = &self.node_recs[node]
        cdef int32_t i, value, following
        cdef PyObject *attributes = rec.attributes
        cdef PyObject *location = rec.location
        cdef PyObject *scope = rec.scope
        for i in range(rec.input_count):
            self.unlink(rec.first_input + i)
        rec.input_count = 0
        self.free_run(node)
        if rec.kind > RETURN:
            self.detach(node)
        value = rec.first_output
        while value != NONE:
            following = self.value_recs[value].next_output
            self.free_value_record(value)
            value = following
        rec.attributes = rec.location = rec.scope = NULL
        rec.generation += 1
        rec.next = self.free_node
        self.free_node = node
        self.drop(attributes)
        self.drop(location)
        self.drop(scope)
        return 0

    cdef int free_value_record(self, int32_t value) except -1:
        cdef ValueRec *rec = &self.value_recs[value]
        cdef PyObject *type = rec.type
        if self.names:
            name = self.names.pop(value, None)
            if name is not None:
                del self.by_name[name]
        rec.type = NULL
        rec.generation += 1
        rec.next_output = self.free_value
        self.free_value = value
        return self.drop(type)

    cdef int32_t replace_uses(self, int32_t old, int32_t new, int32_t except_) noexcept:
        cdef int32_t use = self.value_recs[old].first_use
        cdef int32_t following
        cdef int32_t moved = 0
        if old == new:
            return 0
        while use != NONE:
            following = self.use_recs[use].next
            if self.use_recs[use].user != except_:
                self.unlink(use)
                self.link(use, new)
                moved += 1
            use = following
        return moved

    cdef int set_name(self, int32_t value, str name) except -1:
        self.busy += 1
        try:
            return self.put_name(value, name)
        finally:
            self.busy -= 1

    cdef int put_name(self, int32_t value, str name) except -1:
        cdef str base
        cdef str tail
        old = self.names.get(value)
        if name == old:
            return 0
        if name is not None:
            if not NAME.match(name):
                raise ValueError(f"value: not a name: {name!r}\nhint: letters, digits, _ and .")
            if name in self.by_name:
                base, _, tail = name.rpartition(".")
                if not (base and tail.isdigit()):
                    base = name
                number = self.suffixes.get(base, 0) + 1
                while f"{base}.{number}" in self.by_name:
                    number += 1
                self.suffixes[base] = number
                name = f"{base}.{number}"
        if old is not None:
            del self.by_name[old]
            del self.names[value]
        if name is not None:
            self.names[value] = name
            self.by_name[name] = value
        return 0

    cdef int set_attributes(self, int32_t node, dict attributes) except -1:
        cdef PyObject *old = self.node_recs[node].attributes
        self.node_recs[node].attributes = NULL
        if attributes:
            Py_INCREF(attributes)
            self.node_recs[node].attributes = <PyObject *>attributes
        Py_XDECREF(old)
        return 0

    cdef int check_usable(self) except -1:
        if self.consumed:
            raise StaleHandle("graph: was consumed by differentiate(consume=True)")
        return 0

    cdef int check_editable(self) except -1:
        """As `check_usable`, for those who are about to change something."""
        self.check_usable()
        if self.busy:
            raise BusyError(
                "graph: is being read or changed by someone else, who is not done\n"
                "hint: one thread at a time, and no edits from finalisers"
            )
        if self.frozen:
            raise ValueError(
                "graph: is the attribute of a node, and read-only\n"
                "hint: edit a copy, and set the attribute to that"
            )
        return 0


cdef void release_slabs(Slabs graph) noexcept:
    cdef int32_t i
    cdef NodeRec *node
    for i in range(graph.node_used):
        node = &graph.node_recs[i]
        if node.generation & 1:
            Py_XDECREF(node.attributes)
            Py_XDECREF(node.location)
            Py_XDECREF(node.scope)
    for i in range(graph.value_used):
        if graph.value_recs[i].generation & 1:
            Py_XDECREF(graph.value_recs[i].type)
    free(graph.node_recs)
    free(graph.value_recs)
    free(graph.use_recs)
    free(graph.block_recs)
    graph.node_recs = NULL
    graph.value_recs = NULL
    graph.use_recs = NULL
    graph.block_recs = NULL
    graph.node_used = graph.value_used = graph.use_used = graph.block_used = 0


cdef PyObject *shared(PyObject *thing) noexcept:
    """A new reference to a thing that may be NULL."""
    if thing != NULL:
        Py_INCREF(<object>thing)
    return thing


cdef str shown(Slabs graph, int32_t value):
    """`%name` or `%id` of a value."""
    name = graph.names.get(value)
    return f"%{graph.value_recs[value].id}" if name is None else f"%{name}"


cdef str describe(Slabs graph, int32_t node):
    """One line for messages: `%3 = mul(%1, %2)`."""
    cdef int32_t i, value
    cdef list outputs = []
    cdef list inputs = []
    value = graph.node_recs[node].first_output
    while value != NONE:
        outputs.append(shown(graph, value))
        value = graph.value_recs[value].next_output
    for i in range(graph.node_recs[node].input_count):
        value = graph.use_recs[graph.node_recs[node].first_input + i].value
        inputs.append(shown(graph, value))
    line = f"{kind_name(graph.node_recs[node].kind)}({', '.join(inputs)})"
    return f"{', '.join(outputs)} = {line}" if outputs else line


cdef int check_place(object location, object scope) except -1:
    """A location is (file, line), a scope a path; both fit on a line of text."""
    if location is not None and not (
        isinstance(location, tuple) and len(location) == 2 and type(location[0]) is str
        and type(location[1]) is int and 0 <= location[1] <= INT32_MAX
        and location[0].isprintable() and location[0]
    ):
        raise ValueError(f"graph: a location is (file, line): {location!r}")
    if scope is not None and not (
            type(scope) is str and scope.isprintable() and scope and scope == scope.strip()):
        raise ValueError(f"graph: a scope is a printable text: {scope!r}")
    return 0


cdef int32_t checked_stage(object stage) except -1:
    if not isinstance(stage, int) or not 0 <= stage < 0x7FFFFFFF:
        raise ValueError(f"graph: a stage is an int from 0 to 2**31 - 2: {stage!r}")
    return <int32_t>stage


cdef object type_of(Slabs graph, int32_t value):
    """The TensorType of a value, or None for unknown."""
    cdef PyObject *type = graph.value_recs[value].type
    return None if type == NULL else <object>type


cdef bint is_static(Slabs graph, int32_t value) except -1:
    """Whether every dim of a value is known."""
    cdef PyObject *type = graph.value_recs[value].type
    return type != NULL and (<object>type).is_static
