from libc.stdint cimport int32_t, uint32_t

from stagedad.ir._slabs cimport Slabs


cdef class Graph(Slabs):
    cdef int32_t add_param(self, int32_t param, object type, object name) except -1
    cdef int place(self, int32_t node, int32_t block, uint32_t generation) except -1
    cdef object given(self, int32_t node)
    cdef int32_t build(self, str kind, tuple inputs, object outputs, object location,
                       object scope, dict attributes, tuple types) except -1


cdef Graph empty_graph()
cdef object checked_input(object type, object name)
