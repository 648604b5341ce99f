"""Recorded derivative rules and their instantiation."""

import cython

from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

from stagedad.ir._graph cimport Graph
from stagedad.ir._kinds cimport kind_index
from stagedad.ir._slabs cimport RETURN


cdef int32_t *int_array(object numbers) except NULL:
    cdef Py_ssize_t i
    cdef int32_t *array = <int32_t *>malloc((len(numbers) + 1) * sizeof(int32_t))
    if array == NULL:
        raise MemoryError("template: out of memory")
    for i in range(len(numbers)):
        array[i] = numbers[i]
    return array


@cython.final
cdef class Template:
    """The steps of a rule, ready to be cloned behind a forward node.

    `steps` is a sequence of (kind, operand slots, attributes or None, output types).
    """

    def __cinit__(self, int32_t first_slot, steps, results, reads):
        cdef Py_ssize_t i
        cdef list operands = []
        cdef list types = []
        self.step_count = <int32_t>len(steps)
        self.steps = <Step *>malloc((self.step_count + 1) * sizeof(Step))
        if self.steps == NULL:
            raise MemoryError("template: out of memory")
        for i, (kind, slots, _, outputs) in enumerate(steps):
            self.steps[i].kind = kind_index(kind)
            self.steps[i].operand_start = <int32_t>len(operands)
            self.steps[i].operand_count = <int32_t>len(slots)
            self.steps[i].output_start = <int32_t>len(types)
            self.steps[i].output_count = <int32_t>len(outputs)
            operands.extend(slots)
            types.extend(outputs)
        self.attributes = tuple([step[2] or None for step in steps])
        self.forwards = ()
        self.types = tuple(types)
        self.results = tuple(results)
        self.reads = tuple(reads)
        self.operands = int_array(operands)
        self.result_slots = int_array(self.results)
        self.result_count = <int32_t>len(self.results)
        self.read_slots = int_array(self.reads)
        self.read_count = <int32_t>len(self.reads)
        self.slot_count = first_slot + <int32_t>len(types)

    def __dealloc__(self):
        free(self.steps)
        free(self.operands)
        free(self.result_slots)
        free(self.read_slots)

    cdef int instantiate(self, Graph graph, int32_t origin, int32_t *slots) except -1:
        """Append the steps to `graph`; they take location and scope of the node `origin`.

        Their own origin is its index here: `_split` turns it into the id of a value of f.

        `slots` holds the values of the operands, outputs and cotangents; the steps' outputs are
        written behind them.
        """
        cdef int32_t i, k, node
        cdef int32_t next_slot = self.slot_count - <int32_t>len(self.types)
        cdef Step *step
        cdef PyObject *shared
        for i in range(self.step_count):
            step = &self.steps[i]
            node = graph.new_node(step.kind, graph.current_stage)
            graph.reserve_inputs(node, step.operand_count)
            for k in range(step.operand_count):
                graph.push_input(node, slots[self.operands[step.operand_start + k]])
            if self.forwards:
                graph.set_attributes(node, self.forwarded(
                    <dict>self.attributes[i], <dict>graph.node_recs[origin].attributes))
            elif self.attributes[i] is not None:
                graph.set_attributes(node, <dict>self.attributes[i])
            graph.node_recs[node].origin = origin
            shared = graph.node_recs[origin].location
            if shared != NULL:
                Py_INCREF(<object>shared)
                graph.node_recs[node].location = shared
            shared = graph.node_recs[origin].scope
            if shared != NULL:
                Py_INCREF(<object>shared)
                graph.node_recs[node].scope = shared
            for k in range(step.output_count):
                slots[next_slot] = graph.new_value(
                    node, graph.current_stage, self.types[step.output_start + k]
                )
                next_slot += 1
            graph.attach(node, RETURN)
        return 0

    cdef dict forwarded(self, dict recorded, dict given):
        """The attributes of a step, with those that the node itself has in their place."""
        cdef dict found = dict(recorded)
        for name in self.forwards:
            if name in found:
                found[name] = given[name]
        return found
