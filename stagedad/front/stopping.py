"""`stop_gradient`: a value that derivatives do not pass."""

from __future__ import annotations

from typing import Any

from stagedad.front.tracing import Traced, new_tracer
from stagedad.front.tree import tree_map


def stop_gradient(x: Any) -> Any:
    """Return `x` as a constant of every derivative.

    Dtype, shape and value are those of `x`, which may be traced or plain, or lists,
    tuples and dicts of values; what is not traced comes back as it is.

    >>> import numpy as np
    >>> from stagedad import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return tree_map(_stopped, x)


def _stopped(leaf: Any) -> Any:
    if not isinstance(leaf, Traced):
        return leaf
    trace = leaf._trace
    stopped = trace.emit("stop_gradient", (leaf._value,))
    return new_tracer(trace, stopped._value, leaf._weak)
