"""Samples of ops along an axis."""

# ruff: noqa: ARG001, ARG005  (every maker of cases takes the dtype)
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
Case: TypeAlias = "tuple[str, Shapes, dict[str, Any]]"

_SHAPES: Final[list[tuple[str, tuple[int, ...], int]]] = [
    ("empty", (0, 3), 0),
    ("empty", (2, 0), 0),
    ("size-1", (1, 3, 1), 1),
    ("size-1", (1, 3, 1), 2),
    ("4-d", (2, 3, 1, 2), 1),
    ("strided", (3, 4), -1),
    ("reversed", (5,), 0),
    # Broadcast samples repeat along axis 0, where a sort would find ties.
    ("broadcast", (2, 3), 1),
    ("plain", (4, 2), 0),
    ("plain", (6,), -1),
]


def _along(operands: int = 1, **attributes: Any) -> Any:
    """Cases of an op that works along an axis."""
    return lambda dtype: [
        (layout, (shape,) * operands, {"axis": axis, **attributes})
        for layout, shape, axis in _SHAPES
    ]


def _both(operands: int = 1) -> Any:
    """Cases of an op along an axis, forward and in reverse."""
    return lambda dtype: [*_along(operands)(dtype), *_along(operands, reverse=True)(dtype)]


def _argpartition(dtype: Any) -> list[Case]:
    return [
        (layout, (shape,), {"axis": axis, "kth": shape[axis] // 2})
        for layout, shape, axis in _SHAPES
        if shape[axis]
    ]


def _extremum(dtype: Any) -> list[Case]:
    return [
        ("0-d", ((),), {}),
        ("empty", ((0, 3),), {"axis": 1}),
        ("size-1", ((1, 3, 1),), {"axis": 1, "keepdims": True}),
        ("4-d", ((2, 3, 1, 2),), {"axis": 1}),
        ("strided", ((3, 4),), {"axis": -1}),
        ("strided", ((3, 4),), {}),
        ("reversed", ((5,),), {"axis": 0}),
        ("broadcast", ((2, 3),), {"axis": 1}),
        ("plain", ((2, 3),), {"keepdims": True}),
    ]


def _searchsorted(dtype: Any) -> list[Case]:
    return [
        ("0-d", ((3,), ()), {}),
        ("empty", ((0,), (2, 3)), {}),
        ("empty", ((3,), (0, 3)), {"right": True}),
        ("size-1", ((1,), (1, 3, 1)), {}),
        ("4-d", ((4,), (2, 3, 1, 2)), {}),
        ("strided", ((4,), (3, 4)), {}),
        ("reversed", ((5,), (4,)), {"right": True}),
        ("broadcast", ((5,), (2, 3)), {}),
        ("plain", ((5,), (2, 3)), {}),
    ]


_TAKES: Final[list[tuple[str, tuple[int, ...], tuple[int, ...], int]]] = [
    ("empty", (4, 3), (0, 3), 0),
    ("empty", (4, 0), (2, 0), 0),
    ("size-1", (1, 3, 1), (1, 2, 1), 1),
    ("4-d", (2, 3, 1, 2), (2, 4, 1, 2), 1),
    ("strided", (3, 4), (3, 5), -1),
    ("reversed", (4,), (6,), 0),
    ("broadcast", (2, 3), (2, 2), 1),
    ("plain", (5,), (3,), 0),
    ("plain", (5, 2), (3, 2), 0),
]


def _take_along(dtype: Any) -> list[Case]:
    return [
        (layout, (shape, indices), {"axis": axis}) for layout, shape, indices, axis in _TAKES
    ]


def _add_along(dtype: Any) -> list[Case]:
    return [
        (layout, (indices, indices), {"shape": shape, "axis": axis})
        for layout, shape, indices, axis in _TAKES
    ]


def _convolve(dtype: Any) -> list[Case]:
    pairs = [
        ("size-1", 1, 1), ("size-1", 1, 4), ("size-1", 5, 1), ("strided", 4, 3),
        ("reversed", 3, 5), ("broadcast", 3, 3), ("plain", 2, 2), ("plain", 6, 3),
        ("plain", 3, 6),
    ]  # fmt: skip
    return [(layout, ((left,), (right,)), {}) for layout, left, right in pairs]


def _convolve_valid(dtype: Any) -> list[Case]:
    pairs = [
        ("size-1", 1, 1), ("size-1", 5, 1), ("strided", 4, 3), ("reversed", 5, 3),
        ("broadcast", 3, 3), ("plain", 2, 2), ("plain", 6, 3), ("plain", 7, 2),
    ]  # fmt: skip
    return [(layout, ((left,), (right,)), {}) for layout, left, right in pairs]


CASES: Final[dict[str, Callable[[Any], list[Case]]]] = {
    "add_along_axis": _add_along,
    "argmax": _extremum,
    "argmin": _extremum,
    "argpartition": _argpartition,
    "argsort": _along(),
    "convolve": _convolve,
    "convolve_valid": _convolve_valid,
    "cumprod": _along(),
    "cumsum": _both(),
    "recurrence": _both(2),
    "searchsorted": _searchsorted,
    "sort": _along(),
    "take_along_axis": _take_along,
}

ABSENT: Final[dict[tuple[str, str], str]] = {
    **{
        (kind, "0-d"): "needs an axis"
        for kind in CASES
        if kind not in ("argmax", "argmin", "searchsorted")
    },
    ("convolve", "empty"): "NumPy convolves nothing empty",
    ("convolve", "4-d"): "is of vectors",
    ("convolve_valid", "empty"): "NumPy convolves nothing empty",
    ("convolve_valid", "4-d"): "is of vectors",
}
