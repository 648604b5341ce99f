"""Running sums, differences, convolutions and other functions along an axis."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front.elementwise import (
    apply,
    array_operand,
    astype,
    common_dtype,
    operand,
)
from stagedad.front.joining import array, concatenate, where
from stagedad.front.location import place
from stagedad.front.reducing import NO_VALUE, refuse
from stagedad.front.shaping import axes_of, flattened, flip, ravel, reshape
from stagedad.front.tracing import Traced, owner

_ALL = slice(None)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """Record `np.cumsum`."""
    return _scan("cumsum", a, axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """Record `np.cumprod`, whose gradient is right beside zeros."""
    return _scan("cumprod", a, axis, dtype, out)


def cumulative(kind: str) -> Any:
    """Return `np.cumulative_sum` or `np.cumulative_prod` of traced values."""

    def recorded(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
        include_initial: bool = False,
    ) -> Traced:  # fmt: skip
        source = operand(x, kind)
        if axis is None:
            if source.ndim != 1:
                raise ValueError(f"{kind}: more than one axis needs `axis=`: {source.shape}")
            axis = 0
        found = _scan(kind, source, axis, dtype, out)
        if not include_initial:
            return found
        (along,) = axes_of(axis, source.ndim, kind)
        first = [1 if number == along else dim for number, dim in enumerate(source.shape)]
        start = np.full(first, 0 if kind == "cumsum" else 1, found.dtype)
        return concatenate([start, found], along)

    return recorded


def _scan(kind: str, a: Any, axis: Any, dtype: Any, out: Any) -> Traced:
    refuse(kind, out=out)
    source = operand(a if dtype is None else astype(a, dtype), kind)
    if axis is None or not source.ndim:
        if axis not in (None, 0, -1):
            raise np.exceptions.AxisError(axis, source.ndim)
        source, axis = reshape(source, (source.size,)), 0
    (along,) = axes_of(axis, source.ndim, kind)
    trace = owner([source])
    return trace.emit(kind, [trace.value(source)], {"axis": along})


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE
) -> Any:
    """Record `np.diff`."""
    times = index(n)
    if times < 0:
        raise ValueError(f"diff: order must be non-negative: {times}")
    source = operand(a, "diff")
    if times == 0:
        return source if isinstance(source, Traced) else array(source)
    if not source.ndim:
        raise ValueError("diff: of a 0-d array")
    (along,) = axes_of(axis, source.ndim, "diff")
    one = tuple(1 if number == along else dim for number, dim in enumerate(source.shape))
    ends = [
        each if each is NO_VALUE or np.ndim(each) else np.broadcast_to(each, one)
        for each in (prepend, append)
    ]
    parts = [ends[0], source, ends[1]]
    given = [part for part in parts if part is not NO_VALUE]
    if len(given) > 1:
        source = concatenate(given, along)
    lead = (_ALL,) * along
    for _ in range(times):
        upper, lower = source[(*lead, slice(1, None))], source[(*lead, slice(None, -1))]
        source = apply("not_equal" if source.dtype.kind == "b" else "sub", upper, lower)
    return source


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Traced:
    """Record `np.ediff1d`."""
    source = ravel(operand(ary, "ediff1d"))
    parts = [diff(source)]
    for end, before in ((to_begin, True), (to_end, False)):
        if end is not None:
            known = operand(end, "ediff1d")
            flat = flattened(known)
            if not np.can_cast(flat.dtype, source.dtype, "same_kind"):
                raise DTypeError(f"ediff1d: {flat.dtype} does not fit: {source.dtype}")
            flat = astype(flat, source.dtype)
            parts = [flat, *parts] if before else [*parts, flat]
    return concatenate(parts) if len(parts) > 1 else parts[0]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Record `np.trapezoid`."""
    values = operand(y, "trapezoid")
    (along,) = axes_of(axis, values.ndim, "trapezoid")
    step = dx
    if x is not None:
        points = array_operand(x, "trapezoid")
        if points.ndim == 1:
            shape = [1] * values.ndim
            shape[along] = -1
            step = np.reshape(np.diff(points), shape)
        else:
            step = np.diff(points, axis=axis)
    lead = (_ALL,) * along
    upper, lower = values[(*lead, slice(1, None))], values[(*lead, slice(None, -1))]
    return np.sum(step * (upper + lower) / 2.0, axis=axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Record `np.gradient`: differences, central inside and one-sided at the ends."""
    values = array_operand(f, "gradient")
    if values.dtype.kind == "b":
        raise DTypeError(f"gradient: not defined for: bool ({place()})", op="gradient")
    if values.dtype.kind not in "fc":
        values = values.astype(np.float64)
    axes = tuple(range(values.ndim)) if axis is None else axes_of(axis, values.ndim, "gradient")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is not 1 or 2: {edge_order}")
    if not varargs:
        steps: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        steps = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        steps = [_spacing(each, values.shape[n]) for each, n in zip(varargs, axes, strict=True)]
    else:
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    for n in axes:
        if values.shape[n] < edge_order + 1:
            raise ValueError(
                f"gradient: axis {n} of size {values.shape[n]} is shorter than edge_order + 1"
            )
    found = [_gradient(values, h, n, edge_order) for h, n in zip(steps, axes, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _spacing(given: Any, length: int) -> Any:
    """Return a scalar, or the distances between the points that were given."""
    points = array_operand(given, "gradient")
    if not points.ndim:
        return given
    if points.shape != (length,):
        raise ShapeError("gradient", "points do not fit the axis", points.shape, (length,))
    if points.dtype.kind in "iu":
        points = points.astype(np.float64)
    steps = np.diff(points)
    if not isinstance(steps, Traced) and (steps == steps[0]).all():
        return steps[0]
    return steps


def _gradient(values: Any, step: Any, axis: int, order: int) -> Any:
    lead = (_ALL,) * axis
    column = [1] * values.ndim
    column[axis] = -1

    def at(start: int, stop: int | None) -> Any:
        return values[(*lead, slice(start, stop))]

    def weighted(weights: Any, parts: Any) -> Any:
        a, b, c = weights
        return a * parts[0] + b * parts[1] + c * parts[2]

    is_even = np.ndim(step) == 0
    if is_even:
        middle = (at(2, None) - at(0, -2)) / (2.0 * step)
        before = behind = (step, step)
    else:
        one, two = (np.reshape(each, column) for each in (step[:-1], step[1:]))
        a = -two / (one * (one + two))
        b = (two - one) / (one * two)
        c = one / (two * (one + two))
        middle = weighted((a, b, c), (at(0, -2), at(1, -1), at(2, None)))
        before, behind = (step[0], step[1 % len(step)]), (step[-2 % len(step)], step[-1])
    if order == 1:
        first = (at(1, 2) - at(0, 1)) / before[0]
        last = (at(-1, None) - at(-2, -1)) / behind[1]
        return astype(np.concatenate([first, middle, last], axis=axis), values.dtype)
    if is_even:
        start = (-1.5 / step, 2.0 / step, -0.5 / step)
        end = (0.5 / step, -2.0 / step, 1.5 / step)
    else:
        h, k = before
        start = (-(2.0 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k)))
        h, k = behind
        end = (k / (h * (h + k)), -(k + h) / (h * k), (2.0 * k + h) / (k * (h + k)))
    first = weighted(start, (at(0, 1), at(1, 2), at(2, 3)))
    last = weighted(end, (at(-3, -2), at(-2, -1), at(-1, None)))
    return astype(np.concatenate([first, middle, last], axis=axis), values.dtype)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Record `np.unwrap`: the jumps it removes have no slope."""
    source = operand(p, "unwrap")
    (along,) = axes_of(axis, source.ndim, "unwrap")
    step: Any = diff(source, axis=along)
    if discont is None:
        discont = period / 2
    dtype = np.result_type(step.dtype, period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        is_ambiguous = rest == 0
    else:
        high, is_ambiguous = period / 2, True
    turned: Any = (step + high) % period - high
    if is_ambiguous:
        turned = where((turned == -high) & (step > 0), high, turned)
    jump = where(abs(step) < discont, 0, turned - step)
    lead = (_ALL,) * along
    first = source[(*lead, slice(0, 1))]
    rest = source[(*lead, slice(1, None))] + cumsum(jump, along)
    return concatenate([astype(first, dtype), astype(rest, dtype)], along)


def convolve(a: Any, v: Any, mode: str = "full") -> Traced:
    """Record `np.convolve`."""
    left, right = _vectors(a, v, "convolve")
    if mode == "valid":
        return _convolved(left, right, valid=True)
    return _cut(_convolved(left, right), left.size, right.size, mode, "convolve")


def correlate(a: Any, v: Any, mode: str = "valid") -> Traced:
    """Record `np.correlate`."""
    left, right = _vectors(a, v, "correlate")
    if isinstance(right, Traced):
        turned = flip(apply("conj", right) if right.dtype.kind == "c" else right)
    else:
        turned = np.conj(right[::-1]) if right.dtype.kind == "c" else right[::-1].copy()
    if mode == "valid":
        return _convolved(left, turned, valid=True)
    return _cut(_convolved(left, turned), left.size, right.size, mode, "correlate")


def _vectors(a: Any, v: Any, op: str) -> tuple[Any, Any]:
    found = []
    for each in (a, v):
        known = array_operand(each, op)
        if not known.ndim:
            known = np.reshape(known, (1,))
        if known.ndim != 1 or not known.size:
            raise ShapeError(op, "not a vector of one element or more", known.shape)
        found.append(known)
    dtype = common_dtype(found)
    return astype(found[0], dtype), astype(found[1], dtype)


def _convolved(left: Any, right: Any, *, valid: bool = False) -> Traced:
    if valid and right.size > left.size:
        left, right = right, left
    trace = owner([left, right])
    return trace.emit(
        "convolve_valid" if valid else "convolve", [trace.value(left), trace.value(right)]
    )


def _cut(full: Traced, left: int, right: int, mode: str, op: str) -> Traced:
    """Return the part of a full convolution that `mode` means, as NumPy aligns it."""
    small, large = min(left, right), max(left, right)
    if mode == "full":
        return full
    if mode == "same":
        start, length = (small - 1) // 2, large
        # NumPy correlates the longer with the shorter, and turns the result round.
        if op == "correlate" and right > left:
            start = small - 1 - start
    else:
        raise ValueError(f"{op}: mode: {mode!r}\nhint: 'full', 'same' or 'valid'")
    return full[start : start + length]  # type: ignore[index, no-any-return]


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """Record `np.cov`; the weights must be plain."""
    for weights in (fweights, aweights):
        if isinstance(weights, Traced):
            raise TraceError(f"cov: weights are traced: {weights.type} ({place()})", op="cov")
    given = [operand(each, "cov") for each in (m, y) if each is not None]
    wanted = np.result_type(common_dtype(given), np.float64) if dtype is None else dtype
    rows = []
    for number, each in enumerate(given):
        matrix = astype(each, np.dtype(wanted))
        if matrix.ndim > 2:
            raise ShapeError("cov", "more than 2 dims", matrix.shape)
        is_vector = matrix.ndim < 2
        matrix = np.atleast_2d(matrix)
        if not rowvar and (not is_vector if number == 0 else matrix.shape[0] != 1):
            matrix = matrix.T
        rows.append(matrix)
    table = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    weights, total = _cov_weights(fweights, aweights, table.shape[1])
    if weights is None:
        freedom = table.shape[1] - ddof
        middle = np.mean(table, axis=1, keepdims=True)
    else:
        freedom = total - ddof
        if aweights is not None:
            freedom = total - ddof * np.sum(weights * np.asarray(aweights, float)) / total
        middle = np.sum(table * weights, axis=1, keepdims=True) / total
    off = table - middle
    turned = np.conj((off if weights is None else off * weights).T)
    product = np.dot(off, turned) / np.asarray(max(freedom, 0), float)
    return np.squeeze(product)


def _cov_weights(fweights: Any, aweights: Any, count: int) -> tuple[Any, Any]:
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        known = np.asarray(given, float)
        if known.shape != (count,):
            raise ShapeError("cov", f"{name} differ in length", known.shape, (count,))
        if (known < 0).any():
            raise ValueError(f"cov: {name} cannot be negative: {known.min()}")
        if name == "fweights" and (known != np.around(known)).any():
            raise TypeError("cov: fweights must be integers")
        weights = known if weights is None else weights * known
    return weights, None if weights is None else weights.sum()


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Record `np.corrcoef`, without its clipping of rounding errors to 1."""
    table = cov(x, y, rowvar, dtype=dtype)
    if not table.ndim:
        return table / table
    count = table.shape[0]
    spread = np.sqrt(np.real(table[np.arange(count), np.arange(count)]))
    return table / spread[:, None] / spread[None, :]
