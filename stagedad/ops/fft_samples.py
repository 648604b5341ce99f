"""Samples of Fourier transforms: even and odd numbers of points, cut and filled with zeros."""

# ruff: noqa: ARG005  (every maker of cases takes the dtype)
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Case: TypeAlias = "tuple[str, tuple[tuple[int, ...], ...], dict[str, Any]]"
Maker: TypeAlias = "Callable[[np.dtype[Any]], list[Case]]"

_TRANSFORMS: list[Case] = [
    ("empty", ((0, 3),), {}),
    ("empty", ((3, 0),), {"axis": 0, "norm": "ortho"}),
    ("size-1", ((1, 3, 1),), {"axis": 1}),
    ("size-1", ((3, 1),), {"n": 1}),
    ("4-d", ((2, 3, 1, 4),), {"axis": -3, "norm": "forward"}),
    ("strided", ((3, 4),), {"axis": 0}),
    ("reversed", ((5,),), {"norm": "ortho"}),
    ("broadcast", ((2, 3),), {}),
    ("plain", ((4,),), {"norm": "backward"}),
    ("plain", ((5,),), {"n": 3, "norm": "forward"}),
    ("plain", ((6,),), {"n": 4}),
    ("plain", ((3, 2),), {"n": 5, "axis": 0}),
    ("plain", ((2, 3),), {"n": 8, "norm": "ortho"}),
]
_INTERIOR: list[Case] = [
    (layout, shapes, {"n": 2 * (shapes[0][attributes.get("axis", -1)] - 1) + odd,
                      "axis": attributes.get("axis", -1), "scale": 0.5})
    for odd, (layout, shapes, attributes) in enumerate(_TRANSFORMS * 2, 0)
    for odd in [odd % 2]
]  # fmt: skip

CASES: dict[str, Maker] = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft"), lambda dtype: list(_TRANSFORMS)),
    "interior": lambda dtype: list(_INTERIOR),
}
