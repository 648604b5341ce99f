"""CPython's calling convention without tuples, and the items of a tuple."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stddef cimport size_t

cdef extern from *:
    """
    /* Make calls of `type` go through the vectorcall pointer at `offset`. */
    static inline void sad_enable_vectorcall(PyTypeObject *type, Py_ssize_t offset) {
      type->tp_vectorcall_offset = offset;
      type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
      PyType_Modified(type);
    }
    """
    void sad_enable_vectorcall(PyTypeObject *type, Py_ssize_t offset)

cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(
        PyObject *callee, PyObject *const *args, size_t nargsf, PyObject *kwnames
    )
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf)
    ctypedef struct PyTupleObject:
        PyObject *ob_item[1]


cdef inline PyObject *const *tuple_items(tuple items) noexcept:
    """The items, borrowed: as long as the tuple lives."""
    return <PyObject *const *> (<PyTupleObject *> <PyObject *> items).ob_item
