"""Lowering: graph and argument layouts -> steps on views.

Walks the graph's records; what each kind becomes is said by the rules of
`plan.rule`, in Python.  A node that a rule turned into one elementwise step is
the pattern of all later nodes of its kind, attributes and operand types: those
are copied from it, which is how planning stays below a few microseconds a node.
"""

from cpython.ref cimport Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int32_t
from libc.string cimport memcmp, memset

import numpy as np

from stagedad.errors import KernelError, ShapeError
from stagedad.ir._clone cimport outer_reads
from stagedad.ir._handles cimport node_handle, value_handle
from stagedad.ir._kinds cimport attribute_defaults, infer_types, kind_name
from stagedad.ir._slabs cimport NONE, PARAM, RETURN, NodeRec, Slabs
from stagedad import ops
from stagedad.ops import REQUIRED
from stagedad.plan._emitter cimport Emitter
from stagedad.plan._step cimport Step, make_origin, make_step
from stagedad.plan._view cimport Buffer, View, broadcast, fresh, fresh_like
from stagedad.plan import control, rule as rule_table
from stagedad.plan.kernels import copy_kernel
from stagedad.types import TensorType

cdef dict table = ops.OPS
cdef dict rules = rule_table.RULES

cdef enum:
    # ORDER STEP, ORDER SPACE: as in stagedad/plan/step.py.
    CALL = 0
    ARENA = 0
    INPUT = 1
    OUTPUT = 2


cdef class Lowered:
    """Steps in order, the constants they read, and the views that are the program's outputs."""
    cdef readonly list steps
    cdef readonly bytes pool
    cdef readonly tuple outputs
    cdef readonly tuple types

    def __init__(self, list steps, bytes pool, tuple outputs, tuple types):
        self.steps = steps
        self.pool = pool
        self.outputs = outputs
        self.types = types


def lower(Slabs graph not None, layouts, plan_block):
    """The steps of `graph` for arguments of `layouts`: its inputs, then `held_arrays`.

    `plan_block` makes the plan of a graph and layouts: that of a block of a node.

    Types are inferred anew from the layouts, so that an untyped graph is planned
    for what it gets; those written in the graph are never believed, since memory
    is laid out by them.

    Raises: ShapeError, DTypeError and others of `ops.infer`, with the node as a note.
    """
    cdef Emitter emitter = Emitter()
    cdef list views = [None] * graph.value_used
    cdef list types = [None] * graph.value_used
    cdef list arguments = [_argument(emitter, i, layout) for i, layout in enumerate(layouts)]
    cdef Patterns patterns = Patterns()
    cdef object held
    cdef int32_t value = graph.node_recs[PARAM].first_output
    cdef int32_t node
    cdef Py_ssize_t i = 0
    cdef View view
    graph.check_usable()
    while value != NONE:
        view = arguments[i]
        views[value] = view
        types[value] = TensorType(view.dtype, view.shape)
        value = graph.value_recs[value].next_output
        i += 1
    held = iter(arguments[i:])
    node = graph.node_recs[RETURN].next
    while node != RETURN:
        if graph.node_recs[node].first_block != NONE:
            _lower_control(graph, node, emitter, views, types, held, plan_block)
        else:
            _lower_node(graph, node, emitter, views, types, patterns, held)
        node = graph.node_recs[node].next
    emitter.origin = make_origin("return", -1, None)
    outputs = [
        graph.use_recs[graph.node_recs[RETURN].first_input + i].value
        for i in range(graph.node_recs[RETURN].input_count)
    ]
    placed = _place_outputs(emitter, [views[i] for i in outputs])
    return Lowered(
        emitter.steps, bytes(emitter.pool), placed, tuple([types[i] for i in outputs])
    )


cdef View _argument(Emitter emitter, Py_ssize_t index, layout):
    cdef View view = View(
        Buffer(INPUT, index, 0), layout.dtype, layout.shape, layout.strides
    )
    if layout.aligned:
        return view
    return emitter.call(copy_kernel(layout.dtype), (view,), fresh(layout.dtype, layout.shape))


cdef int _lower_node(
    Slabs graph, int32_t node, Emitter emitter, list views, list types, Patterns patterns, held
) except -1:
    cdef NodeRec *rec = &graph.node_recs[node]
    cdef int32_t value = rec.first_output
    cdef int32_t index
    cdef Py_ssize_t i
    cdef Py_ssize_t before
    cdef list reads
    cdef list operand_types
    cdef tuple results
    cdef object attributes
    emitter.origin = make_origin(
        kind_name(rec.kind),
        graph.value_recs[value].id if value != NONE else -1,
        None if rec.location == NULL else <object> rec.location,
    )
    if (
        emitter.scattered and rec.attributes == NULL and emitter.origin.op == "add"
        and rec.input_count == 2 and rec.output_count == 1
    ):
        if _accumulate(graph, node, emitter, views, types):
            return 0
    if patterns.repeat(graph, rec, emitter, views, types):
        return 0
    reads = []
    operand_types = []
    for i in range(rec.input_count):
        index = graph.use_recs[rec.first_input + i].value
        reads.append(views[index])
        operand_types.append(types[index])
    try:
        own = None if rec.attributes == NULL else <object> rec.attributes
        results = infer_types(rec.kind, tuple(operand_types), <dict> own)
        for result in results:
            if result is None or not result.is_static:
                raise KernelError(f"{emitter.origin.op}: the type of a result is unknown")
        attributes = _every_attribute(rec.kind, <dict> own)
        before = len(emitter.steps)
        made = _apply_rule(emitter, attributes, reads, results, held)
        if len(made) != rec.output_count or len(results) != rec.output_count:
            raise KernelError(
                f"{emitter.origin.op}: {rec.output_count} outputs for {len(made)} results"
            )
    except Exception as error:
        error.add_note(f"in {emitter.origin}")
        raise
    for item, result in zip(made, results):
        views[value] = item
        types[value] = result
        value = graph.value_recs[value].next_output
    if len(emitter.steps) == before + 1 and len(made) == 1:
        if _is_pattern(<Step> emitter.steps[before], reads, <View?> made[0]):
            patterns.add(rec, operand_types, <Step> emitter.steps[before], results[0])
    return 0


cdef int _lower_control(
    Slabs graph, int32_t node, Emitter emitter, list views, list types, held, plan_block
) except -1:
    """Lower a node with blocks to one step that runs their plans."""
    cdef NodeRec *rec = &graph.node_recs[node]
    cdef int32_t value = rec.first_output
    cdef list outer = outer_reads(graph, node)
    cdef list operands = [
        graph.use_recs[rec.first_input + i].value for i in range(rec.input_count)
    ]
    cdef View view
    emitter.origin = make_origin(
        kind_name(rec.kind),
        graph.value_recs[value].id if value != NONE else -1,
        None if rec.location == NULL else <object> rec.location,
    )
    try:
        made = control.lower_control(
            emitter,
            node_handle(graph, node),
            tuple([value_handle(graph, index) for index in outer]),
            [views[index] for index in operands],
            [views[index] for index in outer],
            held,
            plan_block,
        )
    except Exception as error:
        error.add_note(f"in {emitter.origin}")
        raise
    for item in made:
        view = item
        views[value] = view
        types[value] = TensorType(view.dtype, view.shape)
        value = graph.value_recs[value].next_output
    return 0


cdef enum:
    PATTERNS = 512
    READS = 3            # a pattern's most operands


cdef struct Pattern:
    PyObject *step       # kept alive by the steps of the emitter, as the types are by `types`
    PyObject *made       # type of the result
    PyObject *attributes
    PyObject *types[READS]
    int32_t kind
    int32_t count


cdef class Patterns:
    """Nodes that became one elementwise step on dense views, by kind and operand types.

    A node like one of them gets the same step on its own operands; no rule is asked.
    """
    cdef Pattern table[PATTERNS]

    def __cinit__(self):
        memset(self.table, 0, sizeof(self.table))

    cdef Pattern *place(self, const Pattern *key) noexcept:
        cdef size_t mixed = <size_t> key.kind * 31 + (<size_t> key.attributes >> 4)
        cdef int32_t i
        for i in range(key.count):
            mixed = mixed * 31 + (<size_t> key.types[i] >> 4)
        return &self.table[(mixed ^ mixed >> 9) % PATTERNS]

    cdef int add(self, const NodeRec *rec, list types, Step step, object made) except -1:
        cdef Pattern key
        cdef int32_t i
        if rec.input_count > READS:
            return 0
        memset(&key, 0, sizeof(Pattern))
        key.kind, key.count, key.attributes = rec.kind, rec.input_count, rec.attributes
        for i in range(rec.input_count):
            key.types[i] = <PyObject *> types[i]
        key.step, key.made = <PyObject *> step, <PyObject *> made
        self.place(&key)[0] = key
        return 0

    cdef bint repeat(
        self, Slabs graph, const NodeRec *rec, Emitter emitter, list views, list types
    ) except -1:
        """Emit the step of the pattern that the node fits; whether there was one."""
        cdef Pattern key
        cdef Pattern *place
        cdef Step pattern
        cdef Step step
        cdef View made
        cdef tuple operands
        cdef int32_t i
        cdef int32_t value
        if rec.input_count > READS or rec.output_count != 1:
            return False
        memset(&key, 0, sizeof(Pattern))
        key.kind, key.count, key.attributes = rec.kind, rec.input_count, rec.attributes
        for i in range(rec.input_count):
            value = graph.use_recs[rec.first_input + i].value
            if not (<View> views[value]).dense:
                return False
            key.types[i] = <PyObject *> types[value]
        place = self.place(&key)
        if (
            place.step == NULL or place.kind != key.kind or place.count != key.count
            or place.attributes != key.attributes
            or memcmp(place.types, key.types, sizeof(key.types)) != 0
        ):
            return False
        pattern = <Step> place.step
        made = fresh_like(<View> pattern.operands[rec.input_count])
        operands = PyTuple_New(rec.input_count + 1)
        for i in range(rec.input_count):
            view = views[graph.use_recs[rec.first_input + i].value]
            Py_INCREF(view)
            PyTuple_SET_ITEM(operands, i, view)
        Py_INCREF(made)
        PyTuple_SET_ITEM(operands, rec.input_count, made)
        step = make_step(
            CALL, emitter.origin, pattern.kernel, operands, pattern.inputs, pattern.dims,
            pattern.strides, ()
        )
        step.donates = True
        emitter.steps.append(step)
        value = rec.first_output
        views[value] = made
        types[value] = <object> place.made
        return True


cdef bint _accumulate(
    Slabs graph, int32_t node, Emitter emitter, list views, list types
) except -1:
    """Lower add(total, scattered) to a copy of the total and additions of the few entries.

    Mostly nothing else reads the total, and then there is no copy (Note [writing in
    place]): so the cotangents of n reads of one array cost n additions, not n arrays.
    """
    cdef int32_t first = graph.node_recs[node].first_input
    cdef int32_t total = graph.use_recs[first].value
    cdef int32_t part = graph.use_recs[first + 1].value
    cdef int32_t value = graph.node_recs[node].first_output
    cdef View view
    if views[part] not in emitter.scattered:
        total, part = part, total
        if views[part] not in emitter.scattered:
            return False
    if types[total] is not types[part] or graph.value_recs[part].use_count != 1:
        return False
    view = views[total]
    view = emitter.copy(view, fresh(view.dtype, view.shape))
    emitter.scattered[views[part]](view)
    views[value] = view
    types[value] = types[total]
    return True


cdef bint _is_pattern(Step step, list reads, View made):
    """Whether the step is one loop from exactly `reads` to all of `made`, everything dense."""
    cdef Py_ssize_t i
    cdef tuple operands = step.operands
    if step.kind != CALL or not step.donates or len(operands) != len(reads) + 1:
        return False
    for i in range(len(reads)):
        if operands[i] is not reads[i] or not (<View> reads[i]).dense:
            return False
    return operands[len(reads)] is made and made.dense and made.offset == 0


cdef dict _every_attribute(int32_t kind, dict own):
    """All attributes of a node, defaults included."""
    cdef dict defaults = attribute_defaults(kind)
    cdef dict every = {}
    if defaults is not None:
        for name, value in defaults.items():
            if value is not REQUIRED:
                every[name] = value
    if own is not None:
        every.update(own)
    return every


cdef object _apply_rule(
    Emitter emitter, dict attributes, list reads, tuple results, held
):
    cdef str kind = emitter.origin.op
    rule = rules.get(kind)
    if rule is not None:
        return rule(emitter, reads, attributes, results)
    if kind == "constant":
        return (_constant(emitter, attributes, results[0], held),)
    op = table[kind]
    if op.ufunc is not None and len(results) == 1 and "elementwise" in op.traits:
        return (emitter.elementwise(op.ufunc, reads, results[0]),)
    return emitter.object_call(kind, reads, attributes, results)


cdef View _constant(Emitter emitter, dict attributes, result, held):
    cdef View view
    if isinstance(attributes["value"], np.ndarray):
        view = emitter.cast(next(held), result.dtype)
        if view.shape != result.shape and attributes["shape"] is None:
            problem = "the array changed its shape"
            raise ShapeError("constant", problem, result.shape, view.shape)
    else:
        view = emitter.number(attributes["value"], result.dtype)
    return broadcast(view, result.shape)


cdef tuple _place_outputs(Emitter emitter, list views):
    """Views in output buffers, one each: what was computed there, or a copy.

    Invariant [outputs are fresh]: an output shares memory with nothing else.
    """
    cdef list placed = []
    cdef View view
    cdef View write
    cdef Py_ssize_t i
    for i in range(len(views)):
        view = views[i]
        if view.is_whole and view.buffer.space == ARENA and not view.buffer.claimed:
            view.buffer.claimed = True
            placed.append(view)
        else:
            write = fresh(view.dtype, view.shape, OUTPUT, i)
            placed.append(emitter.copy(view, write))
    # Spaces change only now: until here a claimed buffer was one of the temporaries.
    for i in range(len(placed)):
        view = placed[i]
        view.buffer.space = OUTPUT
        view.buffer.index = i
    return tuple(placed)
