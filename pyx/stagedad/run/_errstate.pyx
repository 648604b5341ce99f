"""NumPy's floating-point policy, `np.errstate`, read where a run has raised flags.

A policy is an object in a context variable: the same object, the same policy.
Under the settings that NumPy starts with, programs are silent: nobody asked, and
they compute more than the caller wrote.
"""

from cpython.ref cimport PyObject, Py_DECREF

import contextvars

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar as _variable
except ImportError:
    _variable = None

cdef extern from "Python.h":
    int PyContextVar_Get(PyObject *var, PyObject *default_value, PyObject **value) except -1

cdef extern from "stagedad/run/flags.h" nogil:
    int SAD_DIVIDE
    int SAD_OVER
    int SAD_UNDER
    int SAD_INVALID

# What NumPy starts with; an empty context has the object that says so.
cdef dict usual = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
cdef object variable = _variable
cdef object known = None if _variable is None else contextvars.Context().run(_variable.get)
cdef int known_flags = 0


cdef int watched() except -1:
    """The flags that the policy in force does not ignore."""
    global known
    global known_flags
    cdef PyObject *found = NULL
    cdef object policy
    cdef int flags
    if variable is None:
        return _flags_of(np.geterr())
    PyContextVar_Get(<PyObject *> variable, NULL, &found)
    policy = <object> found
    Py_DECREF(policy)
    if policy is known:
        return known_flags
    flags = _flags_of(np.geterr())
    known = policy
    known_flags = flags
    return flags


cdef int _flags_of(dict policy) except -1:
    cdef int flags = 0
    if policy == usual:
        return 0
    if policy["divide"] != "ignore":
        flags |= SAD_DIVIDE
    if policy["over"] != "ignore":
        flags |= SAD_OVER
    if policy["under"] != "ignore":
        flags |= SAD_UNDER
    if policy["invalid"] != "ignore":
        flags |= SAD_INVALID
    return flags


cdef int numpy_bits(int flags) noexcept:
    """Flags as NumPy numbers them for the function of `np.seterrcall`."""
    return (
        (1 if flags & SAD_DIVIDE else 0)
        | (2 if flags & SAD_OVER else 0)
        | (4 if flags & SAD_UNDER else 0)
        | (8 if flags & SAD_INVALID else 0)
    )
