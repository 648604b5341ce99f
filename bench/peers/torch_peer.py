"""PyTorch on the CPU, eager and compiled; inputs and results are tensors."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from bench.peers import Missing, Step
from bench.rows import Row

torch.set_num_threads(1)

NUMPY = SimpleNamespace(
    multiply=torch.mul,
    add=torch.add,
    subtract=torch.sub,
    exp=torch.exp,
    log=torch.log,
    log1p=torch.log1p,
    tanh=torch.tanh,
    sum=torch.sum,
    mean=torch.mean,
    max=lambda x, axis, keepdims: torch.amax(x, axis, keepdim=keepdims),
)
"""The functions of NumPy that the rows use, by PyTorch's own."""


def make(row: Row, size: int) -> Step:
    """Bind a forward and a backward pass."""
    return _bind(row.over(NUMPY), row, size)


def make_compiled(row: Row, size: int) -> Step:
    """Bind the same, forward and backward compiled by `torch.compile` in the first call."""
    # One wrapper around the row is traced too; a fresh compiler state keeps sizes static.
    torch.compiler.reset()
    step = _bind(torch.compile(row.over(NUMPY), dynamic=False), row, size)
    try:
        step()
    except Exception as error:  # whatever the compiler's tool chain raises: it takes no part
        raise Missing(f"torch.compile: fails: {type(error).__name__}") from error
    return step


def _bind(function: Any, row: Row, size: int) -> Step:
    arguments = tuple(map(torch.tensor, row.arguments(size)))
    for i in row.wrt:
        arguments[i].requires_grad_()
    cotangent = None if row.cotangent is None else torch.tensor(row.cotangent(size))
    return partial(
        _backward, function, arguments, tuple(arguments[i] for i in row.wrt), cotangent
    )


def _backward(
    function: Any, arguments: tuple[Any, ...], wanted: tuple[Any, ...], cotangent: Any
) -> tuple[Any, ...]:
    value = function(*arguments)
    return (value.detach(), *torch.autograd.grad(value, wanted, cotangent))
