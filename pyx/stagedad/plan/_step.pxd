"""C side of steps; see _step.pyx."""


cdef class Origin:
    """The node that a step comes from, for messages and listings."""
    cdef readonly str op
    cdef readonly object node       # id of its first value; -1 of none
    cdef readonly object location   # (file, line) or None


cdef class Step:
    """One instruction, before and after its operands have places."""
    cdef public int kind
    cdef readonly Origin origin
    cdef readonly object kernel
    cdef readonly tuple operands    # inputs, then outputs
    cdef readonly Py_ssize_t inputs
    cdef public tuple dims          # what the loop is called with
    cdef public tuple strides
    # How many axes; of each, extent and one stride an operand.  What a reduction's loop
    # wants to know, see reduce.h.
    cdef readonly tuple outer
    cdef public tuple slots         # places of the operands
    cdef public bint donates        # the output may take the place of an input that dies here
    cdef public object function     # of an object call
    cdef public object problem      # from copies of the operands to the failed loop's exception
    cdef public Py_ssize_t count    # of a block: the steps that belong to it
    cdef public tuple moving        # of a block: slots that advance, each with its stride


cdef Origin make_origin(str op, object node, object location)
cdef Step make_step(
    int kind, Origin origin, object kernel, tuple operands, Py_ssize_t inputs, tuple dims,
    tuple strides, tuple outer
)
