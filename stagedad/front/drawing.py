"""Random draws in traced functions: every run of the program makes its own.

A draw is a function of a key and of its number among the draws of one trace.  The key
is made in each run, from a seed and a count of all draws before, which goes on (see
ops/declarations/random.toml); so nothing that is done to a graph changes its draws, and
runs, threads and nested traces never share any.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front.elementwise import has_traced, operand, shape_of
from stagedad.front.location import place, user_location
from stagedad.front.tracing import Traced, current_trace
from stagedad.types import canonical_dtype


class Stream:
    """Where draws in traces come from: a seed, and the count of all draws before.

    `state` is both, a uint64 array that programs hold by reference and count in.  A stream
    that was made while a function was traced begins anew at each run, as the function does.
    """

    __slots__ = ("drawn", "is_fixed", "state")

    def __init__(self, seed: int, *, is_fixed: bool | None = None) -> None:
        self.state = np.array([seed, 0], np.uint64)
        self.is_fixed = current_trace() is not None if is_fixed is None else is_fixed
        self.drawn = 0
        """Draws that were recorded, of a fixed stream."""


def draw(stream: Stream, kind: str, attributes: dict[str, Any]) -> Any:
    """Record a draw in the current trace, which there must be."""
    trace = current_trace()
    assert trace is not None
    key = trace.keys.get(stream)
    if key is None:
        if stream.is_fixed:
            key = trace.graph.constant(stream.state.copy(), location=user_location())
        else:
            key = trace.emit("random_key", [], {"state": stream.state, "count": 0})._value
        trace.keys[stream] = key
    if stream.is_fixed:
        number = stream.drawn
        stream.drawn += 1
    else:
        number = key.node.attributes["count"]
        key.node.attributes["count"] = number + 1
    return trace.emit(kind, [key], {**attributes, "draw": number})


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*[shape_of(each) for each in parameters])
    if has_traced(size):
        raise TraceError(f"random: the size is a traced value ({place()})")
    dims = size if isinstance(size, (tuple, list)) else (size,)
    return tuple([index(dim) for dim in dims])


def _plain(stream: Stream, kind: str, size: Any, *parameters: Any, dtype: Any = None) -> Any:
    known = None if dtype is None else canonical_dtype(dtype, kind)
    return draw(stream, kind, {"shape": _shape(size, *parameters), "dtype": known})


def _uniforms(stream: Stream, size: Any = None, *parameters: Any, dtype: Any = None) -> Any:
    return _plain(stream, "random_uniform", size, *parameters, dtype=dtype)


def _normals(stream: Stream, size: Any = None, *parameters: Any, dtype: Any = None) -> Any:
    return _plain(stream, "random_normal", size, *parameters, dtype=dtype)


def _exponentials(stream: Stream, size: Any = None, *parameters: Any, dtype: Any = None) -> Any:
    return _plain(stream, "random_exponential", size, *parameters, dtype=dtype)


def _numbers(name: str, *parameters: Any) -> list[Any]:
    """Return the parameters of a distribution as operands, the plain ones being sound.

    Raises: ValueError as NumPy does, of whose generator a draw is made to see it.
    """
    plain = [None if has_traced(each) else each for each in parameters]
    if name not in _RELATED or all(each is not None for each in plain):
        stand_in = [1.0 if each is None else each for each in plain]
        getattr(np.random.default_rng(0), name)(*stand_in)
    return [operand(each, "random") for each in parameters]


_RELATED: Final = ("uniform", "triangular")
"""Distributions whose parameters are sound only beside each other."""


def random(stream: Stream, size: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Draw from [0, 1)."""
    _refuse_out(out)
    return _uniforms(stream, size, dtype=dtype)


def standard_normal(
    stream: Stream, size: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    """Draw with mean 0 and variance 1."""
    _refuse_out(out)
    return _normals(stream, size, dtype=dtype)


def standard_exponential(
    stream: Stream,
    size: Any = None,
    dtype: Any = None,
    method: str = "zig",  # noqa: ARG001 (of NumPy's signature)
    out: Any = None,
) -> Any:
    """Draw with mean 1; every `method` gives the same."""
    _refuse_out(out)
    return _exponentials(stream, size, dtype=dtype)


def uniform(stream: Stream, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Draw from [low, high), which may be traced."""
    low, high = _numbers("uniform", low, high)
    return low + (high - low) * _uniforms(stream, size, low, high)


def normal(stream: Stream, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw with mean `loc` and deviation `scale`, which may be traced."""
    loc, scale = _numbers("normal", loc, scale)
    return loc + scale * _normals(stream, size, loc, scale)


def exponential(stream: Stream, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw with mean `scale`."""
    (scale,) = _numbers("exponential", scale)
    return scale * _exponentials(stream, size, scale)


def lognormal(stream: Stream, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    """Draw the exponential of a normal."""
    mean, sigma = _numbers("lognormal", mean, sigma)
    return np.exp(mean + sigma * _normals(stream, size, mean, sigma))


def laplace(stream: Stream, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw as the difference of two exponentials."""
    loc, scale = _numbers("laplace", loc, scale)
    one, other = (_exponentials(stream, size, loc, scale) for _ in range(2))
    return loc + scale * (one - other)


def logistic(stream: Stream, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw as the logarithm of the ratio of two exponentials."""
    loc, scale = _numbers("logistic", loc, scale)
    one, other = (_exponentials(stream, size, loc, scale) for _ in range(2))
    return loc + scale * (np.log(one) - np.log(other))


def gumbel(stream: Stream, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw as the negative logarithm of an exponential."""
    loc, scale = _numbers("gumbel", loc, scale)
    return loc - scale * np.log(_exponentials(stream, size, loc, scale))


def rayleigh(stream: Stream, scale: Any = 1.0, size: Any = None) -> Any:
    """Draw as the length of two normals."""
    (scale,) = _numbers("rayleigh", scale)
    return scale * np.sqrt(2.0 * _exponentials(stream, size, scale))


def weibull(stream: Stream, a: Any, size: Any = None) -> Any:
    """Draw as a power of an exponential."""
    (a,) = _numbers("weibull", a)
    return _exponentials(stream, size, a) ** (1.0 / a)


def pareto(stream: Stream, a: Any, size: Any = None) -> Any:
    """Draw from the Lomax distribution, as NumPy does."""
    (a,) = _numbers("pareto", a)
    return np.expm1(_exponentials(stream, size, a) / a)


def power(stream: Stream, a: Any, size: Any = None) -> Any:
    """Draw from [0, 1] with density a x^(a - 1)."""
    (a,) = _numbers("power", a)
    return np.exp(-_exponentials(stream, size, a) / a)


def standard_cauchy(stream: Stream, size: Any = None) -> Any:
    """Draw as the ratio of two normals."""
    return _normals(stream, size) / _normals(stream, size)


def triangular(stream: Stream, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
    """Draw by the inverse of the distribution function."""
    left, mode, right = _numbers("triangular", left, mode, right)
    u = _uniforms(stream, size, left, mode, right)
    width, rise = right - left, mode - left
    below = left + np.sqrt(u * width * rise)
    above = right - np.sqrt((1.0 - u) * width * (right - mode))
    return np.where(u * width < rise, below, above)


def integers(
    stream: Stream,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Any:
    """Draw from [low, high), or [0, low) if there is no `high`; the bounds are plain ints."""
    if high is None:
        low, high = 0, low
    if has_traced([low, high]) or np.ndim(low) or np.ndim(high):
        raise TraceError(
            f"integers: bounds are traced values or arrays: ({place()})",
            hint="np.floor(low + (high - low) * rng.random(size)) draws between such bounds",
        )
    bounds = {"low": index(low), "high": index(high) + bool(endpoint)}
    known = canonical_dtype(dtype, "integers")
    return draw(stream, "random_integers", {**bounds, "shape": _shape(size), "dtype": known})


def permutation(stream: Stream, x: Any, axis: int = 0) -> Any:
    """Draw an order of the integers below `x`, or of the parts of an array along an axis."""
    if not isinstance(x, Traced) and np.ndim(x) == 0:
        return draw(stream, "random_permutation", {"count": index(x)})
    x = operand(x, "permutation")
    order = draw(stream, "random_permutation", {"count": shape_of(x)[axis]})
    return np.take(x, order, axis=axis)


def choice(
    stream: Stream,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,  # noqa: ARG001 (all is shuffled)
) -> Any:
    """Draw of the integers below `a`, or of the parts of an array along an axis."""
    is_count = not isinstance(a, Traced) and np.ndim(a) == 0
    if not is_count:
        a = operand(a, "choice")
    count = index(a) if is_count else shape_of(a)[axis]
    shape = _shape(size)
    if p is not None and not replace:
        raise TraceError(
            f"choice: with p, and without putting back, is not drawn in a trace ({place()})",
            hint="the largest of np.log(p) + rng.gumbel(size=n), by argsort, are such a draw",
        )
    if count == 0 and 0 not in shape:
        raise ValueError(f"choice: nothing to draw of ({place()})")
    if p is not None:
        p = operand(p, "choice")
        if shape_of(p) != (count,):
            raise ValueError(f"choice: p has shape {shape_of(p)} for {count} ({place()})")
        if not isinstance(p, Traced) and count:
            np.random.default_rng(0).choice(count, p=p)  # raises as NumPy does
        limits = np.cumsum(p)
        # Below the last limit, so that rounding never leads past the end.
        found = np.searchsorted(
            limits[:-1], _uniforms(stream, shape) * limits[-1], side="right"
        )
    elif replace:
        found = draw(
            stream,
            "random_integers",
            {"low": 0, "high": max(count, 1), "shape": shape, "dtype": np.dtype(np.int64)},
        )
    else:
        wanted = int(np.prod(shape))
        if wanted > count:
            raise ValueError(f"choice: {wanted} of {count} without putting back ({place()})")
        order = draw(stream, "random_permutation", {"count": count})
        found = np.reshape(order[:wanted], shape)
    return found if is_count else np.take(a, found, axis=axis)


def _refuse_out(out: Any) -> None:
    if out is not None:
        raise TraceError(f"random: out= does not take traced values ({place()})")


def refuse(name: str) -> Any:
    """Raise the error for what is not drawn in a trace."""
    raise TraceError(
        f"random.{name}: is not drawn in a traced function ({place()})",
        hint="draw outside and pass the numbers as an argument, or compose it of "
        + ", ".join(sorted(DRAWN)),
    )


DRAWN: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        random, uniform, normal, standard_normal, exponential, standard_exponential,
        lognormal, laplace, logistic, gumbel, rayleigh, weibull, pareto, power,
        standard_cauchy, triangular, integers, permutation, choice,
    )
}  # fmt: skip
"""Methods of a generator that traced functions may call, as functions of its stream."""
