"""Numbers evenly spaced between traced ends, as numpy.linspace and its like give them."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError
from stagedad.front.elementwise import (
    array_operand,
    astype,
    common_dtype,
    has_traced,
    ndim_of,
    operand,
)
from stagedad.front.location import place
from stagedad.front.tracing import Traced
from stagedad.types import canonical_dtype


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Record `np.linspace`: `num` numbers, the last `stop` itself where `endpoint` says so."""
    del device
    start, stop, count = _ends("linspace", start, stop, num, dtype)
    parts = count - 1 if endpoint else count
    step = (stop - start) / parts if parts > 0 else (stop - start) * np.nan
    numbers = _numbers(count, start, stop)
    found = numbers * step + start if parts > 0 else numbers * (stop - start) + start
    found = _with_last(found, numbers, stop if endpoint and count > 1 else None)
    found = _placed(found, dtype, axis)
    return (found, step) if retstep else found


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Record `np.logspace`: powers of `base` to evenly spaced exponents."""
    lead = max(ndim_of(each) for each in (start, stop, base))
    if ndim_of(base):
        start, stop = (
            operand(each, "logspace") + np.zeros((1,) * lead) for each in (start, stop)
        )
    exponents = linspace(start, stop, num, endpoint)
    return _placed(operand(base, "logspace") ** exponents, dtype, axis)


def geomspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Record `np.geomspace` of real ends of one sign: evenly spaced in the logarithm."""
    start, stop, count = _ends("geomspace", start, stop, num, dtype)
    if common_dtype([start, stop]).kind == "c":
        raise DTypeError(f"geomspace: complex ends are not traced ({place()})", op="geomspace")
    start, stop = (astype(each, np.dtype(np.float64)) for each in (start, stop))
    for each in (start, stop):
        if not isinstance(each, Traced) and np.any(np.equal(each, 0)):
            raise ValueError(f"geomspace: an end is zero ({place()})")
    # NaN between ends of two signs, as in NumPy, and beside a traced end that is zero.
    sign = np.where(np.sign(start) * np.sign(stop) > 0, np.sign(start), np.nan)
    low, high = (np.log10(np.abs(each)) for each in (start, stop))
    found = sign * logspace(low, high, count, endpoint)
    numbers = _numbers(count, start, stop)
    found = np.where(numbers == 0, start, found)
    found = _with_last(found, numbers, stop if endpoint and count > 1 else None)
    return _placed(found, dtype, axis)


def _ends(op: str, start: Any, stop: Any, num: Any, dtype: Any) -> tuple[Any, Any, int]:
    """Return the ends as operands of an inexact dtype, and how many numbers there are to be."""
    if has_traced(num):
        raise DTypeError(f"{op}: num is a traced value ({place()})", op=op)
    count = index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    if dtype is not None and canonical_dtype(dtype, op).kind not in "fc":
        raise DTypeError(
            f"{op}: dtype {np.dtype(dtype)} would cut the gradient ({place()})",
            op=op,
            hint="round and convert the result",
        )
    start, stop = (array_operand(operand(each, op) * 1.0, op) for each in (start, stop))
    return start, stop, count


def _numbers(count: int, start: Any, stop: Any) -> Any:
    """Return 0, 1, .. along a first axis, in the precision of the ends."""
    dtype = np.result_type(*[each.dtype for each in (start, stop)])
    real = np.empty(0, dtype).real.dtype
    lead = max(ndim_of(start), ndim_of(stop))
    return np.arange(count, dtype=real).reshape(-1, *(1,) * lead)


def _with_last(found: Any, numbers: Any, last: Any) -> Any:
    return found if last is None else np.where(numbers == len(numbers) - 1, last, found)


def _placed(found: Any, dtype: Any, axis: int) -> Any:
    found = np.moveaxis(found, 0, axis) if axis != 0 else found
    return found if dtype is None else astype(found, canonical_dtype(dtype))


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.linspace: linspace,
    np.logspace: logspace,
    np.geomspace: geomspace,
}
