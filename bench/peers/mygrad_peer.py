"""MyGrad: a tape of NumPy calls, built and walked at every call."""

from __future__ import annotations

from functools import partial
from typing import Any

import mygrad

from bench.peers import Step
from bench.rows import Row


def make(row: Row, size: int) -> Step:
    """Bind a forward and a backward pass over tensors that are made at every call."""
    cotangent = None if row.cotangent is None else row.cotangent(size)
    return partial(_backward, row.over(mygrad), row.arguments(size), row.wrt, cotangent)


def _backward(
    function: Any, arguments: tuple[Any, ...], wrt: tuple[int, ...], cotangent: Any
) -> tuple[Any, ...]:
    arguments = tuple(
        mygrad.tensor(argument, copy=False) if i in wrt else argument
        for i, argument in enumerate(arguments)
    )
    value = function(*arguments)
    value.backward(cotangent)
    return (value.data, *(arguments[i].grad for i in wrt))
