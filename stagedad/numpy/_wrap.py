"""NumPy's functions as stagedad.numpy has them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final

import numpy

from stagedad.front.elementwise import has_traced, quick_ufunc
from stagedad.front.protocol import record
from stagedad.front.tracing import Traced

_NESTING: Final = (list, tuple, dict)


class Ufunc:
    """A ufunc of NumPy that also takes lists with traced values in them.

    Everything but the call (`reduce`, `types`, `nin`, ...) is NumPy's.
    """

    def __init__(self, ufunc: numpy.ufunc, module: str) -> None:
        self.ufunc = ufunc
        self.__name__ = self.__qualname__ = ufunc.__name__
        self.__module__ = module
        self.__doc__ = ufunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the ufunc, or record it where a list has traced values in it."""
        if not kwargs:
            recorded = quick_ufunc(self.ufunc, args)
            if recorded is not None:
                return recorded
        for each in args:
            if isinstance(each, _NESTING) and has_traced(each):
                return record(self.ufunc, args, kwargs)
        return self.ufunc(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "ufunc":  # not there yet, as while unpickling
            raise AttributeError(name)
        return getattr(self.ufunc, name)

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return repr(self.ufunc)


def wrapped(function: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    """Return `function` of NumPy: recorded, or refused, for traced values in its arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for each in args:
            if isinstance(each, Traced) or (isinstance(each, _NESTING) and has_traced(each)):
                return record(function, args, kwargs)
        if kwargs and has_traced(kwargs):
            return record(function, args, kwargs)
        return function(*args, **kwargs)

    functools.update_wrapper(call, function)
    call.__module__, call.__name__, call.__qualname__ = module, name, name
    return call


def namespace(
    source: ModuleType, module: str, names: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the names of a module of NumPy with what they stand for here.

    Functions are wrapped, types and constants are NumPy's own; modules are left out,
    those too that NumPy imports only when asked for them.
    """
    for name in names:
        if name.startswith("_") or name not in vars(source):
            continue
        value = vars(source)[name]
        if isinstance(value, numpy.ufunc):
            # An alias (`absolute`, `abs`) keeps its own name, by which it pickles.
            made = Ufunc(value, module)
            made.__name__ = made.__qualname__ = name
            yield name, made
        elif isinstance(value, ModuleType):
            continue
        elif isinstance(value, type) or not callable(value):
            yield name, value
        else:
            yield name, wrapped(value, module, name)
