"""Read again, at each call, what a traced function can see besides its arguments."""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memcmp

import numpy as np
cimport numpy as cnp

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyCell_GET(object cell)
    PyObject *PyFunction_GET_CODE(object function)
    PyObject *PyFunction_GET_DEFAULTS(object function)
    PyObject *PyFunction_GET_KW_DEFAULTS(object function)

cdef object MISSING = object()
cdef frozenset BY_VALUE = frozenset({int, float, complex, bool, str, bytes})
cdef type generic = np.generic


cdef class Reach:
    """A list of places and what each held when a function was traced.

    Numbers and strings are compared by value, everything else by identity, arrays by
    their dtype and shape besides; the contents of arrays only where `watch` was asked to.
    `generators` are NumPy's random generators among what was found.
    """

    def __cinit__(self):
        self.containers, self.keys, self.values = [], [], []
        self.kinds = NULL
        self.count = 0
        self.arrays = {}
        self.generators = []

    def __dealloc__(self):
        PyMem_Free(self.kinds)

    def __len__(self):
        return self.count

    def add(self, int where, container, key=None):
        """Record a place of kind `where` (see _reach.pxd); return what it holds now."""
        cdef object value
        cdef uint8_t *kinds
        if where == CONTENTS:
            value = np.array(container, order="K", copy=True)
        elif where == LAYOUT:
            value, key = container.dtype, lengths(container)
        elif where == CODE:
            value = (container.__code__, container.__defaults__, container.__kwdefaults__)
        else:
            value = self.read(where, container, key)
        kinds = <uint8_t *>PyMem_Realloc(self.kinds, self.count + 1)
        if kinds == NULL:
            raise MemoryError()
        self.kinds = kinds
        self.kinds[self.count] = <uint8_t>where
        self.containers.append(container)
        self.keys.append(key)
        self.values.append(value)
        self.count += 1
        return None if value is MISSING else value

    def reached(self, array):
        """Note that `array` is closed over; another shape or dtype counts as a change."""
        if id(array) not in self.arrays:
            self.arrays[id(array)] = array
            self.add(LAYOUT, array)

    def places(self):
        """Return (kind of place, container, key, what it held) of every place."""
        return [
            (self.kinds[i], self.containers[i], self.keys[i], self.values[i])
            for i in range(self.count)
        ]

    def holds(self, array):
        """Whether `array` is closed over."""
        return id(array) in self.arrays

    def closed_over(self):
        """Return the arrays that are closed over."""
        return list(self.arrays.values())

    def watch(self, array):
        """Count a change of the contents of `array` as a change."""
        self.add(CONTENTS, array)

    cdef object read(self, int where, object container, object key):
        cdef PyObject *found = NULL
        if where == CELL:
            found = PyCell_GET(container)
        elif where == ENTRY:
            found = PyDict_GetItemWithError(container, key)
        elif where == ITEM:
            if <Py_ssize_t>key < PyList_GET_SIZE(container):
                return <object>PyList_GET_ITEM(container, <Py_ssize_t>key)
        elif where == LENGTH:
            return len(container)
        elif where == ATTRIBUTE:
            return getattr(container, key, MISSING)
        return MISSING if found == NULL else <object>found

    cpdef bint unchanged(self) except -1:
        """Whether every place holds what it held.  Cost: about 10 ns a place."""
        cdef Py_ssize_t i
        cdef int where
        cdef object container, value, now
        cdef PyObject *found
        for i in range(self.count):
            where = self.kinds[i]
            container = <object>PyList_GET_ITEM(self.containers, i)
            value = <object>PyList_GET_ITEM(self.values, i)
            if where == CODE:
                if (
                    PyFunction_GET_CODE(container) != <PyObject *>(<tuple>value)[0]
                    or not same(PyFunction_GET_DEFAULTS(container), (<tuple>value)[1])
                    or not same(PyFunction_GET_KW_DEFAULTS(container), (<tuple>value)[2])
                ):
                    return False
                continue
            if where == LAYOUT:
                if not same_layout(container, value, <object>PyList_GET_ITEM(self.keys, i)):
                    return False
                continue
            if where == CONTENTS:
                if not same_contents(container, value):
                    return False
                continue
            if where == CELL:
                found = PyCell_GET(container)
                if found == <PyObject *>value:
                    continue
                now = MISSING if found == NULL else <object>found
            else:
                now = self.read(where, container, <object>PyList_GET_ITEM(self.keys, i))
                if now is value:
                    continue
            if not equal_by_value(value, now):
                return False
        return True


cdef bint same(PyObject *now, object then) noexcept:
    return now == <PyObject *>then or (now == NULL and then is None)


cdef bint equal_by_value(object then, object now) except -1:
    """Whether two objects are the same number or string."""
    cdef type kind = type(then)
    if type(now) is not kind:
        return False
    if kind in BY_VALUE:
        if (kind is float and then == 0) or kind is complex:
            return repr(then) == repr(now)  # zeros have signs
        return then == now or (then != then and now != now)
    if issubclass(kind, generic):
        return then.dtype == now.dtype and then.tobytes() == now.tobytes()
    return False


cdef bytes lengths(cnp.ndarray array):
    return (<char *>cnp.PyArray_DIMS(array))[:cnp.PyArray_NDIM(array) * sizeof(cnp.npy_intp)]


cdef bint same_layout(cnp.ndarray now, object dtype, bytes dims) noexcept:
    """Whether an array still has the dtype and shape it had: `w.shape = ...` keeps identity."""
    return (
        <PyObject *>cnp.PyArray_DESCR(now) == <PyObject *>dtype
        and cnp.PyArray_NDIM(now) * sizeof(cnp.npy_intp) == <size_t>len(dims)
        and (not dims or memcmp(cnp.PyArray_DIMS(now), <char *>dims, len(dims)) == 0)
    )


cdef bint same_contents(cnp.ndarray now, cnp.ndarray then) except -1:
    cdef cnp.npy_intp size
    if cnp.PyArray_IS_C_CONTIGUOUS(now) and cnp.PyArray_IS_C_CONTIGUOUS(then):
        size = cnp.PyArray_NBYTES(now)
        return (
            size == cnp.PyArray_NBYTES(then)
            and memcmp(cnp.PyArray_DATA(now), cnp.PyArray_DATA(then), size) == 0
        )
    return now.shape == then.shape and now.tobytes() == then.tobytes()
