"""Reference functions that NumPy has not as one call: derivatives of sinc, softplus, ..."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any, Final, TypeAlias

import numpy as np

from stagedad.ops.type_rules import real_function_dtype

Array: TypeAlias = "np.ndarray[Any, Any]"


def sinc(self: Array, *, order: int) -> Any:
    """Return the derivative of that order of sin(pi x) / (pi x)."""
    x = np.asarray(self, np.result_type(self.dtype, 1.0))
    if order == 0:
        return np.sinc(x)
    wide = np.asarray(x * np.pi, np.result_type(x.dtype, np.float64))
    near = np.abs(wide) < order + 2
    found = np.where(near, _sinc_near(np.where(near, wide, 0), order), 0)
    found += np.where(near, 0, _sinc_far(np.where(near, order + 2, wide), order))
    return (found * np.pi**order).astype(x.dtype)


def _sinc_near(y: Array, order: int) -> Array:
    """Differentiate the power series of sin(y) / y, for |y| < order + 2."""
    total = np.zeros_like(y)
    first = (order + 1) // 2
    # Terms fall from |y| on, by a factor of its square over that of their number.
    for k in range(first, first + 20 + 2 * order):
        power = 2 * k - order
        total += (-1) ** k / ((2 * k + 1) * factorial(power)) * y**power
    return total


def _sinc_far(y: Array, order: int) -> Array:
    """Go up by y f(n) + n f(n - 1) = sin(y + n pi / 2), stable where y > n."""
    turned = (np.sin(y), np.cos(y), -np.sin(y), -np.cos(y))
    found = turned[0] / y
    for n in range(1, order + 1):
        found = (turned[n % 4] - n * found) / y
    return found


def softplus(self: Array) -> Any:
    """Return log(1 + exp(x)), never by an exponential that overflows."""
    x = self.astype(real_function_dtype("softplus", self.dtype))
    return np.add(np.maximum(x, 0), np.log1p(np.exp(np.negative(np.abs(x)))))


def relu(self: Array) -> Any:
    """Return x, or 0 where it is negative."""
    x = self.astype(real_function_dtype("relu", self.dtype))
    return np.maximum(x, np.zeros((), x.dtype))


def logsumexp(self: Array, *, axis: Any, keepdims: bool) -> Any:
    """Return log(sum(exp(x))), with the greatest taken out of the sum."""
    x = self.astype(real_function_dtype("logsumexp", self.dtype))
    axis = tuple(axis) if isinstance(axis, list) else axis
    most = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    base = np.where(np.isfinite(most), most, np.zeros((), x.dtype))
    total = np.sum(np.exp(x - base), axis=axis, keepdims=True)
    found = np.add(np.log(total), base)
    return found if keepdims else found.reshape(np.sum(x, axis=axis).shape)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "frexp_exponent": lambda self: np.frexp(self)[1],
    "logsumexp": logsumexp,
    "relu": relu,
    "sinc": sinc,
    "softplus": softplus,
}
