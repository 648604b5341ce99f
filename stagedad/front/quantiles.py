"""Averages, medians and quantiles of traced values, and reductions that leave out NaNs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front.elementwise import apply, array_operand, astype, common_dtype, operand
from stagedad.front.joining import where
from stagedad.front.location import place
from stagedad.front.ordering import sort, take_along_axis
from stagedad.front.reducing import (
    NO_VALUE,
    is_everywhere,
    max_,
    mean,
    min_,
    prod,
    refuse,
    root,
    sum_,
    var,
)
from stagedad.front.sequences import cumprod, cumsum
from stagedad.front.shaping import axes_of, broadcast_to, reshape
from stagedad.front.tracing import Traced


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """Record `np.average`; weights that sum to 0 raise where they are plain."""
    source = array_operand(a, "average")
    if weights is None:
        found = np.mean(source, axis=axis, keepdims=keepdims)
        total: Any = np.full(found.shape, source.size / max(found.size, 1), found.dtype)
    else:
        share = array_operand(weights, "average")
        dtype = common_dtype([source, share])
        if source.dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float64)
        share = _weights(share, source, axis)
        total = np.sum(share, axis=axis, dtype=dtype, keepdims=keepdims)
        if not isinstance(total, Traced) and np.any(total == 0):
            raise ZeroDivisionError("average: weights sum to zero")
        product = source.astype(dtype) * share.astype(dtype)
        found = np.sum(product, axis=axis, keepdims=keepdims) / total
    if not returned:
        return found
    return found, np.broadcast_to(total, found.shape)


def _weights(share: Any, source: Any, axis: Any) -> Any:
    """Return weights in the shape of `source`, given those of the axes."""
    if share.shape == source.shape:
        return share
    if axis is None:
        raise TypeError(
            "average: `axis=` must be given when shapes of a and weights differ: "
            f"{source.shape}, {share.shape}"
        )
    axes = axes_of(axis, source.ndim, "average")
    if share.shape != tuple(source.shape[n] for n in axes):
        raise ShapeError("average", "weights do not fit the axes", source.shape, share.shape)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    share = np.transpose(share, order)
    shape = [dim if n in axes else 1 for n, dim in enumerate(source.shape)]
    return np.broadcast_to(np.reshape(share, shape), source.shape)


# Quantiles: NumPy's methods, as virtual positions among `n` sorted elements.  The same
# code serves numbers and traced counts.


def _fitted(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _stepped(shift: float, is_odd_kept: bool) -> Callable[[Any, Any], Any]:
    """Return the position at or above, or below where it falls on one exactly."""

    def position(n: Any, q: Any) -> Any:
        at = n * q - shift
        below = np.floor(at)
        stays = at == below
        if is_odd_kept:
            stays = np.logical_and(stays, np.floor(at) % 2 == 1)
        return np.maximum(np.where(stays, below, below + 1), 0)

    return position


def _linear(n: Any, q: Any) -> Any:
    return (n - 1) * q


_POSITIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "inverted_cdf": _stepped(1, False),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "closest_observation": _stepped(1.5, True),
    "interpolated_inverted_cdf": _fitted(0, 1),
    "hazen": _fitted(0.5, 0.5),
    "weibull": _fitted(0, 0),
    "linear": _linear,
    "median_unbiased": _fitted(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _fitted(3 / 8.0, 3 / 8.0),
    "lower": lambda n, q: np.floor(_linear(n, q)),
    "higher": lambda n, q: np.ceil(_linear(n, q)),
    "midpoint": lambda n, q: 0.5 * (np.floor(_linear(n, q)) + np.ceil(_linear(n, q))),
    "nearest": lambda n, q: np.rint(_linear(n, q)),
}
_WHOLE: Final = frozenset({"inverted_cdf", "closest_observation", "lower", "higher", "nearest"})


def _shares(method: str, position: Any, below: Any) -> Any:
    """Return how much of the upper neighbour there is in the quantile."""
    if method == "averaged_inverted_cdf":
        return np.where(position == below, 0.5, 1.0)
    if method == "midpoint":
        return np.where(position == below, 0.0, 0.5)
    return position - below


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
    interpolation: Any = None,
) -> Any:  # fmt: skip
    """Record `np.quantile`, by all its methods; of traced `q` there is none."""
    del overwrite_input
    refuse("quantile", out=out, weights=weights, interpolation=interpolation)
    return _quantiles("quantile", a, q, 1, axis, method, keepdims, False)


def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
    interpolation: Any = None,
) -> Any:  # fmt: skip
    """Record `np.percentile`."""
    del overwrite_input
    refuse("percentile", out=out, weights=weights, interpolation=interpolation)
    return _quantiles("percentile", a, q, 100, axis, method, keepdims, False)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: Any = NO_VALUE, *, weights: Any = None,
    interpolation: Any = None,
) -> Any:  # fmt: skip
    """Record `np.nanquantile`."""
    del overwrite_input
    refuse("nanquantile", out=out, weights=weights, interpolation=interpolation)
    return _quantiles("nanquantile", a, q, 1, axis, method, keepdims, True)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: Any = NO_VALUE, *, weights: Any = None,
    interpolation: Any = None,
) -> Any:  # fmt: skip
    """Record `np.nanpercentile`."""
    del overwrite_input
    refuse("nanpercentile", out=out, weights=weights, interpolation=interpolation)
    return _quantiles("nanpercentile", a, q, 100, axis, method, keepdims, True)


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Record `np.median`."""
    del overwrite_input
    refuse("median", out=out)
    source = operand(a, "median")
    rows, kept = _rows(source, axis, "median")
    count = rows.shape[0]
    middle = rows[(count - 1) // 2 : count // 2 + 1]
    found = mean(middle, axis=0)
    return _finished(_or_nan(found, rows), (), kept, keepdims)


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """Record `np.nanmedian`."""
    del overwrite_input
    refuse("nanmedian", out=out)
    source = operand(a, "nanmedian")
    if source.dtype.kind != "f":
        return median(source, axis, keepdims=keepdims is not NO_VALUE and bool(keepdims))
    rows, kept = _rows(source, axis, "nanmedian")
    count: Any = sum_(apply("logical_not", apply("isnan", rows)), axis=0)
    low = _at(rows, np.maximum((count - 1) // 2, 0))
    high = _at(rows, np.minimum(count // 2, rows.shape[0] - 1))
    found = np.where(count % 2 == 1, low, (low + high) / 2)
    return _finished(found, (), kept, keepdims)


def _quantiles(
    op: str, a: Any, q: Any, scale: int, axis: Any, method: str, keepdims: Any, skips: bool
) -> Any:
    if isinstance(q, Traced):
        raise TraceError(
            f"{op}: of a traced q is not supported: {q.type} ({place()})",
            op=op,
            hint="np.interp(q, np.linspace(0, 1, n), np.sort(x)) is the same for one axis",
        )
    if method not in _POSITIONS:
        raise ValueError(f"{op}: method: {method!r}\nhint: one of {', '.join(_POSITIONS)}")
    source = operand(a, op)
    if source.dtype.kind in "cb":
        raise DTypeError(f"{op}: not defined for: {source.dtype} ({place()})", op=op)
    is_weak = type(q) in (int, float)
    wanted = np.true_divide(q, scale) if scale != 1 else np.asarray(q)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"{op}: q is not in [0, {scale}]: {q}")
    rows, kept = _rows(source, axis, op)
    if skips and source.dtype.kind == "f":
        parts = [
            _of_counted(rows, float(each) if is_weak else each, method, is_weak)
            for each in wanted.ravel()
        ]
        found = parts[0] if not wanted.ndim else np.stack(parts)
        found = np.reshape(found, (*wanted.shape, *rows.shape[1:]))
    else:
        found = _or_nan(_of_rows(rows, wanted, method, is_weak), rows)
    return _finished(found, wanted.shape, kept, keepdims)


def _of_rows(rows: Any, wanted: Any, method: str, is_weak: bool) -> Any:
    """Return quantiles of sorted rows, which all count."""
    count = rows.shape[0]
    position = np.asarray(_POSITIONS[method](count, wanted))
    whole = position.dtype.kind in "iu"
    if method in _WHOLE or (method == "linear" and whole):
        return np.take(rows, position.astype(np.intp), axis=0)
    below = np.floor(position)
    outside = (position >= count - 1, position < 0)
    lower, upper = (
        np.where(outside[0], count - 1, np.where(outside[1], 0, each)).astype(np.intp)
        for each in (below, below + 1)
    )
    # As NumPy takes it: what is left over beyond the ends multiplies a difference of 0.
    share = np.asarray(_shares(method, position, below), position.dtype)
    share = np.where(outside[0] | outside[1], 0, share)
    low, high = np.take(rows, lower, axis=0), np.take(rows, upper, axis=0)
    step = high - low
    if is_weak:
        part = float(share)
        return low + step * part if part < 0.5 else high - step * (1 - part)
    share = share.reshape(share.shape + (1,) * (rows.ndim - 1))
    found = low + step * share
    if (share < 0.5).all():
        return found
    return np.where(share >= 0.5, high - step * (1 - share), found)


def _of_counted(rows: Any, wanted: Any, method: str, is_weak: bool) -> Any:
    """Return one quantile of sorted rows whose last elements may be NaN."""
    count: Any = sum_(apply("logical_not", apply("isnan", rows)), axis=0)
    position = _POSITIONS[method](count.astype(np.float64), np.float64(wanted))
    below = np.floor(position)
    last = np.maximum(count - 1, 0)
    lower, upper = (
        np.minimum(np.maximum(each, 0).astype(np.int64), last)
        for each in ((position, position) if method in _WHOLE else (below, below + 1))
    )
    low = _at(rows, lower)
    if method in _WHOLE:
        return low
    share = _shares(method, position, below)
    share = np.where(np.logical_or(position < 0, position >= last), 0, share)
    if is_weak:
        share = astype(share, rows.dtype)
    step = _at(rows, upper) - low
    return np.where(share >= 0.5, low + step - step * (1 - share), low + step * share)


def _rows(source: Any, axis: Any, op: str) -> tuple[Any, tuple[int, ...]]:
    """Return the elements sorted along a first axis; and the shape with dims of 1 for it."""
    axes = tuple(range(source.ndim)) if axis is None else axes_of(axis, source.ndim, op)
    others = [n for n in range(source.ndim) if n not in axes]
    kept = tuple(1 if n in axes else dim for n, dim in enumerate(source.shape))
    turned = np.transpose(source, (*axes, *others))
    rest = tuple(source.shape[n] for n in others)
    count = 1
    for n in axes:
        count *= source.shape[n]
    if not count:
        raise ValueError(f"{op}: of no elements: {source.shape}")
    return sort(reshape(turned, (count, *rest)), axis=0), kept


def _at(rows: Any, positions: Any) -> Any:
    """Return the element at a position of its own for each column of `rows`."""
    return take_along_axis(rows, np.expand_dims(positions, 0), axis=0)[0]  # type: ignore[index]


def _or_nan(found: Any, rows: Any) -> Any:
    """Return NaN instead where the rows, sorted, end in one."""
    if rows.dtype.kind not in "fc":
        return found
    last = rows[-1]
    return where(apply("isnan", last), np.nan, found)


def _finished(found: Any, lead: tuple[int, ...], kept: tuple[int, ...], keepdims: Any) -> Any:
    if keepdims is NO_VALUE or not keepdims:
        return found
    return np.reshape(found, (*lead, *kept))


# Reductions without NaNs.


def _filled(a: Any, fill: Any, mask: Any, op: str) -> Any:
    """Return the operand with `fill` for NaNs; and where it counts, None for everywhere."""
    source = operand(a, op)
    if source.dtype.kind not in "fc":
        return source, mask
    present: Any = apply("logical_not", apply("isnan", source))
    filled = where(present, source, fill)
    return filled, present if is_everywhere(mask) else np.logical_and(present, mask)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nansum`."""
    filled, _ = _filled(a, 0, where, "nansum")
    return sum_(filled, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nanprod`."""
    filled, _ = _filled(a, 1, where, "nanprod")
    return prod(filled, axis, dtype, out, keepdims, initial, where)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """Record `np.nancumsum`."""
    return cumsum(_filled(a, 0, None, "nancumsum")[0], axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """Record `np.nancumprod`."""
    return cumprod(_filled(a, 1, None, "nancumprod")[0], axis, dtype, out)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    *, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nanmean`."""
    filled, mask = _filled(a, 0, where, "nanmean")
    return mean(filled, axis, dtype, out, keepdims, where=mask)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE, mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nanvar`: NaN where no degree of freedom is left."""
    filled, mask = _filled(a, 0, where, "nanvar")
    given = {"where": mask, "mean": mean, "correction": correction}
    found = var(filled, axis, dtype, out, ddof, keepdims, **given)
    if is_everywhere(mask):
        return found
    freedom = ddof if correction is NO_VALUE else correction
    present = broadcast_to(mask, filled.shape) if isinstance(mask, Traced) else mask
    left = sum_(present, axis, keepdims=keepdims)
    return _choose(apply("less_equal", left, freedom), np.nan, found)


def nanstd(a: Any, *args: Any, **kwargs: Any) -> Traced:
    """Record `np.nanstd`: its gradient is 0 where all elements are equal."""
    return root(nanvar(a, *args, **kwargs))


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nanmax`: NaN where there is nothing else."""
    return _nan_extremum(max_, -np.inf, a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.nanmin`: NaN where there is nothing else."""
    return _nan_extremum(min_, np.inf, a, axis, out, keepdims, initial, where)


def _nan_extremum(
    reduce: Any, fill: float, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any,
    mask: Any,
) -> Traced:  # fmt: skip
    source = operand(a, reduce.__name__)
    if source.dtype.kind == "c":
        name = f"nan{reduce.__name__.rstrip('_')}"
        raise TraceError(f"{name}: not of complex numbers on traced values: {place()}")
    filled, _ = _filled(source, fill, None, reduce.__name__)
    found = reduce(filled, axis, out, keepdims, initial, mask)
    if source.dtype.kind != "f" or not (initial is NO_VALUE or initial is None):
        return found  # type: ignore[no-any-return]
    empty = np.all(np.isnan(source), axis=axis, keepdims=keepdims)
    return _choose(empty, np.nan, found)


_choose = where
