"""Lowering: graph and argument layouts -> steps on views.

Walks the graph's records; what each kind becomes is said by the rules of
`plan.rule`, in Python.  A node that a rule turned into one elementwise step is
the pattern of all later nodes of its kind, attributes and operand types: those
are copied from it, which is how planning stays below a few microseconds a node.
"""

from libc.stdint cimport int32_t

import numpy as np

from stagedad.errors import KernelError, ShapeError
from stagedad.ir._kinds cimport attribute_defaults, infer_types, kind_name
from stagedad.ir._slabs cimport NONE, PARAM, RETURN, NodeRec, Slabs
from stagedad import ops
from stagedad.ops import REQUIRED
from stagedad.plan._emitter cimport Emitter
from stagedad.plan._step cimport Origin, Step, make_step
from stagedad.plan._view cimport Buffer, View, broadcast, fresh
from stagedad.plan import rule as rule_table
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


def lower(Slabs graph not None, layouts):
    """The steps of `graph` for arguments of `layouts`: its inputs, then `held_arrays`.

    Types are inferred anew from the layouts, so that an untyped graph is planned
    for what it gets; those written in the graph are never believed, since memory
    is laid out by them.

    Raises: ShapeError, DTypeError and others of `ops.infer`, with the node as a note.
    """
    cdef Emitter emitter = Emitter()
    cdef list views = [None] * graph.value_used
    cdef list types = [None] * graph.value_used
    cdef list arguments = [_argument(emitter, i, layout) for i, layout in enumerate(layouts)]
    cdef dict patterns = {}
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
        _lower_node(graph, node, emitter, views, types, patterns, held)
        node = graph.node_recs[node].next
    emitter.origin = Origin("return", -1, None)
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
    Slabs graph, int32_t node, Emitter emitter, list views, list types, dict patterns, held
) except -1:
    cdef NodeRec *rec = &graph.node_recs[node]
    cdef int32_t value = rec.first_output
    cdef int32_t index
    cdef Py_ssize_t i
    cdef Py_ssize_t before
    cdef list reads = []
    cdef list operand_types = []
    cdef tuple key
    cdef tuple found
    cdef tuple results
    cdef object attributes
    for i in range(rec.input_count):
        index = graph.use_recs[rec.first_input + i].value
        reads.append(views[index])
        operand_types.append(types[index])
    emitter.origin = Origin(
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
    key = (rec.kind, <size_t> rec.attributes, tuple(operand_types))
    found = patterns.get(key)
    if found is not None and _all_dense(reads):
        views[value] = _repeat(emitter, <Step> found[0], reads)
        types[value] = found[1]
        return 0
    try:
        own = None if rec.attributes == NULL else <object> rec.attributes
        results = infer_types(rec.kind, <tuple> key[2], <dict> own)
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
            patterns[key] = (emitter.steps[before], results[0])
    return 0


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


cdef bint _all_dense(list reads):
    for view in reads:
        if not (<View> view).dense:
            return False
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


cdef View _repeat(Emitter emitter, Step pattern, list reads):
    """Emit the step of `pattern` on other operands of the same types."""
    cdef View old = pattern.operands[len(reads)]
    cdef View made = fresh(old.dtype, old.shape)
    cdef Step step
    reads.append(made)
    step = make_step(
        CALL, emitter.origin, pattern.kernel, tuple(reads), pattern.inputs, pattern.dims,
        pattern.strides, ()
    )
    step.donates = True
    emitter.steps.append(step)
    return made


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
