# Handles: (graph, index, generation), made on demand; stale once what they name is destroyed.

from libc.stdint cimport int32_t, uint32_t

from stagedad.ir._slabs cimport Slabs


cdef class Value:
    cdef readonly Slabs graph
    cdef int32_t index
    cdef uint32_t generation
    cdef object __weakref__
    cdef int32_t live(self) except -1
    cdef int32_t editable(self) except -1


cdef class Node:
    cdef readonly Slabs graph
    cdef int32_t index
    cdef uint32_t generation
    cdef object __weakref__
    cdef int32_t live(self) except -1
    cdef int32_t editable(self) except -1


cdef Node node_handle(Slabs graph, int32_t index)
cdef Value value_handle(Slabs graph, int32_t index)
cdef tuple output_handles(Slabs graph, int32_t node)
cdef tuple input_handles(Slabs graph, int32_t node)
cdef int32_t own_value(Slabs graph, Value value) except -1
cdef int32_t own_node(Slabs graph, Node node) except -1
cdef int attach_checked(Slabs graph, Node node, int32_t before) except -1
