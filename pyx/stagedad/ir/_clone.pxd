from libc.stdint cimport int32_t

from stagedad.ir._slabs cimport Slabs

cdef int32_t *value_map_for(Slabs source) except NULL
cdef int32_t clone_input(Slabs graph, Slabs source, int32_t value) except -1
cdef int32_t clone_node(
    Slabs graph, Slabs source, int32_t node, int32_t *value_map) except -1
cdef int32_t clone_shell(Slabs graph, Slabs source, int32_t node) except -1
cdef list outer_reads(Slabs graph, int32_t node)
cdef bint is_inside(Slabs graph, int32_t node, int32_t root) noexcept
cdef bint is_within(Slabs graph, int32_t node, int32_t block) noexcept
cdef int32_t used_outside(Slabs graph, int32_t block) noexcept
cdef int clone_outputs(
    Slabs graph, Slabs source, int32_t block, int32_t *value_map, int32_t into) except -1
cdef int clone_block(
    Slabs graph, Slabs source, int32_t block, int32_t *value_map) except -1
