"""Emitting steps: strided calls, casts, copies, constants.  What the rules are written with."""

import numpy as np

from stagedad.ops import evaluate
from stagedad.plan import kernels
from stagedad.plan._step cimport Origin, Step, make_step
from stagedad.plan._view cimport Buffer, View, broadcast, dense_view, fresh, loop_axes
from stagedad.plan.kernels import cast_kernel, copy_kernel, ufunc_kernel

cdef enum:
    # ORDER STEP, ORDER SPACE: as in stagedad/plan/step.py.
    CALL = 0
    OUTER = 1
    ZERO = 2
    OBJECT = 4
    SUB = 7
    POOL = 3

cdef Py_ssize_t short = kernels.SHORT


cdef class Emitter:
    def __cinit__(self):
        self.steps = []
        self.pool = bytearray()
        self.origin = Origin("input", -1, None)
        self.scattered = {}
        self.pooled = {}

    # -- steps ----------------------------------------------------------------

    cpdef View call(self, object kernel, object reads, View write):
        """Emit an elementwise loop over `write`, to whose shape the `reads` broadcast.

        Every operand must already be of the kernel's dtype.  Returns `write`.
        """
        cdef list operands = list(reads)
        cdef list strides = []
        cdef Py_ssize_t inputs = len(operands)
        cdef bint simple = write.dense
        cdef bint single = write.size == 1
        cdef Py_ssize_t k
        cdef View view
        cdef tuple steps
        cdef tuple outer = ()
        cdef Step step
        if write.size == 0:
            return write
        for item in operands:
            view = item
            # A loop over one element gets the strides of a dense one: see `loop_axes`.
            if view.size == 1:
                strides.append(view.itemsize if single else 0)
            elif view.dense and view.shape == write.shape:
                strides.append(view.itemsize)
            else:
                simple = False
                break
        if simple:
            strides.append(write.itemsize)
            n, steps = write.size, tuple(strides)
        else:
            for k in range(inputs):
                operands[k] = broadcast(operands[k], write.shape)
            strides = [(<View> item).get_strides() for item in operands]
            strides.append(write.get_strides())
            # NumPy's isfinite, signbit and the like write garbage into strided booleans; its
            # comparisons do not.
            n, steps, outer = loop_axes(
                write.shape,
                strides,
                [(<View> item).itemsize for item in operands] + [write.itemsize],
                kernel.ufunc is None or inputs > 1 or write.dtype.char != "?",
            )
        if n <= short and kernel.short is not None:
            kernel = kernel.short
        operands.append(write)
        step = make_step(
            OUTER if outer else CALL, self.origin, kernel, tuple(operands), inputs, (n,), steps,
            outer,
        )
        step.donates = True
        self.steps.append(step)
        return write

    def check(self, kernel, View view, problem):
        """Emit a loop that writes nothing and fails on data that is at fault."""
        cdef Step step
        if view.size:
            n, steps, outer = loop_axes(view.shape, [view.get_strides()], [view.itemsize])
            step = make_step(
                OUTER if outer else CALL, self.origin, kernel, (view,), 1, (n,), steps, outer
            )
            step.problem = problem
            self.steps.append(step)

    def zero(self, View write):
        """Emit zeros over all of a new temporary.  Returns it."""
        if write.size:
            dims = (write.size * write.itemsize,)
            self.steps.append(make_step(ZERO, self.origin, None, (write,), 0, dims, (), ()))
        return write

    def strided(
        self, kernel, tuple operands, Py_ssize_t inputs, tuple dims, tuple strides,
        tuple outer=(), problem=None, kind=None
    ):
        """Emit a loop whose dims and strides the rule has worked out itself."""
        cdef Step step
        if kind is None:
            kind = OUTER if outer else CALL
        step = make_step(kind, self.origin, kernel, operands, inputs, dims, strides, outer)
        step.problem = problem
        self.steps.append(step)

    def object_call(self, str kind, reads, dict attributes, results):
        """Emit a call of the op's reference on arrays: for what has no loop."""
        cdef tuple writes = tuple([fresh(type_.dtype, type_.shape) for type_ in results])
        cdef tuple operands = (*reads, *writes)
        cdef Step step = make_step(
            OBJECT, self.origin, None, operands, len(operands) - len(writes), (), (), ()
        )
        step.function = lambda arrays: evaluate(kind, arrays, attributes)
        self.steps.append(step)
        return writes

    def sub_program(self, function, reads, results):
        """Emit a run of plans, which `function` describes, on C-contiguous operands."""
        cdef tuple writes = tuple([fresh(type_.dtype, type_.shape) for type_ in results])
        cdef tuple operands = (*[self.dense(view) for view in reads], *writes)
        cdef Step step = make_step(
            SUB, self.origin, None, operands, len(operands) - len(writes), (), (), ()
        )
        step.function = function
        self.steps.append(step)
        return writes

    # -- what rules need all the time -------------------------------------------

    def elementwise(self, ufunc, reads, result):
        """Emit `ufunc`, with the casts that its loop needs.  Returns the result."""
        cdef tuple dtypes = tuple([(<View> view).dtype for view in reads])
        kernel = ufunc_kernel(ufunc, dtypes, self.origin.op)
        wanted = <tuple> kernel.dtypes
        cdef list cast = [self.cast(view, dtype) for view, dtype in zip(reads, wanted)]
        cdef View write = fresh(wanted[len(wanted) - 1], result.shape)
        return self.cast(self.call(kernel, cast, write), result.dtype)

    cpdef View cast(self, View view, object dtype):
        """`view` in another dtype; itself if it has it."""
        cdef View base
        cdef View write
        if view.dtype is dtype or view.dtype == dtype:
            return view
        base = unstretched(view)
        write = self.call(cast_kernel(view.dtype, dtype), (base,), fresh(dtype, base.shape))
        return broadcast(write, view.shape)

    def dense(self, View view):
        """`view` C-contiguous: itself or a copy."""
        if view.dense:
            return view
        return self.copy(view, fresh(view.dtype, view.shape))

    def copy(self, View view, View write):
        """Emit a copy, with a cast where the dtypes differ.  Returns `write`."""
        if view.dtype == write.dtype:
            return self.call(copy_kernel(view.dtype), (view,), write)
        return self.call(cast_kernel(view.dtype, write.dtype), (view,), write)

    def number(self, value, dtype):
        """A constant of the plan, 0-d."""
        cdef bytes data
        cdef double number
        if type(value) is float and dtype.char == "d":
            number = value
            return self.constant(dtype, (<char *> &number)[:sizeof(double)])
        array = np.asarray(value)
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        with np.errstate(all="ignore"):
            data = array.astype(dtype).tobytes()
        return self.constant(dtype, data)

    cdef View constant(self, object dtype, bytes data):
        cdef View view
        view = self.pooled.get((dtype.char, data))
        if view is None:
            self.pool.extend(bytes(-len(self.pool) % dtype.itemsize))
            view = dense_view(
                Buffer(POOL, 0, dtype.itemsize), dtype, (), len(self.pool)
            )
            self.pool.extend(data)
            self.pooled[dtype.char, data] = view
        return view

    def table(self, array):
        """A constant of the plan, an array; equal ones share their memory."""
        cdef bytes data = array.tobytes()
        cdef object key = (array.dtype.char, array.shape, data)
        cdef View view = self.pooled.get(key)
        if view is None:
            self.pool.extend(bytes(-len(self.pool) % array.itemsize))
            view = dense_view(
                Buffer(POOL, 0, len(data)), array.dtype, array.shape, len(self.pool)
            )
            self.pool.extend(data)
            self.pooled[key] = view
        return view

    def zeros(self, result):
        """Zeros without memory: a constant stretched to the shape."""
        return broadcast(self.number(0, result.dtype), result.shape)


cdef View unstretched(View view):
    """`view` with axes of stride 0 cut to size 1."""
    if view.dense or 0 not in view.get_strides():
        return view
    shape = tuple(
        [1 if stride == 0 and dim > 1 else dim
         for dim, stride in zip(view.shape, view.get_strides())]
    )
    return View(view.buffer, view.dtype, shape, view.get_strides(), view.offset)
