"""Lowering linear algebra and Fourier transforms to the loops of NumPy's gufuncs.

What has no such loop, in this NumPy or under STAGEDAD_LOOPS=off, calls its
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View, broadcast, fresh, merged
from stagedad.plan.kernels import Kernel, checked_kernel, ufunc_kernel, where_kernel
from stagedad.plan.rule import Dims, Operands, Results, rule, static_shape

_LINALG: Final[Any] = getattr(np.linalg, "_umath_linalg", None)
_FFT: Final[Any] = getattr(np.fft, "_pocketfft_umath", None)

_SINGULAR: Final = "singular matrix"
_DIVERGED: Final = "did not converge"


@rule("inv")
def inv(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Invert a stack of matrices."""
    return _decompose(emitter, "inv", "inv", reads, attributes, results, _SINGULAR)


@rule("det", "slogdet")
def determinant(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Give the determinants of a stack of matrices, which never fails."""
    kind = "det" if len(results) == 1 else "slogdet"
    return _decompose(emitter, kind, kind, reads, attributes, results, None)


@rule("cholesky")
def cholesky(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Factor a stack of matrices."""
    problem = "matrix is not positive definite"
    return _decompose(emitter, "cholesky", "cholesky_lo", reads, attributes, results, problem)


@rule("eigh", "eigvalsh")
def eigh(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Give eigenvalues, or vectors too, by the triangle that the attribute names."""
    kind = "eigvalsh" if len(results) == 1 else "eigh"
    name = f"{kind}_{'lo' if attributes['UPLO'] == 'L' else 'up'}"
    return _decompose(emitter, kind, name, reads, attributes, results, _DIVERGED)


@rule("svdvals")
def svdvals(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Give the singular values of a stack of matrices."""
    return _decompose(emitter, "svdvals", "svd", reads, attributes, results, _DIVERGED)


@rule("svd")
def svd(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Give as many singular vectors as values of a stack of matrices."""
    return _decompose(emitter, "svd", "svd_s", reads, attributes, results, _DIVERGED)


@rule("tril", "triu")
def triangle(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Keep one triangle of a stack of matrices."""
    (read,) = reads
    rows, columns = read.shape[-2:]
    cut = np.tri(rows, columns, attributes["k"] - (emitter.origin.op == "triu")) == 1
    branches = read, emitter.zeros(results[0])
    if emitter.origin.op == "triu":
        branches = branches[::-1]
    return (_choose(emitter, cut, *branches),)


@rule("hermitian")
def hermitian(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Mirror one triangle of a stack of matrices."""
    (read,) = reads
    if read.dtype.kind == "c":
        return emitter.object_call("hermitian", reads, dict(attributes), results)
    cut = np.tri(read.shape[-1]) == 1
    mirrored = _axis_last(read, len(read.shape) - 2)
    pair = (read, mirrored) if attributes["lower"] else (mirrored, read)
    return (_choose(emitter, cut, *pair),)


@rule("solve")
def solve(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Solve for one vector or for the columns of matrices."""
    is_vector = len(reads[1].shape) == 1
    name, dtype = "solve1" if is_vector else "solve", _double(results[0].dtype)
    kernel = _kernel(_LINALG, name, (dtype, dtype), 3, "solve")
    if kernel is None or _is_empty(reads, results):
        return emitter.object_call("solve", reads, dict(attributes), results)
    operands = [emitter.cast(view, dtype) for view in reads]
    write = fresh(dtype, static_shape(results[0]))
    core = 1 if is_vector else 2
    stack = write.shape[: len(write.shape) - core]
    sizes = (write.shape[-1],) if is_vector else write.shape[-2:]
    _emit(
        emitter, checked_kernel(kernel), (*operands, write), (2, core, core), stack, sizes, 2,
        _failure("solve", _SINGULAR),
    )  # fmt: skip
    return (emitter.cast(write, results[0].dtype),)


@rule("fft", "ifft", "irfft")
def fft(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Transform along one axis, half a spectrum to real numbers."""
    points = static_shape(results[0])[attributes["axis"]]
    return _transform(emitter, emitter.origin.op, reads[0], points, attributes, results)


@rule("rfft")
def rfft(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Transform real numbers along one axis to half a spectrum."""
    n = attributes["n"]
    points = reads[0].shape[attributes["axis"]] if n is None else n
    name = "rfft_n_odd" if points % 2 else "rfft_n_even"
    return _transform(emitter, name, reads[0], points, attributes, results)


def _decompose(
    emitter: Emitter,
    kind: str,
    name: str,
    reads: Operands,
    attributes: Mapping[str, Any],
    results: Results,
    problem: str | None,
) -> Sequence[View]:
    """Emit a gufunc of one stack of matrices; it fails with `problem`, or never."""
    (read,) = reads
    dtype = _double(read.dtype)
    kernel = _kernel(_LINALG, name, (dtype,), 1 + len(results), kind)
    if kernel is None or _is_empty(reads, results):
        return emitter.object_call(kind, reads, dict(attributes), results)
    stack = read.shape[:-2]
    writes = [
        fresh(made, static_shape(type))
        for made, type in zip(kernel.dtypes[1:], results, strict=True)
    ]
    cores = (2, *[len(view.shape) - len(stack) for view in writes])
    rows, columns = read.shape[-2:]
    sizes: Dims = (rows,)
    if name.startswith("svd"):
        sizes = (rows, columns, min(rows, columns))
    if problem is not None:
        kernel = checked_kernel(kernel)
    _emit(
        emitter, kernel, (emitter.cast(read, dtype), *writes), cores, stack, sizes, 1,
        None if problem is None else _failure(kind, problem),
    )  # fmt: skip
    pairs = zip(writes, results, strict=True)
    return tuple([emitter.cast(view, type.dtype) for view, type in pairs])


def _transform(
    emitter: Emitter,
    name: str,
    read: View,
    points: int,
    attributes: Mapping[str, Any],
    results: Results,
) -> Sequence[View]:
    """Emit a transform along one axis, of `points` as it is scaled."""
    kind, target = emitter.origin.op, results[0].dtype
    scale = _scale(points, _real(read.dtype), attributes["norm"], kind in ("fft", "rfft"))
    gufunc = getattr(_FFT, name, None)
    kernel = None
    if gufunc is not None and not _is_empty((read,), results):
        # A factor of 1 is a Python number in numpy.fft, and with it single precision is
        # transformed in double.
        weak: Any = int if scale == 1 else scale.dtype
        found = gufunc.resolve_dtypes((read.dtype, weak, target))
        kernel = _kernel(_FFT, name, found[:2], 3, kind)
    if kernel is None:
        return emitter.object_call(kind, (read,), dict(attributes), results)
    axis = attributes["axis"] % len(read.shape)
    write = fresh(kernel.dtypes[2], static_shape(results[0]))
    source, made = (_axis_last(view, axis) for view in (emitter.cast(read, found[0]), write))
    factor = emitter.number(scale, found[1])
    stack = source.shape[:-1]
    sizes = (source.shape[-1], made.shape[-1])
    operands = (source, broadcast(factor, stack), made)
    _emit(emitter, kernel, operands, (1, 0, 1), stack, sizes, 2, None)
    return (emitter.cast(write, target),)


def _scale(points: int, real: np.dtype[Any], norm: str | None, is_forward: bool) -> Any:
    """Return what numpy.fft multiplies by, in the same arithmetic."""
    real = np.result_type(real, 1.0)
    if norm == "ortho":
        return np.reciprocal(np.sqrt(points, dtype=real))
    divides = (norm == "forward") is is_forward
    return np.reciprocal(points, dtype=real) if divides else 1


def _emit(
    emitter: Emitter,
    kernel: Kernel,
    operands: Sequence[View],
    cores: Sequence[int],
    stack: Dims,
    sizes: Dims,
    inputs: int,
    problem: Callable[[Sequence[Any]], Exception] | None,
) -> None:
    """Emit a gufunc over `stack`, each operand with so many core axes as `cores` says."""
    whole = [
        broadcast(view, (*stack, *view.shape[len(view.shape) - core :]))
        for view, core in zip(operands, cores, strict=True)
    ]
    depth = len(stack)
    dims, strides = merged(stack, [view.strides[:depth] for view in whole])
    if not dims:
        dims, strides = [1], [[0]] * len(whole)
    words = [len(dims) - 1] if len(dims) > 1 else []
    for axis in range(len(dims) - 1):
        words.append(dims[axis])
        words.extend(kept[axis] for kept in strides)
    emitter.strided(
        kernel,
        tuple(whole),
        inputs,
        (dims[-1], *sizes),
        (
            *(kept[-1] for kept in strides),
            *(stride for view in whole for stride in view.strides[depth:]),
        ),
        tuple(words),
        problem,
    )


def _choose(emitter: Emitter, cut: np.ndarray[Any, Any], inside: View, other: View) -> View:
    """Emit a copy of `inside` where the matrix `cut` is true, and of `other` elsewhere."""
    write = fresh(inside.dtype, inside.shape)
    if write.size == 0:
        return write
    mask = broadcast(emitter.table(cut), inside.shape)
    return emitter.call(where_kernel(inside.dtype), (mask, inside, other), write)


def _kernel(
    module: Any, name: str, dtypes: tuple[np.dtype[Any], ...], operands: int, op: str
) -> Kernel | None:
    """Return the loop of a gufunc of exactly these dtypes, if this NumPy gives one out."""
    gufunc = getattr(module, name, None)
    if gufunc is None or gufunc.nargs != operands:
        return None
    kernel = ufunc_kernel(gufunc, dtypes, op)
    if kernel.capsule is None or kernel.dtypes[: len(dtypes)] != dtypes:
        return None
    return kernel


def _double(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which numpy.linalg computes, single precision too."""
    return np.result_type(dtype, np.float64)


def _axis_last(view: View, axis: int) -> View:
    order = [*(at for at in range(len(view.shape)) if at != axis), axis]
    shape = tuple(view.shape[at] for at in order)
    strides = tuple(view.strides[at] for at in order)
    return View(view.buffer, view.dtype, shape, strides, view.offset)


def _is_empty(reads: Operands, results: Results) -> bool:
    shapes = [*(view.shape for view in reads), *(static_shape(type) for type in results)]
    return any(0 in shape for shape in shapes)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


def _failure(kind: str, problem: str) -> Callable[[Sequence[Any]], Exception]:
    return lambda arrays: np.linalg.LinAlgError(f"{kind}: {problem}: {arrays[0].shape}")
