"""Views: how an operand lies in a buffer; and the axes that a loop runs over.

Note [no cycles]: views, buffers and steps are made by the thousand and never
point back at what holds them, so the cyclic collector need not look at them:
looking took three times as long as planning.
"""

cimport cython

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

import sys

cdef extern from "Python.h":
    int PySlice_Unpack(
        object slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step
    ) except -1
    Py_ssize_t PySlice_AdjustIndices(
        Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step
    )

cdef enum:
    # ORDER SPACE: as in stagedad/plan/step.py.
    ARENA = 0
    # An inner loop shorter than this is changed for a much longer axis, if there is one.
    FEW = 16

cdef object most_bytes = sys.maxsize // 2
MOST_BYTES = most_bytes        # of one array, and of a workspace


@cython.freelist(256)
@cython.final
@cython.no_gc
cdef class Buffer:
    def __cinit__(self, int space, Py_ssize_t index, Py_ssize_t nbytes):
        self.space = space
        self.index = index
        self.nbytes = nbytes
        self.first = -1
        self.last = -1


@cython.freelist(256)
@cython.final
@cython.no_gc
cdef class View:
    def __init__(
        self, Buffer buffer, dtype, tuple shape, tuple strides=None, Py_ssize_t offset=0
    ):
        set_view(self, buffer, dtype, shape, offset)
        self.given_strides = strides
        self.dense = strides is None or is_dense(shape, strides, self.itemsize)

    @property
    def strides(self):
        return self.get_strides()

    @property
    def is_whole(self):
        """Whether it is all of its buffer, in C order."""
        return self.dense and self.size * self.itemsize == self.buffer.nbytes

    cdef tuple get_strides(self):
        if self.given_strides is None:
            self.given_strides = dense_strides(self.shape, self.itemsize)
        return self.given_strides

    cpdef bint covers_same(self, View other):
        """Whether element i of both lies in the same bytes, for every i."""
        return (
            self.buffer is other.buffer
            and self.offset == other.offset
            and self.itemsize == other.itemsize
            and self.shape == other.shape
            and (self.dense and other.dense or self.get_strides() == other.get_strides())
        )

    def __repr__(self):
        return f"<View {self.dtype} {self.shape} {self.get_strides()} at {self.offset}>"


cdef int set_view(View view, Buffer buffer, dtype, tuple shape, Py_ssize_t offset) except -1:
    cdef object size = 1
    for dim in shape:
        size *= dim
    view.buffer = buffer
    view.dtype = dtype
    view.itemsize = dtype.itemsize
    view.shape = shape
    view.size = size
    view.offset = offset
    return 0


cdef View dense_view(Buffer buffer, object dtype, tuple shape, Py_ssize_t offset):
    """A C-contiguous view."""
    cdef View view = View.__new__(View)
    set_view(view, buffer, dtype, shape, offset)
    view.dense = True
    return view


cpdef View fresh(object dtype, tuple shape, int space=ARENA, Py_ssize_t index=-1):
    """A view of all of a new buffer: a temporary, unless `space` says otherwise.

    Raises: ValueError if its bytes cannot be counted, as NumPy does.
    """
    cdef View view = dense_view(Buffer.__new__(Buffer, space, index, 0), dtype, shape, 0)
    cdef object nbytes = view.size * view.itemsize
    if nbytes > most_bytes:
        raise ValueError(f"array is too big: {shape}")
    view.buffer.nbytes = nbytes
    return view


cdef View fresh_like(View view):
    """A dense view of all of a new temporary, of the dtype and shape of another such view."""
    cdef View made = View.__new__(View)
    made.buffer = Buffer.__new__(Buffer, ARENA, -1, view.buffer.nbytes)
    made.dtype = view.dtype
    made.itemsize = view.itemsize
    made.shape = view.shape
    made.size = view.size
    made.dense = True
    return made


cpdef tuple dense_strides(tuple shape, Py_ssize_t itemsize):
    """The strides of a C-contiguous array."""
    cdef list strides
    cdef object step = itemsize
    if len(shape) == 0:
        return ()
    if len(shape) == 1:
        return (itemsize,)
    strides = []
    for dim in reversed(shape):
        strides.append(step)
        step = step * dim
    strides.reverse()
    return tuple(strides)


cpdef bint is_dense(tuple shape, tuple strides, Py_ssize_t itemsize) except -1:
    """Whether elements follow each other without gaps, in C order."""
    cdef object step = itemsize
    cdef Py_ssize_t axis = len(shape) - 1
    cdef bint gaps = False
    while axis >= 0:
        dim = shape[axis]
        if dim == 0:
            return True
        if dim != 1 and strides[axis] != step:
            gaps = True
        step = step * dim
        axis -= 1
    return not gaps


cpdef View broadcast(View view, tuple shape):
    """`view` stretched to `shape`, to which its own must broadcast."""
    cdef list strides
    cdef Py_ssize_t lead
    cdef Py_ssize_t axis
    cdef tuple own
    if view.shape == shape:
        return view
    lead = len(shape) - len(view.shape)
    own = view.get_strides()
    strides = [0] * lead
    for axis in range(len(own)):
        strides.append(own[axis] if view.shape[axis] == shape[lead + axis] else 0)
    return View(view.buffer, view.dtype, shape, tuple(strides), view.offset)


def sliced(View view, tuple start, tuple stop, tuple step):
    """The part of `view` that slices select, one an axis, as the attributes of `slice` say."""
    cdef tuple own = view.get_strides()
    cdef Py_ssize_t ndim = len(own)
    cdef Py_ssize_t axis
    cdef Py_ssize_t first
    cdef Py_ssize_t last
    cdef Py_ssize_t by
    cdef Py_ssize_t count
    cdef Py_ssize_t stride
    cdef Py_ssize_t offset = view.offset
    cdef tuple shape = PyTuple_New(ndim)
    cdef tuple strides = PyTuple_New(ndim)
    if not len(start) == len(stop) == len(step) == ndim:
        raise ValueError(f"sliced: {len(start)} slices for {ndim} axes")
    for axis in range(ndim):
        PySlice_Unpack(slice(start[axis], stop[axis], step[axis]), &first, &last, &by)
        count = PySlice_AdjustIndices(view.shape[axis], &first, &last, by)
        stride = own[axis]
        if count:
            offset += first * stride
        put(shape, axis, count)
        put(strides, axis, <object> stride * by)    # of any size, where nothing is stepped over
    return View(view.buffer, view.dtype, shape, strides, offset)


cdef inline int put(tuple into, Py_ssize_t at, object item) except -1:
    Py_INCREF(item)
    PyTuple_SET_ITEM(into, at, item)
    return 0


def reshape(View view, tuple shape):
    """`view` in another shape of the same size; None if only a copy can be that."""
    cdef list dims
    cdef list left
    cdef list cut = []
    cdef list wanted
    cdef Py_ssize_t at = 0
    if view.dense or view.size == 0:
        return dense_view(view.buffer, view.dtype, shape, view.offset)
    # Merge what is contiguous, then cut it up again.
    dims, left = merged(view.shape, [view.get_strides()])
    wanted = [dim for dim in shape if dim != 1]
    for dim, stride in zip(dims, left[0]):
        rest = dim
        while rest > 1:
            if at == len(wanted) or rest % wanted[at]:
                return None
            rest = rest // wanted[at]
            cut.append(stride * rest)
            at += 1
    kept = iter(cut)
    strides = tuple([0 if dim == 1 else next(kept) for dim in shape])
    return View(view.buffer, view.dtype, shape, strides, view.offset)


cpdef tuple merged(tuple shape, list strides):
    """`shape` without axes of size 1, neighbours merged where all `strides` allow it.

    Gives the dims, and for each of `strides` the ones that are left, as lists.
    """
    cdef list dims = []
    cdef list left = [[] for _ in strides]
    cdef Py_ssize_t axis
    cdef Py_ssize_t k
    cdef Py_ssize_t count = len(strides)
    cdef Py_ssize_t last = -1
    cdef bint fits
    for axis in range(len(shape)):
        dim = shape[axis]
        if dim == 1:
            continue
        fits = last >= 0
        for k in range(count):
            if not fits:
                break
            fits = (<list> left[k])[last] == dim * (<tuple> strides[k])[axis]
        if fits:
            dims[last] = dims[last] * dim
            for k in range(count):
                (<list> left[k])[last] = (<tuple> strides[k])[axis]
        else:
            dims.append(dim)
            for k in range(count):
                (<list> left[k]).append((<tuple> strides[k])[axis])
            last += 1
    return dims, left


cdef Py_ssize_t _dense_along(list strides, list itemsizes, Py_ssize_t axis):
    """How many operands have the stride of a dense array along `axis`, or none."""
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t k
    for k in range(len(strides)):
        stride = (<list> strides[k])[axis]
        if stride == 0 or stride == itemsizes[k]:
            count += 1
    return count


cpdef tuple loop_axes(tuple shape, list strides, list itemsizes, bint any_inner=True):
    """The inner loop's length, its strides, and the axes around it.

    The axes are in the form of `Step.outer`; empty if the inner loop is all.
    With `any_inner`, the last axis gives up its place to a much longer one if it is
    short, else to one along which more operands lie dense or stand still.
    A loop over one element gets the strides of a dense one: with strides 0, a
    binary loop whose operands coincide is a reduction.
    """
    cdef list dims
    cdef list left
    cdef list words
    cdef Py_ssize_t inner
    cdef Py_ssize_t axis
    cdef Py_ssize_t most
    dims, left = merged(shape, strides)
    if not dims:
        return 1, tuple(itemsizes), ()
    inner = len(dims) - 1
    if inner == 0:
        return dims[0], tuple([(<list> kept)[0] for kept in left]), ()
    longest = max(dims)
    if any_inner and dims[inner] < FEW and longest >= 4 * dims[inner]:
        inner = dims.index(longest)
    elif any_inner:
        most = _dense_along(left, itemsizes, inner)
        least = min(FEW, dims[inner])
        for axis in range(len(dims) - 1):
            if dims[axis] >= least and _dense_along(left, itemsizes, axis) > most:
                inner = axis
                most = _dense_along(left, itemsizes, axis)
    words = [len(dims) - 1]
    for axis in range(len(dims)):
        if axis != inner:
            words.append(dims[axis])
            for kept in left:
                words.append((<list> kept)[axis])
    return dims[inner], tuple([(<list> kept)[inner] for kept in left]), tuple(words)
