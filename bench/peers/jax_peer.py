"""JAX, compiled for the CPU by `jax.jit`; inputs and results are JAX arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy

from bench import graphs
from bench.peers import Step, Transforming
from bench.rows import Array, Row

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


def _differentiate(nodes: int) -> Any:
    """Trace a chain with its vjp: a graph cannot be had apart from its function."""

    def chain(a: Any, b: Any) -> Any:
        return graphs.chained(a, b, nodes)

    def whole(a: Any, b: Any, g: Any) -> tuple[Any, ...]:
        value, pull = jax.vjp(chain, a, b)
        return (value, *pull(g))

    # A new function each time, or JAX would look up what it traced before.
    types = [jax.ShapeDtypeStruct((16,), "float64")] * 3
    return lambda: jax.jit(lambda *arguments: whole(*arguments)).trace(*types)


def _results(traced: Any, *arrays: Array) -> tuple[Any, ...]:
    results: tuple[Any, ...] = traced.lower().compile()(*arrays)
    return results


def _compile(traced: Any) -> Any:
    def compile() -> Any:
        jax.clear_caches()  # or the second time is a look-up
        return traced.lower().compile()

    return compile


def _first(operations: int, x: Array) -> Any:
    staged = jax.jit(jax.value_and_grad(graphs.operations(operations, jax.numpy)))
    return lambda: jax.block_until_ready(staged(x))


TRANSFORMING = Transforming(_differentiate, _results, _first, ready=_compile)


def _ready(whole: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    results: tuple[Any, ...] = whole(*arguments)
    results[-1].block_until_ready()  # all come from one computation
    return results
