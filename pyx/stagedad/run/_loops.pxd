"""C side of the strided loops; see _loops.pyx."""

from numpy cimport npy_intp


cdef extern from "stagedad/run/loops.h" nogil:
    # What NumPy's loops and ours have in common: 0 on success.
    ctypedef int (*sad_loop)(
        void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
    ) noexcept nogil

    ctypedef struct sad_kernel:
        sad_loop loop
        void *context
        void *auxdata


cdef class Loop:
    """A typed strided loop and everything that must outlive its callers.

    The context of a NumPy loop lives inside the capsule that gave it out, so
    whoever keeps `kernel` keeps the Loop.
    """
    cdef sad_kernel kernel
    cdef sad_kernel wrapped     # what `kernel` calls if that is a loop around another
    cdef object owner           # the capsule, trampoline or inner Loop behind `kernel`
    cdef readonly bint needs_gil
    cdef readonly str name


cpdef Loop native(object kernel)
cdef object wrap(
    char *data, int ndim, const npy_intp *shape, const npy_intp *strides, int number
)
