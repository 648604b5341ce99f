"""Lowering matmul to the gufunc's loop, operands as BLAS wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, broadcast, fresh, merged
from stagedad.plan.kernels import Kernel, ufunc_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape
from stagedad.types import TensorType


@rule("matmul")
def matmul(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Multiply matrices, stacks of them broadcast; 1-d operands are a row and a column."""
    kernel = ufunc_kernel(np.matmul, (reads[0].dtype, reads[1].dtype), "matmul")
    write = fresh(kernel.dtypes[2], static_shape(results[0]))
    if write.size == 0:
        return (write,)
    if reads[0].shape[-1] == 0:
        return (emitter.zeros(results[0]),)
    left, right = (
        emitter.cast(view, dtype) for view, dtype in zip(reads, kernel.dtypes, strict=False)
    )
    if len(left.shape) == 1:
        left = _with_shape(left, (1, *left.shape), (0, *left.strides))
    if len(right.shape) == 1:
        right = _with_shape(right, (*right.shape, 1), (*right.strides, 0))
    ones = sum(len(view.shape) == 1 for view in reads)
    stack = write.shape[: len(write.shape) - 2 + ones]
    if left.shape[-1] == 1 and write.dtype.kind == "f":
        # Sums of one product, as in the gradient of a layer for one sample: thrice as fast.
        shape = (*stack, left.shape[-2], right.shape[-1])
        made = emitter.elementwise(np.multiply, (left, right), TensorType(write.dtype, shape))
        return (View(made.buffer, made.dtype, write.shape),)
    if stack and len(right.shape) == 2:
        # A stack times one matrix is one tall matrix times it, if the rows follow each other.
        rows, (steps,) = merged(left.shape[:-1], [left.strides[:-1]])
        if len(rows) == 1:
            left = _with_shape(left, (rows[0], left.shape[-1]), (steps[0], left.strides[-1]))
            stack = ()
    _multiply(emitter, kernel, left, right, write, stack)
    return (write,)


def _multiply(
    emitter: Emitter, kernel: Kernel, left: View, right: View, write: View, stack: Dims
) -> None:
    """Emit the products of two stacks of matrices, which broadcast to `stack`."""
    m, k, p = *left.shape[-2:], right.shape[-1]
    left, left_core = _for_blas(emitter, left)
    right, right_core = _for_blas(emitter, right)
    operands = (
        broadcast(left, (*stack, m, k)),
        broadcast(right, (*stack, k, p)),
        View(write.buffer, write.dtype, (*stack, m, p)),
    )
    dims, strides = merged(stack, [view.strides[:-2] for view in operands])
    if not dims:
        dims, strides = [1], [[0], [0], [0]]
    words = [len(dims) - 1] if len(dims) > 1 else []
    for axis in range(len(dims) - 1):
        words.append(dims[axis])
        words.extend(kept[axis] for kept in strides)
    cores = (*left_core, *right_core, p * write.itemsize, write.itemsize)
    emitter.strided(
        kernel,
        operands,
        2,
        (dims[-1], m, k, p),
        (*(kept[-1] for kept in strides), *cores),
        tuple(words),
    )


def _with_shape(view: View, shape: Dims, strides: Dims) -> View:
    return View(view.buffer, view.dtype, shape, strides, view.offset)


def _for_blas(emitter: Emitter, view: View) -> tuple[View, Dims]:
    """Return `view`, copied if BLAS cannot take it, and the strides of its matrices."""
    core = _blas_strides(view)
    if core is not None:
        return view, core
    # A stretched stack is copied once.
    stack = tuple(
        1 if stride == 0 else dim
        for dim, stride in zip(view.shape[:-2], view.strides[:-2], strict=True)
    )
    once = _with_shape(view, (*stack, *view.shape[-2:]), view.strides)
    copy = emitter.copy(once, fresh(view.dtype, once.shape))
    return broadcast(copy, view.shape), copy.strides[-2:]


def _blas_strides(view: View) -> Dims | None:
    """Return the strides of the last two axes as BLAS can take them; None if it cannot.

    One axis must be contiguous, and the step along the other at least a row long
    (as NumPy's is_blasable2d).  The stride of an axis of size 1 is free to choose.
    Integer loops, which are not BLAS's, take anything.
    """
    item = view.itemsize
    rows, columns = view.shape[-2:]
    row, column = view.strides[-2:]
    if view.dtype.char not in "fdFD":
        return row, column
    if rows == 1:
        row = item if column != item else columns * item
    elif columns == 1:
        column = item if row != item else rows * item
    if column == item and row % item == 0 and row >= columns * item:
        return row, column
    if row == item and column % item == 0 and column >= rows * item:
        return row, column
    return None
