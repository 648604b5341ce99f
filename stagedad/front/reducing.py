"""Reductions of traced values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front.elementwise import apply, astype, operand
from stagedad.front.location import place
from stagedad.front.shaping import axes_of
from stagedad.front.tracing import Traced, owner
from stagedad.ops import OPS

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
    refuse("sum", out=out, initial=initial, where=where)
    return reduction("sum", a if dtype is None else astype(a, dtype), axis, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    *, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.mean`."""
    refuse("mean", out=out, where=where)
    return reduction("mean", a if dtype is None else astype(a, dtype), axis, keepdims)


def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.max`; ties share the gradient."""
    refuse("max", out=out, initial=initial, where=where)
    return reduction("max", a, axis, keepdims)


def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE, where: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.min`; ties share the gradient."""
    refuse("min", out=out, initial=initial, where=where)
    if "min" in OPS:
        return reduction("min", a, axis, keepdims)
    source = operand(a, "min")
    if source.dtype.kind != "f":
        raise TraceError(f"np.min: floats only on traced values: {source.type} ({place()})")
    return apply("neg", reduction("max", apply("neg", source), axis, keepdims))


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE, mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Traced:  # fmt: skip
    """Record `np.var`."""
    refuse("var", out=out, where=where, mean=mean)
    source = operand(a if dtype is None else astype(a, dtype), "var")
    middle = reduction("mean", source, axis, True)
    deviation = apply("sub", source, middle)
    total = reduction("sum", magnitude_squared(deviation), axis, keepdims)
    axes = range(source.ndim) if axis is None else axes_of(axis, source.ndim, "var")
    count = 1
    for each in axes:
        count *= source.shape[each]
    freedom = ddof if correction is NO_VALUE else correction
    return apply("div", total, max(count - freedom, 0))


def std(a: Any, *args: Any, **kwargs: Any) -> Traced:
    """Record `np.std`: its gradient where the variance is 0 is that of `sqrt` at 0."""
    return apply("sqrt", var(a, *args, **kwargs))


def magnitude_squared(value: Traced) -> Traced:
    """Record `|value| ** 2`, real."""
    if value.dtype.kind == "c":
        return apply("real", apply("mul", value, apply("conj", value)))
    return apply("square", value)
