"""C side of the floating-point policy; see _errstate.pyx."""

cdef extern from "stagedad/run/flags.h" nogil:
    int sad_fp_flags() noexcept
    void sad_fp_clear() noexcept
    void sad_fp_raise(int flags) noexcept


cdef int watched() except -1
cdef int numpy_bits(int flags) noexcept
