"""Ints, slices and None as keys: what `x[key]` is in ops."""

from operator import index as as_index

cdef extern from "Python.h":
    int PySlice_Unpack(
        object slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step
    ) except -1
    Py_ssize_t PySlice_AdjustIndices(
        Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step
    )

cdef slice every = slice(None)


def plain_keys(key, Py_ssize_t ndim):
    """`key` with one entry an axis, where it is of ints and slices alone; else None."""
    cdef list keys
    cdef Py_ssize_t used
    if type(key) is int or type(key) is slice:
        keys = [key]
    elif type(key) is tuple:
        keys = list(<tuple>key)
    else:
        return None
    used = len(keys)
    if used > ndim:
        return None
    for each in keys:
        if type(each) is not int and type(each) is not slice:
            return None
    while used < ndim:
        keys.append(every)
        used += 1
    return keys


def basic(keys, tuple shape):
    """Read keys that are an int, a slice or None.

    Returns the attributes of the `slice` op, None if it would keep everything, the shape
    that it gives, and the shape of the result.

    Raises: IndexError as NumPy does.
    """
    cdef list start = []
    cdef list stop = []
    cdef list step = []
    cdef list sliced = []
    cdef list result = []
    cdef Py_ssize_t axis = 0
    cdef Py_ssize_t length
    cdef Py_ssize_t first
    cdef Py_ssize_t last
    cdef Py_ssize_t by
    cdef Py_ssize_t count
    cdef bint strided = False
    for key in keys:
        if key is None:
            result.append(1)
            continue
        length = shape[axis]
        if isinstance(key, slice):
            PySlice_Unpack(key, &first, &last, &by)
            count = PySlice_AdjustIndices(length, &first, &last, by)
            result.append(count)
            if count == 0:
                first, last, by = 0, 0, 1
            elif count == 1:
                last, by = first + 1, 1
        else:
            first, count, by = single(key, axis, length), 1, 1
            last = first + 1
        if by != 1:
            strided = True
        start.append(first)
        stop.append(None if last < 0 else last)
        step.append(by)
        sliced.append(count)
        axis += 1
    if not strided and tuple(sliced) == shape:
        return None, shape, tuple(result)
    attributes = {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}
    return attributes, tuple(sliced), tuple(result)


cdef Py_ssize_t single(key, Py_ssize_t axis, Py_ssize_t length) except -1:
    try:
        at = as_index(key)
    except TypeError as error:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer "
            f"or boolean arrays are valid indices: {type(key).__name__}"
        ) from error
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of bounds for axis {axis} with size {length}")
    return at % length
