"""C side of the emitter; see _emitter.pyx."""

from stagedad.plan._step cimport Origin
from stagedad.plan._view cimport View


cdef class Emitter:
    """The steps of a plan in the making, and the constants they read."""
    cdef public list steps
    cdef readonly object pool       # bytearray of the plan's own constants
    cdef public Origin origin       # the node being lowered: every step emitted carries it
    # What is zero but for a few entries -> a function that adds those to a view.
    cdef readonly dict scattered
    cdef dict pooled

    cpdef View call(self, object kernel, object reads, View write)
    cdef View constant(self, object dtype, bytes data)
    cpdef View cast(self, View view, object dtype)
