"""Writing in place: copies that nobody would notice are not made.

Note [writing in place]: an op that changes a few elements of an array is lowered to
a copy of the array and a write into the copy.  Where nothing reads the array after
that, the copy gets the array's memory, and the step that would make it goes.  Where
only small parts are read afterwards, those are copied instead, before the write, and
steps that read it whole to give little are done before: so it is in the reverse of a
loop that fills an array, which reads of each cotangent the element that it then sets
to zero.  Reading and filling element by element is linear for that.

What is computed only to be copied into a part of an array is computed there.
"""

from bisect import bisect_right

from stagedad.plan._emitter cimport Emitter
from stagedad.plan._step cimport Step
from stagedad.plan._view cimport Buffer, View, dense_view, fresh
from stagedad.plan._view import merged

cdef enum:
    # ORDER STEP, ORDER SPACE: as in stagedad/plan/step.py.
    CALL = 0
    ARENA = 0
    INPUT = 1
    POOL = 3
    REDUCE = 3
    # Parts that are copied instead of an array are at most one in so many of its bytes.
    SMALL_PART = 4
    # Steps that are done before one write.
    MOST_EARLY = 16


def reuse(list steps):
    """The steps without the copies that are not needed.  Changes operands of others."""
    return _computed_in_place(_written_in_place(steps))


cdef list _written_in_place(list steps):
    """Let copies take over the memory of what is copied."""
    cdef list copies = [i for i in range(len(steps)) if _is_copy(<Step> steps[i], True)]
    cdef Rearranged rearranged
    cdef Step step
    cdef Buffer source
    cdef Buffer target
    if not copies:
        return steps
    rearranged = Rearranged(steps)
    for copy in copies:
        if copy in rearranged.moved:
            continue
        step = steps[<Py_ssize_t> copy]
        source = (<View> step.operands[0]).buffer
        target = (<View> step.operands[1]).buffer
        if rearranged.touches[target][0] == copy and rearranged.ends(source, copy):
            rearranged.taken_over[source] = target
    return rearranged.finished() if rearranged.taken_over else steps


cdef list _computed_in_place(list steps):
    """Let steps write where their results would be copied to."""
    cdef list copies = [i for i in range(len(steps)) if _is_copy(<Step> steps[i], False)]
    cdef dict touches
    cdef list found
    cdef set gone = set()
    cdef Step maker
    cdef Buffer target
    cdef Py_ssize_t at
    if not copies:
        return steps
    touches = _touches(steps)
    for copy in copies:
        source, write = (<Step> steps[<Py_ssize_t> copy]).operands
        found = touches[(<View> source).buffer]
        if len(found) != 2 or found[1] != copy:
            continue
        maker = steps[<Py_ssize_t> found[0]]
        if not _may_write(maker, <View> source, <View> write):
            continue
        # Nobody looks there between the two.
        target = (<View> write).buffer
        made, found = found[0], touches[target]
        at = bisect_right(found, made)
        if found[at] != copy or (at > 0 and found[at - 1] == made):
            continue
        found[at] = made
        _write_instead(maker, <View> write)
        gone.add(copy)
    return [steps[i] for i in range(len(steps)) if i not in gone] if gone else steps


cdef bint _may_write(Step maker, View source, View write):
    """Whether the elementwise step that computes all of `source` can write to `write`."""
    cdef View made = maker.operands[len(maker.operands) - 1]
    if maker.kind != CALL or not maker.donates or not made.covers_same(source):
        return False
    if write.dense or write.size == 1:
        return True
    # NumPy 2.4's isnan and its like write garbage into strided booleans.
    if maker.kernel.computes is not None and write.dtype.char == "?":
        return False
    return len(merged(write.shape, [write.strides])[0]) == 1


cdef int _write_instead(Step maker, View write) except -1:
    cdef list strides = list(maker.strides)
    if write.size > 1:
        strides[len(strides) - 1] = merged(write.shape, [write.strides])[1][0][0]
        maker.strides = tuple(strides)
    maker.operands = (*maker.operands[:maker.inputs], write)
    return 0


cdef bint _is_copy(Step step, bint whole):
    """Whether the step copies all of a temporary to (all of) another array."""
    cdef View source
    cdef View target
    if step.kind != CALL or step.inputs != 1 or len(step.operands) != 2 or not step.donates:
        return False
    source, target = step.operands
    return (
        source.buffer.space == ARENA
        and target.buffer.space != INPUT
        and target.buffer.space != POOL
        and source.size == target.size
        and source.is_whole
        and (target.is_whole or not whole)
        and source.dtype == target.dtype
        and step.kernel.name.startswith("copy_")
    )


cdef dict _touches(list steps):
    """Of each buffer: the numbers of the steps that touch it, in order."""
    cdef dict touches = {}
    cdef list found
    cdef Py_ssize_t i
    for i in range(len(steps)):
        for view in (<Step> steps[i]).operands:
            found = touches.get((<View> view).buffer)
            if found is None:
                touches[(<View> view).buffer] = [i]
            elif found[len(found) - 1] != i:
                found.append(i)
    return touches


cdef class Rearranged:
    """Steps with copies that go, and with others that step in before them."""
    cdef list steps
    cdef dict touches           # of each buffer: the steps that touch it, in order
    cdef dict taken_over        # a copied buffer -> the copy's
    cdef dict before            # number of a copy -> the steps in its place
    cdef dict moved             # number of a step -> that of the copy it was moved before

    def __init__(self, list steps):
        self.steps = steps
        self.touches = _touches(steps)
        self.taken_over = {}
        self.before = {}
        self.moved = {}

    cdef bint ends(self, Buffer source, Py_ssize_t copy):
        """Whether nothing reads `source` after its copy, or can be made not to."""
        cdef dict parts = {}    # id of a view -> it, what it reads, and what is read instead
        cdef list changes = []
        cdef list early = []    # numbers of steps to do before
        cdef Py_ssize_t nbytes = 0
        cdef Py_ssize_t k
        cdef Step step
        cdef View view
        cdef View part
        for j in _after(self.touches[source], copy):
            if j in self.moved:
                continue
            step = self.steps[<Py_ssize_t> j]
            for k in range(len(step.operands)):
                view = step.operands[k]
                if view.buffer is not source:
                    continue
                if k >= step.inputs:
                    return False
                if id(view) not in parts:
                    part = _distinct(view)
                    parts[id(view)] = (view, part, None)
                    if (nbytes + part.size * part.itemsize) * SMALL_PART <= source.nbytes:
                        nbytes += part.size * part.itemsize
                        parts[id(view)] = (view, part, fresh(part.dtype, part.shape))
                if (
                    (<tuple> parts[id(view)])[2] is not None
                    and _may_be_dense(step, view, (<tuple> parts[id(view)])[1])
                ):
                    changes.append((step, k, parts[id(view)]))
                elif not self.comes_early(source, copy, j, early):
                    return False
        self.before[copy] = self.in_its_place(copy, changes, early)
        return True

    cdef bint comes_early(self, Buffer source, Py_ssize_t copy, Py_ssize_t number, list early):
        """Whether step `number` may be done before `copy`; then it is in `early` afterwards.

        It must give little, and whatever makes its operands must come along.
        """
        cdef Step step = self.steps[number]
        cdef Py_ssize_t k
        cdef Buffer buffer
        if number in early:
            return True
        if (
            step.kind > REDUCE or len(step.operands) <= step.inputs or len(early) > MOST_EARLY
            or (<View> step.operands[len(step.operands) - 1]).buffer.nbytes * SMALL_PART
            > source.nbytes
        ):
            return False
        for k in range(len(step.operands)):
            buffer = (<View> step.operands[k]).buffer
            if k >= step.inputs:
                if self.touches[buffer][0] != number:
                    return False        # others were here before
                continue
            for j in _after(self.touches[buffer], copy):
                if j >= number:
                    break
                if (
                    j not in self.moved
                    and _writes(<Step> self.steps[<Py_ssize_t> j], buffer)
                    and not self.comes_early(source, copy, j, early)
                ):
                    return False
        early.append(number)
        return True

    cdef list in_its_place(self, Py_ssize_t copy, list changes, list early):
        """The steps that take the place of `copy`."""
        cdef Emitter emitter = Emitter()
        cdef set done = set()
        emitter.origin = (<Step> self.steps[copy]).origin
        for step, k, (view, part, write) in changes:
            if id(view) not in done:
                done.add(id(view))
                emitter.copy(part, write)
            _read_instead(<Step> step, k, view, part, write)
        for number in sorted(early):
            self.moved[number] = copy
            emitter.steps.append(self.steps[<Py_ssize_t> number])
        return emitter.steps

    cdef list finished(self):
        """All steps in their new order, on the buffers that are left."""
        cdef list result = []
        cdef Py_ssize_t i
        cdef View view
        for i in range(len(self.steps)):
            if i in self.before:
                result.extend(self.before[i])
            elif i not in self.moved:
                result.append(self.steps[i])
        # The last buffer of a chain takes the place of all.
        for buffer in reversed(list(self.taken_over)):
            root = self.taken_over[buffer]
            self.taken_over[buffer] = self.taken_over.get(root, root)
        for step in result:
            for item in (<Step> step).operands:
                view = item
                found = self.taken_over.get(view.buffer)
                if found is not None:
                    view.buffer = found
        return result


def _after(list numbers, Py_ssize_t number):
    """Those of rising `numbers` that are greater than `number`."""
    cdef Py_ssize_t i
    for i in range(bisect_right(numbers, number), len(numbers)):
        yield numbers[i]


cdef bint _writes(Step step, Buffer buffer):
    for view in step.operands[step.inputs:]:
        if (<View> view).buffer is buffer:
            return True
    return False


cdef View _distinct(View view):
    """`view` with axes of stride 0 cut to size 1."""
    cdef tuple strides = view.get_strides()
    if view.dense or 0 not in strides:
        return view
    shape = tuple([1 if stride == 0 else dim for dim, stride in zip(view.shape, strides)])
    return View(view.buffer, view.dtype, shape, strides, view.offset)


cdef bint _may_be_dense(Step step, View view, View part):
    """Whether `step` can read a dense copy of `part`: with its strides, or with one other."""
    if part.dense:
        return True
    if step.kind != CALL or not step.donates or part is not view:
        return False
    return len(merged(part.shape, [part.strides])[0]) == 1


cdef int _read_instead(Step step, Py_ssize_t k, View view, View part, View write) except -1:
    cdef list operands = list(step.operands)
    cdef list strides
    if part.dense:
        operands[k] = View(write.buffer, view.dtype, view.shape, view.get_strides(), 0)
    else:
        strides = list(step.strides)
        strides[k] = view.itemsize
        step.strides = tuple(strides)
        operands[k] = dense_view(write.buffer, view.dtype, view.shape, 0)
    step.operands = tuple(operands)
    return 0
