"""Running `cond` and `while_loop`: the codes of a node's blocks, called as it says."""

from cpython.exc cimport PyErr_CheckSignals

from stagedad.run._interpreter cimport Code
from stagedad.run.calls cimport tuple_items


cdef class Control:
    """What a step of kind SUB calls: from arrays of its operands to the results.

    Operands: the node's own, what the blocks read from outside, then the arrays held by the
    constants of each block.
    """
    cdef str kind
    cdef list codes
    cdef Py_ssize_t own         # operands of the node
    cdef Py_ssize_t outer       # values read from outside
    cdef tuple held             # arrays held, by block

    def __init__(self, described):
        self.kind = described.kind
        self.codes = [Code(plan) for plan in described.plans]
        self.own = described.own
        self.outer = described.outer
        self.held = described.held

    def __call__(self, list arrays):
        cdef tuple outer = tuple(arrays[self.own:self.own + self.outer])
        cdef Py_ssize_t start = self.own + self.outer
        cdef Py_ssize_t middle = start + <Py_ssize_t> self.held[0]
        cdef tuple first = tuple(arrays[start:middle])
        cdef tuple second = tuple(arrays[middle:])
        cdef tuple state
        if self.kind == "cond":
            if arrays[0]:
                return launch(self.codes[0], outer + first)
            return launch(self.codes[1], outer + second)
        state = tuple(arrays[:self.own])
        while launch(self.codes[0], outer + state + first)[0]:
            PyErr_CheckSignals()         # a loop without an end can be interrupted
            state = launch(self.codes[1], outer + state + second)
        return state


cdef tuple launch(Code code, tuple arrays):
    """Run on `arrays`, which live until then."""
    return code.launch(tuple_items(arrays))
