"""Walk the Python stack to the user's frame.

Python finds the line of a frame by reading its code's table from the beginning, which takes
as long as the function is.  So the table of a code is read once, into spans of instructions.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF as Py_INCREF_object, Py_XDECREF

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject *PyEval_GetFrame()
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)
    int PyFrame_GetLasti(PyFrameObject *frame)
    void Py_INCREF(PyFrameObject *frame)
    void Py_DECREF(PyFrameObject *frame)
    void Py_DECREF_code "Py_DECREF"(PyCodeObject *code)

cdef dict lines = {}             # id of a code -> its Lines, which keep it alive
PLACES = 4096                    # codes at most


def place_count():
    """How many codes have their lines remembered."""
    return len(lines)


def clear_places():
    """Forget the lines of all codes."""
    lines.clear()


cdef struct Span:
    int end                      # byte offset behind the span's last instruction
    PyObject *place              # (file, line); owned


cdef class Lines:
    """The lines of a code, by spans of its instructions; none of a code that is inside."""
    cdef object code
    cdef bint is_inside
    cdef Span *spans
    cdef int count

    def __init__(self, code, bint is_inside):
        cdef dict places = {}    # line -> place: equal places are one object
        self.code = code
        self.is_inside = is_inside
        if is_inside:
            return
        found = list(code.co_lines())
        self.spans = <Span *>PyMem_Malloc((len(found) + 1) * sizeof(Span))
        if self.spans == NULL:
            raise MemoryError
        for _, end, line in found:
            line = line or code.co_firstlineno       # what no line has made is the function's
            if line not in places:
                places[line] = (code.co_filename, line)
            place = places[line]
            self.spans[self.count].end = end
            Py_INCREF_object(place)
            self.spans[self.count].place = <PyObject *>place
            self.count += 1

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            Py_XDECREF(self.spans[i].place)
        PyMem_Free(self.spans)

    cdef tuple at(self, int offset):
        """The place of the instruction at a byte offset."""
        cdef int low = 0
        cdef int high = self.count - 1
        cdef int middle
        if high < 0:
            return self.code.co_filename, self.code.co_firstlineno
        while low < high:
            middle = (low + high) // 2
            if self.spans[middle].end > offset:
                high = middle
            else:
                low = middle + 1
        return <tuple>self.spans[low].place


cpdef tuple find(object decide):
    """Return file and line of the nearest frame whose file `decide` calls outside."""
    cdef PyFrameObject *frame = PyEval_GetFrame()
    cdef PyFrameObject *back
    cdef PyCodeObject *code
    cdef Lines known
    if frame != NULL:
        Py_INCREF(frame)
    while frame != NULL:
        code = PyFrame_GetCode(frame)
        try:
            known = lines.get(<size_t>code)
            if known is None:
                known = Lines(<object><PyObject *>code, not decide(
                    (<object><PyObject *>code).co_filename))
                if len(lines) >= PLACES:
                    lines.clear()
                lines[<size_t>code] = known
            if not known.is_inside:
                return known.at(PyFrame_GetLasti(frame))
            back = PyFrame_GetBack(frame)
        finally:
            Py_DECREF_code(code)
            Py_DECREF(frame)
        frame = back
    return "<unknown>", 0
