"""Reductions of traced values."""

from __future__ import annotations

from math import prod as prod_of
from typing import Any, Final

import numpy as np

from stagedad.errors import ShapeError, TraceError
from stagedad.front.elementwise import apply, astype, operand, shape_of
from stagedad.front.location import place
from stagedad.front.shaping import axes_of, broadcast_to
from stagedad.front.tracing import Traced, owner

NO_VALUE: Final = np._NoValue


def refuse(op: str, **arguments: Any) -> None:
    """Raise TraceError if an argument that is not carried was given."""
    for name, given in arguments.items():
        if (
            given is not None
            and given is not NO_VALUE
            and not (name == "where" and given is True)
        ):
            raise TraceError(
                f"{op}: `{name}=` is not supported on traced values: {place()}",
                op=op,
                hint="use the value that the call returns"
                if name == "out"
                else "compute it in a step of its own",
            )


def reduction(kind: str, a: Any, axis: Any, keepdims: Any) -> Traced:
    """Record a reduction over `axis`, None for all."""
    source = operand(a, kind)
    attributes: dict[str, Any] = {}
    if axis is not None:
        axes = axes_of(axis, source.ndim, kind)
        attributes["axis"] = axes[0] if len(axes) == 1 else axes
    if keepdims is not NO_VALUE and keepdims:
        attributes["keepdims"] = True
    trace = owner((source,))
    return trace.emit(kind, (trace.value(source),), attributes)


def sum_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.sum`."""
    refuse("sum", out=out)
    source = masked(a if dtype is None else astype(a, dtype), where, 0)
    return with_initial("add", reduction("sum", source, axis, keepdims), initial)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.prod`, whose gradient is right beside zeros."""
    refuse("prod", out=out)
    source = masked(a if dtype is None else astype(a, dtype), where, 1)
    return with_initial("mul", reduction("prod", source, axis, keepdims), initial)


def all_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *,
    where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.all`."""
    refuse("all", out=out)
    return reduction("all", masked(a, where, True), axis, keepdims)


def any_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *,
    where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.any`."""
    refuse("any", out=out)
    return reduction("any", masked(a, where, False), axis, keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Traced:
    """Record `np.count_nonzero`."""
    return reduction("sum", apply("not_equal", a, 0), axis, keepdims)


def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.max`; ties share the gradient."""
    return _extremum("max", "maximum", a, axis, out, keepdims, initial, where)


def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.min`; ties share the gradient."""
    return _extremum("min", "minimum", a, axis, out, keepdims, initial, where)


def logsumexp(a: Any, axis: Any = None, keepdims: Any = NO_VALUE) -> Traced:
    """Record `np.logaddexp.reduce`."""
    return reduction("logsumexp", a, axis, keepdims)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Traced:
    """Record `np.ptp`."""
    refuse("ptp", out=out)
    high = reduction("max", a, axis, keepdims)
    return apply("sub", high, reduction("min", a, axis, keepdims))


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Traced:
    """Record `np.argmax`: a position, which has no derivative."""
    refuse("argmax", out=out)
    return reduction("argmax", a, axis, keepdims)


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Traced:
    """Record `np.argmin`: a position, which has no derivative."""
    refuse("argmin", out=out)
    return reduction("argmin", a, axis, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    *, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.mean`."""
    refuse("mean", out=out)
    source = operand(a if dtype is None else astype(a, dtype), "mean")
    if is_everywhere(where):
        return reduction("mean", source, axis, keepdims)
    if source.dtype.char == "e":  # whose sums may overflow
        wide = mean(astype(source, np.float32), axis, None, None, keepdims, where=where)
        return astype(wide, np.float16)  # type: ignore[no-any-return]
    total = reduction("sum", masked(_inexact(source), where, 0), axis, keepdims)
    return _shared_by(total, count(where, source, axis, keepdims))


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE, mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.var`."""
    refuse("var", out=out)
    source = operand(a if dtype is None else astype(a, dtype), "var")
    number = count(where, source, axis, keepdims)
    if mean is not NO_VALUE and mean is not None:
        middle = mean
    elif is_everywhere(where):
        middle = reduction("mean", source, axis, True)
    else:
        total = reduction("sum", masked(_inexact(source), where, 0), axis, True)
        middle = _shared_by(total, count(where, source, axis, True))
    deviation = masked(apply("sub", source, middle), where, 0)
    total = reduction("sum", magnitude_squared(deviation), axis, keepdims)
    freedom = ddof if correction is NO_VALUE else correction
    if isinstance(number, Traced):
        return _shared_by(total, apply("maximum", apply("sub", number, freedom), 0))
    return _shared_by(total, np.maximum(number - freedom, 0))


def std(a: Any, *args: Any, **kwargs: Any) -> Traced:
    """Record `np.std`: its gradient is 0 where all elements are equal."""
    return root(var(a, *args, **kwargs))


def root(square: Traced) -> Traced:
    """Record the square root, with the gradient 0 at 0."""
    from stagedad.front.joining import where  # joining is built on this module

    is_zero = apply("equal", square, 0)
    return where(is_zero, 0, apply("sqrt", where(is_zero, 1, square)))


def is_everywhere(where: Any) -> bool:
    """Whether `where=` leaves nothing out."""
    return where is NO_VALUE or where is True or where is None


def masked(a: Any, where: Any, neutral: Any) -> Any:
    """Return `a` with `neutral` where the mask is false."""
    if is_everywhere(where):
        return a
    from stagedad.front.joining import where as choose

    source = operand(a, "where")
    shape = shape_of(where)
    if np.broadcast_shapes(source.shape, shape) != source.shape:
        raise ShapeError("where=", "does not broadcast to the operand", shape, source.shape)
    return choose(where, source, fitted(neutral, source.dtype))


def with_initial(kind: str, result: Traced, initial: Any) -> Traced:
    """Record what `initial=` adds to a reduction."""
    if initial is NO_VALUE or initial is None:
        return result
    return apply(kind, result, fitted(initial, result.dtype))


def fitted(value: Any, dtype: Any) -> Any:
    """Return a plain number in a dtype, as NumPy converts what it starts a reduction with."""
    return value if isinstance(value, Traced) else np.asarray(value, dtype)


def count(where: Any, source: Any, axis: Any, keepdims: Any) -> Any:
    """Return how many elements a reduction takes: a number, an array, or a traced value."""
    if is_everywhere(where):
        axes = range(source.ndim) if axis is None else axes_of(axis, source.ndim, "mean")
        return prod_of(source.shape[each] for each in axes)
    keep = keepdims is not NO_VALUE and bool(keepdims)
    if not isinstance(where, Traced):
        if isinstance(where, np.ndarray):
            source._trace.constants.watch(where)
        mask = np.broadcast_to(np.asarray(where, bool), source.shape)
        return np.sum(mask, axis=axis, keepdims=keep)
    return reduction("sum", broadcast_to(astype(where, bool), source.shape), axis, keep)


def _inexact(source: Any) -> Any:
    """Return integers as float64, in which NumPy takes their means."""
    return source if source.dtype.kind in "fc" else astype(source, np.float64)


def _shared_by(total: Traced, number: Any) -> Traced:
    """Record total / number in the dtype of the total."""
    if np.ndim(number) == 0 and not isinstance(number, Traced):
        return apply("div", total, np.asarray(number).item())
    return apply("div", total, astype(number, np.zeros(0, total.dtype).real.dtype))


def _extremum(
    kind: str, binary: str, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Traced:
    refuse(kind, out=out)
    if not is_everywhere(where):
        if initial is NO_VALUE or initial is None:
            raise ValueError(
                f"{kind}: `where=` needs `initial=`, for what it leaves nothing of: {place()}"
            )
        a = masked(a, where, initial)
    return with_initial(binary, reduction(kind, a, axis, keepdims), initial)


def magnitude_squared(value: Traced) -> Traced:
    """Record `|value| ** 2`, real."""
    if value.dtype.kind == "c":
        return apply("real", apply("mul", value, apply("conj", value)))
    return apply("square", value)
