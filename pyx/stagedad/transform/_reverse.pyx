"""The reverse sweep: activity, captures, cotangents, and the split into f and df.

The order of work, so that no guess is ever undone:

1. forward over the nodes: which values are active, and through which a cotangent can reach an
   input (`useful`; floor is active, but its rule is a structural zero);
2. backward: which rule each node needs, which values those read, hence which temporaries are
   captured.  A captured active temporary has a cotangent of its own (its slot), so it is never
   absent.  A value is read only by rules of its users and of its producer, which the backward
   order visits before they matter: one pass is the fixpoint;
3. emission at stage 1, each cotangent complete before the rule that consumes it.
"""

import cython

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

from stagedad.errors import NotDifferentiable

from stagedad.ir._clone cimport outer_reads
from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport node_handle, value_handle
from stagedad.ir._kinds cimport attribute_key, kind_index, kind_name
from stagedad.ir._slabs cimport NONE, PARAM, RETURN, NodeRec, is_static, type_of
from stagedad.transform._split cimport split_joint
from stagedad.transform._template cimport Template

from stagedad.transform._passes import zero_attributes

cdef enum:
    ACTIVE = 1           # depends on an input that requires a gradient
    USEFUL = 2           # and its cotangent would reach that input
    PRESENT = 4          # its cotangent is not a structural zero
    READ = 8             # its value is read at stage 1
    SLOT = 16            # a captured temporary with a cotangent input of its own
    OUTPUT = 32          # registered as an output by the caller

cdef enum:
    FORMULA = 0
    ZERO = 1
    NON_DIFFERENTIABLE = 2
    NOT_IMPLEMENTED = 3

    RECENT = 64          # places for templates of small nodes, found without making objects


# What decides the rule of a node with up to two operands and one output.
cdef struct Recent:
    PyObject *template   # kept alive by Sweep.kept
    PyObject *attributes
    PyObject *types[3]
    int32_t kind
    int32_t masks


TEMPLATES_LIMIT = 4096

cdef int32_t ADD = kind_index("add")
cdef int32_t CONSTANT = kind_index("constant")


@cython.final
cdef class Sweep:
    """State of one call of differentiate over a graph that it owns."""

    cdef Graph graph
    cdef object specialise       # (kind, attributes, types, types, wanted, present) -> Template
    cdef dict rules              # kind index -> bytes: the rule of each argument
    cdef dict lists              # kind index -> whether the last argument is a list
    cdef dict forwards           # kind index -> attributes that its rule hands on as they are
    cdef set real                # kind indexes whose rules hold for real operands only
    cdef object rule_of
    cdef dict templates
    cdef uint8_t *flags          # by value
    cdef int32_t *grads          # by value: its cotangent so far
    cdef Recent recent[RECENT]
    cdef list kept
    cdef list chosen             # Template of each node, in reverse order
    cdef int32_t values          # stage-0 values
    cdef int32_t *slots
    cdef int32_t slot_room
    cdef public list input_vjps, output_vjps, captured, temporaries
    cdef list seeds
    cdef bint whole              # one graph is wanted, of cotangents for outputs of 1

    def __cinit__(self, Graph graph not None, rule_of, specialise, dict templates,
                  bint whole=False):
        self.graph = graph
        self.whole = whole
        self.rule_of = rule_of
        self.specialise = specialise
        self.templates = templates
        self.rules = {}
        self.lists = {}
        self.forwards = {}
        self.real = set()
        self.values = graph.value_used
        self.flags = <uint8_t *>calloc(graph.value_used + 1, 1)
        self.grads = <int32_t *>malloc((graph.value_used + 1) * sizeof(int32_t))
        if self.flags == NULL or self.grads == NULL:
            raise MemoryError("differentiate: out of memory")
        memset(self.grads, 0xFF, (graph.value_used + 1) * sizeof(int32_t))
        memset(self.recent, 0, sizeof(self.recent))
        self.kept = []
        self.chosen = []
        self.captured = []
        self.temporaries = []
        self.input_vjps = []
        self.output_vjps = []
        self.seeds = []

    def __dealloc__(self):
        free(self.flags)
        free(self.grads)
        free(self.slots)

    cdef uint8_t rule(self, int32_t node, int32_t argument) except 255:
        """The rule of operand `argument` of a node."""
        cdef Graph graph = self.graph
        cdef int32_t kind = graph.node_recs[node].kind
        cdef bytes rules = self.rules.get(kind)
        cdef object type
        if rules is None:
            rules, is_list, is_complex, forwards = self.rule_of(kind_name(kind))
            self.rules[kind] = rules
            self.forwards[kind] = forwards
            self.lists[kind] = is_list
            if not is_complex:
                self.real.add(kind)
        if kind in self.real:
            # A rule for real operands, a zero one too, says nothing of complex ones.
            type = type_of(graph, self.input_value(node, argument))
            if type is not None and type.dtype.kind == "c":
                return NOT_IMPLEMENTED
        if argument >= len(rules):
            if not rules or not self.lists[kind]:
                return NOT_IMPLEMENTED
            argument = <int32_t>len(rules) - 1
        return <uint8_t>rules[argument]

    def activity(self, requires_grad):
        """Pass 1, forward."""
        cdef Graph graph = self.graph
        cdef int32_t value = graph.node_recs[PARAM].first_output
        cdef int32_t node, i
        cdef uint8_t found, rule, flags
        for flag in requires_grad:
            if flag:
                self.flags[value] |= ACTIVE | USEFUL
            value = graph.value_recs[value].next_output
        node = graph.node_recs[RETURN].next
        while node != RETURN:
            found = self.read_inside(node)
            for i in range(graph.node_recs[node].input_count):
                flags = self.flags[self.input_value(node, i)]
                if flags & ACTIVE:
                    rule = self.rule(node, i)
                    if rule != NON_DIFFERENTIABLE:
                        found |= ACTIVE
                        if flags & USEFUL and rule != ZERO:
                            found |= USEFUL
            if found:
                value = graph.node_recs[node].first_output
                while value != NONE:
                    if carries_cotangent(graph, value):
                        self.flags[value] |= found
                    value = graph.value_recs[value].next_output
            node = graph.node_recs[node].next
        for i in range(graph.node_recs[RETURN].input_count):
            value = self.input_value(RETURN, i)
            self.flags[value] |= OUTPUT
            if self.flags[value] & ACTIVE:
                self.flags[value] |= PRESENT

    cdef uint8_t read_inside(self, int32_t node) except 255:
        """The activity that comes in through what the blocks of a node read."""
        cdef uint8_t found = 0
        if self.graph.node_recs[node].first_block != NONE:
            for value in outer_reads(self.graph, node):
                found |= self.flags[<int32_t>value] & (ACTIVE | USEFUL)
        return found

    cdef inline int32_t input_value(self, int32_t node, int32_t i) noexcept:
        cdef Graph graph = self.graph
        return graph.use_recs[graph.node_recs[node].first_input + i].value

    def captures(self, requires_grad):
        """Pass 2, backward: choose the rules, find what they read."""
        cdef Graph graph = self.graph
        cdef int32_t node = graph.node_recs[RETURN].prev
        cdef int32_t value, i
        cdef Template template
        while node != RETURN:
            template = self.choose(node)
            self.chosen.append(template)
            if template is not None:
                for i in range(template.result_count):
                    if template.result_slots[i] != NONE:
                        self.flags[self.input_value(node, i)] |= PRESENT
            node = graph.node_recs[node].prev
        value = graph.node_recs[PARAM].first_output
        for flag in requires_grad:
            if flag and not self.flags[value] & PRESENT and not is_static(graph, value):
                self.flags[value] |= READ            # a zero of its shape is wanted
            value = graph.value_recs[value].next_output
        if self.whole:
            return
        value = graph.node_recs[PARAM].first_output
        while value != NONE:
            if self.flags[value] & READ:
                self.captured.append(value)
            value = graph.value_recs[value].next_output
        node = graph.node_recs[RETURN].next
        while node != RETURN:
            value = graph.node_recs[node].first_output
            while value != NONE:
                if self.flags[value] & READ and graph.node_recs[node].kind != CONSTANT:
                    self.captured.append(value)
                    if not self.flags[value] & OUTPUT:
                        self.temporaries.append(value)
                value = graph.value_recs[value].next_output
            node = graph.node_recs[node].next

    cdef Template choose(self, int32_t node):
        """The rule of a node for the cotangents present, or None; marks what it reads."""
        cdef Graph graph = self.graph
        cdef Template template = None
        cdef int32_t value, i, slot, inputs
        cdef object wanted, present, before
        cdef str kind
        cdef uint8_t flags
        inputs = graph.node_recs[node].input_count
        wanted = 0
        for i in range(inputs):
            flags = self.flags[self.input_value(node, i)]
            if flags & USEFUL and self.rule(node, i) in (
                    FORMULA, NOT_IMPLEMENTED):
                wanted |= bit(i)
        before = None
        while True:
            present = 0
            value = graph.node_recs[node].first_output
            while value != NONE:
                flags = self.flags[value]
                if flags & READ and flags & ACTIVE and not (flags & OUTPUT or self.whole):
                    self.flags[value] |= SLOT | PRESENT
                if self.flags[value] & PRESENT:
                    present |= bit(graph.value_recs[value].offset)
                value = graph.value_recs[value].next_output
            if present and graph.node_recs[node].first_block != NONE and (
                    wanted or self.read_inside(node) & USEFUL):
                kind = kind_name(graph.node_recs[node].kind)
                raise located(
                    NotDifferentiable(f"{kind}: what runs blocks has no derivative", op=kind),
                    node_handle(graph, node))
            if not wanted or not present or present == before:
                return template
            before = present
            template = self.quick_template(node, wanted, present)
            for i in range(template.read_count):
                slot = template.read_slots[i]
                if slot < inputs:
                    self.flags[self.input_value(node, slot)] |= READ
                else:
                    self.flags[self.output_value(node, slot - inputs)] |= READ

    cdef Template quick_template(self, int32_t node, object wanted, object present):
        """As `template`, through a table of the rules used last where the node is small."""
        cdef Graph graph = self.graph
        cdef NodeRec *rec = &graph.node_recs[node]
        cdef Recent key
        cdef Recent *place
        cdef size_t mixed
        cdef int32_t i
        if rec.input_count > 2 or rec.output_count != 1:
            return self.template(node, wanted, present)
        memset(&key, 0, sizeof(Recent))
        key.kind = rec.kind
        key.masks = (<int32_t>wanted | <int32_t>present << 2
                     | <int32_t>rec.input_count << 3)
        key.attributes = rec.attributes
        key.types[2] = graph.value_recs[rec.first_output].type
        mixed = <size_t>key.types[2] >> 4 ^ <size_t>key.attributes >> 4
        for i in range(rec.input_count):
            key.types[i] = graph.value_recs[self.input_value(node, i)].type
            mixed = mixed * 31 + (<size_t>key.types[i] >> 4)
        mixed = mixed * 31 + <size_t>key.kind * 7 + <size_t>key.masks
        place = &self.recent[(mixed ^ mixed >> 8) % RECENT]
        if (place.template == NULL or place.kind != key.kind or place.masks != key.masks
                or place.attributes != key.attributes
                or memcmp(place.types, key.types, sizeof(key.types)) != 0):
            found = self.template(node, wanted, present)
            self.kept.append(found)
            key.template = <PyObject *>found
            place[0] = key
        return <Template>place.template

    cdef int32_t output_value(self, int32_t node, int32_t offset) noexcept:
        cdef int32_t value = self.graph.node_recs[node].first_output
        while offset > 0:
            value = self.graph.value_recs[value].next_output
            offset -= 1
        return value

    cdef Template template(self, int32_t node, object wanted, object present):
        cdef Graph graph = self.graph
        cdef int32_t kind = graph.node_recs[node].kind
        cdef int32_t i, value
        cdef list types = []
        cdef PyObject *own = graph.node_recs[node].attributes
        cdef dict attributes = None if own == NULL else <dict>own
        cdef tuple forwards = self.forwards[kind]
        for i in range(graph.node_recs[node].input_count):
            types.append(type_of(graph, self.input_value(node, i)))
        value = graph.node_recs[node].first_output
        while value != NONE:
            types.append(type_of(graph, value))
            value = graph.value_recs[value].next_output
        i = graph.node_recs[node].input_count
        if attributes is None:
            key = (kind, i, wanted, present, tuple(types))
        else:
            if forwards:
                deciding = {
                    each: item for each, item in attributes.items() if each not in forwards}
            else:
                deciding = attributes
            key = (kind, i, wanted, present, tuple(types), attribute_key(deciding))
        try:
            found = self.templates.get(key)
        except TypeError:
            found, key = None, None
        if found is None:
            try:
                found = self.specialise(
                    kind_name(kind), attributes or {}, tuple(types[:i]), tuple(types[i:]),
                    wanted, present)
            except NotDifferentiable as error:
                raise located(error, node_handle(graph, node)) from None
            (<Template>found).forwards = forwards
            if key is not None:
                if len(self.templates) >= TEMPLATES_LIMIT:
                    self.templates.clear()
                self.templates[key] = found
        return <Template>found

    def emit(self, requires_grad):
        """Pass 3: the reverse nodes, at stage 1."""
        cdef Graph graph = self.graph
        cdef int32_t last = graph.node_recs[RETURN].prev     # end of stage 0
        cdef int32_t outputs = graph.node_recs[RETURN].input_count
        cdef int32_t node, value, i, total, following, grad
        cdef Py_ssize_t at = 0
        cdef Template template
        cdef dict slot_inputs = {}
        graph.current_stage = 1
        for i in range(outputs):
            value = self.input_value(RETURN, i)
            if self.flags[value] & ACTIVE:
                self.input_vjps.append(i)
                seed = self.ones(value) if self.whole else self.cotangent_input(value)
                self.seeds.append((value, seed))
        for i, index in enumerate(self.temporaries):
            value = <int32_t>index
            graph.push_input(RETURN, value)
            if self.flags[value] & SLOT:
                self.input_vjps.append(outputs + i)
                slot_inputs[value] = self.cotangent_input(value)
        for index, seed in self.seeds:
            self.accumulate(<int32_t>index, <int32_t>seed)
        node = last
        while node != RETURN:
            if slot_inputs:
                value = graph.node_recs[node].first_output
                while value != NONE:
                    if self.flags[value] & SLOT:
                        grad = <int32_t>slot_inputs[value]
                        if self.grads[value] != NONE:
                            grad = self.add_slot(grad, self.grads[value], value, last)
                        self.grads[value] = grad
                    value = graph.value_recs[value].next_output
            template = <Template>self.chosen[at]
            at += 1
            following = graph.node_recs[node].prev
            if template is not None:
                self.apply(template, node)
            node = following
        value = graph.node_recs[PARAM].first_output
        for i, flag in enumerate(requires_grad):
            if flag:
                self.output_vjps.append(i)
                total = self.grads[value]
                if total == NONE:
                    total = self.zeros(value)
                graph.push_input(RETURN, total)
            value = graph.value_recs[value].next_output
        graph.current_stage = 0
        return outputs

    cdef int32_t cotangent_input(self, int32_t value) except -1:
        cdef Graph graph = self.graph
        cdef int32_t made = graph.new_value(PARAM, 1, type_of(graph, value))
        name = graph.names.get(value)
        if name is not None:
            graph.set_name(made, f"d_{name}")
        return made

    cdef int apply(self, Template template, int32_t node) except -1:
        cdef Graph graph = self.graph
        cdef int32_t inputs = graph.node_recs[node].input_count
        cdef int32_t outputs = graph.node_recs[node].output_count
        cdef int32_t i, value
        if self.slot_room < template.slot_count:
            free(self.slots)
            self.slot_room = 0
            self.slots = <int32_t *>malloc(2 * template.slot_count * sizeof(int32_t))
            if self.slots == NULL:
                raise MemoryError("differentiate: out of memory")
            self.slot_room = 2 * template.slot_count
        for i in range(inputs):
            self.slots[i] = self.input_value(node, i)
        value = graph.node_recs[node].first_output
        for i in range(outputs):
            self.slots[inputs + i] = value
            self.slots[inputs + outputs + i] = self.grads[value]
            value = graph.value_recs[value].next_output
        template.instantiate(graph, node, self.slots)
        for i in range(template.result_count):
            if template.result_slots[i] != NONE:
                self.accumulate(self.input_value(node, i), self.slots[template.result_slots[i]])
        return 0

    cdef int accumulate(self, int32_t value, int32_t contribution) except -1:
        """Add to the cotangent of a value, at the end of the graph."""
        cdef int32_t node
        if self.grads[value] == NONE:
            self.grads[value] = contribution
            return 0
        node = self.sum_node(self.grads[value], contribution, value)
        self.graph.attach(node, RETURN)
        self.grads[value] = self.graph.node_recs[node].first_output
        return 0

    cdef int32_t sum_node(self, int32_t left, int32_t right, int32_t value) except -1:
        cdef Graph graph = self.graph
        cdef int32_t node = graph.new_node(ADD, 1)
        cdef int32_t producer = graph.value_recs[value].node
        if producer != PARAM and graph.node_recs[producer].stage == 0:
            graph.node_recs[node].origin = producer
        graph.push_input(node, left)
        graph.push_input(node, right)
        graph.new_value(node, 1, type_of(graph, value))
        return node

    cdef int32_t add_slot(
            self, int32_t slot, int32_t grad, int32_t value, int32_t last) except -1:
        """The temporary's own cotangent joins right after the sum of the others is complete."""
        cdef Graph graph = self.graph
        cdef int32_t producer = graph.value_recs[grad].node
        cdef int32_t node = self.sum_node(slot, grad, value)
        if producer == PARAM:
            producer = last                      # the beginning of stage 1
        graph.attach(node, graph.node_recs[producer].next)
        return graph.node_recs[node].first_output

    cdef int32_t zeros(self, int32_t value) except -1:
        """A structural zero that df returns: a constant; zeros_like where no shape is known."""
        cdef Graph graph = self.graph
        cdef object type = type_of(graph, value)
        cdef int32_t node
        if is_static(graph, value):
            attributes = zero_attributes(type)
            node = graph.build("constant", (), None, None, None, attributes, None)
        else:
            operand = (value_handle(graph, value),)
            node = graph.build("zeros_like", operand, None, None, None, {}, None)
        graph.attach(node, RETURN)
        return graph.node_recs[node].first_output

    cdef int32_t ones(self, int32_t value) except -1:
        cdef Graph graph = self.graph
        cdef object type = type_of(graph, value)
        cdef dict attributes = {"value": 1, "dtype": type.dtype, "shape": type.shape or None}
        cdef int32_t node = graph.build("constant", (), None, None, None, attributes, None)
        graph.attach(node, RETURN)
        return graph.node_recs[node].first_output

    def take_results(self):
        """Return the values that are the graph's outputs, and leave it without any.

        Everything is at stage 0 then.
        """
        cdef Graph graph = self.graph
        cdef tuple found = graph.outputs
        cdef NodeRec *rec = &graph.node_recs[RETURN]
        cdef int32_t node, value, i
        for i in range(rec.input_count):
            graph.unlink(rec.first_input + i)
        rec.input_count = 0
        graph.free_run(RETURN)
        node = rec.next
        while node != RETURN:
            graph.node_recs[node].stage = 0
            value = graph.node_recs[node].first_output
            while value != NONE:
                graph.value_recs[value].stage = 0
                value = graph.value_recs[value].next_output
            node = graph.node_recs[node].next
        return found

    def split(self, int32_t outputs):
        """Return (f, df, captures as (value is input, offset)) from the joint graph."""
        return split_joint(
            self.graph, self.captured, outputs, outputs + <int32_t>len(self.temporaries))


cdef object bit(int32_t number):
    """1 << number as Python has it: a node may have more operands than a C integer bits."""
    return 1 << number if number < 31 else (<object>1) << number


cdef bint carries_cotangent(Graph graph, int32_t value) except -1:
    cdef PyObject *type = graph.value_recs[value].type
    return type == NULL or (<object>type).is_inexact


def located(error, node):
    """The same error with the node and the user's line in its message."""
    where = "" if node.location is None else f" at {node.location[0]}:{node.location[1]}"
    first, newline, rest = str(error).partition("\n")
    made = NotDifferentiable(f"{first}: `{node}`{where}{newline}{rest}")
    made.op = node.kind
    made.hint = error.hint
    made.argument = error.argument
    made.location = node.location
    return made
