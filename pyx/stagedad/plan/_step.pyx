"""Steps of a plan."""

cimport cython

from stagedad.errors import KernelError

cdef enum:
    # ORDER STEP: as in stagedad/plan/step.py.
    CALL = 0
    REDUCE = 3
    OBJECT = 4
    BLOCK = 5
    SUB = 7

cdef double CALL_NS = 8.0
cdef double OBJECT_NS = 5000.0
cdef double BYTE_NS = 0.02


@cython.freelist(64)
@cython.final
@cython.no_gc
cdef class Origin:
    def __init__(self, str op, node, location):
        self.op = op
        self.node = node
        self.location = location

    def __str__(self):
        if self.location is None:
            return f"%{self.node} = {self.op}"
        return f"%{self.node} = {self.op}, at {self.location[0]}:{self.location[1]}"


@cython.freelist(256)
@cython.final
@cython.no_gc                   # See Note [no cycles].
cdef class Step:
    def __init__(
        self, int kind, Origin origin, kernel, tuple operands, Py_ssize_t inputs, tuple dims=(),
        tuple strides=(), tuple outer=()
    ):
        fill(self, kind, origin, kernel, operands, inputs, dims, strides, outer)

    def described(self):
        """Slot, dtype, shape and strides of each operand."""
        return [
            (slot, view.dtype, list(view.shape), list(view.strides))
            for slot, view in zip(self.slots, self.operands)
        ]

    @property
    def calls(self):
        """How often the loop is entered; of a block, how many steps it holds."""
        cdef Py_ssize_t at = 1
        cdef object calls = 1
        if self.kind == BLOCK:
            return self.count
        if self.kind == REDUCE:
            return 1
        while at < len(self.outer):
            calls *= self.outer[at]
            at += len(self.operands) + 1
        return calls

    def nanoseconds(self):
        """How long the step takes, roughly: only to tell short programs from long ones."""
        return nanoseconds(self)

    def explain(self, arrays):
        """The exception for a loop that failed on these operands."""
        if self.problem is not None:
            return self.problem(arrays)
        return KernelError(f"{self.origin.op}: the loop failed: {self.kernel}")

    def annotate(self, error):
        """Tell `error` which node it comes from."""
        error.add_note(f"in {self.origin}")


cdef double nanoseconds(Step step) except -1:
    cdef double work = 1
    if step.kind == OBJECT or step.kind == SUB:
        return OBJECT_NS
    if step.kind == BLOCK:
        return CALL_NS
    if step.kind == REDUCE:
        return CALL_NS + <double> step.operands[0].size * <double> step.kernel.cost
    for dim in step.dims:
        work *= <double> dim
    if step.kernel is None:
        return CALL_NS + BYTE_NS * work
    if not step.outer:
        return CALL_NS + work * <double> step.kernel.cost
    return <double> step.calls * (CALL_NS + work * <double> step.kernel.cost)


def estimate(list steps):
    """How long all of `steps` take, roughly."""
    cdef double total = 0
    for step in steps:
        total += nanoseconds(<Step> step)
    return total


def longest_call(list steps):
    """The most elements that a single strided call goes over."""
    cdef Py_ssize_t longest = 0
    cdef Step step
    for item in steps:
        step = item
        if step.kind == CALL and <Py_ssize_t> step.dims[0] > longest:
            longest = step.dims[0]
    return longest


cdef inline void fill(
    Step step, int kind, Origin origin, object kernel, tuple operands, Py_ssize_t inputs,
    tuple dims, tuple strides, tuple outer
):
    step.kind = kind
    step.origin = origin
    step.kernel = kernel
    step.operands = operands
    step.inputs = inputs
    step.dims = dims
    step.strides = strides
    step.outer = outer
    step.slots = ()
    step.moving = ()


cdef Origin make_origin(str op, object node, object location):
    """As the constructor, for callers in C."""
    cdef Origin origin = Origin.__new__(Origin)
    origin.op = op
    origin.node = node
    origin.location = location
    return origin


cdef Step make_step(
    int kind, Origin origin, object kernel, tuple operands, Py_ssize_t inputs, tuple dims,
    tuple strides, tuple outer
):
    """As the constructor, for callers in C."""
    cdef Step step = Step.__new__(Step)
    fill(step, kind, origin, kernel, operands, inputs, dims, strides, outer)
    return step
