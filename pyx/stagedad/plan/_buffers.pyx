"""Where every value lies: lifetimes, places in the arena, slots."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memset

from stagedad.plan._step cimport Step, make_step
from stagedad.plan._view cimport Buffer, View, dense_view

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    # ORDER STEP, ORDER SPACE: as in stagedad/plan/step.py.
    BLOCK = 5
    POISON = 6
    ARENA = 0
    OUTPUT = 2

    ALIGNMENT = 64
    NONE = -1


cdef Py_ssize_t STILL = PY_SSIZE_T_MAX          # the stride of a slot outside of blocks


def prune(list steps):
    """The steps that an output needs, and the checks."""
    cdef list kept = []
    cdef Step step
    cdef Buffer buffer
    cdef Py_ssize_t k
    cdef bint wanted
    cdef Py_ssize_t i = len(steps)
    while i > 0:
        i -= 1
        step = steps[i]
        wanted = step.inputs == len(step.operands)
        for k in range(step.inputs, len(step.operands)):
            buffer = (<View> step.operands[k]).buffer
            if wanted or buffer.space == OUTPUT or buffer.needed:
                wanted = True
                break
        if wanted:
            kept.append(step)
            for k in range(step.inputs):
                (<View> step.operands[k]).buffer.needed = True
    kept.reverse()
    return kept


cdef inline Py_ssize_t _unit_end(list steps, Py_ssize_t first):
    """Index of the last step of the block that starts at `first`; of a single step, itself."""
    cdef Step step = steps[first]
    return first + step.count if step.kind == BLOCK else first


def measure(list steps):
    """Note on every buffer the first and last step that touch it.

    What a block touches lives as long as the block.
    """
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef Py_ssize_t i
    cdef Buffer buffer
    while first < len(steps):
        last = _unit_end(steps, first)
        for i in range(first, last + 1):
            for view in (<Step> steps[i]).operands:
                buffer = (<View> view).buffer
                if buffer.first < 0:
                    buffer.first = first
                buffer.last = last
        first = last + 1


def place(list steps, *, bint reuse):
    """Give every temporary its place in the arena.  Returns the arena's size.

    With `reuse`, values that do not live at the same time share memory, and an
    elementwise step may write over an operand that dies with it.
    """
    cdef Arena arena = Arena(reuse)
    cdef list dying = [None] * len(steps)
    cdef list scratch
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef Py_ssize_t i
    cdef Py_ssize_t k
    cdef Step step
    cdef Buffer buffer
    cdef Buffer donor
    while first < len(steps):
        last = _unit_end(steps, first)
        scratch = None
        if last > first:
            scratch = _place_locals(arena, steps, first, last, reuse)
        for i in range(first, last + 1):
            step = steps[i]
            for k in range(step.inputs, len(step.operands)):
                buffer = (<View> step.operands[k]).buffer
                if buffer.space != ARENA or buffer.local or buffer.index == 0:
                    continue
                buffer.index = 0
                donor = None
                if reuse and first == last and step.donates:
                    donor = _donor(step, <View> step.operands[k], last)
                if donor is None:
                    buffer.place = arena.take(buffer.nbytes)
                else:
                    buffer.place = donor.place
                    donor.donated = True
                if dying[buffer.last] is None:
                    dying[buffer.last] = [buffer]
                else:
                    (<list> dying[buffer.last]).append(buffer)
        if dying[last] is not None:
            for item in <list> dying[last]:
                buffer = item
                if not buffer.donated:
                    arena.give(buffer.place, buffer.nbytes)
        if scratch is not None:
            for start, nbytes in scratch:
                arena.give(start, nbytes)
        first = last + 1
    return arena.size


def number_slots(list steps):
    """Give every operand its slot.  Returns the slots as (space, index, offset).

    In a block a slot moves by its stride, so there one address has a slot a stride.
    """
    cdef Slots slots = Slots(len(steps))
    cdef dict moving
    cdef tuple operands
    cdef tuple numbers
    cdef object slot
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef Py_ssize_t i
    cdef Py_ssize_t k
    cdef Py_ssize_t stride
    cdef Step step
    cdef View view
    while first < len(steps):
        last = _unit_end(steps, first)
        moving = {}
        for i in range(first, last + 1):
            step = steps[i]
            operands = step.operands
            numbers = PyTuple_New(len(operands))
            for k in range(len(operands)):
                view = operands[k]
                stride = STILL
                if last > first:
                    stride = 0 if view.buffer.local else <Py_ssize_t> step.strides[k]
                slot = slots.number(view, stride)
                Py_INCREF(slot)
                PyTuple_SET_ITEM(numbers, k, slot)
                if last > first and stride != 0:
                    moving[slot] = stride
            step.slots = numbers
        if last > first:
            (<Step> steps[first]).moving = tuple(moving.items())
        first = last + 1
    return slots.listed()


cdef struct Place:
    # What one slot points to, and how it moves in a block.
    Py_ssize_t index
    Py_ssize_t offset
    Py_ssize_t stride
    int space


cdef class Slots:
    """The slots given so far, found again by a hash table over their places."""
    cdef Place *given
    cdef int *table                 # numbers of slots; NONE where free
    cdef list names                 # the numbers as Python has them
    cdef Py_ssize_t room
    cdef size_t mask

    def __cinit__(self, Py_ssize_t steps):
        self.names = []
        self.grow(steps + 16)

    def __dealloc__(self):
        PyMem_Free(self.given)
        PyMem_Free(self.table)

    cdef int grow(self, Py_ssize_t room) except -1:
        cdef size_t size = 64
        cdef Place *given
        cdef Py_ssize_t i
        while size < 2 * <size_t> room:
            size *= 2
        given = <Place *> PyMem_Realloc(self.given, <size_t> room * sizeof(Place))
        if given == NULL:
            raise MemoryError
        self.given = given
        PyMem_Free(self.table)
        self.table = <int *> PyMem_Malloc(size * sizeof(int))
        if self.table == NULL:
            raise MemoryError
        memset(self.table, 0xff, size * sizeof(int))
        self.room = room
        self.mask = size - 1
        for i in range(len(self.names)):
            self.table[self.find(&self.given[i])] = <int> i
        return 0

    cdef size_t find(self, const Place *place) noexcept:
        """Where in the table `place` is, or may be put."""
        cdef size_t mixed = <size_t> place.offset * 31 + <size_t> place.space
        cdef const Place *other
        mixed = (mixed * 31 + <size_t> place.index) * 31 + <size_t> place.stride
        mixed *= <size_t> 0x9E3779B97F4A7C15
        mixed = (mixed ^ mixed >> 29) & self.mask
        while self.table[mixed] != NONE:
            other = &self.given[self.table[mixed]]
            if (
                other.offset == place.offset and other.space == place.space
                and other.index == place.index and other.stride == place.stride
            ):
                break
            mixed = (mixed + 1) & self.mask
        return mixed

    cdef object number(self, View view, Py_ssize_t stride):
        """The slot of a view's first element."""
        cdef Buffer buffer = view.buffer
        cdef Place place
        cdef size_t at
        cdef Py_ssize_t count = len(self.names)
        place.space = buffer.space
        place.index = buffer.index
        place.offset = view.offset + (buffer.place if buffer.space == ARENA else 0)
        place.stride = stride
        at = self.find(&place)
        if self.table[at] == NONE:
            if count == self.room:
                self.grow(2 * self.room)
                at = self.find(&place)
            self.given[count] = place
            self.table[at] = <int> count
            self.names.append(count)
        return self.names[self.table[at]]

    cdef tuple listed(self):
        cdef Py_ssize_t i
        return tuple([
            (self.given[i].space, self.given[i].index, self.given[i].offset)
            for i in range(len(self.names))
        ])


def poison(list steps):
    """Placed `steps` with one that overwrites each temporary after its last reader."""
    cdef list result = []
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef Py_ssize_t i
    cdef Step step
    cdef View view
    cdef Buffer buffer
    while first < len(steps):
        last = _unit_end(steps, first)
        result.extend(steps[first:last + 1])
        done = set()
        for i in range(first, last + 1):
            step = steps[i]
            for item in step.operands:
                view = item
                buffer = view.buffer
                if (
                    buffer.space == ARENA
                    and not (buffer.local or buffer.donated)
                    and buffer.last == last
                    and buffer.nbytes > 0
                    and buffer not in done
                ):
                    done.add(buffer)
                    whole = dense_view(buffer, view.dtype, (buffer.nbytes // view.itemsize,), 0)
                    dims = (buffer.nbytes,)
                    result.append(
                        make_step(POISON, step.origin, None, (whole,), 1, dims, (), ())
                    )
        first = last + 1
    return result


cdef class Arena:
    """Free places by size; neighbours are joined when no size fits."""
    cdef readonly object size   # the most that was ever in use
    cdef object top
    cdef dict free
    cdef bint reuse

    def __init__(self, bint reuse):
        self.size = 0
        self.top = 0
        self.free = {}
        self.reuse = reuse

    cpdef object take(self, Py_ssize_t nbytes):
        """Offset of so many bytes."""
        cdef list places
        cdef list fitting
        nbytes = _rounded(nbytes)
        found = self.free.get(nbytes)
        if found:
            return (<list> found).pop()
        fitting = []
        if self.free:
            self.join()
            fitting = [size for size in self.free if size >= nbytes]
        if fitting:
            size = min(fitting)
            places = self.free[size]
            start = places.pop()
            if not places:
                del self.free[size]
            if size > nbytes:
                self.free.setdefault(size - nbytes, []).append(start + nbytes)
            return start
        start = self.top
        self.top += nbytes
        self.size = max(self.size, self.top)
        return start

    cpdef int give(self, object start, Py_ssize_t nbytes) except -1:
        """Free what `take` gave."""
        if self.reuse and nbytes > 0:
            nbytes = _rounded(nbytes)
            found = self.free.get(nbytes)
            if found is None:
                self.free[nbytes] = [start]
            else:
                (<list> found).append(start)
        return 0

    cdef int join(self) except -1:
        """Make one piece of free neighbours; give back what lies at the top."""
        cdef list pieces = sorted(
            [(start, size) for size, places in self.free.items() for start in places]
        )
        self.free = {}
        if not pieces:
            return 0
        start, size = pieces[0]
        pieces.append((-1, 0))
        for following, nbytes in pieces[1:]:
            if following == start + size:
                size += nbytes
                continue
            if start + size == self.top:
                self.top = start
            else:
                self.free.setdefault(size, []).append(start)
            start, size = following, nbytes
        return 0


cdef inline Py_ssize_t _rounded(Py_ssize_t nbytes):
    if nbytes < 1:
        nbytes = 1
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


cdef Buffer _donor(Step step, View write, Py_ssize_t now):
    """The buffer of an operand that dies in `step` and that `write` may take over."""
    cdef Py_ssize_t k
    cdef View view
    cdef View other
    cdef Buffer buffer
    cdef bint alone
    for k in range(step.inputs):
        view = step.operands[k]
        buffer = view.buffer
        if (
            buffer.space != ARENA
            or buffer.local
            or buffer.last != now
            or buffer.nbytes != write.buffer.nbytes
            or view.offset != write.offset
            or view.itemsize != write.itemsize
            or view.shape != write.shape
            or not (view.dense and write.dense or view.get_strides() == write.get_strides())
        ):
            continue
        alone = True
        for item in step.operands[:step.inputs]:
            other = item
            if other.buffer is buffer and not other.covers_same(view):
                alone = False
        if alone:
            return buffer
    return None


cdef list _place_locals(
    Arena arena, list steps, Py_ssize_t first, Py_ssize_t end, bint reuse
):
    """Place the values that live within a block.  Returns the pieces to free after it."""
    cdef Py_ssize_t length = (<Step> steps[first]).dims[1]
    cdef Py_ssize_t i
    cdef Py_ssize_t nbytes
    cdef Step step
    cdef View write
    cdef Buffer buffer
    cdef dict last = {}
    cdef dict sizes = {}
    cdef dict free = {}
    cdef dict dead
    cdef list taken = []
    for i in range(first + 1, end + 1):
        for view in (<Step> steps[i]).operands:
            last[(<View> view).buffer] = i
    for i in range(first + 1, end + 1):
        step = steps[i]
        write = step.operands[step.inputs]
        nbytes = length * write.itemsize
        sizes[write.buffer] = nbytes
        dead = {}
        for view in step.operands[:step.inputs]:
            buffer = (<View> view).buffer
            if buffer.local and last[buffer] == i:
                dead[buffer] = sizes[buffer]
        if write.buffer.local:
            write.buffer.index = 0
            # Every operand in a block is read at the element that is written.
            donors = [item for item, size in dead.items() if size == nbytes] if reuse else []
            if donors:
                write.buffer.place = (<Buffer> donors[0]).place
                del dead[donors[0]]
            elif free.get(nbytes):
                write.buffer.place = free[nbytes].pop()
            else:
                write.buffer.place = arena.take(nbytes)
                taken.append((write.buffer.place, nbytes))
        if reuse:
            for item, size in dead.items():
                free.setdefault(size, []).append((<Buffer> item).place)
            if write.buffer.local and last[write.buffer] == i:
                free.setdefault(nbytes, []).append(write.buffer.place)
    return taken
