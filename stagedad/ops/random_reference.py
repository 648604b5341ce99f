"""Random draws by NumPy's Philox generator, which counts instead of remembering.

Source: Salmon, Moraes, Dror, Shaw 2011, Parallel random numbers: as easy as 1, 2, 3.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, local
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"

_counting: Final = Lock()
_WORD: Final = (1 << 64) - 1


def random_key(*, state: Array, count: int) -> Array:
    """Return seed and count of draws, and add `count` to the count in `state`."""
    with _counting:
        key = state.copy()
        state[1] = (int(key[1]) + count) & _WORD
    return key


# One generator a thread, made when it is needed: to set it costs a fifth of making one.
_own: Final = local()


def generator(key: Array, draw: int) -> np.random.Generator:
    """Return the generator of draw number `draw` of a key, at its beginning.

    It is the thread's own, good until the next call.
    """
    seed, before = (int(word) for word in key)
    words = np.array([seed, (before + draw) & _WORD], np.uint64)
    if not hasattr(_own, "generator"):
        philox = np.random.Philox(key=0)
        _own.philox, _own.fresh = philox, philox.state
        _own.generator = np.random.Generator(philox)
    counter = np.zeros(4, np.uint64)
    _own.philox.state = {**_own.fresh, "state": {"counter": counter, "key": words}}
    made: np.random.Generator = _own.generator
    return made


def _drawn(method: str) -> Callable[..., Any]:
    def draw(key: Array, *, shape: Any, dtype: Any, draw: int) -> Any:
        kind = np.dtype(np.float64 if dtype is None else dtype)
        return getattr(generator(key, draw), method)(shape, dtype=kind)

    return draw


def random_integers(
    key: Array, *, low: int, high: int, shape: Any, dtype: Any, draw: int
) -> Any:
    """Return integers of [low, high)."""
    kind = np.dtype(np.int64 if dtype is None else dtype)
    return generator(key, draw).integers(low, high, shape, kind)


def random_permutation(key: Array, *, count: int, draw: int) -> Any:
    """Return the integers below `count` in some order."""
    return generator(key, draw).permutation(count)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "random_key": random_key,
    "random_uniform": _drawn("random"),
    "random_normal": _drawn("standard_normal"),
    "random_exponential": _drawn("standard_exponential"),
    "random_integers": random_integers,
    "random_permutation": random_permutation,
}
