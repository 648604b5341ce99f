"""Running a code with a clock between its instructions."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport PyObject
from libc.math cimport INFINITY
from libc.string cimport memset
from numpy cimport npy_intp

from stagedad.run._interpreter cimport DIMS, OPERANDS, Arena, Block, Code, Instruction, execute
from stagedad.run.calls cimport tuple_items

cdef extern from "Python.h":
    PyObject *PyErr_Occurred()

cdef extern from *:
    """
    #include <time.h>
    static double sad_now(void) {
      struct timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
    }
    """
    double sad_now() noexcept nogil

cdef enum:
    # ORDER STEP: as in stagedad/plan/step.py.
    BLOCK = 5

    TICKS = 1000


def time_runs(Code code not None, tuple arrays, tuple targets, Py_ssize_t runs):
    """Run `code` so often: the least nanoseconds of a run, and of each instruction in one.

    The instructions are timed in runs of their own; what reading the clock takes is taken
    off.  The arrays fit the code.

    Raises: what a run raises.
    """
    cdef size_t count = <size_t> code.count + 1
    cdef double *spent = <double *> PyMem_Calloc(2 * count, sizeof(double))
    cdef double *least = spent + count
    cdef double start
    cdef double taken
    cdef double whole = INFINITY
    cdef double tick = clock_ticks()
    cdef Py_ssize_t _run
    cdef Py_ssize_t i
    cdef Py_ssize_t failed
    cdef Arena *arena
    if spent == NULL:
        raise MemoryError
    try:
        for _run in range(runs):
            start = sad_now()
            code.launch_into(tuple_items(arrays), tuple_items(targets))
            taken = sad_now() - start
            if taken < whole:
                whole = taken
        for i in range(code.count):
            least[i] = INFINITY
        for _run in range(runs):
            memset(spent, 0, count * sizeof(double))
            arena = code.aimed(tuple_items(arrays), tuple_items(targets))
            if code.keeps_gil:
                failed = timed(code, arena.slots, spent, tick)
            else:
                with nogil:
                    failed = timed(code, arena.slots, spent, tick)
            if failed >= 0 or PyErr_Occurred() != NULL:
                code.fail(failed, arena)
            code.give(arena)
            for i in range(code.count):
                if spent[i] < least[i]:
                    least[i] = spent[i]
        return whole, tuple([max(least[i], 0.0) for i in range(code.count)])
    finally:
        PyMem_Free(spent)


cdef double clock_ticks() noexcept:
    """What two looks at the clock are apart, at least."""
    cdef double least = 1e9
    cdef double start
    cdef double taken
    cdef int _tick
    for _tick in range(TICKS):
        start = sad_now()
        taken = sad_now() - start
        if taken < least:
            least = taken
    return least


cdef Py_ssize_t timed(Code code, char **slots, double *spent, double tick) noexcept nogil:
    """As `execute`; adds to `spent` what each instruction took."""
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t failed
    cdef double start
    while i < code.count:
        if code.instructions[i].kind == BLOCK:
            failed = timed_block(code.instructions + i, slots, spent + i, tick)
            if failed >= 0:
                return i + failed
            i += (<const Block *> code.instructions[i].extra).count
        else:
            start = sad_now()
            failed = execute(code.instructions + i, 1, slots)
            spent[i] += sad_now() - start - tick
            if failed >= 0:
                return i
        i += 1
    return -1


cdef Py_ssize_t timed_block(
    const Instruction *head, char **slots, double *spent, double tick
) noexcept nogil:
    """As the interpreter runs a block, its administration counted as the head's."""
    cdef const Block *block = <const Block *> head.extra
    cdef const Instruction *ins
    cdef npy_intp done = 0
    cdef npy_intp dims[DIMS]
    cdef char *data[OPERANDS]
    cdef Py_ssize_t i
    cdef Py_ssize_t failed = -1
    cdef int k
    cdef double start
    cdef double now
    while done < block.n and failed < 0:
        dims[0] = block.n - done if block.n - done < block.length else block.length
        for i in range(1, block.count + 1):
            ins = head + i
            start = sad_now()
            for k in range(ins.operands):
                data[k] = slots[ins.slots[k]]
            if ins.loop(ins.context, data, dims, ins.words + DIMS, ins.auxdata) != 0:
                failed = i
                break
            spent[i] += sad_now() - start - tick
        start = sad_now()
        for i in range(block.moving):
            slots[block.slots[i]] += dims[0] * block.steps[i]
        done += dims[0]
        now = sad_now()
        spent[0] += now - start - tick
    for i in range(block.moving):
        slots[block.slots[i]] -= done * block.steps[i]
    return failed
