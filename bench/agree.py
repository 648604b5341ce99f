"""Do the peers compute the same? Nothing is timed that gives other numbers."""

from __future__ import annotations

from typing import Any

import numpy


def difference(row_dtype: Any, got: tuple[Any, ...], expected: tuple[Any, ...]) -> str | None:
    """Say what differs between two results of a step, or None.

    Compares in the order of elements, for libraries without arrays of any rank. Bound: the
    square root of the row's precision relative to the largest element of each result, and a
    hundred roundings of numbers near one (`chain` ends in 1e-12 after sums near 1).
    """
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for i, (mine, yours) in enumerate(zip(got, expected, strict=True)):
        a, b = _elements(mine), _elements(yours)
        if a.shape != b.shape:
            return f"result {i}: {a.size} elements, not {b.size}"
        error = numpy.max(numpy.abs(a - b), initial=0)
        precision = float(numpy.finfo(row_dtype).eps)
        bound = precision**0.5 * numpy.max(numpy.abs(b), initial=0) + 100 * precision
        if not error <= bound:
            return f"result {i}: off by {error:.3g}, bound {bound:.3g}"
    return None


def _elements(result: Any) -> numpy.ndarray[Any, Any]:
    """Flatten; a library that stores columns first says so by `full`, CasADi's way out."""
    if hasattr(result, "full"):
        return numpy.asarray(result.full()).ravel(order="F")
    return numpy.asarray(result).ravel()
