"""The interpreter: runs a plan's instructions over memory.

An instruction is a typed strided loop (see _loops) and the slots of its
operands.  A slot is a pointer: of a temporary in the run's arena, of a constant
of the plan, or into an input or output.  The first two are filled in once an
arena, the others once a run, so that an instruction costs a few loads and the
loop itself.

Note [who owns what]: Code owns every C block its instructions point into, the
Loops and, through them, the capsules that hold NumPy's contexts.  An arena
belongs to one run at a time; the pool is touched with the GIL held only.
"""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.ref cimport PyObject, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcpy, memset
cimport numpy as cnp
from numpy cimport npy_intp

from stagedad.plan import out_of_memory
from stagedad.plan._step cimport Step
from stagedad.run import float_errors
from stagedad.run._errstate cimport (
    numpy_bits, sad_fp_clear, sad_fp_flags, sad_fp_raise, watched
)
from stagedad.run._loops cimport Loop, native, wrap
from stagedad.run.arrays cimport (
    sad_data, sad_flags, sad_is_array, sad_is_native, sad_ndim, sad_number, sad_shape,
    sad_strides
)

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyErr_Occurred()

cdef extern from *:
    """
    static PyObject *sad_empty(PyObject *dtype, int ndim, const npy_intp *shape) {
      Py_INCREF(dtype);
      return PyArray_NewFromDescr(
          &PyArray_Type, (PyArray_Descr *)dtype, ndim, shape, NULL, NULL, 0, NULL);
    }
    static PyObject *sad_scalar(void *data, int number) {
      PyArray_Descr *dtype = PyArray_DescrFromType(number);
      PyObject *scalar = dtype == NULL ? NULL : PyArray_Scalar(data, dtype, NULL);
      Py_XDECREF(dtype);
      return scalar;
    }
    """
    object sad_empty(PyObject *dtype, int ndim, const npy_intp *shape)
    object sad_scalar(void *data, int number)

cdef enum:
    # ORDER STEP: as in stagedad/plan/step.py.
    CALL = 0        # one strided call
    OUTER = 1       # a strided call for every index of the outer axes
    ZERO = 2        # set bytes to zero
    REDUCE = 3      # one call of a loop that knows its axes; runs as a CALL
    OBJECT = 4      # a Python function on arrays
    BLOCK = 5       # the instructions that follow, block by block
    POISON = 6      # set bytes to 0xff: a nan in every float
    SUB = 7         # the programs of a node's blocks

cdef enum:
    # ORDER SPACE: as in stagedad/plan/step.py.
    ARENA = 0
    INPUT = 1
    OUTPUT = 2
    POOL = 3

cdef enum:
    ALIGNMENT = 64
    # Nanoseconds of work from which letting other threads run pays for the GIL's release.
    RELEASE_FROM = 5000
    # Idle arenas that a Code keeps.
    IDLE_ARENAS = 8


cdef object as_array(const Operand *operand):
    """The input as an array: itself, or a new 0-d one."""
    cdef cnp.ndarray made
    if operand.array != NULL:
        return <object> operand.array
    made = cnp.PyArray_EMPTY(0, NULL, operand.number, 0)
    memcpy(cnp.PyArray_DATA(made), operand.data, <size_t> made.itemsize)
    return made


cdef Py_ssize_t live_codes = 0
cdef Py_ssize_t live_arenas = 0
cdef Py_ssize_t busy_arenas = 0

# Note [idle arenas]: what all codes keep for their next runs stays below a bound; beyond it
# those go first that have been idle longest, and one that is larger is not kept at all.
# Touched with the GIL held only.
cdef size_t idle_bytes = 0
cdef size_t idle_limit = 256 << 20
cdef Arena *newest = NULL
cdef Arena *oldest = NULL


def live_counts():
    """How many codes and arenas exist, and how many arenas are in a run, in this process."""
    return {"codes": live_codes, "arenas": live_arenas, "busy_arenas": busy_arenas}


def idle_memory():
    """Bytes of workspace kept for later runs, and their bound."""
    return idle_bytes, idle_limit


def limit_idle_memory(size_t limit):
    """Set the bound of the workspace kept for later runs; 0 frees all and keeps none.

    Returns the bound before.
    """
    global idle_limit
    before = idle_limit
    idle_limit = limit
    trim(limit)
    return before


cdef void trim(size_t limit) noexcept:
    """Free the arenas that have been idle longest until the others stay below `limit`."""
    cdef Arena *arena
    while idle_bytes > limit:
        arena = oldest
        (<Code> arena.code).drop(arena)


cdef void enlist(Arena *arena) noexcept:
    """Note an arena as idle from now on."""
    global idle_bytes, newest, oldest
    arena.newer = NULL
    arena.older = newest
    if newest != NULL:
        newest.newer = arena
    else:
        oldest = arena
    newest = arena
    idle_bytes += arena.nbytes


cdef void delist(Arena *arena) noexcept:
    """Note an arena as no longer idle."""
    global idle_bytes, newest, oldest
    if arena.newer != NULL:
        arena.newer.older = arena.older
    else:
        newest = arena.older
    if arena.older != NULL:
        arena.older.newer = arena.newer
    else:
        oldest = arena.newer
    idle_bytes -= arena.nbytes


cdef class Code:
    def __cinit__(self, object plan, Code twin=None, object comparison=None):
        global live_codes
        self.twin = twin
        if twin is not None:
            twin.is_twin = True
        self.comparison = comparison
        live_codes += 1
        self.plan = plan
        self.kept = []
        self.inputs = <int> len(plan.inputs)
        self.outputs = <int> len(plan.outputs)
        self.arena_bytes = plan.arena_bytes
        _place_slots(self, plan)
        _describe_arguments(self, plan)
        _assemble(self, plan)
        if plan.estimate < RELEASE_FROM:
            self.keeps_gil = True

    def __dealloc__(self):
        global live_codes
        cdef void *block
        live_codes -= 1
        while self.pool != NULL:
            self.drop(self.pool)
        while self.owned != NULL:
            block = self.owned
            self.owned = (<void **> block)[0]
            PyMem_RawFree(block)

    cdef void *own(self, size_t size) except NULL:
        """Zeroed memory, aligned, that lives as long as the code."""
        cdef char *block = <char *> PyMem_RawMalloc(size + 2 * ALIGNMENT)
        cdef char *memory
        if block == NULL:
            raise MemoryError
        (<void **> block)[0] = self.owned
        self.owned = block
        memory = <char *> (
            (<size_t> block + sizeof(void *) + ALIGNMENT - 1) & ~<size_t> (ALIGNMENT - 1)
        )
        memset(memory, 0, size)
        return memory

    cdef bint fits(self, PyObject *const *arrays) noexcept:
        """Whether these inputs, of any type, are what the code was made for."""
        cdef int i
        for i in range(self.inputs):
            if not self.matches(i, arrays[i]):
                return False
        return True

    cdef bint fits_mixed(
        self, const Operand *operands, Py_ssize_t count, PyObject *const *held
    ) noexcept:
        """As `fits`, for arrays and numbers, then the arrays that constants hold."""
        cdef int i
        for i in range(<int> count):
            if operands[i].array != NULL:
                if not self.matches(i, operands[i].array):
                    return False
            elif (
                self.arguments[i].ndim != 0 or self.arguments[i].number != operands[i].number
            ):
                return False
        for i in range(<int> count, self.inputs):
            if not self.matches(i, held[i - count]):
                return False
        return True

    cdef bint matches(self, int index, PyObject *array) noexcept:
        cdef const Argument *want = self.arguments + index
        cdef const npy_intp *words
        cdef int d
        if (
            not sad_is_array(array)
            or sad_number(array) != want.number
            or sad_ndim(array) != want.ndim
            or (sad_flags(array) & want.flags) != want.flags
            or not sad_is_native(array)
        ):
            return False
        words = sad_shape(array)
        for d in range(want.ndim):
            if words[d] != want.shape[d]:
                return False
        if want.strided:
            words = sad_strides(array)
            for d in range(want.ndim):
                if words[d] != want.shape[want.ndim + d]:
                    return False
        return True

    cdef tuple launch(self, PyObject *const *arrays):
        """Run on inputs that fit, into fresh arrays."""
        cdef Arena *arena
        cdef Argument *want
        cdef object result
        cdef object results = PyTuple_New(self.outputs)
        cdef int i
        for i in range(self.outputs):
            want = self.arguments + self.inputs + i
            result = sad_empty(want.dtype, want.ndim, want.shape)
            Py_INCREF(result)
            PyTuple_SET_ITEM(results, i, result)
        arena = self.take()
        _point(self, arena.slots, 0, self.inputs, arrays)
        for i in range(self.outputs):
            _aim(
                self, arena.slots, self.inputs + i,
                sad_data(<PyObject *> (<tuple> results)[i])
            )
        self.run(arena)
        return <tuple> results

    cdef tuple launch_mixed(
        self, const Operand *operands, Py_ssize_t count, PyObject *const *held,
        const unsigned char *scalar
    ):
        """As `launch`, for inputs as in `fits_mixed`; 0-d outputs marked `scalar` are scalars.

        There may be at most MIXED outputs.
        """
        cdef Arena *arena
        cdef Argument *want
        cdef object result
        cdef object results = PyTuple_New(self.outputs)
        cdef double numbers[2 * MIXED]       # room for complex128
        cdef char *targets[MIXED]
        cdef int i
        for i in range(self.outputs):
            if scalar[i]:
                targets[i] = <char *> (numbers + 2 * i)
                continue
            want = self.arguments + self.inputs + i
            result = sad_empty(want.dtype, want.ndim, want.shape)
            targets[i] = sad_data(<PyObject *> result)
            Py_INCREF(result)
            PyTuple_SET_ITEM(results, i, result)
        arena = self.take()
        for i in range(<int> count):
            _aim(
                self, arena.slots, i,
                operands[i].data if operands[i].array == NULL else sad_data(operands[i].array)
            )
        for i in range(<int> count, self.inputs):
            _aim(self, arena.slots, i, sad_data(held[i - count]))
        for i in range(self.outputs):
            _aim(self, arena.slots, self.inputs + i, targets[i])
        self.run(arena)
        for i in range(self.outputs):
            if scalar[i]:
                result = sad_scalar(targets[i], self.arguments[self.inputs + i].number)
                Py_INCREF(result)
                PyTuple_SET_ITEM(results, i, result)
        return <tuple> results

    cdef int launch_into(self, PyObject *const *arrays, PyObject *const *targets) except -1:
        """Run on inputs and outputs that fit."""
        return self.run(self.aimed(arrays, targets))

    cdef Arena *aimed(
        self, PyObject *const *arrays, PyObject *const *targets
    ) except NULL:
        """An arena for a run on inputs and outputs that fit."""
        cdef Arena *arena = self.take()
        _point(self, arena.slots, 0, self.inputs, arrays)
        _point(self, arena.slots, self.inputs, self.outputs, targets)
        return arena

    cdef int compare(self, tuple results, tuple others) except -1:
        """Check results against those of the twin."""
        self.comparison(self.plan, results, others)
        return 0

    cdef int run(self, Arena *arena) except -1:
        cdef Py_ssize_t failed
        cdef int flags
        sad_fp_clear()
        if self.keeps_gil:
            failed = execute(self.instructions, self.count, arena.slots)
        else:
            with nogil:
                failed = execute(self.instructions, self.count, arena.slots)
        if failed >= 0 or PyErr_Occurred() != NULL:
            self.fail(failed, arena)
        flags = sad_fp_flags()
        if flags != 0 and not self.is_twin and flags & watched():
            self.find_float_errors(arena)
        self.give(arena)
        return 0

    cdef int find_float_errors(self, Arena *arena) except -1:
        """Run once more, instruction by instruction, and report those that raise flags."""
        cdef unsigned char *noted = <unsigned char *> PyMem_RawCalloc(<size_t> self.count, 1)
        cdef Py_ssize_t failed
        cdef Py_ssize_t i
        if noted == NULL:
            self.give(arena)
            raise MemoryError
        if self.keeps_gil:
            failed = execute_noting(self.instructions, self.count, arena.slots, noted)
        else:
            with nogil:
                failed = execute_noting(self.instructions, self.count, arena.slots, noted)
        found = [
            (self.plan.steps[i], numpy_bits(noted[i])) for i in range(self.count) if noted[i]
        ]
        PyMem_RawFree(noted)
        if failed >= 0 or PyErr_Occurred() != NULL:
            self.fail(failed, arena)
        try:
            float_errors.report(found)
        except BaseException:
            self.give(arena)
            raise
        return 0

    cdef int fail(self, Py_ssize_t index, Arena *arena) except -1:
        """Raise what instruction `index` met, naming its node."""
        try:
            if PyErr_Occurred() != NULL:
                _raise_pending()
            raise self.plan.steps[index].explain(_operands(self, index, arena))
        except Exception as error:
            if index >= 0:
                self.plan.steps[index].annotate(error)
            raise
        finally:
            self.give(arena)

    cdef Arena *take(self) except NULL:
        """An arena for one run."""
        global live_arenas
        global busy_arenas
        cdef Arena *arena = self.pool
        cdef size_t table
        cdef Py_ssize_t i
        busy_arenas += 1
        if arena != NULL:
            self.pool = arena.next
            self.pooled -= 1
            delist(arena)
            return arena
        table = sizeof(Arena) + <size_t> self.slot_count * sizeof(char *)
        arena = <Arena *> PyMem_RawMalloc(table + ALIGNMENT + self.arena_bytes)
        if arena == NULL:
            busy_arenas -= 1
            raise out_of_memory(self.plan.steps, self.arena_bytes)
        live_arenas += 1
        arena.code = <void *> self
        arena.nbytes = table + ALIGNMENT + self.arena_bytes
        arena.slots = <char **> (arena + 1)
        arena.memory = <char *> (
            (<size_t> arena + table + ALIGNMENT - 1) & ~<size_t> (ALIGNMENT - 1)
        )
        memcpy(arena.slots, self.slots, <size_t> self.slot_count * sizeof(char *))
        for i in range(self.slot_count):
            if self.arena_offset[i] >= 0:
                arena.slots[i] = arena.memory + self.arena_offset[i]
        return arena

    cdef void give(self, Arena *arena) noexcept:
        global live_arenas
        global busy_arenas
        busy_arenas -= 1
        if self.pooled < IDLE_ARENAS and arena.nbytes <= idle_limit:
            arena.next = self.pool
            self.pool = arena
            self.pooled += 1
            enlist(arena)
            if idle_bytes > idle_limit:
                trim(idle_limit)
        else:
            live_arenas -= 1
            PyMem_RawFree(arena)

    cdef void drop(self, Arena *arena) noexcept:
        """Free an idle arena."""
        global live_arenas
        cdef Arena **link = &self.pool
        while link[0] != arena:
            link = &link[0].next
        link[0] = arena.next
        self.pooled -= 1
        delist(arena)
        live_arenas -= 1
        PyMem_RawFree(arena)


cdef inline void _aim(Code self, char **slots, int argument, char *data) noexcept:
    cdef int e
    for e in range(self.arguments[argument].first, self.arguments[argument].last):
        slots[self.externals[e].slot] = data + self.externals[e].offset


cdef inline void _point(
    Code self, char **slots, int first, int count, PyObject *const *arrays
) noexcept:
    """Aim the slots of `count` arguments at the arrays' data."""
    cdef int i
    for i in range(count):
        _aim(self, slots, first + i, sad_data(arrays[i]))


cdef int _raise_pending() except -1:
    """Let the exception that a loop has set go its way."""
    return -1


cdef list _operands(Code self, Py_ssize_t index, Arena *arena):
    """The operands of a failed instruction as arrays, copied."""
    cdef list arrays = []
    cdef list shape
    cdef list strides
    for slot, dtype, shape, strides in self.plan.steps[index].described():
        arrays.append(_array(arena.slots[<int> slot], dtype.num, shape, strides).copy())
    return arrays


cdef object _array(char *data, int number, list shape, list strides):
    cdef npy_intp words[2 * cnp.NPY_MAXDIMS]
    cdef Py_ssize_t ndim = len(shape)
    cdef Py_ssize_t d
    for d in range(ndim):
        words[d] = shape[d]
        words[ndim + d] = strides[d]
    return wrap(data, <int> ndim, words, words + ndim, number)


# -- executing ------------------------------------------------------------------


cdef inline int call(
    const Instruction *ins, char **slots, const npy_intp *dims
) noexcept nogil:
    """One strided call of up to four operands."""
    cdef char *data[OPERANDS]
    data[0] = slots[ins.slots[0]]
    data[1] = slots[ins.slots[1]]
    data[2] = slots[ins.slots[2]]
    if ins.operands > 3:
        data[3] = slots[ins.slots[3]]
    return ins.loop(ins.context, data, dims, ins.words + DIMS, ins.auxdata)


cdef Py_ssize_t execute(
    const Instruction *instructions, Py_ssize_t count, char **slots
) noexcept nogil:
    """Run instructions in order.  Returns -1, or the index of the one that failed."""
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t failed
    cdef const Instruction *ins
    while i < count:
        ins = instructions + i
        # Nearly all are of this kind: in a loop of their own they need no jump by kind.
        while ins.kind == CALL:
            if call(ins, slots, ins.words) != 0:
                return i
            i += 1
            if i == count:
                return -1
            ins = instructions + i
        if ins.kind == OUTER:
            if call_outer(ins, slots) != 0:
                return i
        elif ins.kind == ZERO:
            memset(slots[ins.slots[0]], 0, <size_t> ins.words[0])
        elif ins.kind == BLOCK:
            failed = run_block(ins, slots, NULL)
            if failed >= 0:
                return i + failed
            i += (<const Block *> ins.extra).count
        elif ins.kind == OBJECT or ins.kind == SUB:
            if object_caller(ins.extra, slots) != 0:
                return i
        else:
            memset(slots[ins.slots[0]], 0xff, <size_t> ins.words[0])
        i += 1
    return -1


cdef Py_ssize_t execute_noting(
    const Instruction *instructions, Py_ssize_t count, char **slots, unsigned char *noted
) noexcept nogil:
    """As `execute`; notes for each instruction which flags it raises."""
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t failed
    while i < count:
        if instructions[i].kind == BLOCK:
            failed = run_block(instructions + i, slots, noted + i)
        else:
            sad_fp_clear()
            failed = execute(instructions + i, 1, slots)
            noted[i] = <unsigned char> sad_fp_flags()
        if failed >= 0:
            return i + failed
        if instructions[i].kind == BLOCK:
            i += (<const Block *> instructions[i].extra).count
        i += 1
    return -1


cdef int call_outer(const Instruction *ins, char **slots) noexcept nogil:
    """A strided call for every index of the outer axes, the last one fastest.

    `extra` is: how many axes; for each, its extent and one stride an operand.
    """
    cdef const npy_intp *axes = <const npy_intp *> ins.extra
    cdef npy_intp ndim = axes[0]
    cdef npy_intp index[cnp.NPY_MAXDIMS]
    cdef char *at[OPERANDS]
    cdef char *data[OPERANDS]
    cdef int operands = ins.operands
    cdef npy_intp width = operands + 1
    cdef const npy_intp *axis
    cdef const npy_intp *last = axes + 1 + (ndim - 1) * width
    cdef npy_intp d
    cdef npy_intp inner
    cdef int k
    for k in range(operands):
        at[k] = slots[ins.slots[k]]
    for d in range(ndim):
        index[d] = 0
    while True:
        inner = last[0]
        while True:
            # Matmul's loops advance the pointers that they are given.
            for k in range(operands):
                data[k] = at[k]
                at[k] += last[1 + k]
            if ins.loop(ins.context, data, ins.words, ins.words + DIMS, ins.auxdata) != 0:
                return -1
            inner -= 1
            if inner == 0:
                break
        for k in range(operands):
            at[k] -= last[0] * last[1 + k]
        d = ndim - 2
        while d >= 0:
            axis = axes + 1 + d * width
            index[d] += 1
            if index[d] < axis[0]:
                for k in range(operands):
                    at[k] += axis[1 + k]
                break
            for k in range(operands):
                at[k] -= (axis[0] - 1) * axis[1 + k]
            index[d] = 0
            d -= 1
        if d < 0:
            return 0


cdef Py_ssize_t run_block(
    const Instruction *head, char **slots, unsigned char *noted
) noexcept nogil:
    """Run a block's instructions over its elements, one length at a time.

    Where the flags that an instruction raises are to be noted, `noted` is not NULL.
    Slots of full arrays advance with the elements and are put back at the end;
    those of values that live within the block stay: they are a length long.
    """
    cdef const Block *block = <const Block *> head.extra
    cdef npy_intp done = 0
    cdef npy_intp dims[DIMS]
    cdef Py_ssize_t i
    cdef Py_ssize_t failed = -1
    while done < block.n and failed < 0:
        dims[0] = block.n - done if block.n - done < block.length else block.length
        # For reductions: of how many, and after how many.
        dims[1] = block.n
        dims[2] = done
        for i in range(1, block.count + 1):
            if noted != NULL:
                sad_fp_clear()
            if call(head + i, slots, dims) != 0:
                failed = i
                break
            if noted != NULL:
                noted[i] |= <unsigned char> sad_fp_flags()
        for i in range(block.moving):
            slots[block.slots[i]] += dims[0] * block.steps[i]
        done += dims[0]
    for i in range(block.moving):
        slots[block.slots[i]] -= done * block.steps[i]
    return failed


cdef class ObjectCall:
    """A Python function on copies of the operands, its results copied back.

    Copies, because a function may keep what it is given, and the arena moves on; sub-programs
    keep nothing.
    """
    cdef object function
    cdef bint keeps_nothing
    cdef list inputs            # of (slot, type number, shape, strides)
    cdef list outputs

    cdef int call(self, char **slots) except -1:
        cdef list arrays = []
        cdef list shape
        cdef list strides
        for slot, number, shape, strides in self.inputs:
            array = _array(slots[<int> slot], number, shape, strides)
            arrays.append(array if self.keeps_nothing else array.copy())
        results = self.function(arrays)
        for (slot, number, shape, strides), result in zip(self.outputs, results, strict=True):
            _array(slots[<int> slot], number, shape, strides)[...] = result
        return 0


cdef int call_object(void *extra, char **slots) except -1 with gil:
    # NumPy clears the flags before whatever it computes.
    cdef int flags = sad_fp_flags()
    (<ObjectCall> extra).call(slots)
    sad_fp_raise(flags)
    return 0


# Without `except`: the exception stays set until the run has ended, for `fail` to raise.
ctypedef int (*call_function)(void *, char **) noexcept nogil
cdef call_function object_caller = <call_function> <void *> call_object


# -- building ---------------------------------------------------------------------


cdef int _place_slots(Code self, plan) except -1:
    """Number the slots; those of the arena and of the inputs wait for a run."""
    cdef Py_ssize_t i
    cdef int e = 0
    cdef char *constants
    cdef bytes pool = plan.pool
    self.slot_count = len(plan.slots)
    self.slots = <char **> self.own(<size_t> self.slot_count * sizeof(char *))
    self.arena_offset = <npy_intp *> self.own(<size_t> self.slot_count * sizeof(npy_intp))
    self.externals = <External *> self.own(<size_t> self.slot_count * sizeof(External))
    self.arguments = <Argument *> self.own(
        <size_t> (self.inputs + self.outputs) * sizeof(Argument)
    )
    constants = <char *> self.own(<size_t> len(pool))
    memcpy(constants, <const char *> pool, <size_t> len(pool))
    external = [[] for _ in range(self.inputs + self.outputs)]
    for i, (space, index, offset) in enumerate(plan.slots):
        self.arena_offset[i] = -1
        if space == ARENA:
            self.arena_offset[i] = offset
        elif space == POOL:
            self.slots[i] = constants + <npy_intp> offset
        else:
            external[index if space == INPUT else index + self.inputs].append((i, offset))
    for i, slots in enumerate(external):
        self.arguments[i].first = e
        for slot, offset in slots:
            self.externals[e].slot = slot
            self.externals[e].offset = offset
            e += 1
        self.arguments[i].last = e
    return 0


cdef int _describe_arguments(Code self, plan) except -1:
    cdef Argument *argument
    cdef int i
    cdef int d
    for i, want in enumerate([*plan.inputs, *plan.outputs]):
        argument = self.arguments + i
        argument.number = want.dtype.num
        argument.dtype = <PyObject *> want.dtype         # kept alive by the plan
        argument.ndim = <int> len(want.shape)
        argument.shape = <npy_intp *> self.own(<size_t> (2 * argument.ndim) * sizeof(npy_intp))
        argument.nbytes = want.dtype.itemsize
        for d in range(argument.ndim):
            argument.shape[d] = want.shape[d]
            argument.nbytes *= argument.shape[d]
        if want.strides is not None:
            argument.strided = True
            for d in range(argument.ndim):
                argument.shape[argument.ndim + d] = want.strides[d]
        else:
            argument.flags |= cnp.NPY_ARRAY_C_CONTIGUOUS
        if want.aligned:
            argument.flags |= cnp.NPY_ARRAY_ALIGNED
        if i >= self.inputs:
            argument.flags |= cnp.NPY_ARRAY_WRITEABLE
    return 0


cdef int _assemble(Code self, plan) except -1:
    """Turn the plan's steps into instructions."""
    cdef Py_ssize_t i
    cdef int k
    cdef Loop loop
    cdef Instruction *ins
    cdef dict patterns = {}
    cdef dict loops = {}                    # kernel -> its Loop
    cdef tuple steps = plan.steps
    cdef tuple slots
    cdef Step step
    self.count = len(steps)
    self.instructions = <Instruction *> self.own(<size_t> self.count * sizeof(Instruction))
    for i in range(self.count):
        step = <Step> steps[i]
        ins = self.instructions + i
        ins.kind = step.kind
        if ins.kind == OBJECT or ins.kind == SUB:
            ins.extra = <void *> _object_call(self, step)
            continue
        if ins.kind == BLOCK:
            ins.extra = _block(self, step)
            continue
        slots = step.slots
        ins.operands = <unsigned char> len(slots)
        for k in range(ins.operands):
            ins.slots[k] = slots[k]
        ins.words = _pattern(self, patterns, step.dims, step.strides)
        if step.kernel is not None:
            loop = loops.get(step.kernel)
            if loop is None:
                loop = loops[step.kernel] = native(step.kernel)
                self.kept.append(loop)
            ins.loop = loop.kernel.loop
            ins.context = loop.kernel.context
            ins.auxdata = loop.kernel.auxdata
            if loop.needs_gil:
                self.keeps_gil = True
        if ins.kind == OUTER:
            ins.extra = _words(self, step.outer)
        elif ins.kind == REDUCE:
            ins.kind = CALL
            if step.outer:
                ins.auxdata = _words(self, step.outer)
    return 0


cdef npy_intp *_words(Code self, tuple values) except NULL:
    cdef npy_intp *words = <npy_intp *> self.own(<size_t> len(values) * sizeof(npy_intp))
    cdef Py_ssize_t i
    for i in range(len(values)):
        words[i] = values[i]
    return words


cdef const npy_intp *_pattern(Code self, dict patterns, tuple dims, tuple strides) except NULL:
    """Words of these dims and strides: one copy a code."""
    cdef npy_intp *words
    cdef tuple key = (dims, strides)
    found = patterns.get(key)
    if found is not None:
        return <const npy_intp *> <size_t> found
    words = _words(self, dims + (0,) * (DIMS - len(dims)) + strides)
    patterns[key] = <size_t> words
    return words


cdef PyObject *_object_call(Code self, step) except NULL:
    cdef ObjectCall made = ObjectCall.__new__(ObjectCall)
    cdef list described = [
        (slot, dtype.num, shape, strides) for slot, dtype, shape, strides in step.described()
    ]
    made.function = step.function
    if step.kind == SUB:
        from stagedad.run._control import Control
        made.function = Control(step.function)
        made.keeps_nothing = True
    made.inputs = described[:step.inputs]
    made.outputs = described[step.inputs:]
    self.kept.append(made)
    self.keeps_gil = True
    return <PyObject *> made


cdef Block *_block(Code self, step) except NULL:
    cdef Block *block = <Block *> self.own(sizeof(Block))
    cdef Py_ssize_t i
    block.n, block.length = step.dims
    block.count = step.count
    block.moving = len(step.moving)
    block.slots = <int *> self.own(<size_t> block.moving * sizeof(int))
    block.steps = <npy_intp *> self.own(<size_t> block.moving * sizeof(npy_intp))
    for i, (slot, stride) in enumerate(step.moving):
        block.slots[i] = slot
        block.steps[i] = stride
    return block
