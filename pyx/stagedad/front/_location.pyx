"""Walk the Python stack to the user's frame."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject *PyEval_GetFrame()
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)
    int PyFrame_GetLineNumber(PyFrameObject *frame)
    void Py_INCREF(PyFrameObject *frame)
    void Py_DECREF(PyFrameObject *frame)
    void Py_DECREF_code "Py_DECREF"(PyCodeObject *code)

cdef dict places = {}            # (file, line) -> itself, so that equal places are one object
cdef Py_ssize_t PLACES = 65536


cpdef tuple find(dict is_inside, object decide):
    """Return file and line of the nearest frame whose file is not inside.

    `is_inside` keeps what `decide(file)` answered.
    """
    cdef PyFrameObject *frame = PyEval_GetFrame()
    cdef PyFrameObject *back
    cdef PyCodeObject *code
    cdef object file = None
    cdef object inside
    cdef int line = 0
    cdef tuple place
    if frame != NULL:
        Py_INCREF(frame)
    while frame != NULL:
        code = PyFrame_GetCode(frame)
        file = (<object><PyObject *>code).co_filename
        Py_DECREF_code(code)
        inside = is_inside.get(file)
        if inside is None:
            inside = is_inside[file] = decide(file)
        if not inside:
            line = PyFrame_GetLineNumber(frame)
            Py_DECREF(frame)
            place = (file, line)
            if len(places) >= PLACES:
                places.clear()
            return places.setdefault(place, place)
        back = PyFrame_GetBack(frame)
        Py_DECREF(frame)
        frame = back
    return "<unknown>", 0
