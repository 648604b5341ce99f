"""Typed strided loops: NumPy's own, taken out of their ufuncs, and stagedad's.

`native(kernel)` turns a `plan.kernels.Kernel`, which names a loop, into a
`Loop`, which holds its C pointer.  Three sources, one calling convention:

- a ufunc or gufunc that answered `_resolve_dtypes_and_context`: the C loop in
  the capsule it gave (NumPy >= 1.25);
- stagedad's own loops (loops.h), by name;
- any other ufunc: a trampoline that wraps the pointers in arrays and calls it.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
cimport numpy as cnp
from numpy cimport npy_bool, npy_intp

from threading import RLock

import numpy as np

cnp.import_array()

cdef extern from *:
    """
    /* NumPy's ufunc_call_info; the capsule's name is its version. */
    typedef struct {
      sad_loop strided_loop;
      void *context;
      void *auxdata;
      npy_bool requires_pyapi;
      npy_bool no_floatingpoint_errors;
    } sad_call_info;

    #define sad_array_over(ndim, shape, number, strides, data)                  \\
      PyArray_New(&PyArray_Type, ndim, shape, number, strides, data, 0,         \\
                  NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, NULL)
    """
    object sad_array_over(
        int ndim, const npy_intp *shape, int number, const npy_intp *strides, void *data
    )
    ctypedef struct sad_call_info:
        sad_loop strided_loop
        void *context
        void *auxdata
        npy_bool requires_pyapi

cdef extern from "stagedad/run/loops.h":
    ctypedef struct sad_named_loop:
        const char *name
        sad_loop loop
    const sad_named_loop sad_own_loops[1]

cdef extern from "stagedad/run/reduce.h":
    const sad_named_loop sad_reductions[1]
    int sad_extremum(
        void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
    ) noexcept nogil

cdef extern from "stagedad/run/wrapped.h":
    int sad_sticky(
        void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
    ) noexcept nogil
    int sad_quiet(
        void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
    ) noexcept nogil
    int sad_checked(
        void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
    ) noexcept nogil
    bint sad_clears_flags(const sad_kernel *kernel)
    int sad_fp_flags() noexcept
    void sad_fp_raise(int flags) noexcept

cdef const char *CALL_INFO = "numpy_1.24_ufunc_call_info"

cdef dict _by_name(const sad_named_loop *table):
    """Index of each loop in `table`, by name."""
    cdef dict found = {}
    cdef Py_ssize_t index = 0
    while table[index].name != NULL:
        found[table[index].name.decode()] = index
        index += 1
    return found

cdef dict OWN = _by_name(sad_own_loops)
cdef dict REDUCTIONS = _by_name(sad_reductions)
cdef object making = RLock()


def own_loop_names():
    """Names of stagedad's own loops, sorted."""
    return sorted([*OWN, *REDUCTIONS])


cdef class Loop:
    def __repr__(self):
        return f"<Loop {self.name}>"


cpdef Loop native(object kernel):
    """The `Loop` that `kernel` names; made once, then kept on the kernel."""
    cdef Loop loop = kernel.native
    if loop is not None:
        return loop
    # A capsule is filled once: another thread may be about to do it.
    with making:
        if kernel.native is None:
            kernel.native = _make(kernel)
        return kernel.native


cdef Loop _make(object kernel):
    cdef Loop loop = Loop.__new__(Loop)
    cdef const sad_call_info *info
    loop.name = kernel.name
    if kernel.inner is not None:
        loop.owner = native(kernel.inner)
        if kernel.wrapper == "quiet":
            loop.kernel.loop = sad_quiet
        elif kernel.wrapper == "checked":
            loop.kernel.loop = sad_checked
        else:
            loop.kernel.loop = sad_extremum
        loop.kernel.context = &(<Loop> loop.owner).kernel
        loop.needs_gil = (<Loop> loop.owner).needs_gil
    elif kernel.name in REDUCTIONS:
        loop.kernel.loop = sad_reductions[<Py_ssize_t> REDUCTIONS[kernel.name]].loop
    elif kernel.ufunc is None:
        loop.kernel.loop = sad_own_loops[<Py_ssize_t> OWN[kernel.name]].loop
    elif kernel.capsule is not None:
        kernel.ufunc._get_strided_loop(kernel.capsule)
        info = <const sad_call_info *> PyCapsule_GetPointer(kernel.capsule, CALL_INFO)
        loop.owner = kernel.capsule
        loop.kernel.loop = info.strided_loop
        loop.kernel.context = info.context
        loop.kernel.auxdata = info.auxdata
        loop.needs_gil = info.requires_pyapi
        if sad_clears_flags(&loop.kernel):
            _keep_flags(loop)
    else:
        loop.owner = Trampoline(kernel)
        loop.kernel.loop = <sad_loop> <void *> through_ufunc
        loop.kernel.context = <void *> loop.owner
        loop.needs_gil = True
        _keep_flags(loop)
    return loop


cdef void _keep_flags(Loop loop) noexcept:
    """Put a loop around it that brings back what it clears."""
    loop.wrapped = loop.kernel
    loop.kernel.loop = sad_sticky
    loop.kernel.context = &loop.wrapped
    loop.kernel.auxdata = NULL


cdef class Trampoline:
    """A ufunc called as an object on arrays wrapped around a strided loop's pointers.

    `core[k]` names the core dimensions of operand k by their place in `dims`
    (all empty for a ufunc); the core strides follow the outer ones, in order,
    as in NumPy's gufunc loops.
    """
    cdef object ufunc
    cdef int inputs
    cdef int count
    cdef list numbers
    cdef list core

    def __init__(self, kernel):
        self.ufunc = kernel.ufunc
        self.inputs = self.ufunc.nin
        self.count = self.ufunc.nargs
        self.numbers = [dtype.num for dtype in kernel.dtypes]
        self.core = [tuple(dims) for dims in kernel.core] or [()] * self.count

    cdef int call(self, char **data, const npy_intp *dims, const npy_intp *strides) except -1:
        cdef npy_intp shape[8]
        cdef npy_intp steps[8]
        cdef Py_ssize_t at = self.count
        cdef int k
        cdef int d
        cdef list arrays = []
        cdef tuple core
        if self.count == 3 and data[0] == data[2] and strides[0] == 0 and strides[2] == 0:
            return self.reduce(data, dims, strides)
        for k in range(self.count):
            core = self.core[k]
            shape[0] = dims[0]
            steps[0] = strides[k]
            for d in range(<int> len(core)):
                shape[d + 1] = dims[<int> core[d]]
                steps[d + 1] = strides[at]
                at += 1
            operand = wrap(data[k], <int> len(core) + 1, shape, steps, self.numbers[k])
            # One complex number written over its factor is multiplied by other code of
            # NumPy's, and differs in the last bit.
            if dims[0] == 1 and k < self.inputs and data[k] == data[self.count - 1]:
                operand = operand.copy()
            arrays.append(operand)
        self.ufunc(*arrays[:self.inputs], out=tuple(arrays[self.inputs:]), casting="unsafe")
        return 0

    cdef int reduce(self, char **data, const npy_intp *dims, const npy_intp *strides) except -1:
        """What the loop itself does when target and first operand are one number."""
        cdef npy_intp one = 1
        cdef npy_intp step = 0
        cdef int flags
        target = wrap(data[2], 1, &one, &step, self.numbers[2])
        source = wrap(data[1], 1, dims, strides + 1, self.numbers[1])
        part = self.ufunc.reduce(source, dtype=target.dtype)
        flags = sad_fp_flags()
        self.ufunc(target[0], part, out=target[:1])
        sad_fp_raise(flags)
        return 0


cdef int through_ufunc(
    void *context, char **data, const npy_intp *dims, const npy_intp *strides, void *auxdata
) except -1 with gil:
    with np.errstate(all="ignore"):
        return (<Trampoline> context).call(data, dims, strides)


cdef object wrap(
    char *data, int ndim, const npy_intp *shape, const npy_intp *strides, int number
):
    """An array over memory that it does not own: for the length of one call only."""
    return sad_array_over(ndim, shape, number, strides, data)
