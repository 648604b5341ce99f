# A derivative rule, specialised and recorded: what the reverse sweep instantiates in one go.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

from stagedad.ir._graph cimport Graph


# One node to create.  Operands and results are slots: the forward node's operands, then its
# outputs, then the cotangents of its outputs, then the outputs of the steps in order.
cdef struct Step:
    int32_t kind
    int32_t operand_start
    int32_t operand_count
    int32_t output_count
    int32_t output_start     # into the list of types


cdef class Template:
    cdef Step *steps
    cdef int32_t step_count
    cdef int32_t *operands
    cdef readonly int32_t slot_count
    cdef readonly tuple attributes       # one dict or None a step
    cdef public tuple forwards           # names of those that come from the node itself
    cdef readonly tuple types            # of the steps' outputs
    cdef readonly tuple results          # by operand: a slot, or NONE for a structural zero
    cdef readonly tuple reads            # slots of operands and outputs whose value is read
    cdef int32_t *result_slots
    cdef int32_t result_count
    cdef int32_t *read_slots
    cdef int32_t read_count

    cdef dict forwarded(self, dict recorded, dict given)
    cdef int instantiate(self, Graph graph, int32_t origin, int32_t *slots) except -1
