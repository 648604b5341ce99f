"""What plan and run agree on: kinds of steps, spaces of memory, layouts of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

# Kinds of steps.  ORDER STEP: also in pyx/stagedad/plan and pyx/stagedad/run/_interpreter.pyx.
CALL: Final = 0
OUTER: Final = 1
ZERO: Final = 2
REDUCE: Final = 3
OBJECT: Final = 4
BLOCK: Final = 5
POISON: Final = 6
SUB: Final = 7

# Spaces that a slot may point into.  ORDER SPACE: in the same places.
ARENA: Final = 0
INPUT: Final = 1
OUTPUT: Final = 2
POOL: Final = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """What an array handed to a program looks like.

    `strides` is None for C-contiguous; an array that is not `aligned` is copied
    before any loop sees it.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    aligned: bool = True
