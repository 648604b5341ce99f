# Kinds are interned once a process; a node record holds the index.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

cdef int32_t kind_index(str kind) except -1
cdef str kind_name(int32_t kind)
cdef dict attribute_defaults(int32_t kind)
cdef dict own_attributes(int32_t kind, dict attributes)
cdef tuple infer_types(int32_t kind, tuple types, dict attributes)
cdef tuple attribute_key(dict attributes)
cdef tuple quick_types(int32_t kind, int32_t count, PyObject **operands)
