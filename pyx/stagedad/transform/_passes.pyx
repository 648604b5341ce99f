"""The sweeps behind the passes."""

import cython

from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from stagedad.ir._clone cimport is_within, used_outside
from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport node_handle
from stagedad.ir._kinds cimport kind_index, kind_name
from stagedad.ir._slabs cimport BODY, NONE, RETURN, NodeRec, first_station, is_static


def remove_dead(Graph graph not None, effects):
    """Destroy, from the last node to the first, those that nobody reads.  Returns how many.

    `effects` is the set of kinds that stay whatever reads them, and with them the nodes in
    whose blocks they are.
    """
    cdef int32_t node
    cdef int removed
    graph.check_editable()
    node = graph.node_recs[RETURN].prev
    graph.busy += 1
    try:
        removed = sweep_dead(graph, node, effects)
    finally:
        graph.busy -= 1
    return removed


cdef int sweep_dead(Graph graph, int32_t node, effects) except -1:
    cdef int32_t before, block
    cdef int removed = 0
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
    graph.check_editable()
    graph.busy += 1
    try:
        return merge_all(graph, Merger(graph, pure, commutative))
    finally:
        graph.busy -= 1


cdef int merge_all(Graph graph, Merger merger) except -1:
    cdef int32_t node, value, kept
    cdef int merged = 0
    cdef bint moved
    node = first_station(graph, BODY)
    while node != RETURN:
        kept = merger.equal_before(node)
        if kept != NONE:
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


cdef enum:
    IMPURE = 1
    SWAPS = 2


@cython.final
cdef class Merger:
    """The nodes met so far, by what they compute: a hash table over their records."""
    cdef Graph graph
    cdef object pure, commutative
    cdef dict sorts              # kind index -> IMPURE, SWAPS
    cdef dict numbers            # content of attributes -> a number that stands for it
    cdef dict of_dict            # id of an attributes dict -> the same number
    cdef int32_t *places         # node, NONE where free
    cdef size_t *hashes          # by place: what the node's hash is
    cdef size_t mask

    def __cinit__(self, Graph graph, pure, commutative):
        cdef size_t room = 16
        self.graph = graph
        self.pure, self.commutative = pure, commutative
        self.sorts, self.numbers, self.of_dict = {}, {}, {}
        while room < <size_t>graph.node_used * 2:
            room *= 2
        self.mask = room - 1
        self.places = <int32_t *>malloc(room * sizeof(int32_t))
        self.hashes = <size_t *>malloc(room * sizeof(size_t))
        if self.places == NULL or self.hashes == NULL:
            raise MemoryError("cse: out of memory")
        memset(self.places, 0xFF, room * sizeof(int32_t))

    def __dealloc__(self):
        free(self.places)
        free(self.hashes)

    cdef int32_t equal_before(self, int32_t node) except -2:
        """The first node that computes the same; NONE where that is this one, entered now."""
        cdef Graph graph = self.graph
        cdef NodeRec *rec = &graph.node_recs[node]
        cdef int sort = self.sort(rec.kind)
        cdef bint swaps
        cdef size_t mixed
        cdef size_t place
        if sort & IMPURE or rec.first_block != NONE:
            return NONE
        swaps = sort & SWAPS and rec.attributes == NULL and not complex_output(graph, node)
        mixed = self.hashed(rec, swaps)
        place = mixed & self.mask
        while self.places[place] != NONE:
            if self.hashes[place] == mixed and self.equal(
                    rec, &graph.node_recs[self.places[place]], swaps) and is_within(
                    graph, node, graph.node_recs[self.places[place]].block):
                return self.places[place]
            place = (place + 1) & self.mask
        self.places[place] = node
        self.hashes[place] = mixed
        return NONE

    cdef int sort(self, int32_t kind) except -1:
        cdef object index = kind
        cdef PyObject *found = PyDict_GetItem(self.sorts, index)
        cdef str name
        if found != NULL:
            return <int><object>found
        name = kind_name(kind)
        sort = IMPURE * (name not in self.pure) | SWAPS * (name in self.commutative)
        self.sorts[index] = sort
        return <int>sort

    cdef int64_t attributes_of(self, const NodeRec *rec) except -1:
        """A number that is the same for the same content; 0 for defaults."""
        cdef PyObject *found
        cdef object key
        if rec.attributes == NULL:
            return 0
        key = <size_t>rec.attributes     # alive as long as the node
        found = PyDict_GetItem(self.of_dict, key)
        if found == NULL:
            number = self.numbers.setdefault(
                attributes_key(<dict>rec.attributes), len(self.numbers) + 1)
            self.of_dict[key] = number
            return <int64_t>number
        return <int64_t><object>found

    cdef inline int32_t operand(self, const NodeRec *rec, int32_t i) noexcept:
        return self.graph.use_recs[rec.first_input + i].value

    cdef size_t hashed(self, const NodeRec *rec, bint swaps) except? 0:
        cdef size_t mixed = <size_t>rec.kind * 31
        cdef size_t sum_ = 0
        cdef int32_t i
        if rec.attributes != NULL:
            mixed += attributes_hash(<dict>rec.attributes)
        mixed = (mixed * 31 + <size_t>rec.stage) * 31 + <size_t>rec.input_count
        for i in range(rec.input_count):
            if swaps:
                sum_ += <size_t>self.operand(rec, i) * <size_t>0x9E3779B97F4A7C15
            else:
                mixed = (mixed ^ <size_t>self.operand(rec, i)) * <size_t>0x9E3779B97F4A7C15
        mixed = (mixed ^ sum_) * <size_t>0x9E3779B97F4A7C15
        return mixed ^ mixed >> 29

    cdef bint equal(self, const NodeRec *a, const NodeRec *b, bint swaps) except -1:
        """Whether kind, stage, operands, types and attributes are the same."""
        cdef Graph graph = self.graph
        cdef int32_t i, one, other
        if (a.kind != b.kind or a.stage != b.stage or a.input_count != b.input_count
                or a.output_count != b.output_count):
            return False
        one, other = a.first_output, b.first_output
        while one != NONE:
            if graph.value_recs[one].type != graph.value_recs[other].type:
                return False
            one = graph.value_recs[one].next_output
            other = graph.value_recs[other].next_output
        for i in range(a.input_count):
            if self.operand(a, i) != self.operand(b, i):
                if not swaps:
                    return False
                return sorted(
                    [self.operand(a, k) for k in range(a.input_count)]
                ) == sorted([self.operand(b, k) for k in range(b.input_count)])
        return a.attributes == b.attributes or self.attributes_of(a) == self.attributes_of(b)


cdef bint complex_output(Graph graph, int32_t node) except -1:
    """Whether the result is complex, or may be: a product may be contracted, hence ordered."""
    cdef int32_t value = graph.node_recs[node].first_output
    cdef PyObject *type = NULL if value == NONE else graph.value_recs[value].type
    return type == NULL or (<object>type).dtype.kind == "c"


cdef size_t attributes_hash(dict attributes) except? 0:
    """A number that is the same for attributes of the same key."""
    cdef size_t mixed = 0
    for name, value in attributes.items():
        try:
            # An array has no hash; an empty one must not be asked whether it is equal.
            hashed = hash(value)
            if value == value:
                mixed += <size_t><Py_hash_t>hashed * (<size_t><Py_hash_t>hash(name) | 1)
        except TypeError:
            mixed += <size_t><PyObject *>value
    return mixed


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


# What a pass may wait for besides the kinds that produce operands.  No kind has such a name:
# `any` and the like are ops, or may become some.
ANY = "<any>"               # every node of the kind
NUMBERS = "<numbers>"       # all operands are numbers held by constants
ZERO = "<zero>"             # an operand is a constant of 0
UNIT = "<unit>"             # an operand is a constant of 1 or -1
SAME_TYPE = "<same type>"   # the first operand has the type of the first output
TWINS = "<twins>"           # the last two operands are one value

cdef enum:
    WANTS_ANY = 1
    WANTS_NUMBERS = 2
    WANTS_ZERO = 4
    WANTS_UNIT = 8
    WANTS_SAME_TYPE = 16
    WANTS_TWINS = 32
    WANTS_PRODUCERS = 64
    WANTS_SEVERAL = 128

cdef dict TOKENS = {
    ANY: WANTS_ANY, NUMBERS: WANTS_NUMBERS, ZERO: WANTS_ZERO, UNIT: WANTS_UNIT,
    SAME_TYPE: WANTS_SAME_TYPE, TWINS: WANTS_TWINS,
}
cdef int32_t CONSTANT = kind_index("constant")


@cython.final
cdef class Triggers:
    """Where a pass looks closer: by kind, what about a node calls for it.

    That is any of: a kind, of which one operand is to be; a tuple of kinds, of which the first
    operands are to be; ANY, NUMBERS, ZERO, UNIT, SAME_TYPE, TWINS.
    """
    cdef int32_t kinds           # indexes below this one are in the tables
    cdef uint8_t *tokens         # by kind: WANTS_...
    cdef uint8_t *producers      # by kind and kind of an operand's producer: whether it counts
    cdef dict several            # kind index -> list of tuples of kind indexes

    def __init__(self, wanted):
        cdef int32_t index
        self.several = {}
        self.kinds = 1 + max([
            kind_index(each) for kind, whats in wanted.items() for each in (kind, *whats)
            if type(each) is str and each not in TOKENS
        ], default=0)
        self.tokens = <uint8_t *>calloc(self.kinds, 1)
        self.producers = <uint8_t *>calloc(<size_t>self.kinds * self.kinds, 1)
        if self.tokens == NULL or self.producers == NULL:
            raise MemoryError("triggers: out of memory")
        for kind, whats in wanted.items():
            index = kind_index(kind)
            for what in whats:
                if type(what) is tuple:
                    kinds = tuple([kind_index(each) for each in what])
                    self.several.setdefault(index, []).append(kinds)
                    self.tokens[index] |= WANTS_SEVERAL
                elif what in TOKENS:
                    self.tokens[index] |= <uint8_t><int>TOKENS[what]
                else:
                    self.producers[index * self.kinds + kind_index(what)] = True
                    self.tokens[index] |= WANTS_PRODUCERS

    def __dealloc__(self):
        free(self.tokens)
        free(self.producers)

    cdef bint hit(self, Graph graph, int32_t node) except -1:
        cdef int32_t kind = graph.node_recs[node].kind
        cdef int32_t i, operand
        cdef int tokens
        if kind >= self.kinds or not self.tokens[kind] or is_unread(graph, node):
            return False
        tokens = self.tokens[kind]
        if tokens & WANTS_ANY:
            return True
        if tokens & WANTS_TWINS and reads_twins(graph, node):
            return True
        if tokens & WANTS_SAME_TYPE and same_type(graph, node):
            return True
        if tokens & WANTS_NUMBERS and reads_numbers(graph, node):
            return True
        if tokens & (WANTS_ZERO | WANTS_UNIT | WANTS_PRODUCERS):
            for i in range(graph.node_recs[node].input_count):
                operand = graph.use_recs[graph.node_recs[node].first_input + i].value
                operand = graph.value_recs[operand].node
                if tokens & (WANTS_ZERO | WANTS_UNIT) and holds(graph, operand, tokens):
                    return True
                if (graph.node_recs[operand].kind < self.kinds
                        and self.producers[kind * self.kinds + graph.node_recs[operand].kind]):
                    return True
        return tokens & WANTS_SEVERAL and self.hit_several(graph, node)

    cdef bint hit_several(self, Graph graph, int32_t node) except -1:
        cdef object kinds
        cdef int32_t operand
        for kinds in self.several.get(graph.node_recs[node].kind, ()):
            if len(<tuple>kinds) > graph.node_recs[node].input_count:
                continue
            operand = graph.node_recs[node].first_input
            for kind in <tuple>kinds:
                if graph.node_recs[
                        graph.value_recs[graph.use_recs[operand].value].node].kind != kind:
                    break
                operand += 1
            else:
                return True
        return False


cdef bint is_unread(Graph graph, int32_t node) noexcept:
    """Whether the node has outputs and nobody reads them: it is dead, or about to be."""
    cdef int32_t value = graph.node_recs[node].first_output
    if value == NONE:
        return False
    while value != NONE and graph.value_recs[value].first_use == NONE:
        value = graph.value_recs[value].next_output
    return value == NONE


cdef bint reads_twins(Graph graph, int32_t node) noexcept:
    cdef int32_t last = graph.node_recs[node].input_count - 1
    cdef int32_t start = graph.node_recs[node].first_input
    return last > 0 and (
        graph.use_recs[start + last].value == graph.use_recs[start + last - 1].value)


cdef bint same_type(Graph graph, int32_t node) noexcept:
    cdef int32_t value = graph.node_recs[node].first_output
    cdef int32_t operand
    if value == NONE or graph.node_recs[node].input_count == 0:
        return False
    operand = graph.use_recs[graph.node_recs[node].first_input].value
    return graph.value_recs[operand].type == graph.value_recs[value].type


cdef PyObject *number_of(Graph graph, int32_t node) except? NULL:
    """What a constant holds, if that is a number; NULL of any other node."""
    cdef PyObject *held
    if graph.node_recs[node].kind != CONSTANT or graph.node_recs[node].attributes == NULL:
        return NULL
    held = PyDict_GetItem(<dict>graph.node_recs[node].attributes, "value")
    if held == NULL or isinstance(<object>held, np.ndarray):
        return NULL
    return held


cdef bint reads_numbers(Graph graph, int32_t node) except -1:
    cdef int32_t i, operand
    for i in range(graph.node_recs[node].input_count):
        operand = graph.use_recs[graph.node_recs[node].first_input + i].value
        if number_of(graph, graph.value_recs[operand].node) == NULL:
            return False
    return graph.node_recs[node].input_count > 0


cdef bint holds(Graph graph, int32_t node, int tokens) except -1:
    """Whether a node is a constant of one of the numbers that `tokens` name."""
    cdef PyObject *held = number_of(graph, node)
    if held == NULL:
        return False
    if tokens & WANTS_ZERO and <object>held == 0:
        return True
    return tokens & WANTS_UNIT and (<object>held == 1 or <object>held == -1)


def hits(Graph graph not None, Triggers triggers not None):
    """Yield the nodes that are read and at which a rule may apply, within blocks too.

    Nodes made or destroyed meanwhile are fine; blocks stay.
    """
    cdef int32_t node, block, back
    cdef uint32_t generation, epoch
    cdef int64_t position
    graph.check_usable()
    node = first_station(graph, BODY)
    while node != NONE:
        if triggers.hit(graph, node):
            generation = graph.node_recs[node].generation
            position = graph.node_recs[node].position
            block = graph.node_recs[node].block
            epoch = graph.epoch
            yield node_handle(graph, node)
            graph.check_usable()
            if (graph.node_recs[node].generation != generation
                    or graph.node_recs[node].block != block):
                if graph.epoch != epoch:
                    raise RuntimeError("hits: re-indexed, and the current node destroyed")
                back = graph.block_recs[block].back
                node = graph.node_recs[back].next
                while node != back and graph.node_recs[node].position <= position:
                    node = graph.node_recs[node].next
                continue
        node = graph.station(node)
