"""C side of the interpreter; see _interpreter.pyx."""

from cpython.ref cimport PyObject
from numpy cimport npy_intp

from stagedad.run._loops cimport sad_loop

cdef enum:
    # Words of a shape pattern that hold dims; the strides follow.
    DIMS = 5
    # Operands of a strided call; an object call has any number.
    OPERANDS = 4
    # Outputs of a call with numbers among inputs and outputs.
    MIXED = 32


cdef struct Instruction:
    # One line of cache.  `words` is dims[DIMS], then the strides; patterns are
    # shared between instructions, so that a program's few stay in cache.
    sad_loop loop
    void *context
    void *auxdata
    const npy_intp *words
    void *extra                 # by kind: outer axes, a Block or an ObjectCall
    int slots[OPERANDS]
    unsigned char kind
    unsigned char operands


cdef struct Block:
    # Runs the `count` instructions that follow it `length` elements at a time.
    npy_intp n
    npy_intp length
    Py_ssize_t count
    Py_ssize_t moving           # how many slots advance with the elements
    int *slots
    npy_intp *steps             # bytes an element


cdef struct Arena:
    # Memory of one run: the slot table, then the temporaries.
    Arena *next                 # idle arenas of the same code
    Arena *newer                # idle arenas of all codes, in the order they became so
    Arena *older
    void *code                  # the Code that it belongs to
    size_t nbytes
    char **slots
    char *memory


cdef struct Argument:
    # What an input or output array must look like.
    int number                  # NumPy's type number
    PyObject *dtype
    int ndim
    int flags                   # array flags that must all be set
    bint strided                # whether strides are compared as well
    npy_intp *shape             # then the strides
    npy_intp nbytes
    int first                   # its slots are externals[first:last]
    int last


cdef struct External:
    # A slot that points into an input or output.
    int slot
    npy_intp offset


cdef struct Operand:
    # An input: an array, or a number (array is NULL) of type `number` at `data`.
    PyObject *array
    char *data
    int number


cdef object as_array(const Operand *operand)


cdef class Code:
    """A plan in executable form: immutable, shared by threads, re-entrant."""
    cdef readonly object plan
    cdef readonly Code twin     # under STAGEDAD_CHECK: the same without reuse of memory
    cdef object comparison      # of two tuples of outputs: raises where they differ
    cdef Instruction *instructions
    cdef Py_ssize_t count
    cdef Argument *arguments    # of the inputs, then of the outputs
    cdef readonly int inputs
    cdef readonly int outputs
    cdef External *externals
    cdef char **slots           # what a new arena's table starts from
    cdef npy_intp *arena_offset  # of each slot; -1 when it lies elsewhere
    cdef Py_ssize_t slot_count
    cdef size_t arena_bytes
    cdef Arena *pool
    cdef int pooled
    cdef readonly bint keeps_gil
    cdef bint is_twin           # of another, which speaks of floating-point errors for both
    cdef void *owned            # chain of memory blocks that go with the code
    cdef list kept              # Loops and ObjectCalls that instructions point into

    cdef void *own(self, size_t size) except NULL
    cdef bint fits(self, PyObject *const *arrays) noexcept
    cdef bint matches(self, int index, PyObject *array) noexcept
    cdef bint fits_mixed(
        self, const Operand *operands, Py_ssize_t count, PyObject *const *held
    ) noexcept
    cdef tuple launch(self, PyObject *const *arrays)
    cdef tuple launch_mixed(
        self, const Operand *operands, Py_ssize_t count, PyObject *const *held,
        const unsigned char *scalar
    )
    cdef int launch_into(self, PyObject *const *arrays, PyObject *const *targets) except -1
    cdef Arena *aimed(
        self, PyObject *const *arrays, PyObject *const *targets
    ) except NULL
    cdef int compare(self, tuple results, tuple others) except -1
    cdef Arena *take(self) except NULL
    cdef void give(self, Arena *arena) noexcept
    cdef void drop(self, Arena *arena) noexcept
    cdef int run(self, Arena *arena) except -1
    cdef int fail(self, Py_ssize_t index, Arena *arena) except -1
    cdef int find_float_errors(self, Arena *arena) except -1


cdef Py_ssize_t execute(
    const Instruction *instructions, Py_ssize_t count, char **slots
) noexcept nogil
