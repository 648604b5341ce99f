"""What the interpreter reads of an array, on borrowed pointers.

`numpy.ndarray` of the cimport would count a reference at every look.
"""

from cpython.ref cimport PyObject
from numpy cimport npy_intp


cdef extern from *:
    """
    #include <numpy/arrayobject.h>
    #define SAD_ARRAY(x) ((PyArrayObject *)(x))
    #define sad_is_array(x) (Py_TYPE(x) == &PyArray_Type)
    #define sad_data(x) PyArray_BYTES(SAD_ARRAY(x))
    #define sad_number(x) PyArray_TYPE(SAD_ARRAY(x))
    #define sad_ndim(x) PyArray_NDIM(SAD_ARRAY(x))
    #define sad_flags(x) PyArray_FLAGS(SAD_ARRAY(x))
    #define sad_is_native(x) PyArray_ISNOTSWAPPED(SAD_ARRAY(x))
    #define sad_shape(x) PyArray_DIMS(SAD_ARRAY(x))
    #define sad_strides(x) PyArray_STRIDES(SAD_ARRAY(x))
    #define sad_itemsize(x) PyArray_ITEMSIZE(SAD_ARRAY(x))
    """
    bint sad_is_array(PyObject *x) noexcept nogil      # itself, not a subclass
    char *sad_data(PyObject *x) noexcept nogil
    int sad_number(PyObject *x) noexcept nogil
    int sad_ndim(PyObject *x) noexcept nogil
    int sad_flags(PyObject *x) noexcept nogil
    bint sad_is_native(PyObject *x) noexcept nogil
    const npy_intp *sad_shape(PyObject *x) noexcept nogil
    const npy_intp *sad_strides(PyObject *x) noexcept nogil
    npy_intp sad_itemsize(PyObject *x) noexcept nogil
