"""The rows of the performance targets: one function a row, by the row's name.

A row is NumPy code written over a namespace, so that one text runs on every library:

    >>> import numpy as np
    >>> from bench import rows
    >>> arguments = rows.rosenbrock.arguments(10)
    >>> value = rows.rosenbrock(np, *arguments)          # np, stagedad.numpy, jax.numpy, ...
    >>> value = rows.rosenbrock(*arguments)              # by NumPy, as a transform traces it

and the work that is timed, value and gradient once a call, comes from a peer:

    >>> step = rows.rosenbrock.step(10, peer="numpy")    # peer="stagedad" is the default
    >>> value, gradient = step()

Inputs are the same in every run and for every peer: they depend on row and size alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One workload: a function over a namespace, its inputs, and what is differentiated."""

    function: Callable[..., Any]
    """`function(np, *arguments)`; `np` is NumPy or a namespace that stands in for it."""
    arguments: Callable[[int], tuple[Array, ...]]
    """The arguments at a size, fresh arrays with the same contents at every call."""
    wrt: tuple[int, ...]
    """Positions of the arguments to differentiate."""
    sizes: tuple[int, ...]
    unit: str
    """What a size counts."""
    cotangent: Callable[[int], Array] | None = None
    """The cotangent given to the vjp; None: the row is a scalar and has a gradient."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any) -> Any:
        """Compute the value, by NumPy or by the namespace that comes first."""
        if isinstance(arguments[0], ModuleType):
            return self.function(*arguments)
        return self.function(numpy, *arguments)

    def over(self, np: Any) -> Callable[..., Any]:
        """Give the row as a function of its arguments alone, computed by `np`."""
        function = self.function

        def bound(*arguments: Any) -> Any:
            return function(np, *arguments)

        bound.__name__ = self.name
        return bound

    def step(self, size: int, peer: str = "stagedad") -> Callable[[], tuple[Any, ...]]:
        """Give the timed work: each call computes `(value, *gradients)` anew.

        Raises: bench.peers.Missing if the peer is not installed or lacks the row.
        """
        from bench import peers

        return peers.load(peer)(self, size)


def row(**facts: Any) -> Callable[[Callable[..., Any]], Row]:
    """Make a Row of the function below and enter it in ROWS."""

    def enter(function: Callable[..., Any]) -> Row:
        made = Row(function, **facts)
        ROWS[made.name] = made
        return made

    return enter


ROWS: dict[str, Row] = {}


def _chain_arguments(size: int) -> tuple[Array, ...]:
    random = numpy.random.default_rng(1)
    return random.uniform(0, 0.5, size), random.uniform(0, 0.5, size)


def _chain_cotangent(size: int) -> Array:
    return numpy.random.default_rng(2).uniform(0.5, 1.5, size)


@row(
    arguments=_chain_arguments,
    cotangent=_chain_cotangent,
    wrt=(0, 1),
    sizes=(1, 16, 1_000, 100_000, 1_000_000),
    unit="elements",
)
def chain(np: Any, a: Any, b: Any) -> Any:
    """100 products, sums and differences in turn; cotangent given, vjp to a and to b."""
    steps = (np.multiply, np.add, np.subtract)
    c = a
    for i in range(100):
        c = steps[i % 3](c, b)
    return c


def _rosenbrock_arguments(size: int) -> tuple[Array, ...]:
    return (numpy.random.default_rng(3).uniform(-2, 2, size),)


@row(arguments=_rosenbrock_arguments, wrt=(0,), sizes=(10, 1_000), unit="variables")
def rosenbrock(np: Any, x: Any) -> Any:
    """The banana function of optimisers, chained over neighbours."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _logistic_arguments(size: int) -> tuple[Array, ...]:
    random = numpy.random.default_rng(4)
    x = random.standard_normal((size, 8))
    y = numpy.where(x @ random.standard_normal(8) > 0, 1.0, -1.0)
    return 0.1 * random.standard_normal(8), x, y


@row(arguments=_logistic_arguments, wrt=(0,), sizes=(50,), unit="observations of 8")
def logistic(np: Any, w: Any, x: Any, y: Any) -> Any:
    """Mean logistic loss of labels y in {-1, 1}, by the weights w."""
    return np.mean(np.log1p(np.exp(-y * (x @ w))))


def _mlp_arguments(size: int) -> tuple[Array, ...]:
    random = numpy.random.default_rng(5)

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape).astype(numpy.float32)

    w1, b1 = normal(64, 32) / numpy.float32(8), normal(32)
    w2, b2 = normal(32, 10) / numpy.float32(6), normal(10)
    labels = numpy.eye(10, dtype=numpy.float32)[random.integers(0, 10, size)]
    return w1, b1, w2, b2, normal(size, 64), labels


@row(arguments=_mlp_arguments, wrt=(0, 1, 2, 3), sizes=(1, 32, 1_024), unit="batch")
def mlp(np: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Perceptron 64-32-10 with softmax cross-entropy in float32, by its four parameters."""
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    z = z - np.max(z, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - np.sum(z * y, axis=1))
