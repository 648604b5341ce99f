"""Tracer: what stands for an array in a function that is being traced.

It computes as an `ndarray` does, and what it computes goes into the graph.  What
would leave the graph (`float(x)`, `bool(x)`, `np.asarray(x)`, ...) raises at the
user's line, because it would cut the derivative without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from stagedad.errors import TraceError
from stagedad.front import diagonals, indexing, joining, reducing, shaping
from stagedad.front.elementwise import apply, astype, quick_ufunc
from stagedad.front.location import place
from stagedad.front.methods import Methods
from stagedad.front.protocol import array_function, array_ufunc
from stagedad.front.tracing import new_tracer, set_tracer_class


def _refused(op: str, hint: str) -> Any:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        self.refuse(op, hint)

    return method


class Tracer(Methods):
    """A traced array."""

    __slots__ = ()
    __array_priority__ = 1000.0

    def refuse(self, op: str, hint: str) -> NoReturn:
        """Raise TraceError for an operation that would take the value out of the graph."""
        if not self._trace.alive:
            raise self._trace.leaked(op)
        where = place()
        raise TraceError(
            f"{op}: a traced value cannot become a plain one: {self.type} ({where})",
            op=op,
            hint=hint,
            place=where,
        )

    def __getitem__(self, key: Any) -> Any:
        return indexing.getitem(self, key)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    @property
    def T(self) -> Any:  # noqa: N802  (NumPy's name)
        """The axes in reverse order."""
        return shaping.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802  (NumPy's name)
        """The last two axes swapped."""
        return shaping.swapaxes(self, -1, -2)

    @property
    def real(self) -> Any:
        """Real part."""
        return apply("real", self) if self.dtype.kind == "c" else shaping.alias(self)

    @property
    def imag(self) -> Any:
        """Imaginary part: plain zeros of a real value."""
        if self.dtype.kind == "c":
            return apply("imag", self)
        return np.zeros(self.shape, self.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.itemsize

    @property
    def flat(self) -> Iterator[Any]:
        """The elements in order, read only."""
        return iter(shaping.ravel(self))  # type: ignore[call-overload, no-any-return]

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Sum over `axis`."""
        return reducing.sum_(self, axis, dtype, out, **kwargs)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Mean over `axis`."""
        return reducing.mean(self, axis, dtype, out, **kwargs)

    def max(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Maximum over `axis`."""
        return reducing.max_(self, axis, out, **kwargs)

    def min(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """Minimum over `axis`."""
        return reducing.min_(self, axis, out, **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Variance over `axis`."""
        return reducing.var(self, *args, **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Standard deviation over `axis`."""
        return reducing.std(self, *args, **kwargs)

    def dot(self, b: Any, out: Any = None) -> Any:
        """Product as `np.dot` has it."""
        return array_function(np.dot, (self, b), {"out": out})

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Sum of the diagonal."""
        return diagonals.trace(self, *args, **kwargs)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Return the diagonal."""
        return diagonals.diagonal(self, offset, axis1, axis2)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Return the elements in another shape."""
        return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy)

    def ravel(self, order: str = "C") -> Any:
        """Return the elements as one axis."""
        return shaping.ravel(self, order)

    def flatten(self, order: str = "C") -> Any:
        """Return a copy as one axis."""
        flat = shaping.reshape(new_tracer(self._trace, self._value), (self.size,), order)
        return new_tracer(flat._trace, flat._value)

    def transpose(self, *axes: Any) -> Any:
        """Return the axes in another order."""
        order = axes[0] if len(axes) == 1 else axes or None
        return shaping.transpose(self, order)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Return two axes swapped."""
        return shaping.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Any:
        """Return without axes of length 1."""
        return shaping.squeeze(self, axis)

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:  # fmt: skip
        """Return in another dtype."""
        del order, casting, subok, copy
        return astype(self, dtype)

    def copy(self, order: str = "C") -> Any:
        """Return a copy."""
        del order
        return joining.array(self)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Return with elements outside of the bounds put on them."""
        return joining.clip(self, min, max, out)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """Return the elements at `indices`."""
        return indexing.take(self, indices, axis, out, mode)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Return elements repeated."""
        return indexing.repeat(self, repeats, axis)

    def conj(self) -> Any:
        """Return the complex conjugate."""
        # Unlike np.conj, the method keeps booleans.
        return apply("conj" if self.dtype.kind != "b" else "copy", self)

    conjugate = conj

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if not kwargs and method == "__call__":
            recorded = quick_ufunc(ufunc, inputs)
            if recorded is not None:
                return recorded
        return array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Any, types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        return array_function(func, args, kwargs)

    __array__ = _refused(
        "np.asarray", "stagedad.numpy has array functions for lists of traced values"
    )
    __float__ = _refused("float", "compute with NumPy functions: np.sin(x), not math.sin(x)")
    __complex__ = _refused(
        "complex", "compute with NumPy functions; x.astype(complex) converts"
    )
    __int__ = _refused("int", "x.astype(int) converts inside the graph")
    __index__ = _refused(
        "index",
        "np.take reads at traced indices; a loop bound belongs outside of the arguments",
    )
    __bool__ = _refused("bool", "np.where(condition, x, y) chooses between values")
    __round__ = _refused("round", "compute it outside of the traced function")
    __reduce_ex__ = _refused("pickle", "return the value from the traced function")
    item = _refused("item", "x[i] is a traced scalar")
    tolist = _refused("tolist", "list(x) has traced elements")
    tobytes = _refused("tobytes", "return the value from the traced function")
    __contains__ = _refused("in", "np.where(x == value, ...) chooses between values")
    __setitem__ = _refused(
        "setitem", "np.where, np.concatenate, np.stack and stagedad.numpy.array make new arrays"
    )
    __delitem__ = _refused("delitem", "np.concatenate joins what is to stay")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"traced values have no attribute {name!r}")
        self.refuse(f"ndarray.{name}", "a NumPy function of that name may be supported")

    def _concrete(self) -> Any:
        return self._trace.concrete(self._value) if self._trace.alive else None

    def __repr__(self) -> str:
        concrete = self._concrete()
        if concrete is None:
            return f"Tracer({self.type}, leaked from `{self._trace.name}`)"
        return f"Tracer({self.type}, {np.array2string(concrete, threshold=20, separator=', ')})"

    def __str__(self) -> str:
        concrete = self._concrete()
        return repr(self) if concrete is None else str(concrete)

    def __format__(self, spec: str) -> str:
        concrete = self._concrete()
        if not spec or concrete is None:
            return str(self)
        return format(concrete[()] if not self.shape else concrete, spec)


set_tracer_class(Tracer)
