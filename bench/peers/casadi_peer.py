"""CasADi on its virtual machine, in float64 whatever the row says.

Graphs are scalar (SX), the faster kind for these rows, but for rows of matrix products: those
are written in matrices (MX) below. `make` calls the function with DM matrices, as a Python
user would; `make_buffers` uses `Function.buffer`, where arguments and results lie in the
caller's arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any

import casadi
import numpy

from bench import graphs
from bench.peers import Missing, Step, Transforming
from bench.rows import Array, Row

NUMPY = SimpleNamespace(
    multiply=numpy.multiply,
    add=numpy.add,
    subtract=numpy.subtract,
    exp=numpy.frompyfunc(casadi.exp, 1, 1),
    log1p=numpy.frompyfunc(casadi.log1p, 1, 1),
    sum=numpy.sum,
    mean=numpy.mean,
)
"""The functions of NumPy that scalar rows use, over object arrays of SX."""

LARGEST = {"chain": 1_000}
"""Sizes beyond which building a scalar graph takes minutes or gigabytes."""


def make(row: Row, size: int) -> Step:
    """Bind a call of the function; results are DM matrices, see `_function`."""
    function = _function(row, size)
    matrices = [
        casadi.reshape(casadi.DM(argument.ravel()), function.size_in(i))
        for i, argument in enumerate(_arguments(row, size))
    ]
    return partial(function, *matrices)


def make_buffers(row: Row, size: int) -> Step:
    """Bind a call through buffers; a step overwrites the results of the one before."""
    function = _function(row, size)
    buffer, evaluate = function.buffer()
    arguments = [
        numpy.array(argument, dtype=float).ravel() for argument in _arguments(row, size)
    ]
    results = tuple(numpy.zeros(function.numel_out(i)) for i in range(function.n_out()))
    for i, argument in enumerate(arguments):
        buffer.set_arg(i, argument.data)
    for i, result in enumerate(results):
        buffer.set_res(i, result.data)
    return partial(_evaluate, evaluate, results, (function, buffer, arguments))


def _evaluate(evaluate: Any, results: tuple[Array, ...], _alive: Any) -> tuple[Array, ...]:
    evaluate()
    return results


def _arguments(row: Row, size: int) -> tuple[Array, ...]:
    arguments = row.arguments(size)
    return arguments if row.cotangent is None else (*arguments, row.cotangent(size))


def _function(row: Row, size: int) -> Any:
    """Build the function from all arguments (and the cotangent) to value and gradients.

    CasADi stores columns first: every matrix is the transpose of NumPy's, so that both have
    their elements in the same order.
    """
    if size > LARGEST.get(row.name, size):
        raise Missing(f"casadi: scalar graph too large: {row.name} of {size:,} {row.unit}")
    in_matrices = row.name in MATRICES
    kind: Any = casadi.MX if in_matrices else casadi.SX
    arguments = _arguments(row, size)
    symbols = [kind.sym(f"x{i}", *a.shape[::-1]) for i, a in enumerate(arguments)]
    operands = symbols[: len(row.arguments(size))]
    if in_matrices:
        value = MATRICES[row.name](*operands)
    else:
        scalars = [_scalars(s, a.shape) for s, a in zip(operands, arguments, strict=False)]
        value = _column(row.over(NUMPY)(*scalars))
    seed = kind(1) if row.cotangent is None else symbols[-1]
    (gradients,) = casadi.reverse([value], [symbols[i] for i in row.wrt], [[seed]])
    return casadi.Function(row.name, symbols, [value, *gradients])


@contextmanager
def _as_written() -> Iterator[None]:
    """Let CasADi keep all nodes: it makes c of c + b - b, and a third of the chain is left."""
    casadi.GlobalOptions.setSimplificationOnTheFly(False)
    try:
        yield
    finally:
        casadi.GlobalOptions.setSimplificationOnTheFly(True)


@_as_written()
def _chain(nodes: int) -> tuple[Any, ...]:
    a, b = (casadi.MX.sym(name, 16) for name in "ab")
    return a, b, graphs.chained(a, b, nodes)


def _differentiate(nodes: int) -> Any:
    a, b, c = _chain(nodes)
    g = casadi.MX.sym("g", 16)

    @_as_written()
    def reverse() -> tuple[list[Any], list[Any]]:
        (gradients,) = casadi.reverse([c], [a, b], [[g]])
        return [a, b, g], [c, *gradients]

    return reverse


def _ready(differentiated: tuple[list[Any], list[Any]]) -> Any:
    return lambda: casadi.Function("chain", *differentiated)


def _results(differentiated: tuple[list[Any], list[Any]], *arrays: Array) -> tuple[Any, ...]:
    results: tuple[Any, ...] = _ready(differentiated)()(*arrays)
    return results


def _first(operations: int, x: Array) -> Any:
    """In matrices: the function is called on symbols, and what it gives is differentiated."""
    np = SimpleNamespace(tanh=casadi.tanh, sum=casadi.sum1)
    model = graphs.operations(operations, np)

    def first() -> tuple[Any, ...]:
        symbol = casadi.MX.sym("x", len(x))
        value = model(symbol)
        both = casadi.Function("both", [symbol], [value, casadi.gradient(value, symbol)])
        return tuple(both(x))

    return first


TRANSFORMING = Transforming(_differentiate, _results, _first, ready=_ready, create=_chain)


def _scalars(symbol: Any, shape: tuple[int, ...]) -> Array:
    array = numpy.empty(symbol.numel(), dtype=object)
    array[:] = casadi.vertsplit(casadi.vec(symbol))
    return array.reshape(shape)


def _column(value: Any) -> Any:
    return casadi.vertcat(*value.ravel()) if isinstance(value, numpy.ndarray) else value


def _mlp(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Row `mlp` over transposed matrices."""
    h = casadi.tanh(w1 @ x + casadi.repmat(b1, 1, x.shape[1]))
    z = w2 @ h + casadi.repmat(b2, 1, x.shape[1])
    z = z - casadi.repmat(reduce(casadi.fmax, casadi.vertsplit(z)), z.shape[0], 1)
    losses = casadi.log(casadi.sum1(casadi.exp(z))) - casadi.sum1(z * y)
    return casadi.sum2(losses) / x.shape[1]


MATRICES = {"mlp": _mlp}
