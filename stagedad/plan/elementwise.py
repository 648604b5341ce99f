"""Lowering elementwise ops: mostly a ufunc's loop, else one of stagedad's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, fresh
from stagedad.plan.kernels import (
    INT64,
    check_exponent_kernel,
    mul0_kernel,
    quiet_kernel,
    ufunc_kernel,
    where_kernel,
)
from stagedad.plan.rule import Operands, Results, rule, static_shape
from stagedad.types import CODES, TensorType, dtype_code


@rule("add", "sub")
def add(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Add or subtract; alpha other than 1 multiplies `other` first."""
    (result,) = results
    alpha = attributes["alpha"]
    ufunc = np.add if emitter.origin.op == "add" else np.subtract
    if alpha != 1:
        left, other = reads
        dtype = CODES[dtype_code(np.result_type(other.dtype, alpha))]
        scaled = TensorType(dtype, other.shape)
        factor = emitter.number(alpha, dtype)
        reads = (left, emitter.elementwise(np.multiply, (other, factor), scaled))
    return (emitter.elementwise(ufunc, reads, result),)


@rule("pow")
def power(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Raise to a power; a negative exponent of an integer is an error."""
    (result,) = results
    dtypes = tuple(view.dtype for view in reads)
    kernel = ufunc_kernel(np.power, dtypes, "pow")
    if kernel.dtypes[1].kind == "i":
        # NumPy's loop sets an exception here, without the GIL.
        emitter.check(
            check_exponent_kernel(), emitter.cast(reads[1], INT64), _negative_exponent
        )
    return (emitter.elementwise(np.power, reads, result),)


def _negative_exponent(arrays: Sequence[Any]) -> Exception:
    worst = arrays[0].min()
    return ValueError(f"pow: integers to negative integer powers are not allowed: {worst}")


@rule("sigmoid")
def sigmoid(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """1 / (1 + exp(-x)), which is right for large x of either sign: 1 / inf is 0."""
    (result,) = results
    one = emitter.number(1, result.dtype)
    view = emitter.cast(reads[0], result.dtype)
    negated = emitter.elementwise(np.negative, (view,), result)
    kernel = quiet_kernel(ufunc_kernel(np.exp, (result.dtype,), "sigmoid"))
    write = fresh(result.dtype, static_shape(result))
    total = emitter.elementwise(np.add, (emitter.call(kernel, [negated], write), one), result)
    return (emitter.elementwise(np.true_divide, (one, total), result),)


@rule("where")
def where(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Choose by a condition; anything but zero is true."""
    (result,) = results
    condition = emitter.cast(reads[0], CODES["b1"])
    branches = [emitter.cast(view, result.dtype) for view in reads[1:]]
    write = fresh(result.dtype, static_shape(result))
    return (emitter.call(where_kernel(result.dtype), [condition, *branches], write),)


@rule("mul0")
def mul0(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Multiply, but 0 where g is 0."""
    (result,) = results
    cast = [emitter.cast(view, result.dtype) for view in reads]
    write = fresh(result.dtype, static_shape(result))
    return (emitter.call(mul0_kernel(result.dtype), cast, write),)


@rule("astype")
def astype(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Convert; complex to real takes the real part."""
    return (emitter.cast(reads[0], results[0].dtype),)


@rule("real", "imag")
def part(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Look at every other number of a complex array."""
    (view,), (result,) = reads, results
    if view.dtype.kind != "c":
        return (view if emitter.origin.op == "real" else emitter.zeros(result),)
    offset = result.dtype.itemsize if emitter.origin.op == "imag" else 0
    return (View(view.buffer, result.dtype, view.shape, view.strides, view.offset + offset),)


@rule("conj")
def conj(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Conjugate; a real array as it is."""
    if reads[0].dtype.kind in "iuf":
        return reads
    return (emitter.elementwise(np.conjugate, reads, results[0]),)
