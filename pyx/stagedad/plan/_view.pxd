"""C side of views and buffers; see _view.pyx."""


cdef class Buffer:
    """Memory that is written once and then read, in one of the spaces of step.py."""
    cdef public int space
    cdef public Py_ssize_t index    # which input or output; a temporary's: -1 until placed
    cdef public Py_ssize_t nbytes
    cdef public Py_ssize_t place    # byte offset in the arena
    cdef public Py_ssize_t first    # the steps between which it holds its value
    cdef public Py_ssize_t last
    cdef public bint claimed        # an output of the program was put here
    cdef public bint donated        # another took over its place in the step where it dies
    cdef bint needed                # something that an output needs reads it
    cdef public bint local          # it lives within one block and is a block's length long


cdef class View:
    """A strided array in a buffer.  `dense` means C-contiguous."""
    cdef readonly Buffer buffer
    cdef readonly object dtype
    cdef readonly Py_ssize_t offset
    cdef readonly Py_ssize_t itemsize
    cdef readonly tuple shape
    cdef readonly object size       # any int: a view may be larger than memory
    cdef readonly bint dense
    cdef tuple given_strides        # None: those of a dense array

    cdef tuple get_strides(self)
    cpdef bint covers_same(self, View other)


cdef View fresh_like(View view)
cdef View dense_view(Buffer buffer, object dtype, tuple shape, Py_ssize_t offset)
cpdef View fresh(object dtype, tuple shape, int space=*, Py_ssize_t index=*)
cpdef View broadcast(View view, tuple shape)
cpdef tuple loop_axes(tuple shape, list strides, list itemsizes, bint any_inner=*)
