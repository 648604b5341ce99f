"""Type rules of Fourier transforms along one axis."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.ops.op import Op
from stagedad.ops.type_rules import UNKNOWN, Attributes, Results, Types, normal_axes
from stagedad.types import DType


def fft(op: Op, types: Types, attributes: Attributes) -> Results:
    """Make the axis `n` long, or n // 2 + 1 for half a spectrum; of irfft it is n."""
    (self,) = types
    if self is None:
        return UNKNOWN
    known = self.with_dtype(_dtype(op.kind, self.dtype))
    if self.shape is None:
        return (known,)
    (axis,) = normal_axes(op.kind, index(attributes["axis"]), len(self.shape))
    length, n = self.shape[axis], attributes["n"]
    if n is None and length is not None:
        n = 2 * (length - 1) if op.kind == "irfft" else length
    if n is not None and index(n) < 1:
        raise ShapeError(op.kind, f"no points along axis {axis}: n={n}", self.shape)
    made = n // 2 + 1 if op.kind == "rfft" and n is not None else n
    return (known.with_shape((*self.shape[:axis], made, *self.shape[axis + 1 :])),)


@lru_cache(maxsize=256)
def _dtype(kind: str, dtype: DType) -> DType:
    """Return the dtype of a transform, as NumPy gives it for two points."""
    try:
        found: np.dtype[Any] = getattr(np.fft, kind)(np.ones(2, dtype)).dtype
    except TypeError:
        raise DTypeError(f"{kind}: not defined for: {dtype}", op=kind) from None
    return found
