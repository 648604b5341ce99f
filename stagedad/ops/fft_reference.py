"""What Fourier transforms compute beside numpy.fft's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


def _interior(self: Array, *, n: int, axis: int, scale: float) -> Array:
    result = np.array(self)
    inner = np.moveaxis(result, axis, 0)[1 : (n + 1) // 2]
    inner *= self.dtype.type(scale)
    return result


FUNCTIONS: dict[str, Callable[..., Any]] = {"interior": _interior}
