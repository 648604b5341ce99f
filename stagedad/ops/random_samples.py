"""Samples of random draws."""

# ruff: noqa: ARG001, ARG005  (every maker of cases takes the dtype)
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
Case: TypeAlias = "tuple[str, Shapes, dict[str, Any]]"

_KEY: Final = ((2,),)
_SHAPES: Final[list[tuple[str, tuple[int, ...]]]] = [
    ("0-d", ()), ("empty", (0, 3)), ("size-1", (1, 3, 1)), ("4-d", (2, 3, 1, 2)),
    ("strided", (3, 4)), ("reversed", (5,)), ("broadcast", (2, 3)), ("plain", (7,)),
    ("plain", (2, 3)),
]  # fmt: skip


def _shaped(**attributes: Any) -> Callable[[Any], list[Case]]:
    return lambda dtype: [
        (layout, _KEY, {"shape": shape, "draw": number, **attributes})
        for number, (layout, shape) in enumerate(_SHAPES)
    ]


def _either(dtype: Any) -> list[Case]:
    return [*_shaped()(dtype), *_shaped(dtype="float32")(dtype)]


def _permutations(dtype: Any) -> list[Case]:
    counts = {"empty": 0, "size-1": 1, "strided": 2, "reversed": 7, "broadcast": 40, "plain": 9}
    return [
        (layout, _KEY, {"count": count, "draw": draw})
        for draw in (0, 3)
        for layout, count in counts.items()
    ]


CASES: Final[dict[str, Callable[[Any], list[Case]]]] = {
    "random_key": lambda dtype: [],
    "random_uniform": _either,
    "random_normal": _either,
    "random_exponential": _either,
    "random_integers": lambda dtype: [
        *_shaped(low=-3, high=7)(dtype),
        *_shaped(low=0, high=200, dtype="uint8")(dtype),
    ],
    "random_permutation": _permutations,
}

ABSENT: Final[dict[tuple[str, str], str]] = {
    ("random_permutation", "0-d"): "is of vectors",
    ("random_permutation", "4-d"): "is of vectors",
}
