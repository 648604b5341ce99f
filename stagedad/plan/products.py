"""Lowering matmul to the gufunc's loop, operands as BLAS wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.plan._emitter import Emitter
from stagedad.plan.kernels import ufunc_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape
from stagedad.plan._view import View, broadcast, fresh, merged


@rule("matmul")
def matmul(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Multiply matrices, stacks of them broadcast; 1-d operands are a row and a column."""
    (result,) = results
    kernel = ufunc_kernel(np.matmul, (reads[0].dtype, reads[1].dtype), "matmul")
    dtype = kernel.dtypes[2]
    left = emitter.cast(reads[0], kernel.dtypes[0])
    right = emitter.cast(reads[1], kernel.dtypes[1])
    write = fresh(dtype, static_shape(result))
    if write.size == 0:
        return (write,)
    if left.shape[-1] == 0:
        return (emitter.zeros(result),)
    left = _as_matrix(left, (1, left.shape[0]), (0, *left.strides))
    right = _as_matrix(right, (right.shape[0], 1), (*right.strides, 0))
    m, k = left.shape[-2:]
    p = right.shape[-1]
    stack = write.shape[: len(write.shape) - (len(reads[0].shape) > 1) - (len(reads[1].shape) > 1)]
    product = View(write.buffer, dtype, (*stack, m, p))
    if len(right.shape) == 2 and stack:
        # A stack times one matrix is one tall matrix times it, if the rows follow each other.
        rows, (row_strides,) = merged(left.shape[:-1], [left.strides[:-1]])
        if len(rows) == 1:
            left = View(
                left.buffer, left.dtype, (rows[0], k), (row_strides[0], left.strides[-1]), left.offset
            )
            product = View(write.buffer, dtype, (rows[0], p))
            m, stack = rows[0], ()
    left, left_core = _for_blas(emitter, left)
    right, right_core = _for_blas(emitter, right)
    item = dtype.itemsize
    operands = (
        broadcast(left, (*stack, *left.shape[-2:])),
        broadcast(right, (*stack, *right.shape[-2:])),
        product,
    )
    dims, strides = merged(stack, [view.strides[:-2] for view in operands])
    inner = (dims[-1], *(kept[-1] for kept in strides)) if dims else (1, 0, 0, 0)
    words = [len(dims) - 1] if len(dims) > 1 else []
    for axis in range(len(dims) - 1):
        words.append(dims[axis])
        words.extend(kept[axis] for kept in strides)
    emitter.strided(
        kernel,
        operands,
        2,
        (inner[0], m, k, p),
        (*inner[1:], *left_core, *right_core, p * item, item),
        tuple(words),
    )
    return (write,)


def _as_matrix(view: View, shape: Dims, strides: Dims) -> View:
    if len(view.shape) > 1:
        return view
    return View(view.buffer, view.dtype, shape, strides, view.offset)


def _for_blas(emitter: Emitter, view: View) -> tuple[View, Dims]:
    """Return `view`, copied if BLAS cannot take it, and the strides of its matrices."""
    core = _blas_strides(view)
    if core is not None:
        return view, core
    whole = tuple(0 if stride == 0 else dim for dim, stride in zip(view.shape[:-2], view.strides, strict=False))
    once = View(
        view.buffer,
        view.dtype,
        tuple(1 if dim == 0 else dim for dim in whole) + view.shape[-2:],
        view.strides,
        view.offset,
    )
    copy = emitter.copy(once, fresh(view.dtype, once.shape))
    return broadcast(copy, view.shape), copy.strides[-2:]


def _blas_strides(view: View) -> Dims | None:
    """Return the strides of the last two axes as BLAS can take them; None if it cannot.

    One axis must be contiguous, and the step along the other at least a row long
    (as NumPy's is_blasable2d).  The stride of an axis of size 1 is free to choose.
    Integer loops, which are not BLAS's, take anything.
    """
    item = view.dtype.itemsize
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
