"""NumPy's protocols: which function records which operations, and what is refused.

`FUNCTIONS` has every NumPy function that takes traced values; one that is not
there raises TraceError at the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from stagedad.errors import TraceError
from stagedad.front import (
    choosing,
    diagonals,
    fourier,
    indexing,
    joining,
    linear,
    moving,
    numbers,
    ordering,
    products,
    quantiles,
    ranges,
    reducing,
    sequences,
    shaping,
)
from stagedad.front.elementwise import (
    UFUNCS,
    apply,
    astype,
    has_traced,
    ndim_of,
    operand,
    shape_of,
    size_of,
)
from stagedad.front.late import recorder_of
from stagedad.front.location import place
from stagedad.front.tracing import Traced, current_trace
from stagedad.ops import OPS, resolve
from stagedad.types import canonical_dtype

_ADVICE: Final = {
    "copyto": "np.where gives a new array",
    "put": "np.where gives a new array",
    "place": "np.where gives a new array",
    "putmask": "np.where gives a new array",
    "fill_diagonal": "np.where(np.eye(n, dtype=bool), value, x) gives a new array",
    "allclose": "assert it outside of the traced function",
    "array_equal": "assert it outside of the traced function",
    **choosing.REFUSED,
    **linear.REFUSED,
    "piecewise": "np.select, or np.where once a condition",
    "nanargmax": "np.argmax(np.where(np.isnan(x), -np.inf, x))",
    "nanargmin": "np.argmin(np.where(np.isnan(x), np.inf, x))",
    **dict.fromkeys(
        (
            "unique",
            "unique_all",
            "unique_counts",
            "unique_inverse",
            "unique_values",
            "argwhere",
            "flatnonzero",
            "trim_zeros",
            "intersect1d",
            "setdiff1d",
            "setxor1d",
            "union1d",
        ),
        "the length of the result depends on the values; np.where(mask, x, 0) keeps it",
    ),
    "sort_complex": "np.sort(x + 0j)",
}
_DERIVING: Final = frozenset(
    {module.__name__ for module in (choosing, moving, ordering, quantiles, reducing, sequences)}
)
_OUTSIDE: Final = (
    "compute it outside of the traced function, or of operations that `sd.ops` lists"
)
_UNKNOWN_UFUNC: Final = "sd.register_ufunc(ufunc, partials=[...]) makes an op of it"


def refusal(name: str, operands: Any, hint: str | None = None) -> TraceError:
    """Return the error for a function that cannot carry traced values."""
    types = ", ".join(str(each.type) for each in _traced_in(operands))
    return TraceError(
        f"{name}: not supported on traced values: {types} ({place()})",
        op=name,
        hint=hint or _ADVICE.get(name.rpartition(".")[2], _OUTSIDE),
    )


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
    """Record a ufunc's call or reduction."""
    name = _name(ufunc)
    reducing.refuse(name, out=kwargs.pop("out", None), where=kwargs.pop("where", None))
    if method == "__call__":
        recorder = recorder_of(ufunc)
        if recorder is None:
            raise refusal(name, inputs, _UNKNOWN_UFUNC)
        dtype = kwargs.pop("dtype", None)
        _refuse_keywords(name, kwargs, {"order": "K", "subok": True, "casting": "same_kind"})
        if dtype is not None:
            inputs = [astype(operand(each, name), dtype) for each in inputs]
        return recorder(*inputs)
    if method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](*inputs, **{"axis": 0, **kwargs})
    if method == "accumulate" and ufunc in _ACCUMULATIONS:
        return _ACCUMULATIONS[ufunc](*inputs, **{"axis": 0, **kwargs})
    recorder = recorder_of(ufunc)
    if method == "outer" and recorder and len(inputs) == 2 and not kwargs:
        left, right = (operand(each, name) for each in inputs)
        column = shape_of(left) + (1,) * ndim_of(right)
        return recorder(shaping.reshaped(left, column), right)
    raise refusal(f"{name}.{method}", inputs)


def array_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Record a NumPy function that is no ufunc."""
    recorder = FUNCTIONS.get(function)
    if recorder is None:
        raise refusal(_name(function), [args, kwargs])
    before = _made_here()
    try:
        result = recorder(*args, **kwargs)
    except TypeError as error:
        # An argument of NumPy's that the recorder has not: say so instead of naming it.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise refusal(_name(function), [args, kwargs], str(error)) from error
        raise
    if _made_here() != before or getattr(recorder, "__module__", None) in _DERIVING:
        _watch([*args, *kwargs.values()])
    return result


def _made_here() -> int:
    """Return how many arrays were made for the graph, a copy in another order too.

    Those that a recorder makes of its arguments do not see when these change.
    """
    trace = current_trace()
    return 0 if trace is None else trace.constants.local


def _watch(arguments: Sequence[Any]) -> None:
    """Note plain arrays of which other arrays and numbers are made for the graph."""
    trace = current_trace()
    if trace is None:
        return
    for each in arguments:
        if type(each) is np.ndarray:
            trace.constants.watch(each)
        elif isinstance(each, (list, tuple)):
            _watch(each)


def _refuse_keywords(name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for key, value in given.items():
        if key not in defaults or value != defaults[key]:
            raise TraceError(
                f"{name}: `{key}=` is not supported on traced values: {place()}", op=name
            )


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    short = getattr(function, "__name__", repr(function))
    if isinstance(function, np.ufunc):
        # NumPy's and SciPy's ufuncs do not say which module they are of.
        return f"np.{short}" if getattr(np, short, None) is function else short
    return f"{module.replace('numpy', 'np', 1)}.{short}"


def _traced_in(value: Any) -> list[Traced]:
    if isinstance(value, Traced):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _traced_in(item)]
    return []


def _copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    del order, subok
    return joining.array(a)


def _identity_check(kinds: str, *, negate: bool = False) -> Callable[[Any], bool]:
    return lambda x: (x.dtype.kind in kinds) is not negate


def _result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*[x.dtype if isinstance(x, Traced) else x for x in arrays_and_dtypes])


def _size(a: Any, axis: Any = None) -> int:
    return size_of(a) if axis is None else shape_of(a)[axis]


def _real(val: Any) -> Any:
    return apply("real", val) if val.dtype.kind == "c" else val


def _imag(val: Any) -> Any:
    return apply("imag", val) if val.dtype.kind == "c" else np.zeros(val.shape, val.dtype)


def _round_trip_dtype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    del copy, device
    return astype(x, canonical_dtype(dtype))


REDUCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.add: reducing.sum_,
    np.maximum: reducing.max_,
    np.minimum: reducing.min_,
    np.multiply: reducing.prod,
    np.logical_and: reducing.all_,
    np.logical_or: reducing.any_,
    np.fmax: quantiles.nanmax,
    np.fmin: quantiles.nanmin,
    np.logaddexp: reducing.logsumexp,
}

_ACCUMULATIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.add: sequences.cumsum,
    np.multiply: sequences.cumprod,
}

FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.sum: reducing.sum_,
    np.mean: reducing.mean,
    np.max: reducing.max_,
    np.min: reducing.min_,
    np.amax: reducing.max_,
    np.amin: reducing.min_,
    np.prod: reducing.prod,
    np.all: reducing.all_,
    np.any: reducing.any_,
    np.count_nonzero: reducing.count_nonzero,
    np.ptp: reducing.ptp,
    np.argmax: reducing.argmax,
    np.argmin: reducing.argmin,
    np.var: reducing.var,
    np.std: reducing.std,
    np.dot: products.dot,
    np.inner: products.inner,
    np.outer: products.outer,
    np.vdot: products.vdot,
    np.tensordot: products.tensordot,
    np.einsum: products.einsum,
    np.cross: products.cross,
    np.reshape: shaping.reshape,
    np.ravel: shaping.ravel,
    np.transpose: shaping.transpose,
    np.swapaxes: shaping.swapaxes,
    np.moveaxis: shaping.moveaxis,
    np.expand_dims: shaping.expand_dims,
    np.squeeze: shaping.squeeze,
    np.broadcast_to: shaping.broadcast_to,
    np.broadcast_arrays: shaping.broadcast_arrays,
    np.atleast_1d: shaping.at_least(1, "atleast_1d"),
    np.atleast_2d: shaping.at_least(2, "atleast_2d"),
    np.flip: shaping.flip,
    np.concatenate: joining.concatenate,
    np.stack: joining.stack,
    np.vstack: joining.vstack,
    np.hstack: joining.hstack,
    np.column_stack: joining.column_stack,
    np.append: joining.append,
    np.split: joining.split,
    np.where: joining.where,
    np.select: joining.select,
    np.clip: joining.clip,
    np.copy: _copy,
    np.full_like: joining.full_like,
    np.zeros_like: joining.filled_like(0),
    np.ones_like: joining.filled_like(1),
    np.empty_like: joining.filled_like(0),
    np.take: indexing.take,
    np.cumsum: sequences.cumsum,
    np.cumprod: sequences.cumprod,
    np.diff: sequences.diff,
    np.ediff1d: sequences.ediff1d,
    np.gradient: sequences.gradient,
    np.trapezoid: sequences.trapezoid,
    np.unwrap: sequences.unwrap,
    np.convolve: sequences.convolve,
    np.correlate: sequences.correlate,
    np.cov: sequences.cov,
    np.corrcoef: sequences.corrcoef,
    np.sort: ordering.sort,
    np.argsort: ordering.argsort,
    np.partition: ordering.partition,
    np.argpartition: ordering.argpartition,
    np.take_along_axis: ordering.take_along_axis,
    np.searchsorted: ordering.searchsorted,
    np.digitize: ordering.digitize,
    np.bincount: ordering.bincount,
    np.histogram: ordering.histogram,
    np.interp: ordering.interp,
    np.average: quantiles.average,
    np.median: quantiles.median,
    np.quantile: quantiles.quantile,
    np.percentile: quantiles.percentile,
    np.nansum: quantiles.nansum,
    np.nanprod: quantiles.nanprod,
    np.nancumsum: quantiles.nancumsum,
    np.nancumprod: quantiles.nancumprod,
    np.nanmean: quantiles.nanmean,
    np.nanvar: quantiles.nanvar,
    np.nanstd: quantiles.nanstd,
    np.nanmax: quantiles.nanmax,
    np.nanmin: quantiles.nanmin,
    np.nanmedian: quantiles.nanmedian,
    np.nanquantile: quantiles.nanquantile,
    np.nanpercentile: quantiles.nanpercentile,
    np.repeat: indexing.repeat,
    np.round: numbers.round_,
    np.around: numbers.round_,
    np.fix: numbers.fix,
    np.sinc: numbers.sinc,
    np.angle: numbers.angle,
    np.nan_to_num: numbers.nan_to_num,
    np.isclose: numbers.isclose,
    np.polyval: numbers.polyval,
    np.isposinf: numbers.isposinf,
    np.isneginf: numbers.isneginf,
    np.iscomplex: numbers.iscomplex,
    np.isreal: numbers.isreal,
    np.shape: shape_of,
    np.ndim: ndim_of,
    np.size: _size,
    np.real: _real,
    np.imag: _imag,
    np.result_type: _result_type,
    np.iscomplexobj: _identity_check("c"),
    np.isrealobj: _identity_check("c", negate=True),
    **choosing.FUNCTIONS,
    **diagonals.FUNCTIONS,
    **linear.FUNCTIONS,
    **moving.FUNCTIONS,
    **fourier.FUNCTIONS,
    **ranges.FUNCTIONS,
}
if hasattr(np, "astype"):
    FUNCTIONS[np.astype] = _round_trip_dtype
if hasattr(np, "cumulative_sum"):
    FUNCTIONS[np.cumulative_sum] = sequences.cumulative("cumsum")
    FUNCTIONS[np.cumulative_prod] = sequences.cumulative("cumprod")

UFUNCS.update(linear.ufuncs())

UNDISPATCHED: Final[dict[Any, Callable[..., Any]]] = {
    np.array: joining.array,
    np.asarray: joining.asarray,
    np.asanyarray: joining.asarray,
    np.ascontiguousarray: joining.asarray,
    np.full: joining.full,
    np.matmul: products.matmul,
}
"""Functions in which NumPy calls no protocol, or not for every argument: for stagedad.numpy."""


def record(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record `function`, NumPy's own, with traced values anywhere in its arguments."""
    recorder = UNDISPATCHED.get(function)
    if recorder is not None:
        before = _made_here()
        result = recorder(*args, **kwargs)
        if _made_here() != before:
            _watch([*args, *kwargs.values()])
        return result
    if isinstance(function, np.ufunc):
        return array_ufunc(function, "__call__", args, dict(kwargs))
    return array_function(function, args, kwargs)


def standing(function: Any) -> tuple[str, str]:
    """Return what NumPy's `function` is for traced values, and how.

    ("op", its kind); ("composite", of which ops is not said); ("refused", what to do instead).
    """
    name = str(getattr(function, "__name__", ""))
    if not is_recordable(function):
        return "refused", _ADVICE.get(name, _OUTSIDE)
    op = OPS.get(resolve(name))
    if op is not None and (op.numpy == name or name in op.aliases):
        return "op", op.kind
    return "composite", name


def is_recordable(function: Any) -> bool:
    """Whether traced values may be passed to NumPy's `function`."""
    if isinstance(function, np.ufunc):
        return recorder_of(function) is not None
    try:
        return function in FUNCTIONS or function in UNDISPATCHED
    except TypeError:
        return False


__all__ = ["FUNCTIONS", "array_function", "array_ufunc", "has_traced", "record", "refusal"]
