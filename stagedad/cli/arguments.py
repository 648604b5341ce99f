"""Example arguments written on a command line."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from stagedad.errors import ParseError, StagedadError
from stagedad.types import TensorType, parse_type


def parse_argument(text: str, position: int = 0) -> Any:
    """Return the value that `text` stands for.

    A Python literal stands for itself; a type such as `f64[3, 2]` for an array of random
    numbers, the same ones for the same `position` in every run: floats in [0, 1), where
    log and sqrt are defined, and integers that are 0 or 1, which index any array of two.

    >>> parse_argument("[1.0, 2.0]")
    [1.0, 2.0]
    >>> parse_argument("f32[2, 3]").shape
    (2, 3)

    Raises: ParseError if it is neither.
    """
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    try:
        wanted = parse_type(text)
    except StagedadError as error:
        raise ParseError(
            f"argument {position + 1}: neither a Python literal nor a type: {text!r}",
            hint="write 2.5, '[1.0, 2.0]' or 'f64[3, 2]'",
        ) from error
    if not wanted.is_static:
        raise ParseError(f"argument {position + 1}: dims must be numbers: {text!r}")
    try:
        return _random_array(wanted, np.random.default_rng(position))
    except (MemoryError, ValueError) as error:
        raise ParseError(f"argument {position + 1}: too large: {text!r}") from error


def _random_array(wanted: TensorType, random: np.random.Generator) -> Any:
    dtype = wanted.dtype
    shape = tuple(dim or 0 for dim in wanted.shape or ())
    if wanted.is_inexact:
        values = random.random(shape)
        if dtype.kind == "c":
            return (values + 1j * random.random(shape)).astype(dtype)
        return np.asarray(values, dtype)
    return np.asarray(random.integers(0, 2, shape), dtype)
