"""The call of a transformed function whose signature is known, without Python's pytrees."""

from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp

import numpy as np
cimport numpy as cnp

from stagedad.front._reach cimport Reach

cnp.import_array()

cdef extern from "Python.h":
    object PyObject_Call(object function, object args, PyObject *kwargs)

cdef extern from "numpy/arrayobject.h":
    object PyArray_ToScalar(void *data, cnp.ndarray array)

cdef object float64 = np.float64
cdef object DOUBLE = np.dtype(np.float64)
cdef object ARRAY = "array"
cdef object WEAK = "weak"
cdef object SCALAR = "scalar"
cdef dict KINDS = {"array": ARRAY, "scalar": SCALAR, "weak": WEAK}


cdef class Shortcut:
    """One signature of a transformed function, and what a call with it does.

    `leaves` has a TensorType and a kind for each leaf of the arguments: `array`, `scalar`
    (of NumPy) or `weak` (of Python); or None and the static value.  `arguments` and `result`
    are structures: the number of a leaf or output, or (container, keys, structures).
    """
    cdef tuple dtypes, kinds, statics
    cdef list dims                   # of each leaf, as bytes of npy_intp
    cdef list places                 # which input of the program each leaf is
    cdef tuple arguments             # structures of the positional arguments
    cdef object program, result
    cdef tuple is_scalar
    cdef Reach reach
    cdef Py_ssize_t count, inputs
    cdef bint is_flat                # every positional argument is an array

    def __init__(self, leaves, arguments, program, result, is_scalar, Reach reach not None):
        self.kinds = tuple([None if t is None else KINDS[kind] for t, kind in leaves])
        self.statics = tuple([kind for _, kind in leaves])
        self.dtypes = tuple([None if t is None else t.dtype for t, _ in leaves])
        self.dims = [None if t is None else np.array(t.shape, np.intp).tobytes()
                     for t, _ in leaves]
        self.places = []
        self.inputs = 0
        for type_, _ in leaves:
            self.places.append(self.inputs)
            self.inputs += type_ is not None
        self.arguments = tuple(arguments)
        self.count = len(self.arguments)
        self.is_flat = (
            self.arguments == tuple(range(self.count))
            and all([kind is ARRAY for kind in self.kinds])
        )
        self.program, self.result, self.reach = program, result, reach
        self.is_scalar = tuple(is_scalar)

    cdef tuple operands(self, tuple args):
        """Return the program's inputs, or None if `args` have another signature."""
        cdef tuple found
        cdef Py_ssize_t i
        if PyTuple_GET_SIZE(args) != self.count:
            return None
        if self.is_flat:
            for i in range(self.count):
                if not self.is_array(<object>PyTuple_GET_ITEM(args, i), i):
                    return None
            return args
        found = PyTuple_New(self.inputs)
        for i in range(self.count):
            if not self.collect(
                <object>PyTuple_GET_ITEM(self.arguments, i),
                <object>PyTuple_GET_ITEM(args, i),
                found,
            ):
                return None
        return found

    cdef bint is_array(self, object given, Py_ssize_t leaf) except -1:
        """Whether `given` is an array of the dtype and shape of this leaf."""
        cdef cnp.ndarray array
        cdef bytes dims
        if not cnp.PyArray_CheckExact(given) or \
                <object>PyTuple_GET_ITEM(self.kinds, leaf) is not ARRAY:
            return False
        array = <cnp.ndarray>given
        dims = <bytes>PyList_GET_ITEM(self.dims, leaf)
        return (
            <PyObject *>cnp.PyArray_DESCR(array) == PyTuple_GET_ITEM(self.dtypes, leaf)
            and cnp.PyArray_NDIM(array) * sizeof(cnp.npy_intp) == <size_t>len(dims)
            and memcmp(cnp.PyArray_DIMS(array), <char *>dims, len(dims)) == 0
        )

    cdef bint collect(self, object structure, object given, tuple found) except -1:
        """Put the leaves of `given` into `found`; whether structure and leaves are the same."""
        cdef object kind, keys
        cdef tuple children
        cdef Py_ssize_t i, position
        cdef PyObject *key
        cdef PyObject *item
        if type(structure) is int:
            return self.collect_leaf(structure, given, found)
        kind, keys, children = <tuple>structure
        if type(given) is not kind:
            return False
        if kind is tuple:
            if PyTuple_GET_SIZE(given) != PyTuple_GET_SIZE(children):
                return False
            for i in range(PyTuple_GET_SIZE(children)):
                if not self.collect(children[i], <object>PyTuple_GET_ITEM(given, i), found):
                    return False
        elif kind is list:
            for i in range(PyTuple_GET_SIZE(children)):
                # The list is looked at anew each time: another thread may change it.
                if PyList_GET_SIZE(given) != PyTuple_GET_SIZE(children):
                    return False
                if not self.collect(children[i], <object>PyList_GET_ITEM(given, i), found):
                    return False
            return PyList_GET_SIZE(given) == PyTuple_GET_SIZE(children)
        elif kind is dict:
            if PyDict_Size(given) != PyTuple_GET_SIZE(children):
                return False
            position = 0
            for i in range(PyTuple_GET_SIZE(children)):
                if not PyDict_Next(given, &position, &key, &item):
                    return False
                if not same_key(<object>key, <object>PyTuple_GET_ITEM(keys, i)):
                    return False
                if not self.collect(children[i], <object>item, found):
                    return False
        return True

    cdef bint collect_leaf(self, Py_ssize_t leaf, object given, tuple found) except -1:
        cdef object kind = <object>PyTuple_GET_ITEM(self.kinds, leaf)
        cdef cnp.ndarray array
        if kind is None:
            return given is <object>PyTuple_GET_ITEM(self.statics, leaf)
        if kind is ARRAY:
            if not self.is_array(given, leaf):
                return False
            array = <cnp.ndarray>given
        else:
            if PyTuple_GET_ITEM(self.dtypes, leaf) != <PyObject *>DOUBLE or not (
                PyFloat_CheckExact(given) if kind is WEAK else type(given) is float64
            ):
                return False
            array = cnp.PyArray_SimpleNew(0, NULL, cnp.NPY_FLOAT64)
            (<double *>cnp.PyArray_DATA(array))[0] = PyFloat_AS_DOUBLE(given)
        Py_INCREF(array)
        PyTuple_SET_ITEM(found, <Py_ssize_t>self.places[leaf], array)
        return True

    cdef object structured(self, object structure, tuple outputs):
        """Return the outputs in the structure of the result."""
        cdef cnp.ndarray array
        cdef object kind, keys
        cdef tuple children
        cdef list parts
        if type(structure) is int:
            array = <cnp.ndarray>outputs[structure]
            if self.is_scalar[structure]:
                return PyArray_ToScalar(cnp.PyArray_DATA(array), array)
            return array
        kind, keys, children = <tuple>structure
        if kind is NONE:
            return None
        parts = [self.structured(child, outputs) for child in children]
        if kind is list:
            return parts
        if kind is tuple:
            return tuple(parts)
        return dict(zip(keys, parts))


cdef bint same_key(object given, object wanted) except -1:
    """Whether two keys are the same; False also where only slower code can say."""
    if given is wanted:
        return True
    if type(given) is str:
        return type(wanted) is str and given == wanted
    return type(given) is int and type(wanted) is int and given == wanted


cdef object NONE = type(None)


cdef class Caller:
    """Base of transformed functions: takes the shortcut of the last signature if it fits.

    A subclass has `_call(args, kwargs)`, which does what there is to do otherwise.
    """
    cdef public object _shortcut
    cdef public Py_ssize_t _hits
    cdef dict __dict__
    cdef object __weakref__

    def __call__(self, /, *args, **kwargs):
        cdef Shortcut shortcut
        cdef tuple operands
        if self._shortcut is not None and not kwargs:
            shortcut = <Shortcut>self._shortcut
            operands = shortcut.operands(args)
            if operands is not None and shortcut.reach.unchanged():
                self._hits += 1
                return shortcut.structured(
                    shortcut.result, <tuple?>PyObject_Call(shortcut.program, operands, NULL)
                )
        return self._call(args, kwargs)
