from libc.stdint cimport int32_t

from stagedad.ir._graph cimport Graph

cdef tuple split_joint(Graph graph, list captured, int32_t outputs, int32_t all_outputs)
