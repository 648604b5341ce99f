# The graph's storage.  A Graph owns three slabs of C records, linked by index; what Python
# holds are handles (graph, index, generation), made on demand.  So there are no reference
# cycles, nothing recursive to free, and a handle to what was destroyed knows that it is stale.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t

cdef enum:
    NONE = -1         # no record
    PARAM = 0         # the node whose outputs are the graph's inputs; also a kind
    RETURN = 1        # the node whose inputs are the graph's outputs; also a kind
    BODY = 0          # the block that holds the graph's own nodes
    CLASSES = 32      # operand runs come in capacities 1, 2, 4, ... 2**31


# Invariant [use-list]: the uses of a value are a doubly linked list through the use slab, in
# the order in which they were made; `value` names that value and `user` the node whose run of
# operands holds the slot.  The operand's offset is its place in that run.
cdef struct UseRec:
    int32_t value
    int32_t user
    int32_t prev
    int32_t next


cdef struct ValueRec:
    PyObject *type           # TensorType, or NULL for unknown; owned
    int64_t id               # printed number; never reused within the graph
    int32_t node
    int32_t offset
    int32_t stage
    int32_t first_use
    int32_t last_use
    int32_t use_count
    int32_t next_output      # next output of `node`; in a freed record: next free record
    uint32_t generation


# Invariant [order]: `position` rises along the ring.
cdef struct NodeRec:
    int64_t position
    # Dict of what differs from the defaults, or NULL; owned.  Nodes share it: it is replaced,
    # never changed in place.
    PyObject *attributes
    PyObject *location       # (file, line) or NULL; owned
    PyObject *scope          # str or NULL; owned
    int32_t kind             # index into the process-wide table of kinds
    int32_t stage
    int32_t block            # whose ring it is in, or whose param or return; NONE: unattached
    int32_t first_block      # of its own
    int32_t prev             # NONE when unattached
    int32_t next             # NONE when unattached; in a freed record: next free record
    int32_t first_input      # start of the run of operands in the use slab
    int32_t input_count
    int32_t input_class      # the run holds 2**input_class slots; NONE for no run
    int32_t first_output
    int32_t last_output
    int32_t output_count
    int32_t origin           # id of a value of f, where the node is of the derivative of it
    uint32_t generation


# Invariant [ring]: the nodes of a block are a doubly linked ring through its return node.
cdef struct BlockRec:
    int32_t param            # the node whose outputs are the block's inputs
    int32_t back             # the node whose inputs are its outputs: head of the ring
    int32_t owner            # the node that it belongs to; NONE for BODY
    int32_t next             # next block of the owner; in a freed record: next free record
    int32_t size             # nodes in the ring
    uint32_t generation


cdef class Slabs:
    cdef NodeRec *node_recs
    cdef ValueRec *value_recs
    cdef UseRec *use_recs
    cdef BlockRec *block_recs
    cdef int32_t node_used, node_room, free_node
    cdef int32_t value_used, value_room, free_value
    cdef int32_t use_used, use_room
    cdef int32_t block_used, block_room, free_block
    cdef int32_t free_runs[CLASSES]
    cdef int32_t current_stage
    cdef int32_t point                   # the block at whose end new nodes go
    cdef uint32_t point_generation
    cdef list settings                   # what `with` statements set, oldest first, or None
    cdef str current_scope               # path that new nodes get, or None
    cdef str scope_root                  # the scope that the graph began with
    cdef int64_t next_id
    cdef uint32_t epoch                  # counts re-indexings of positions
    cdef bint consumed
    cdef int busy                        # being walked: whoever edits now is refused
    cdef list dropped                    # references to let go when all records are whole
    cdef bint frozen                     # held by an attribute: shared, so never changed
    cdef int32_t nesting                 # how deep attributes of a frozen graph hold graphs
    cdef bint is_for_reals               # a derivative was taken for values of unknown dtype
    cdef dict names                      # value index -> name
    cdef dict by_name                    # name -> value index
    cdef dict suffixes                   # base name -> last suffix tried
    cdef object __weakref__

    cdef int32_t new_node(self, int32_t kind, int32_t stage) except -1
    cdef int32_t new_value(self, int32_t node, int32_t stage, object type) except -1
    cdef int32_t new_block(self, int32_t owner) except -1
    cdef int reserve_inputs(self, int32_t node, int32_t count) except -1
    cdef int push_input(self, int32_t node, int32_t value) except -1
    cdef void link(self, int32_t use, int32_t value) noexcept
    cdef void unlink(self, int32_t use) noexcept
    cdef int attach(self, int32_t node, int32_t before) except -1
    cdef void detach(self, int32_t node) noexcept
    cdef void reindex(self, int32_t block) noexcept
    cdef int free_node_record(self, int32_t node) except -1
    cdef int free_block_record(self, int32_t node) except -1
    cdef int free_single(self, int32_t node) except -1
    cdef int drop(self, PyObject *thing) except -1
    cdef int bury(self) except -1
    cdef int32_t station(self, int32_t node) noexcept
    cdef int32_t end_of_point(self) except -1
    cdef int32_t end_of(self, int32_t block, uint32_t generation) except -1
    cdef void free_run(self, int32_t node) noexcept
    cdef void move_use(self, int32_t old, int32_t new) noexcept
    cdef int free_value_record(self, int32_t value) except -1
    cdef int32_t replace_uses(self, int32_t old, int32_t new, int32_t except_) noexcept
    cdef int set_name(self, int32_t value, str name) except -1
    cdef int put_name(self, int32_t value, str name) except -1
    cdef int set_attributes(self, int32_t node, dict attributes) except -1
    cdef int check_usable(self) except -1
    cdef int check_editable(self) except -1


cdef void release_slabs(Slabs graph) noexcept
cdef PyObject *shared(PyObject *thing) noexcept
cdef str shown(Slabs graph, int32_t value)
cdef str describe(Slabs graph, int32_t node)
cdef int check_place(object location, object scope) except -1
cdef int32_t checked_stage(object stage) except -1
cdef object type_of(Slabs graph, int32_t value)
cdef bint is_static(Slabs graph, int32_t value) except -1


cdef inline bint is_end(Slabs graph, int32_t node) noexcept:
    """Whether it is the param or return node of a block: neither moves nor goes."""
    return graph.node_recs[node].kind <= RETURN


cdef inline int32_t first_station(Slabs graph, int32_t block) noexcept:
    """Where a walk over a block and what is in it begins; see `Slabs.station`."""
    return graph.node_recs[graph.block_recs[block].back].next
