"""Traced values, and recording what is done to them: the path that every operation takes."""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport (
    PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
)
from libc.stdint cimport int32_t

from stagedad.front._location cimport find
from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport Value, output_handles, value_handle
from stagedad.ir._slabs cimport RETURN

from stagedad.front.location import is_outside

cdef object decide = is_outside
cdef type tracer_class           # of new traced values


cdef class Traced:
    """A value of a graph that is being traced."""
    cdef readonly object _trace
    cdef Value value
    cdef readonly object type
    """Its dtype and shape; traced values know both."""
    cdef public bint _weak
    """Whether it is a Python scalar, which takes the dtype of what it meets (NEP 50)."""
    cdef public bint _shared
    """Whether NumPy would have another array share its memory (a view)."""
    cdef object __weakref__

    def __init__(self, trace, Value value not None, bint weak=False):
        self._trace = trace
        self._value = value
        self._weak = weak

    @property
    def _value(self):
        return self.value

    @_value.setter
    def _value(self, Value value not None):
        self.value = value
        self.type = value.type
        assert self.type is not None

    @property
    def dtype(self):
        """Data type, as of an array."""
        return self.type.dtype

    @property
    def shape(self):
        """Lengths of the axes."""
        return self.type.shape

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.type.shape)

    @property
    def size(self):
        """Number of elements."""
        return self.type.size


def set_tracer_class(cls):
    """Set the class of new traced values; `tracer` does when imported."""
    global tracer_class
    if not issubclass(cls, Traced):
        raise TypeError(f"tracer: not a class of traced values: {cls!r}")
    tracer_class = cls


cpdef Traced new_tracer(trace, Value value, bint weak=False):
    """Return a traced value as users meet it."""
    cdef Traced made
    if not trace.alive:
        raise trace.leaked("use")
    made = <Traced>tracer_class.__new__(tracer_class)
    made._trace = trace
    made.value = value
    made.type = value.type
    made._weak = weak
    return made


cdef int32_t insert(trace, Graph graph, str kind, tuple values, dict attributes) except -1:
    cdef int32_t node
    if not trace.alive:
        raise trace.leaked(kind)
    node = graph.build(kind, values, None, find(decide), None, attributes, None)
    graph.attach(node, RETURN)
    return node


def emit(trace, Graph graph not None, str kind not None, values, dict attributes=None):
    """Record an operation with one result, at the user's line."""
    cdef int32_t node = insert(trace, graph, kind, tuple(values), attributes)
    return new_tracer(trace, value_handle(graph, graph.node_recs[node].first_output))


def emit_all(trace, Graph graph not None, str kind not None, values, dict attributes=None):
    """Record an operation with a list of results, at the user's line."""
    cdef int32_t node = insert(trace, graph, kind, tuple(values), attributes)
    return [new_tracer(trace, value) for value in output_handles(graph, node)]


def quick_two(str kind not None, left, right):
    """As `quick`, of two operands."""
    return quick(kind, (left, right))


cpdef quick(str kind, tuple operands):
    """Record an elementwise operation on typed operands of one trace, and floats beside one.

    These are nearly all operations; None for the others, which `elementwise.apply` knows.
    """
    cdef object trace = None
    cdef object dtype = None
    cdef Traced traced
    cdef Py_ssize_t count = PyTuple_GET_SIZE(operands)
    cdef Py_ssize_t i
    cdef tuple values
    cdef object each
    for i in range(count):
        each = <object>PyTuple_GET_ITEM(operands, i)
        if isinstance(each, Traced):
            traced = <Traced>each
            if traced._weak or (trace is not None and traced._trace is not trace):
                return None
            if trace is None:
                trace, dtype = traced._trace, traced.type.dtype
        elif count != 2 or not (type(each) is float or type(each) is int):
            return None
    if trace is None:
        return None
    values = PyTuple_New(count)
    for i in range(count):
        each = <object>PyTuple_GET_ITEM(operands, i)
        if isinstance(each, Traced):
            each = (<Traced>each).value
        elif dtype.kind == "f":
            each = number(trace.constants, each, dtype)
        else:
            return None
        Py_INCREF(each)
        PyTuple_SET_ITEM(values, i, each)
    return emit(trace, trace.graph, kind, values)


cdef object number(constants, given, dtype):
    """The constant for a number, made before or now."""
    cdef PyObject *found
    cdef object key = (type(given), given, dtype)
    # Zeros of both signs are equal keys, and the constants know it.
    if given != 0:
        found = PyDict_GetItem(<dict?>constants.numbers, key)
        if found != NULL:
            return <object>found
    return constants.number(given, dtype)
