"""Functions that NumPy lacks: exponentials that never overflow, and what networks are made of.

They take arrays, numbers and traced values, and on plain arguments give plain results.
Names and arguments are SciPy's (`scipy.special`) where it has the function, and those of
`jax.nn` for the others.
"""

from __future__ import annotations

from importlib import import_module
from math import factorial
from operator import index
from typing import Any

import numpy as np

from stagedad.front.elementwise import apply, array_operand, has_traced
from stagedad.front.reducing import NO_VALUE, reduction
from stagedad.front.tracing import Traced
from stagedad.ops import evaluate

__all__ = [
    "celu", "elu", "expit", "gelu", "layer_norm", "leaky_relu", "log_expit", "log_softmax",
    "logit", "logsumexp", "polygamma", "relu", "relu6", "selu", "silu", "softmax", "softplus",
    "topk",
]  # fmt: skip


def expit(x: Any) -> Any:
    """Return the logistic sigmoid, 1 / (1 + exp(-x))."""
    return _unary("sigmoid", x)


def log_expit(x: Any) -> Any:
    """Return the logarithm of the sigmoid, for large negative x too."""
    return -softplus(-array_operand(x, "log_expit"))


def logit(x: Any) -> Any:
    """Return log(x / (1 - x)), the inverse of `expit`."""
    p = array_operand(x, "logit")
    return np.log(p) - np.log1p(-p)


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)), which is x for large x."""
    return _unary("softplus", x)


def relu(x: Any) -> Any:
    """Return x, or 0 where it is negative.  The gradient at 0 is 0."""
    return _unary("relu", x)


def relu6(x: Any) -> Any:
    """Return x clipped to [0, 6].  The gradient at the bounds is half of that within."""
    return np.clip(array_operand(x, "relu6"), 0, 6)


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """Return x, or `negative_slope` times x where it is negative.  The slope at 0 is that."""
    value = array_operand(x, "leaky_relu")
    return np.where(value > 0, value, negative_slope * value)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """Return x, or alpha (exp(x) - 1) where it is not positive.

    Source: Clevert, Unterthiner, Hochreiter 2015.
    """
    value = array_operand(x, "elu")
    return np.where(value > 0, value, alpha * np.expm1(np.minimum(value, 0)))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """Return x, or alpha (exp(x / alpha) - 1) where it is not positive.

    Source: Barron 2017, Continuously differentiable exponential linear units.
    """
    value = array_operand(x, "celu")
    return np.where(value > 0, value, alpha * np.expm1(np.minimum(value, 0) / alpha))


def selu(x: Any) -> Any:
    """Return the scaled `elu` that keeps mean 0 and variance 1.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter 2017.
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def silu(x: Any) -> Any:
    """Return x times its sigmoid."""
    value = array_operand(x, "silu")
    return value * expit(value)


def gelu(x: Any, approximate: bool = True) -> Any:
    """Return x times the normal distribution function, approximately by a tanh.

    `approximate=False` needs SciPy.  Source: Hendrycks, Gimpel 2016.
    """
    value = array_operand(x, "gelu")
    if not approximate:
        return value * import_module("scipy.special").ndtr(value)
    inner = 0.7978845608028654 * (value + 0.044715 * value**3)  # sqrt(2 / pi)
    return 0.5 * value * (1 + np.tanh(inner))


def topk(x: Any, k: int, axis: int = -1) -> tuple[Any, Any]:
    """Return the `k` greatest along `axis`, the greatest first, and where they are.

    Of equal ones those that stand first.  Shapes: x [.., n, ..] -> both [.., k, ..]

    Raises: ValueError for a `k` that is negative or more than there are.
    """
    value = array_operand(x, "topk")
    if value.ndim == 0:
        raise ValueError("topk: a number has no axis")
    count, most = index(k), value.shape[axis]
    if not 0 <= count <= most:
        raise ValueError(f"topk: {count} of {most}")
    # From the end of a stable order of the reversed array, so that ties keep theirs.
    order = np.flip(np.argsort(np.flip(value, axis), axis=axis, kind="stable"), axis)
    positions = most - 1 - np.take(order, np.arange(count), axis=axis)
    return np.take_along_axis(value, positions, axis), positions


def logsumexp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return log(sum(exp(a))) over `axis`.

    Where all elements are -inf, so is the result, and the gradient is 0.
    """
    if has_traced(a):
        return reduction("logsumexp", a, axis, keepdims if keepdims else NO_VALUE)
    given = {"axis": axis, "keepdims": bool(keepdims)}
    return evaluate("logsumexp", [np.asarray(a)], given)[0][()]


def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) over their sum along `axis`, None for all."""
    powers = np.exp(_shifted(x, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of `softmax`, for small shares too."""
    rest = _shifted(x, axis)
    return rest - logsumexp(rest, axis, keepdims=True)


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, axis: Any = -1, eps: float = 1e-5
) -> Any:
    """Return x less its mean along `axis`, over its deviation; then scaled and moved.

    Shapes: x [.., n], weight and bias [n] -> [.., n]
    """
    value = array_operand(x, "layer_norm")
    off = value - np.mean(value, axis=axis, keepdims=True)
    found = off / np.sqrt(np.mean(off * off, axis=axis, keepdims=True) + eps)
    if weight is not None:
        found = found * weight
    return found if bias is None else found + bias


def polygamma(n: int, x: Any) -> Any:
    """Return derivative `n` of the digamma function, by SciPy's others.

    SciPy's own takes no traced values.

    Raises: ImportError without SciPy; TypeError for an `n` that is traced or no integer.
    """
    scipy = import_module("scipy.special")
    if not has_traced([n, x]):
        return scipy.polygamma(n, x)
    order = index(n)
    if order < 0:
        raise ValueError(f"polygamma: a negative order: {order}")
    if order == 0:
        return scipy.psi(x)
    return (-1.0) ** (order + 1) * factorial(order) * scipy.zeta(order + 1.0, x)


def _shifted(x: Any, axis: Any) -> Any:
    """Return x less its greatest, which changes nothing in a share and has no part in it."""
    value = array_operand(x, "softmax")
    most = np.max(value, axis=axis, keepdims=True)
    if isinstance(most, Traced):
        most = apply("stop_gradient", most)
    return value - np.where(np.isfinite(most), most, 0)


def _unary(kind: str, x: Any) -> Any:
    if has_traced(x):
        return apply(kind, x)
    return evaluate(kind, [np.asarray(x)], {})[0][()]
