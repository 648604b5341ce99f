"""Methods of traced arrays that are NumPy's functions by another spelling."""

from __future__ import annotations

from typing import Any

from stagedad.front import numbers
from stagedad.front.operators import Operators


class Methods(Operators):
    """The methods of `Tracer` that compute."""

    __slots__ = ()

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Round half to even, at a decimal place."""
        return numbers.round_(self, decimals, out)
