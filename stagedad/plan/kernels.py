"""Which typed loop computes what: NumPy's, found by dtype, or stagedad's own, by name.

Only names and dtypes are settled here; `run._loops.native` finds the C pointer.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from stagedad.errors import DTypeError
from stagedad.types import CODES, dtype_code

DType: TypeAlias = np.dtype[Any]

INT64: Final = CODES["i64"]

SHORT: Final = 24
"""Longest loop, in elements, that stagedad's plain loops run as fast as NumPy's."""

_SHORT_NAMES: Final = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
    np.negative: "negative",
    np.square: "square",
}
_GUFUNC_CORES: Final[dict[np.ufunc, tuple[tuple[int, ...], ...]]] = {
    np.matmul: ((1, 2), (2, 3), (1, 3))
}

_use_loops = os.environ.get("STAGEDAD_LOOPS", "").lower() != "off"


class Kernel:
    """One typed loop, shared by all steps that call it.

    `dtypes` are those of its operands, inputs first.  A ufunc without a
    `capsule` is called as an object.  `core` names, for each operand of a
    gufunc, its core dimensions by their place in the loop's dims.
    """

    __slots__ = (
        "capsule",
        "computes",
        "core",
        "cost",
        "dtypes",
        "inner",
        "name",
        "native",
        "short",
        "ufunc",
        "wrapper",
    )

    def __init__(
        self,
        name: str,
        dtypes: tuple[DType, ...],
        *,
        ufunc: np.ufunc | None = None,
        capsule: object = None,
        inner: Kernel | None = None,
        short: Kernel | None = None,
        wrapper: str = "",
        computes: np.ufunc | None = None,
    ) -> None:
        self.name = name
        self.dtypes = dtypes
        self.ufunc = ufunc
        self.capsule = capsule
        self.inner = inner
        """The loop that `wrapper` is around."""
        self.wrapper = wrapper
        """quiet: the floating-point flags that it raises mean nothing; extremum: it reduces;
        checked: it fails where it raises the invalid flag."""
        self.short = short
        """The same operation, faster up to SHORT elements."""
        self.core = _GUFUNC_CORES.get(ufunc, ()) if ufunc is not None else ()
        self.computes = computes or ufunc
        """The ufunc whose operation it is."""
        self.cost = _COSTS.get(name, 0.3)
        self.native: Any = None
        """The C side, a `run._loops.Loop`, which `run` fills in."""

    @property
    def is_object_call(self) -> bool:
        """Whether the loop enters Python for every call."""
        if self.inner is not None:
            return self.inner.is_object_call
        return self.ufunc is not None and self.capsule is None

    def __repr__(self) -> str:
        return f"<Kernel {self.name}>"


# Nanoseconds an element, roughly: only to tell short programs from long ones.
_COSTS: Final[dict[str, float]] = {
    "exp": 2.0, "expm1": 6.0, "log": 2.5, "log1p": 7.0, "tanh": 4.0, "sin": 6.0, "cos": 6.0,
    "power": 15.0, "divide": 0.6, "sqrt": 0.6, "gather": 1.0,
}  # fmt: skip


def loops_enabled() -> bool:
    """Whether ufuncs' C loops are used: not so under STAGEDAD_LOOPS=off."""
    return _use_loops


def ufunc_kernel(ufunc: np.ufunc, dtypes: tuple[DType, ...], op: str) -> Kernel:
    """Return the loop of `ufunc` for operands of `dtypes`.

    The loop's dtypes may differ from those asked for: NumPy promotes, and whoever
    calls the loop casts.

    Raises: DTypeError if the ufunc has no loop for them, or one on dtypes that
            stagedad does not carry.
    """
    try:
        return _resolve(ufunc, dtypes)
    except TypeError as error:
        names = ", ".join(map(dtype_code, dtypes))
        raise DTypeError(f"{op}: not defined for: {names}", op=op) from error


@lru_cache(maxsize=1024)
def _resolve(ufunc: np.ufunc, dtypes: tuple[DType, ...]) -> Kernel:
    asked: tuple[DType | None, ...] = (*dtypes, *[None] * ufunc.nout)
    capsule: object = None
    ask: Any = getattr(ufunc, "_resolve_dtypes_and_context", None)
    if ask is not None and _use_loops:
        found, capsule = ask(asked)
    else:
        found = ufunc.resolve_dtypes(asked)
    # Strings and datetimes also claim to need no Python: never call such a loop.
    carried = tuple(CODES[dtype_code(dtype)] for dtype in found)
    short = None
    name = _SHORT_NAMES.get(ufunc)
    if name is not None and carried[0].char in "fd" and set(carried) == {carried[0]}:
        short = Kernel(f"short_{name}_{dtype_code(carried[0])}", carried, computes=ufunc)
    return Kernel(
        ufunc.__name__, carried, ufunc=ufunc, capsule=capsule, short=short if capsule else None
    )


@lru_cache(maxsize=64)
def quiet_kernel(kernel: Kernel) -> Kernel:
    """Return `kernel` without its floating-point flags: an infinity on the way is no error."""
    return Kernel(kernel.name, kernel.dtypes, ufunc=kernel.ufunc, inner=kernel, wrapper="quiet")


@lru_cache(maxsize=1024)
def own_kernel(name: str, dtypes: tuple[DType, ...]) -> Kernel:
    """Return stagedad's loop `name` for operands of `dtypes`."""
    return Kernel(name, dtypes)


@lru_cache(maxsize=64)
def sum_kernel(way: str, dtype: DType) -> Kernel:
    """Return the loop that sums `dtype`: "all", "along" or "across", see reduce.h."""
    # Signed integers wrap as unsigned ones do.
    code = f"u{8 * dtype.itemsize}" if dtype.kind == "i" else dtype_code(dtype)
    return Kernel(f"sum_{way}_{code}", (dtype, dtype), computes=np.add)


@lru_cache(maxsize=64)
def extremum_kernel(ufunc: np.ufunc, dtype: DType, op: str) -> Kernel:
    """Return the loop (source, target) that reduces by `ufunc`, from the first element on."""
    inner = ufunc_kernel(ufunc, (dtype, dtype), op)
    return Kernel(
        inner.name, (dtype, dtype), inner=inner, wrapper="extremum", computes=inner.computes
    )


@lru_cache(maxsize=256)
def checked_kernel(inner: Kernel) -> Kernel:
    """Return the loop of `inner` that fails where it raises the invalid flag."""
    return Kernel(inner.name, inner.dtypes, ufunc=inner.ufunc, inner=inner, wrapper="checked")


def copy_kernel(dtype: DType) -> Kernel:
    """Return the loop (source, target) that moves items; needs no alignment."""
    return own_kernel(f"copy_{dtype.itemsize}", (dtype, dtype))


def cast_kernel(source: DType, target: DType) -> Kernel:
    """Return the loop (source, target) of astype."""
    return own_kernel(f"cast_{dtype_code(source)}_{dtype_code(target)}", (source, target))


def where_kernel(dtype: DType) -> Kernel:
    """Return the loop (condition, then, else, target)."""
    return own_kernel(f"where_{dtype.itemsize}", (CODES["b1"], dtype, dtype, dtype))


def mul0_kernel(dtype: DType) -> Kernel:
    """Return the loop (g, partial, target): 0 where g == 0, else their product."""
    if dtype.kind in "fc":
        return own_kernel(f"mul0_{dtype_code(dtype)}", (dtype, dtype, dtype))
    # No integer is infinite: the product is already 0 there.
    return _resolve(np.multiply, (dtype, dtype))


def gather_kernel(dtype: DType) -> Kernel:
    """Return the loop (source, indices, target) of take."""
    return own_kernel("gather", (dtype, INT64, dtype))


def take_last_kernel(dtype: DType) -> Kernel:
    """Return the loop (source, indices, places, target) of take_last."""
    return own_kernel("take_last", (dtype, INT64, INT64, dtype))


def scatter_kernel(dtype: DType) -> Kernel:
    """Return the loop (value, indices, target) that writes values at indices."""
    return own_kernel("scatter", (dtype, INT64, dtype))


def scatter_add_kernel(dtype: DType) -> Kernel:
    """Return the loop (g, indices, target) that adds g at indices."""
    return own_kernel(f"scatter_add_{dtype_code(dtype)}", (dtype, INT64, dtype))


def check_exponent_kernel() -> Kernel:
    """Return the loop over int64 exponents that fails at a negative one."""
    return own_kernel("check_exponent", (INT64,))


def check_indices_kernel() -> Kernel:
    """Return the loop over int64 indices that fails at one out of bounds."""
    return own_kernel("check_indices", (INT64,))
