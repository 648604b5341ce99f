"""HIPS autograd: traces anew at every call, as its users call it."""

from __future__ import annotations

from functools import partial
from typing import Any

import autograd
import autograd.numpy

from bench.peers import Step
from bench.rows import Row


def make(row: Row, size: int) -> Step:
    """Bind `value_and_grad`, or `make_vjp` where the cotangent is given."""
    function, arguments = row.over(autograd.numpy), row.arguments(size)
    if row.cotangent is None:
        return partial(_gradient, autograd.value_and_grad(function, row.wrt), arguments)
    return partial(
        _pullback, autograd.make_vjp(function, row.wrt), arguments, row.cotangent(size)
    )


def _gradient(value_and_grad: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    value, gradients = value_and_grad(*arguments)
    return (value, *gradients)


def _pullback(make_vjp: Any, arguments: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
    pull, value = make_vjp(*arguments)
    return (value, *pull(cotangent))
