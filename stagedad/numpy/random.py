"""`numpy.random` for functions that are traced: see `stagedad.numpy`.

Outside of traced functions everything is NumPy's, to the bit.  In a traced function
a draw is recorded, and each run draws anew; what it is drawn with has a stream of its
own there, which follows from the seed.  Location and scale may be traced: gradients go
through them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from hashlib import blake2b
from typing import Any, Final

import numpy as _numpy
import numpy.random as _random

from stagedad.front import drawing as _drawing
from stagedad.front.elementwise import has_traced as _has_traced
from stagedad.front.tracing import current_trace as _current_trace
from stagedad.numpy._wrap import namespace as _namespace


class Generator(_random.Generator):
    """NumPy's generator, which may also be drawn from in traced functions."""

    def __init__(self, bit_generator: Any) -> None:
        super().__init__(bit_generator)
        self._stream = _drawing.Stream(_seed_of(bit_generator))

    def __reduce__(self) -> Any:
        return _restored, (self.bit_generator, self._stream.state.copy())


def default_rng(seed: Any = None) -> Generator:
    """Return a generator as NumPy's default_rng does; it may be drawn from in a trace."""
    if isinstance(seed, Generator):
        return seed
    if _has_traced(seed):
        _drawing.refuse("default_rng")
    return Generator(_random.default_rng(seed).bit_generator)


def seed(seed: Any = None) -> None:
    """Seed NumPy's global generator, and what traced functions draw of it."""
    if _current_trace() is not None:
        _drawing.refuse("seed")
    _random.seed(seed)
    words = _random.SeedSequence(seed).generate_state(1, _numpy.uint64)
    _shared.state[:] = words[0], 0


def _seed_of(bit_generator: Any) -> int:
    """Return the seed of what is drawn in traces: of the same seed the same."""
    sequence = getattr(bit_generator, "seed_seq", None)
    if isinstance(sequence, _random.SeedSequence):
        # A key of its own, so that it shares no words with NumPy's stream.
        own = _random.SeedSequence(
            sequence.entropy, spawn_key=(*sequence.spawn_key, 0x73616400)
        )
        return int(own.generate_state(1, _numpy.uint64)[0])
    digest = blake2b(repr(bit_generator.state).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _restored(bit_generator: Any, state: Any) -> Generator:
    made = Generator(bit_generator)
    made._stream.state[:] = state
    return made


def _method(name: str) -> Callable[..., Any]:
    plain = getattr(_random.Generator, name)
    drawn = _drawing.DRAWN.get(name)

    @wraps(plain)
    def method(self: Generator, *args: Any, **kwargs: Any) -> Any:
        if _current_trace() is None:
            return plain(self, *args, **kwargs)
        if drawn is None:
            return _drawing.refuse(name)
        return drawn(self._stream, *args, **kwargs)

    return method


_KEPT: Final = ("bit_generator",)
for _name in dir(_random.Generator):
    if not _name.startswith("_") and _name not in _KEPT:
        setattr(Generator, _name, _method(_name))

_shared: Final = _drawing.Stream(
    int(_random.SeedSequence().generate_state(1, _numpy.uint64)[0]),
    is_fixed=False,  # though this module may be imported while a function is traced
)
"""What traced functions draw from by the functions of this module."""


def _dims(dims: tuple[Any, ...]) -> Any:
    return dims or None


def _randint(
    stream: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = int
) -> Any:
    return _drawing.integers(stream, low, high, size, dtype)


DRAWN: Final[dict[str, Callable[..., Any]]] = {
    **_drawing.DRAWN,
    "rand": lambda stream, *dims: _drawing.random(stream, _dims(dims)),
    "randn": lambda stream, *dims: _drawing.standard_normal(stream, _dims(dims)),
    "random_sample": _drawing.random,
    "ranf": _drawing.random,
    "sample": _drawing.random,
    "randint": _randint,
}
"""The functions of this module that traced functions may call, as functions of a stream."""
_PLAIN: Final = frozenset({"get_state", "set_state", "get_bit_generator", "set_bit_generator"})


def _function(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    drawn = DRAWN.get(name)

    @wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        if _current_trace() is None:
            return plain(*args, **kwargs)
        if drawn is None:
            return _drawing.refuse(name)
        return drawn(_shared, *args, **kwargs)

    return function


_names: Final[dict[str, Any]] = dict(_namespace(_random, __name__, dir(_random)))
for _name, _value in _names.items():
    if not isinstance(_value, type) and callable(_value) and _name not in _PLAIN:
        _names[_name] = _function(_name, _value)
_names.update({"Generator": Generator, "default_rng": default_rng, "seed": seed})
globals().update(_names)
__all__ = sorted(_names)


def __getattr__(name: str) -> Any:
    """Say that there is no such name; type checkers learn from this that names are dynamic."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
