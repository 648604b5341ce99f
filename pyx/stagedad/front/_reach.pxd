# What a traced function can see besides its arguments, and whether it is still the same.

from libc.stdint cimport uint8_t

cdef enum Where:
    CELL = 0          # a closure cell: (cell, None)
    ENTRY = 1         # a dict's entry: globals, instance attributes, user dicts: (dict, key)
    ITEM = 2          # an item of a list: (list, index)
    LENGTH = 3        # the length of a container: (container, None)
    CODE = 4          # a function's code, defaults and keyword defaults: (function, None)
    ATTRIBUTE = 5     # an attribute found by getattr: (object, name)
    CONTENTS = 6      # the bytes of an array: (array, None)
    LAYOUT = 7        # the dtype and shape of an array: (array, its lengths as bytes)


cdef class Reach:
    cdef list containers, keys, values
    cdef uint8_t *kinds
    cdef Py_ssize_t count
    cdef dict arrays                 # id -> array, of every array reached
    cdef readonly list generators    # of random numbers, among what was reached
    cdef object read(self, int where, object container, object key)
    cpdef bint unchanged(self) except -1
