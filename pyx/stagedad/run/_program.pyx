"""Calling a program: the way from Python's arguments to the first instruction.

The last code used is tried first, then the few before it, then the cache, which
plans what it does not find.  A call that meets a code in use makes no Python
object but its outputs.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from numpy cimport npy_intp

from threading import Lock
from weakref import WeakSet

from stagedad.run.profiling import profile

from stagedad.run._interpreter cimport MIXED, Code, Operand, as_array
from stagedad.run.arrays cimport (
    sad_data, sad_itemsize, sad_ndim, sad_shape, sad_strides
)
from stagedad.run.calls cimport (
    PyVectorcall_NARGS, sad_enable_vectorcall, tuple_items, vectorcallfunc
)

cdef enum:
    # Arguments and held arrays that are passed without allocating.
    FEW = 32
    # Codes that are tried before the cache is asked.
    RECENT = 8


cdef object every = WeakSet()
cdef object every_lock = Lock()


def clear_programs():
    """Forget the codes of every program that is alive."""
    with every_lock:
        alive = list(every)
    for program in alive:
        (<Program> program).cache_clear()


cdef class Program:
    """A compiled graph: called on arrays, it gives a tuple of new ones.

    It specialises itself for the dtypes, shapes and layouts it meets and keeps
    what it made in `specialisations`, bounded.  Many threads may call it at once.

    Gives:  C-contiguous, writeable arrays that share memory with nothing else;
            0-d arrays for scalars
    Raises: TypeError for a wrong number of arrays; DTypeError, ShapeError and
            others, with the node as a note, where the graph does not take them
    """
    def __cinit__(self, specialisations):
        self.vectorcall = <vectorcallfunc> call_vector
        self.specialisations = specialisations
        self.inputs = len(specialisations.graph.inputs)
        self.held = tuple(specialisations.held)
        self.recent = []
        with every_lock:
            every.add(self)

    def __call__(self, *arrays):
        return call(self, tuple_items(arrays), len(arrays))

    def run(self, inputs, outputs):
        """Run on `inputs`, writing into the arrays `outputs`; no memory is allocated.

        Strided or unaligned outputs are filled through a temporary.

        Raises: before anything is written: TypeError, DTypeError or ShapeError
                for outputs that are not what the program gives; ValueError if
                one is read-only or overlaps another array.
        """
        cdef tuple given = tuple(inputs)
        cdef tuple targets = tuple(outputs)
        cdef tuple arguments = given + self.held
        cdef Code code
        cdef Py_ssize_t i
        self.check_count(len(given))
        code = self.find(tuple_items(arguments))
        if code is None:
            code, converted = self.select(arguments)
            arguments = tuple(converted)
        if len(targets) != code.outputs:
            raise TypeError(f"run: outputs: {len(targets)} arrays for {code.outputs}")
        for i in range(code.outputs):
            if not code.matches(code.inputs + <int> i, tuple_items(targets)[i]):
                return self.specialisations.run_through_temporaries(
                    self, code.plan, arguments, targets
                )
        _check_overlaps(
            tuple_items(arguments), code.inputs, tuple_items(targets), code.outputs
        )
        code.launch_into(tuple_items(arguments), tuple_items(targets))
        if code.twin is not None:
            code.compare(targets, code.twin.launch(tuple_items(arguments)))

    def profile(self, *arrays, runs=None):
        """Time each instruction on `arrays`: a Profile, whose text is a table by line and node.

        `runs`: how often; about a twentieth of a second if it is not given.  Outputs go to
        arrays of their own.

        Raises: as a call.
        """
        code, arguments = self.chosen(arrays)
        return profile(code, arguments, runs)

    def plan_for(self, *arrays):
        """The plan for such arrays, made if need be; nothing is run."""
        code, _ = self.chosen(arrays)
        return (<Code> code).plan

    cdef tuple chosen(self, tuple arrays):
        """The code for `arrays`, and its inputs."""
        cdef tuple arguments = arrays + self.held
        cdef Code code
        self.check_count(len(arrays))
        code = self.find(tuple_items(arguments))
        if code is not None:
            return code, arguments
        code, converted = self.select(arguments)
        return code, tuple(converted)

    def specialise(self, types):
        """Plan ahead for arguments of `types`: types, texts as f64[2, 3], or arrays."""
        self.use(self.specialisations.for_types(types))

    @property
    def graph(self):
        """A copy of the graph that is run."""
        return self.specialisations.graph.copy()

    @property
    def workspace_bytes(self):
        """Bytes of temporaries of the specialisation used last."""
        return self.current().plan.arena_bytes

    @property
    def instructions(self):
        """The instructions of the specialisation used last, as readable records."""
        return self.specialisations.listing(self.current().plan)

    @property
    def output_types(self):
        """Types of the outputs in the specialisation used last."""
        return self.current().plan.types

    def cache_info(self):
        """Hits, misses, maxsize and currsize of the specialisations, as functools has them."""
        return self.specialisations.info(self.hits)

    def cache_clear(self):
        """Forget all specialisations."""
        self.last = None
        self.recent = []
        self.hits = 0
        self.specialisations.clear()

    def __repr__(self):
        return f"<Program of {self.inputs} inputs, {len(self.graph)} nodes>"

    cdef Code current(self):
        """The code used last; that of the declared types before the first call."""
        if self.last is None:
            self.use(self.specialisations.as_declared())
        return self.last

    cdef int check_count(self, Py_ssize_t count) except -1:
        if count != self.inputs:
            raise TypeError(
                f"program: takes {self.inputs} array{'' if self.inputs == 1 else 's'}: {count}"
            )
        return 0

    cdef Code find(self, PyObject *const *arrays):
        """The code in recent use that fits; None if there is none."""
        cdef Code code = self.last
        cdef list recent
        if code is not None and code.fits(arrays):
            self.hits += 1
            return code
        recent = self.recent
        for code in recent:
            if code.fits(arrays):
                self.hits += 1
                self.last = code
                return code
        return None

    cdef tuple select(self, tuple arrays):
        """The code for any arguments, made if need be, and them as it wants them."""
        made = self.specialisations.select(arrays)
        code, converted, cached = made
        if cached:
            self.hits += 1
        self.use(code)
        return code, converted

    cdef int use(self, Code code) except -1:
        """Make `code` the one that is tried first."""
        self.recent = [code, *[old for old in self.recent if old is not code][:RECENT - 1]]
        self.last = code
        return 0


cdef tuple call(Program self, PyObject *const *arrays, Py_ssize_t count):
    cdef PyObject *few[FEW]
    cdef PyObject **all_ = few
    cdef Py_ssize_t held = len(self.held)
    cdef Py_ssize_t i
    self.check_count(count)
    if held == 0:
        return launch(self, arrays, count)
    # Arrays held by constants are read anew at each run, like arguments.
    if count + held > FEW:
        all_ = <PyObject **> PyMem_Malloc(<size_t> (count + held) * sizeof(PyObject *))
        if all_ == NULL:
            raise MemoryError
    for i in range(count):
        all_[i] = arrays[i]
    for i in range(held):
        all_[count + i] = tuple_items(self.held)[i]
    try:
        return launch(self, <PyObject *const *> all_, count + held)
    finally:
        if all_ != few:
            PyMem_Free(all_)


cdef tuple launch(Program self, PyObject *const *arrays, Py_ssize_t count):
    cdef Code code = self.find(arrays)
    cdef tuple converted
    cdef tuple results
    cdef Py_ssize_t i
    if code is None:
        code, made = self.select(tuple([<object> arrays[i] for i in range(count)]))
        converted = tuple(made)
        arrays = tuple_items(converted)
        results = code.launch(arrays)
    else:
        results = code.launch(arrays)
    if code.twin is not None:
        code.compare(results, code.twin.launch(arrays))
    return results


cdef tuple call_mixed(
    Program self, const Operand *operands, Py_ssize_t count, const unsigned char *scalar
):
    """As `call`, with numbers among the inputs; outputs marked `scalar` are NumPy's scalars."""
    cdef Code code = self.last
    cdef Py_ssize_t i
    cdef tuple arrays
    cdef tuple results
    self.check_count(count)
    if (
        code is not None and code.twin is None and code.outputs <= MIXED
        and code.fits_mixed(operands, count, tuple_items(self.held))
    ):
        self.hits += 1
        return code.launch_mixed(operands, count, tuple_items(self.held), scalar)
    arrays = tuple([as_array(&operands[i]) for i in range(count)])
    results = call(self, tuple_items(arrays), count)
    return tuple([
        results[i][()] if scalar[i] else results[i] for i in range(len(results))
    ])


cdef object call_vector(
    object self, PyObject *const *args, size_t nargsf, PyObject *kwnames
):
    if kwnames != NULL and len(<tuple> kwnames) > 0:
        raise TypeError(f"program: takes no keyword arguments: {(<tuple> kwnames)[0]}")
    return call(<Program> self, args, PyVectorcall_NARGS(nargsf))


cdef int _check_overlaps(
    PyObject *const *arrays, int inputs, PyObject *const *targets, int outputs
) except -1:
    """Raise ValueError if an output shares bytes with an input or another output."""
    cdef int i
    cdef int k
    for i in range(outputs):
        for k in range(inputs):
            if _overlap(targets[i], arrays[k]):
                raise ValueError(f"run: output {i} overlaps an input: number {k}")
        for k in range(i):
            if _overlap(targets[i], targets[k]):
                raise ValueError(f"run: output {i} overlaps output {k}")
    return 0


cdef bint _overlap(PyObject *a, PyObject *b) noexcept:
    cdef char *low_a
    cdef char *high_a
    cdef char *low_b
    cdef char *high_b
    _extent(a, &low_a, &high_a)
    _extent(b, &low_b, &high_b)
    return low_a < high_b and low_b < high_a


cdef void _extent(PyObject *array, char **low, char **high) noexcept:
    """The first byte of an array, and the one behind its last."""
    cdef const npy_intp *shape = sad_shape(array)
    cdef const npy_intp *strides = sad_strides(array)
    cdef npy_intp span
    cdef int d
    low[0] = sad_data(array)
    high[0] = low[0] + sad_itemsize(array)
    for d in range(sad_ndim(array)):
        if shape[d] == 0:
            high[0] = low[0]
            return
        span = (shape[d] - 1) * strides[d]
        if span < 0:
            low[0] += span
        else:
            high[0] += span


cdef int _set_up_vectorcall() except -1:
    cdef Program program = Program.__new__(Program, _Nothing())
    sad_enable_vectorcall(
        <PyTypeObject *> Program, <char *> &program.vectorcall - <char *> <void *> program
    )
    return 0


class _Nothing:
    """Enough of a cache to make one Program of."""

    class graph:
        inputs = ()

    held = ()


_set_up_vectorcall()
