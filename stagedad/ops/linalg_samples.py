"""Samples of linear algebra: stacks of matrices, and what they are made of.

The matrices are far from singular, their eigenvalues and singular values far apart.
"""

# ruff: noqa: ARG001, ARG005  (every maker of cases takes the dtype)
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Shape: TypeAlias = "tuple[int, ...]"
Case: TypeAlias = "tuple[str, tuple[Shape, ...], dict[str, Any]]"
Maker: TypeAlias = "Callable[[np.dtype[Any]], list[Case]]"

# One operand, square.
_SQUARES: list[tuple[str, Shape]] = [
    ("empty", (0, 2, 2)), ("empty", (0, 0)), ("size-1", (1, 1)), ("size-1", (1, 2, 2)),
    ("4-d", (2, 1, 2, 2)), ("strided", (3, 3)), ("reversed", (3, 3)), ("broadcast", (2, 3, 3)),
    ("plain", (3, 3)), ("plain", (2, 2)), ("plain", (4, 4)),
]  # fmt: skip
_TALL: list[tuple[str, Shape]] = [
    ("empty", (0, 3, 2)), ("size-1", (3, 1)), ("4-d", (2, 1, 3, 2)), ("strided", (4, 3)),
    ("reversed", (3, 2)), ("broadcast", (2, 3, 2)), ("plain", (5, 2)), ("plain", (3, 3)),
]  # fmt: skip
_WIDE: list[tuple[str, Shape]] = [
    (layout, (*shape[:-2], shape[-1], shape[-2])) for layout, shape in _TALL
]


def _of(cases: list[tuple[str, Shape]], **attributes: Any) -> Maker:
    return lambda dtype: [(layout, (shape,), attributes) for layout, shape in cases]


def _both(cases: list[tuple[str, Shape]], **choices: tuple[Any, Any]) -> Maker:
    """Cases whose attribute alternates."""
    ((name, values),) = choices.items()
    return lambda dtype: [
        (layout, (shape,), {name: values[number % 2]})
        for value in (0, 1)
        for number, (layout, shape) in enumerate(cases, value)
    ]


def _solve(dtype: np.dtype[Any]) -> list[Case]:
    pairs: list[tuple[str, Shape, Shape]] = [
        ("empty", (0, 2, 2), (0, 2, 3)), ("empty", (2, 2), (2, 0)), ("empty", (0, 0), (0,)),
        ("size-1", (1, 1), (1,)), ("size-1", (1, 2, 2), (3, 2, 1)),
        ("4-d", (2, 1, 2, 2), (3, 2, 2)),
        ("strided", (3, 3), (3, 2)), ("reversed", (3, 3), (3,)),
        ("broadcast", (2, 3, 3), (2, 3, 2)),
        ("plain", (3, 3), (3,)), ("plain", (2, 3, 3), (3,)), ("plain", (3, 3), (2, 3, 2)),
        ("plain", (2, 3, 3), (3, 1)),
    ]  # fmt: skip
    return [(layout, (left, right), {}) for layout, left, right in pairs]


def _over_gaps(dtype: np.dtype[Any]) -> list[Case]:
    # Between complex values there is nothing Hermitian.
    signs = (0,) if dtype.kind == "c" else (0, 1, -1)
    return [
        (layout, (shape, shape[:-1]), {"sign": sign})
        for sign in signs
        for layout, shape in _SQUARES
    ]


def _over_columns(dtype: np.dtype[Any]) -> list[Case]:
    return [
        (layout, (shape, (*shape[:-2], shape[-1])), {}) for layout, shape in (*_TALL, *_WIDE)
    ]


CASES: dict[str, Maker] = {
    **dict.fromkeys(
        ("inv", "det", "slogdet", "cholesky", "eig", "eigvals", "basis_inverse"),
        _of(_SQUARES),
    ),
    "cofactor": _of([case for case in _SQUARES if case[1] != (4, 4)]),
    **dict.fromkeys(("eigh", "eigvalsh"), _both(_SQUARES, UPLO=("L", "U"))),
    **dict.fromkeys(("svd", "svdvals", "qr", "pinv"), _of([*_TALL, *_WIDE])),
    **dict.fromkeys(("tril", "triu"), _both([*_TALL, *_WIDE], k=(0, -1))),
    "hermitian": _both(_SQUARES, lower=(True, False)),
    "solve": _solve,
    "over_gaps": _over_gaps,
    "over_columns": _over_columns,
    "gauge_pivot": lambda dtype: [
        (layout, (shape,), {"which": which})
        for which in ("first", "last", "largest")
        for layout, shape in _TALL
    ],
}


def _dominant(values: Array, name: str) -> Array:
    """Return matrices with a large diagonal that grows: nothing near 0, nothing alike."""
    if name != "self" or 0 in values.shape:
        return values
    if values.dtype.kind == "b":
        return np.asarray(np.triu(values) | (np.eye(*values.shape[-2:]) == 1))
    large = np.zeros(values.shape[-2:], values.dtype)
    for row in range(min(large.shape)):
        large[row, row] = 9 + 8 * row
    return np.asarray(values + large)


def _turned(values: Array, name: str) -> Array:
    """Return matrices whose vectors have no small component, by which phases are fixed."""
    if values.dtype.kind not in "fc" or 0 in values.shape:
        return _dominant(values, name)
    rows, columns = values.shape[-2:]
    few = min(rows, columns)
    sizes = 9 + 8 * np.arange(few)
    large = (_cosines(rows)[:, :few] * sizes) @ _cosines(columns)[:few]
    return np.asarray(values + large.astype(values.dtype))


def _cosines(count: int) -> Array:
    """Return an orthogonal symmetric matrix."""
    middle = np.arange(count) + 0.5
    cosines: Array = np.sqrt(2 / count) * np.cos(np.pi / count * np.outer(middle, middle))
    return cosines


def _positive(values: Array, name: str) -> Array:
    """Return matrices whose lower and upper triangle stand for positive definite ones."""
    if values.dtype.kind == "b":
        return np.broadcast_to(np.eye(*values.shape[-2:]) == 1, values.shape)
    return _dominant(values, name)


def _apart(values: Array, name: str) -> Array:
    """Return values that are 1 apart and more, none near 0."""
    if name != "values" or values.dtype.kind in "b":
        return values
    steps = 3 + 5 * np.arange(values.shape[-1])
    return np.asarray(values + steps.astype(values.dtype))


VALUES: dict[str, Callable[[Array, str], Array]] = {
    **dict.fromkeys(
        ("inv", "solve", "slogdet", "cofactor", "qr", "eig", "eigvals", "pinv",
         "basis_inverse"),
        _dominant,
    ),
    **dict.fromkeys(("eigh", "eigvalsh", "svd", "svdvals"), _turned),
    "cholesky": _positive,
    "over_gaps": _apart,
    "over_columns": _apart,
}  # fmt: skip
"""What the samples of an op are made of, given random numbers and the operand's name."""
