"""C side of programs; see _program.pyx."""

from cpython.ref cimport PyObject

from stagedad.run._interpreter cimport Code, Operand
from stagedad.run.calls cimport vectorcallfunc


cdef class Program:
    cdef vectorcallfunc vectorcall
    cdef readonly object specialisations
    cdef Py_ssize_t inputs      # of the graph
    cdef tuple held             # arrays of its constants, passed as further inputs
    cdef Code last
    cdef list recent
    cdef Py_ssize_t hits
    cdef object __weakref__

    cdef Code current(self)
    cdef int check_count(self, Py_ssize_t count) except -1
    cdef Code find(self, PyObject *const *arrays)
    cdef tuple select(self, tuple arrays)
    cdef tuple chosen(self, tuple arrays)
    cdef int use(self, Code code) except -1


cdef tuple call_mixed(
    Program self, const Operand *operands, Py_ssize_t count, const unsigned char *scalar
)
