"""numpy.linalg on traced values: decompositions, solves, norms and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import ShapeError, TraceError
from stagedad.front import diagonals, products
from stagedad.front.elementwise import apply, astype, common_dtype, ndim_of, operand, shape_of
from stagedad.front.elementwise import values as values_of
from stagedad.front.location import place
from stagedad.front.reducing import magnitude_squared, reduction, refuse
from stagedad.front.shaping import (
    axes_of,
    expanded,
    moveaxis,
    moved,
    reshape,
    reshaped,
    transpose,
)
from stagedad.front.tracing import Traced, owner

# What NumPy gives several results in.
_Slogdet: Final[Any] = type(np.linalg.slogdet(np.eye(1)))
_Qr: Final[Any] = type(np.linalg.qr(np.eye(1)))
_Eig: Final[Any] = type(np.linalg.eig(np.eye(1)))
_Eigh: Final[Any] = type(np.linalg.eigh(np.eye(1)))
_Svd: Final[Any] = type(np.linalg.svd(np.eye(1)))
_NO_VALUE: Final = np._NoValue


def _record(kind: str, *operands: Any, **attributes: Any) -> Any:
    """Record an op of linear algebra; several results come as a list."""
    known = [operand(each, kind) for each in operands]
    trace = owner(known)
    results = trace.emit_all(kind, values_of(trace, known), attributes)
    return results[0] if len(results) == 1 else results


def inv(a: Any) -> Traced:
    """Record `np.linalg.inv`."""
    return _record("inv", a)  # type: ignore[no-any-return]


def solve(a: Any, b: Any) -> Traced:
    """Record `np.linalg.solve`."""
    return _record("solve", a, b)  # type: ignore[no-any-return]


def det(a: Any) -> Traced:
    """Record `np.linalg.det`."""
    return _record("det", a)  # type: ignore[no-any-return]


def slogdet(a: Any) -> Any:
    """Record `np.linalg.slogdet`."""
    return _Slogdet(*_record("slogdet", a))


def cholesky(a: Any, /, *, upper: bool = False) -> Traced:
    """Record `np.linalg.cholesky`; the gradient is Hermitian, as the matrices are."""
    if not upper:
        return _record("cholesky", _hermitian(a))  # type: ignore[no-any-return]
    return _adjoint(_record("cholesky", _hermitian(a, lower=False)))


def qr(a: Any, mode: str = "reduced") -> Any:
    """Record `np.linalg.qr`: both factors of at most as many columns as rows, or R alone."""
    source = operand(a, "qr")
    is_wide = source.ndim >= 2 and source.shape[-2] <= source.shape[-1]
    if mode not in ("reduced", "r") and not (mode == "complete" and is_wide):
        raise TraceError(
            f"qr: mode={mode!r} is not supported on traced values: {source.type} ({place()})",
            op="qr",
            hint='mode="reduced" is',
        )
    q, r = _record("qr", source)
    return r if mode == "r" else _Qr(q, r)


def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 (NumPy's name)
    """Record `np.linalg.eigh`; the gradient is Hermitian, as the matrices are."""
    side = _side(UPLO)
    return _Eigh(*_record("eigh", _hermitian(a, lower=side == "L"), UPLO=side))


def eigvalsh(a: Any, UPLO: str = "L") -> Traced:  # noqa: N803 (NumPy's name)
    """Record `np.linalg.eigvalsh`."""
    side = _side(UPLO)
    return _record(  # type: ignore[no-any-return]
        "eigvalsh", _hermitian(a, lower=side == "L"), UPLO=side
    )


def eig(a: Any) -> Any:
    """Record `np.linalg.eig`; results are complex whatever the values."""
    return _Eig(*_record("eig", a))


def eigvals(a: Any) -> Traced:
    """Record `np.linalg.eigvals`; the result is complex whatever the values."""
    return _record("eigvals", a)  # type: ignore[no-any-return]


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Record `np.linalg.svd` with as many vectors as singular values, or these alone."""
    source = operand(a, "svd")
    if not compute_uv:
        return svdvals(_hermitian(source) if hermitian else source)
    if hermitian:
        raise TraceError(
            f"svd: `hermitian=` with vectors is not supported on traced values: {place()}",
            op="svd",
            hint="eigh gives vectors of a Hermitian matrix",
        )
    if full_matrices and source.ndim >= 2 and source.shape[-2] != source.shape[-1]:
        raise TraceError(
            f"svd: the vectors beyond the singular values have no gradient: {source.type} "
            f"({place()})",
            op="svd",
            hint="full_matrices=False leaves them out",
        )
    return _Svd(*_record("svd", source))


def svdvals(x: Any, /) -> Traced:
    """Record `np.linalg.svdvals`."""
    return _record("svdvals", x)  # type: ignore[no-any-return]


def pinv(
    a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NO_VALUE
) -> Traced:
    """Record `np.linalg.pinv`; the gradient is that at constant rank."""
    source = operand(a, "pinv")
    if rcond is None and rtol is not _NO_VALUE:
        rcond = rtol
        if rtol is None:
            rcond = max(source.shape[-2:]) * float(np.finfo(_floating(source)).eps)
    if isinstance(rcond, Traced) or ndim_of(rcond):
        raise TraceError(f"pinv: only numbers cut off singular values: {place()}", op="pinv")
    attributes = {} if rcond is None else {"rcond": float(rcond)}
    if hermitian:
        source = _hermitian(source)
    return _record("pinv", source, **attributes)  # type: ignore[no-any-return]


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """Record `np.linalg.lstsq` by the pseudo-inverse.

    The residuals are there wherever the matrix has more rows than columns; NumPy leaves them
    out where its rank turns out smaller.
    """
    matrix, right = operand(a, "lstsq"), operand(b, "lstsq")
    if ndim_of(matrix) != 2 or ndim_of(right) not in (1, 2):
        raise ShapeError("lstsq", "not a matrix and one or two axes", *map(shape_of, (a, b)))
    rows, columns = shape_of(matrix)
    eps = float(np.finfo(np.result_type(_floating(matrix), _floating(right))).eps)
    limit = eps * max(rows, columns) if rcond is None else eps if rcond == -1 else float(rcond)
    if isinstance(matrix, Traced):
        inverse: Any = pinv(matrix, limit)
        sizes: Any = svdvals(matrix)
        rank: Any = _rank(sizes, limit)
    else:
        inverse = np.linalg.pinv(matrix, limit)
        sizes = np.linalg.svd(matrix, compute_uv=False)
        rank = np.int32(np.sum(sizes > limit * np.max(sizes, initial=0)))
    solution = products.matmul(inverse, right)
    residuals: Any = np.empty(0, _floating(solution))
    if rows > columns:
        rest = apply("sub", right, products.matmul(matrix, solution))
        residuals = reduction("sum", magnitude_squared(rest), 0, False)
        residuals = reshape(residuals, (-1,)) if residuals.size else residuals
    return solution, residuals, rank, sizes


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Traced:
    """Record `np.linalg.norm`: every order of vectors and matrices; its gradient at 0 is 0."""
    source = astype(operand(x, "norm"), _floating(operand(x, "norm")))
    if axis is None:
        ndim = source.ndim
        if ord is None or (ord in ("f", "fro") and ndim == 2) or (ord == 2 and ndim == 1):
            return _length(source, None, keepdims)
        axis = tuple(range(ndim))
    axes = axes_of(axis, source.ndim, "norm")
    if len(axes) == 1:
        return _vector_norm(source, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(source, ord, axes, keepdims)
    raise ValueError(f"norm: ord={ord!r} over {len(axes)} axes\nhint: one axis, or two")


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Traced:
    """Record `np.linalg.vector_norm`: over one axis, several, or all."""
    source = operand(x, "vector_norm")
    axes = tuple(range(source.ndim)) if axis is None else axes_of(axis, source.ndim, "norm")
    rest = [number for number in range(source.ndim) if number not in axes]
    moved = transpose(source, (*rest, *axes))
    flat = reshape(moved, (*[source.shape[number] for number in rest], _count(source, axes)))
    result = norm(flat, ord, -1)
    if not keepdims:
        return result
    kept = [1 if number in axes else dim for number, dim in enumerate(source.shape)]
    return reshape(result, tuple(kept))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Traced:
    """Record `np.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: Any, p: Any = None) -> Traced:
    """Record `np.linalg.cond`."""
    source = operand(x, "cond")
    if p in (None, 2, -2):
        sizes = svdvals(source)
        ends = sizes[..., 0], sizes[..., -1]  # type: ignore[index]
        return apply("div", *(ends[::-1] if p == -2 else ends))
    return apply("mul", norm(source, p, (-2, -1)), norm(inv(source), p, (-2, -1)))


def matrix_power(a: Any, n: Any) -> Any:
    """Record `np.linalg.matrix_power`."""
    source = operand(a, "matrix_power")
    if source.ndim < 2 or source.shape[-1] != source.shape[-2]:
        raise ShapeError("matrix_power", "not square", source.shape)
    count = index(n)
    if count == 0:
        return np.broadcast_to(
            np.eye(source.shape[-1], dtype=source.dtype), source.shape
        ).copy()
    if count < 0:
        source, count = inv(source), -count
    if count == 3:
        return products.matmul(products.matmul(source, source), source)
    result, square = None, source
    while count:
        if count % 2:
            result = square if result is None else products.matmul(result, square)
        count //= 2
        if count:
            square = products.matmul(square, square)
    return apply("copy", result) if result is source else result


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Record `np.linalg.multi_dot`, in the order that costs least."""
    refuse("multi_dot", out=out)
    factors = [operand(each, "multi_dot") for each in arrays]
    if len(factors) < 2:
        raise ValueError(f"multi_dot: {len(factors)} arrays\nhint: two or more")
    shapes = [shape_of(each) for each in factors]
    ends = len(shapes[0]) == 1, len(shapes[-1]) == 1
    for number, shape in enumerate(shapes):
        if len(shape) != 2 and not (len(shape) == 1 and number in (0, len(shapes) - 1)):
            raise ShapeError("multi_dot", "not matrices", *shapes)
    if ends[0]:
        factors[0] = reshaped(factors[0], (1, *shapes[0]))
    if ends[1]:
        factors[-1] = reshaped(factors[-1], (*shapes[-1], 1))
    dims = [shape_of(factors[0])[0], *[shape_of(each)[1] for each in factors]]
    result = _chain(factors, _cheapest(dims), 0, len(factors) - 1)
    kept = tuple(shape_of(result)[number] for number in (0, 1) if not ends[number])
    return reshaped(result, kept)


def tensorinv(a: Any, ind: int = 2) -> Traced:
    """Record `np.linalg.tensorinv`."""
    source = operand(a, "tensorinv")
    if ind <= 0:
        raise ValueError(f"tensorinv: ind={ind}\nhint: positive")
    shape = source.shape[ind:] + source.shape[:ind]
    rows = _count(source, range(ind, source.ndim))
    return reshape(inv(reshape(source, (-1, rows))), shape)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Traced:
    """Record `np.linalg.tensorsolve`."""
    left, right = operand(a, "tensorsolve"), operand(b, "tensorsolve")
    if axes is not None:
        last = axes_of(axes, ndim_of(left), "tensorsolve")
        order = [number for number in range(ndim_of(left)) if number not in last] + list(last)
        left = transpose(left, order) if isinstance(left, Traced) else left.transpose(order)
    shape = shape_of(left)[ndim_of(right) :]
    size = int(np.prod(shape, dtype=int))
    flat = solve(reshaped(left, (-1, size)), reshaped(right, (-1,)))
    return reshape(flat, shape)


def matrix_transpose(x: Any, /) -> Traced:
    """Record `np.matrix_transpose`."""
    source = operand(x, "matrix_transpose")
    if source.ndim < 2:
        raise ShapeError("matrix_transpose", "not a matrix", source.shape)
    return transpose(source, (*range(source.ndim - 2), -1, -2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Traced:
    """Record `np.linalg.vecdot`: over one axis, the first operand conjugated."""
    left, right = operand(x1, "vecdot"), operand(x2, "vecdot")
    if axis != -1:
        left, right = (moved(each, axis, -1) for each in (left, right))
    if common_dtype((left,)).kind == "c":
        left = apply("conj", left) if isinstance(left, Traced) else np.conj(left)
    lengths = [shape_of(each)[-1:] for each in (left, right)]
    if lengths[0] != lengths[1] or () in lengths:
        raise ShapeError("vecdot", "lengths differ", shape_of(left), shape_of(right))
    return reduction("sum", apply("mul", left, right), -1, False)


def matvec(x1: Any, x2: Any, /) -> Traced:
    """Record `np.matvec`: matrices times vectors, stacks of both."""
    product = products.matmul(x1, expanded(operand(x2, "matvec"), -1))
    return product[..., 0]  # type: ignore[index, no-any-return]


def vecmat(x1: Any, x2: Any, /) -> Traced:
    """Record `np.vecmat`: vectors, conjugated, times matrices, stacks of both."""
    left = operand(x1, "vecmat")
    if common_dtype((left,)).kind == "c":
        left = apply("conj", left) if isinstance(left, Traced) else np.conj(left)
    product = products.matmul(expanded(left, -2), x2)
    return product[..., 0, :]  # type: ignore[index, no-any-return]


def _vector_norm(source: Traced, ord: Any, axis: int, keepdims: bool) -> Traced:
    if ord is None or ord == 2:
        return _length(source, axis, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord={ord!r} of vectors")
    if ord == 0:
        there = astype(apply("not_equal", source, 0), _real(source))
        return reduction("sum", there, axis, keepdims)
    sizes = _magnitude(source)
    if ord in (np.inf, -np.inf):
        return reduction("max" if ord > 0 else "min", sizes, axis, keepdims)
    if ord == 1:
        return reduction("sum", sizes, axis, keepdims)
    total = reduction("sum", apply("pow", sizes, ord), axis, keepdims)
    return _where_positive(total, lambda known: apply("pow", known, 1 / ord))


def _matrix_norm(source: Traced, ord: Any, axes: Sequence[int], keepdims: bool) -> Traced:
    if ord in (None, "f", "fro"):
        return _length(source, tuple(axes), keepdims)
    if ord in ("nuc", 2, -2):
        sizes = svdvals(moveaxis(source, axes, (-2, -1)))
        kind = "sum" if ord == "nuc" else "max" if ord == 2 else "min"
        result = reduction(kind, sizes, -1, False)
    elif ord in (1, -1, np.inf, -np.inf):
        inner, outer = axes if ord in (1, -1) else axes[::-1]
        sums = reduction("sum", _magnitude(source), inner, True)
        kind = "max" if ord > 0 else "min"
        result = reduction(kind, sums, tuple(sorted((inner, outer))), False)
    else:
        raise ValueError(f"norm: ord={ord!r} of matrices")
    if not keepdims:
        return result
    kept = [1 if number in axes else dim for number, dim in enumerate(source.shape)]
    return reshape(result, tuple(kept))


def _length(source: Traced, axis: Any, keepdims: bool) -> Traced:
    total = reduction("sum", magnitude_squared(source), axis, keepdims)
    return _where_positive(total, lambda known: apply("sqrt", known))


def _where_positive(total: Traced, root: Callable[[Traced], Traced]) -> Traced:
    """Return the root of a sum, a constant where the sum is 0: its slope is infinite there."""
    is_zero = apply("equal", total, 0)
    trace = owner([total])
    nothing = np.zeros((), total.dtype)
    operands = [trace.value(is_zero), trace.value(nothing), trace.value(root(total))]
    return trace.emit("where", operands)


def _magnitude(source: Traced) -> Traced:
    if source.dtype.kind == "c":
        return _where_positive(magnitude_squared(source), lambda known: apply("sqrt", known))
    return apply("abs", source)


def _hermitian(a: Any, *, lower: bool = True) -> Traced:
    attributes = {} if lower else {"lower": False}
    return _record("hermitian", a, **attributes)  # type: ignore[no-any-return]


def _adjoint(value: Traced) -> Traced:
    turned = matrix_transpose(value)
    return apply("conj", turned) if turned.dtype.kind == "c" else turned


def _side(uplo: Any) -> str:
    side = uplo.upper() if isinstance(uplo, str) else uplo
    if side not in ("L", "U"):
        raise ValueError(f"eigh: UPLO={uplo!r}\nhint: 'L' or 'U'")
    return str(side)


def _rank(sizes: Traced, limit: float) -> Any:
    if not sizes.size:
        return np.int32(0)
    least = apply("mul", reduction("max", sizes, None, False), limit)
    counted = reduction("sum", apply("greater", sizes, least), None, False)
    return astype(counted, np.int32)


def _floating(value: Any) -> np.dtype[Any]:
    """Return the dtype in which NumPy computes with `value`: integers as float64."""
    own = common_dtype((value,))
    return own if own.kind in "fc" else np.dtype(np.float64)


def _real(source: Traced) -> np.dtype[Any]:
    return np.empty(0, source.dtype).real.dtype


def _count(source: Any, axes: Any) -> int:
    return int(np.prod([shape_of(source)[axis] for axis in axes], dtype=int))


def _cheapest(dims: Sequence[int]) -> list[list[int]]:
    """Return where to split each product of matrices [dims[i], dims[i + 1]].

    Source: Cormen et al., Introduction to Algorithms, 15.2.
    """
    count = len(dims) - 1
    cost = [[0.0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            found = [
                (
                    cost[first][cut]
                    + cost[cut + 1][last]
                    + dims[first] * dims[cut + 1] * dims[last + 1],
                    cut,
                )
                for cut in range(first, last)
            ]
            cost[first][last], split[first][last] = min(found)
    return split


def _chain(factors: Sequence[Any], split: list[list[int]], first: int, last: int) -> Any:
    if first == last:
        return factors[first]
    cut = split[first][last]
    left, right = _chain(factors, split, first, cut), _chain(factors, split, cut + 1, last)
    if isinstance(left, Traced) or isinstance(right, Traced):
        return products.matmul(left, right)
    return np.matmul(left, right)


def _outer(x1: Any, x2: Any, /) -> Traced:
    for each in (x1, x2):
        if ndim_of(each) != 1:
            raise ShapeError("outer", "not vectors", shape_of(x1), shape_of(x2))
    return products.outer(x1, x2)


def _tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Traced:
    return products.tensordot(x1, x2, axes)


def _trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Traced:
    return diagonals.trace(x, offset, -2, -1, dtype)


def _diagonal(x: Any, /, *, offset: int = 0) -> Traced:
    return diagonals.diagonal(x, offset, -2, -1)


def _cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Traced:
    for each in (x1, x2):
        (along,) = axes_of(axis, ndim_of(each), "cross")
        if shape_of(each)[along] != 3:
            raise ShapeError("cross", "not of three dims", shape_of(x1), shape_of(x2))
    return products.cross(x1, x2, axis=axis)


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.linalg.inv: inv,
    np.linalg.solve: solve,
    np.linalg.det: det,
    np.linalg.slogdet: slogdet,
    np.linalg.cholesky: cholesky,
    np.linalg.qr: qr,
    np.linalg.eigh: eigh,
    np.linalg.eigvalsh: eigvalsh,
    np.linalg.eig: eig,
    np.linalg.eigvals: eigvals,
    np.linalg.svd: svd,
    np.linalg.svdvals: svdvals,
    np.linalg.pinv: pinv,
    np.linalg.lstsq: lstsq,
    np.linalg.norm: norm,
    np.linalg.vector_norm: vector_norm,
    np.linalg.matrix_norm: matrix_norm,
    np.linalg.cond: cond,
    np.linalg.matrix_power: matrix_power,
    np.linalg.multi_dot: multi_dot,
    np.linalg.tensorinv: tensorinv,
    np.linalg.tensorsolve: tensorsolve,
    np.linalg.matrix_transpose: matrix_transpose,
    np.matrix_transpose: matrix_transpose,
    np.linalg.vecdot: vecdot,
    np.linalg.matmul: products.matmul,
    np.linalg.tensordot: _tensordot,
    np.linalg.outer: _outer,
    np.linalg.trace: _trace,
    np.linalg.diagonal: _diagonal,
    np.linalg.cross: _cross,
}

REFUSED: Final = {
    "matrix_rank": "it jumps: compute it outside of the traced function, or count svdvals(x)",
}
"""Functions of numpy.linalg that traced values do not go into, and what to do instead."""


def ufuncs() -> dict[Any, Callable[..., Traced]]:
    """Return the ufuncs among the products, as far as this NumPy has them."""
    found = {"vecdot": vecdot, "matvec": matvec, "vecmat": vecmat}
    return {getattr(np, name): made for name, made in found.items() if hasattr(np, name)}
