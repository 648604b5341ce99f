"""The call of a transformed function whose signature is known, without Python's pytrees.

A signature is a list of parts in the order in which a walk over the arguments meets
them: containers, arrays, numbers, static values.  The walk compares classes, types and
shapes, and leaves the program's inputs behind.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.complex cimport PyComplex_CheckExact
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp

import numpy as np
cimport numpy as cnp

from stagedad.front._reach cimport Reach
from stagedad.run._interpreter cimport Operand
from stagedad.run._program cimport Program, call_mixed
from stagedad.run.calls cimport PyVectorcall_NARGS, sad_enable_vectorcall, vectorcallfunc

cnp.import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    bint PyUnicode_CheckExact(object text)
    int PyUnicode_Compare(object left, object right) except? -1

cdef extern from "numpy/arrayobject.h":
    void PyArray_ScalarAsCtype(object scalar, void *data)

cdef enum:
    # Leaves.
    ARRAY = 0
    FLOAT = 1
    INT = 2
    COMPLEX = 3
    SCALAR = 4       # of NumPy
    STATIC = 5       # the same object
    TEXT = 6         # an equal string
    # Containers.
    TUPLE = 7        # or a named tuple: of exactly this class
    LIST = 8
    DICT = 9
    NONE = 10

    FEW = 32         # inputs that are passed without allocating


cdef struct Part:
    int kind
    int count            # of a container's children; of an array's axes
    int number           # NumPy's type number
    int place            # which input of the program a leaf is
    PyObject *cls        # of a container or scalar
    PyObject *what       # dtype of an array, a static value, a dict's keys
    const cnp.npy_intp *dims


cdef struct Found:
    # The program's inputs, as far as they are found; arrays are held.
    Operand *operands
    double *numbers      # two for each input


cdef dict NUMBERS = {float: FLOAT, int: INT, complex: COMPLEX}


cdef class Shortcut:
    """One signature of a transformed function, and what a call with it does.

    `key` and `entry` are those of the function's cache; the entry has program, reach and
    `lowered`.  `given`: how many arguments are positional, and the names of the others.
    `arguments` are their structures: a leaf is its number in `leaves`, a container (class,
    keys, structures).  `leaves` has, for each, TensorType, kind (`array`, `scalar` of NumPy,
    `weak` of Python) and class; or None, anything and the static value.  `result` is the
    structure of the result: numbers of outputs, containers, and (None, static value, ()); or
    None where `finish` makes it.
    """
    cdef Part *parts
    cdef int *starts                 # the first part of each argument
    cdef list kept                   # what parts point to
    cdef readonly object key
    cdef readonly object entry
    cdef readonly tuple given
    cdef readonly Py_ssize_t used    # hits of the function when it was used last
    cdef Py_ssize_t positional
    cdef tuple names
    cdef int inputs
    cdef Program program
    cdef Reach reach
    cdef object result
    cdef object finish
    cdef bytes scalars               # by output: whether it is given as a scalar
    cdef bint is_flat                # the result is the tuple of the outputs

    def __init__(self, key, entry, tuple given, leaves, arguments, result, finish):
        cdef int at = 0
        cdef int i
        self.key, self.entry, self.given = key, entry, given
        self.positional, self.names = given
        self.kept = []
        self.inputs = sum([type_ is not None for type_, _, _ in leaves])
        self.program, self.reach = entry.program, entry.reach
        self.result, self.finish = result, finish
        self.scalars = bytes([bool(each) for each in entry.lowered.is_scalar])
        self.is_flat = (
            type(result) is tuple and result[0] is tuple
            and result[2] == tuple(range(len(self.scalars)))
        )
        length = sum([parts_in(each) for each in arguments])
        self.parts = <Part *>PyMem_Calloc(length + 1, sizeof(Part))
        self.starts = <int *>PyMem_Calloc(len(arguments) + 1, sizeof(int))
        if self.parts == NULL or self.starts == NULL:
            raise MemoryError
        places = []
        for type_, _, _ in leaves:
            places.append(sum([each is not None for each in places]) if type_ is not None
                          else None)
        for i in range(<int>len(arguments)):
            self.starts[i] = at
            at = self.describe(at, arguments[i], leaves, places)

    def __dealloc__(self):
        PyMem_Free(self.parts)
        PyMem_Free(self.starts)

    cdef PyObject *keep(self, thing):
        self.kept.append(thing)
        return <PyObject *>thing

    cdef int describe(self, int at, structure, leaves, places) except -1:
        """Fill in the parts of a structure; returns the index behind them."""
        cdef Part *part = &self.parts[at]
        cdef bytes dims
        if type(structure) is tuple:
            cls, keys, children = structure
            part.kind = (
                LIST if cls is list else DICT if cls is dict else NONE if cls is NoneType
                else TUPLE
            )
            part.cls = self.keep(cls)
            part.what = self.keep(keys)
            part.count = <int>len(children)
            at += 1
            for child in children:
                at = self.describe(at, child, leaves, places)
            return at
        type_, kind, cls = leaves[structure]
        if type_ is None:
            part.kind = TEXT if type(cls) is str else STATIC
            part.what = self.keep(cls)
            return at + 1
        part.place = places[structure]
        part.number = type_.dtype.num
        part.cls = self.keep(cls)
        if kind == "array":
            dims = np.array(type_.shape, np.intp).tobytes()
            part.kind = ARRAY
            part.what = self.keep(type_.dtype)
            part.count = <int>len(type_.shape)
            part.dims = <const cnp.npy_intp *>PyBytes_AS_STRING(dims)
            self.keep(dims)
        else:
            part.kind = SCALAR if kind == "scalar" else NUMBERS[cls]
        return at + 1

    cdef bint fits(
        self, PyObject *const *args, Py_ssize_t positional, PyObject *names, Found *found
    ) except -1:
        """Whether a call has this signature; its inputs are in `found` then."""
        cdef Py_ssize_t i
        cdef Py_ssize_t count = PyTuple_GET_SIZE(self.names)
        if positional != self.positional:
            return False
        if names == NULL:
            if count:
                return False
        else:
            if PyTuple_GET_SIZE(<object>names) != count:
                return False
            for i in range(count):
                if not same_key(
                    <object>PyTuple_GET_ITEM(<object>names, i),
                    <object>PyTuple_GET_ITEM(self.names, i),
                ):
                    return False
        for i in range(positional + count):
            if self.take(self.starts[i], args[i], found) < 0:
                return False
        return True

    cdef int take(self, int at, PyObject *given, Found *found) except -2:
        """Go over one argument from part `at` on.  The part behind it; -1 if it differs."""
        cdef const Part *part = &self.parts[at]
        cdef Operand *operand
        cdef double *number
        cdef int i
        cdef int overflow = 0
        cdef Py_ssize_t position = 0
        cdef PyObject *key
        cdef PyObject *item
        cdef object x = <object>given
        if part.kind == ARRAY:
            if not is_array(part, x):
                return -1
            operand = &found.operands[part.place]
            Py_INCREF(x)
            operand.array = given
            return at + 1
        if part.kind == STATIC:
            return at + 1 if given == part.what else -1
        if part.kind == TEXT:
            if given == part.what:
                return at + 1
            if not PyUnicode_CheckExact(x) or PyUnicode_Compare(x, <object>part.what) != 0:
                return -1
            return at + 1
        if part.kind <= SCALAR:
            operand = &found.operands[part.place]
            number = found.numbers + 2 * part.place
            if part.kind == FLOAT:
                if not PyFloat_CheckExact(x):
                    return -1
                number[0] = PyFloat_AS_DOUBLE(x)
            elif part.kind == INT:
                if not PyLong_CheckExact(x):
                    return -1
                (<long long *>number)[0] = PyLong_AsLongLongAndOverflow(x, &overflow)
                if overflow:
                    return -1
            elif part.kind == COMPLEX:
                if not PyComplex_CheckExact(x):
                    return -1
                (<double complex *>number)[0] = (<complex>x)
            else:
                if type(x) is not <object>part.cls:
                    return -1
                PyArray_ScalarAsCtype(x, number)
            operand.data = <char *>number
            operand.number = part.number
            return at + 1
        if type(x) is not <object>part.cls:
            return -1
        at += 1
        if part.kind == TUPLE:
            if PyTuple_GET_SIZE(x) != part.count:
                return -1
            for i in range(part.count):
                at = self.take(at, PyTuple_GET_ITEM(x, i), found)
                if at < 0:
                    return -1
        elif part.kind == LIST:
            if PyList_GET_SIZE(x) != part.count:
                return -1
            for i in range(part.count):
                at = self.take(at, PyList_GET_ITEM(x, i), found)
                if at < 0:
                    return -1
        elif part.kind == DICT:
            if PyDict_Size(x) != part.count:
                return -1
            for i in range(part.count):
                if not PyDict_Next(x, &position, &key, &item):
                    return -1
                if not same_key(
                    <object>key, <object>PyTuple_GET_ITEM(<object>part.what, i)
                ):
                    return -1
                at = self.take(at, item, found)
                if at < 0:
                    return -1
        return at

    cdef object run(self, Found *found):
        """The result of a call whose inputs are found."""
        cdef tuple outputs = call_mixed(
            self.program, found.operands, self.inputs,
            <const unsigned char *>PyBytes_AS_STRING(self.scalars)
        )
        if self.is_flat:
            return outputs
        if self.result is None:
            return self.finish(outputs)
        return built(self.result, outputs)


cdef type NoneType = type(None)


cdef int parts_in(structure) except -1:
    """How many parts a structure has."""
    if type(structure) is not tuple:
        return 1
    return 1 + sum([parts_in(child) for child in structure[2]])


cdef inline bint is_array(const Part *part, object given):
    """Whether `given` is an array of the dtype and shape of this part."""
    cdef cnp.ndarray array
    if not cnp.PyArray_CheckExact(given):
        return False
    array = <cnp.ndarray>given
    return (
        (<PyObject *>cnp.PyArray_DESCR(array) == part.what
         or (cnp.PyArray_TYPE(array) == part.number and cnp.PyArray_ISNOTSWAPPED(array)))
        and cnp.PyArray_NDIM(array) == part.count
        # A 0-d array has no dims to point to.
        and (part.count == 0 or memcmp(
            cnp.PyArray_DIMS(array), part.dims, <size_t>part.count * sizeof(cnp.npy_intp)
        ) == 0)
    )


cdef object built(structure, tuple outputs):
    """The outputs in the structure of the result."""
    cdef tuple children
    cdef object cls
    cdef object made
    cdef bint is_tuple           # or a named one, which its class makes
    cdef Py_ssize_t i
    if type(structure) is int:
        return outputs[<Py_ssize_t>structure]
    cls = (<tuple>structure)[0]
    if cls is None:
        return (<tuple>structure)[1]
    if cls is NoneType:
        return None
    children = <tuple>(<tuple>structure)[2]
    is_tuple = issubclass(cls, tuple)
    made = PyTuple_New(len(children)) if is_tuple else [] if cls is list else {}
    for i in range(len(children)):
        part = built(children[i], outputs)
        if is_tuple:
            Py_INCREF(part)
            PyTuple_SET_ITEM(made, i, part)
        elif cls is list:
            (<list>made).append(part)
        else:
            (<dict>made)[(<tuple>(<tuple>structure)[1])[i]] = part
    return made if cls is tuple or not is_tuple else cls(*made)


cdef bint same_key(object given, object wanted) except -1:
    """Whether two keys are the same; False also where only slower code can say."""
    if given is wanted:
        return True
    if type(given) is str:
        return type(wanted) is str and PyUnicode_Compare(given, wanted) == 0
    return type(given) is int and type(wanted) is int and given == wanted


cdef class Caller:
    """Base of transformed functions: takes the shortcut of a recent signature if one fits.

    A subclass has `_call(args, kwargs)`, which does what there is to do otherwise.
    """
    cdef vectorcallfunc vectorcall
    cdef public tuple _shortcuts
    cdef public Py_ssize_t _hits
    cdef Py_ssize_t first            # the one to try first
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = <vectorcallfunc>call_vector
        self._shortcuts = ()

    def __call__(self, /, *args, **kwargs):
        return self._call(args, kwargs)


cdef object call_vector(
    object self, PyObject *const *args, size_t nargsf, PyObject *names
):
    cdef Caller caller = <Caller>self
    cdef tuple shortcuts = caller._shortcuts
    cdef Py_ssize_t positional = PyVectorcall_NARGS(nargsf)
    cdef Py_ssize_t count = PyTuple_GET_SIZE(shortcuts)
    cdef Py_ssize_t first = caller.first
    cdef Py_ssize_t turn
    cdef Py_ssize_t i
    cdef Shortcut shortcut
    if names != NULL and PyTuple_GET_SIZE(<object>names) == 0:
        names = NULL
    if first >= count:
        first = 0
    for turn in range(count):
        # The one used last, then the others from the newest on.
        i = first if turn == 0 else turn - 1 if turn <= first else turn
        shortcut = <Shortcut>PyTuple_GET_ITEM(shortcuts, i)
        result = attempt(shortcut, args, positional, names)
        if result is not MISSED:
            caller.first = i
            caller._hits += 1
            shortcut.used = caller._hits
            return result
    given = tuple([<object>args[i] for i in range(positional)])
    named = {}
    if names != NULL:
        for i in range(PyTuple_GET_SIZE(<object>names)):
            named[<object>PyTuple_GET_ITEM(<object>names, i)] = <object>args[positional + i]
    return caller._call(given, named)


cdef object MISSED = object()


cdef object attempt(
    Shortcut shortcut, PyObject *const *args, Py_ssize_t positional, PyObject *names
):
    """The result of a call, or MISSED if it is not the shortcut's."""
    cdef Operand few[FEW]
    cdef double few_numbers[2 * FEW]
    cdef Found found
    cdef int i
    cdef int count = shortcut.inputs
    found.operands = few
    found.numbers = few_numbers
    if count > FEW:
        found.operands = <Operand *>PyMem_Malloc(
            <size_t>count * (sizeof(Operand) + 2 * sizeof(double))
        )
        if found.operands == NULL:
            raise MemoryError
        found.numbers = <double *>(found.operands + count)
    for i in range(count):
        found.operands[i].array = NULL
    try:
        if not shortcut.fits(args, positional, names, &found):
            return MISSED
        if not shortcut.reach.unchanged():       # may call properties of the user's
            return MISSED
        return shortcut.run(&found)
    finally:
        for i in range(count):
            if found.operands[i].array != NULL:
                Py_DECREF(<object>found.operands[i].array)
        if count > FEW:
            PyMem_Free(found.operands)


def direct(type cls not None):
    """Decorate a subclass of Caller that leaves `__call__` alone: calls need no tuple then."""
    cdef Caller some = Caller.__new__(Caller)
    if not issubclass(cls, Caller) or "__call__" in cls.__dict__ and cls is not Caller:
        raise TypeError(f"direct: {cls!r} has a way of its own to be called")
    sad_enable_vectorcall(<PyTypeObject *>cls, <char *>&some.vectorcall - <char *><void *>some)
    return cls


direct(Caller)
