"""JAX, compiled for the CPU by `jax.jit`; inputs and results are JAX arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy

from bench.peers import Step
from bench.rows import Row

jax.config.update("jax_enable_x64", True)
jax.jit(lambda x: x + 1)(jax.numpy.zeros(1)).block_until_ready()  # start the backend once


def make(row: Row, size: int) -> Step:
    """Bind the jit of value and gradient; it compiles in the first call of the step."""
    function = row.over(jax.numpy)
    arguments = row.arguments(size)
    if row.cotangent is None:
        gradient = jax.value_and_grad(function, row.wrt)

        def whole(*arguments: Any) -> tuple[Any, ...]:
            value, gradients = gradient(*arguments)
            return (value, *gradients)
    else:
        arguments = (*arguments, row.cotangent(size))

        def whole(*arguments: Any) -> tuple[Any, ...]:
            value, pull = jax.vjp(function, *arguments[:-1])
            return (value, *pull(arguments[-1]))

    return partial(_ready, jax.jit(whole), tuple(map(jax.numpy.asarray, arguments)))


def _ready(whole: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    results: tuple[Any, ...] = whole(*arguments)
    results[-1].block_until_ready()  # all come from one computation
    return results
