"""Methods of traced arrays that are NumPy's functions by another spelling."""

from __future__ import annotations

from typing import Any

from stagedad.front import numbers, ordering, reducing, sequences
from stagedad.front.operators import Operators


class Methods(Operators):
    """The methods of `Tracer` that compute."""

    __slots__ = ()

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Round half to even, at a decimal place."""
        return numbers.round_(self, decimals, out)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Return the product over `axis`."""
        return reducing.prod(self, axis, dtype, out, **kwargs)

    def all(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Return whether all are true."""
        return reducing.all_(self, axis, out, **kwargs)

    def any(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Return whether any is true."""
        return reducing.any_(self, axis, out, **kwargs)

    def argmax(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Return where the greatest is."""
        return reducing.argmax(self, axis, out, **kwargs)

    def argmin(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Return where the least is."""
        return reducing.argmin(self, axis, out, **kwargs)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return running sums."""
        return sequences.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return running products."""
        return sequences.cumprod(self, axis, dtype, out)

    def argsort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, **kwargs: Any
    ) -> Any:
        """Return what sorts the elements."""
        return ordering.argsort(self, axis, kind, order, **kwargs)

    def argpartition(self, kth: Any, axis: Any = -1, **kwargs: Any) -> Any:
        """Return what puts the elements of `kth` in their sorted places."""
        return ordering.argpartition(self, kth, axis, **kwargs)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Return where to insert `v`."""
        return ordering.searchsorted(self, v, side, sorter)
