"""stagedad at its three doors: transforms, the compiled pair, and the caller's buffers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

import stagedad.numpy
from bench import graphs
from bench.peers import Step, Transforming
from bench.rows import Array, Row
from stagedad import Gradient, compile, differentiate, jit, trace, value_and_grad, vjp


def make(row: Row, size: int) -> Step:
    """Bind `value_and_grad`, or the jit of a function that takes the vjp."""
    function, arguments = row.over(stagedad.numpy), row.arguments(size)
    if row.cotangent is None:
        return partial(_flat, value_and_grad(function, row.wrt), arguments)

    @jit
    def whole(*arguments: Any) -> tuple[Any, ...]:
        value, pull = vjp(function, *arguments[:-1])
        return (value, *pull(arguments[-1]))

    return partial(whole, *arguments, row.cotangent(size))


def make_joint(row: Row, size: int) -> Step:
    """Bind the joint program of the compiled pair: plain arrays, nothing to look up."""
    program, arrays = _joint(row, size)
    return partial(program, *arrays)


def make_buffers(row: Row, size: int) -> Step:
    """Bind the joint program into buffers; a step overwrites the results of the one before."""
    program, arrays = _joint(row, size)
    results = tuple(numpy.empty_like(result) for result in program(*arrays))
    return partial(_into, program.run, arrays, results)


def _differentiate(nodes: int) -> Any:
    return partial(differentiate, graphs.chain(nodes), [True, True])


def _results(gradient: Gradient, *arrays: Array) -> tuple[Array, ...]:
    return tuple(compile(gradient).joint(*arrays))


def _ready(gradient: Gradient) -> Any:
    """Plan for the types that the graph has; that is all there is to do before it runs."""
    types = [value.type for value in (*gradient.f.inputs, gradient.f.outputs[0])]

    def ready() -> Any:
        program = compile(gradient).joint
        program.specialise(types)
        return program

    return ready


def _first(operations: int, x: Array) -> Any:
    return partial(value_and_grad(graphs.operations(operations, stagedad.numpy)), x)


TRANSFORMING = Transforming(_differentiate, _results, _first, ready=_ready, create=graphs.chain)


def _flat(staged: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    value, gradients = staged(*arguments)
    return (value, *gradients)


def _into(run: Any, arrays: Any, results: tuple[Array, ...]) -> tuple[Array, ...]:
    run(arrays, results)
    return results


def _joint(row: Row, size: int) -> tuple[Any, tuple[Array, ...]]:
    """Give the joint program and its inputs: the arguments, then the cotangent."""
    arguments = row.arguments(size)
    graph = trace(row.over(stagedad.numpy), *arguments)
    wanted = [i in row.wrt for i in range(len(arguments))]
    if row.cotangent is None:
        cotangent = numpy.ones((), arguments[0].dtype)
    else:
        cotangent = row.cotangent(size)
    return compile(differentiate(graph, wanted)).joint, (*arguments, cotangent)
