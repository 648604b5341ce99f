"""front/: tracing, the first call of a transformed function, and every later one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stagedad as sd
import stagedad.numpy
from bench import graphs
from bench.rows import ROWS

COUNTS = [10, 100, 1_000]


@pytest.mark.benchmark(group="front: trace")
@pytest.mark.parametrize("count", COUNTS)
def bench_trace(benchmark: Any, count: int) -> None:
    """O(operations) of the function."""
    x = np.linspace(0, 1, 16)
    benchmark.pedantic(
        sd.trace,
        setup=lambda: ((graphs.operations(count, stagedad.numpy), x), {}),
        rounds=10,
        warmup_rounds=1,
    )


@pytest.mark.benchmark(group="front: first call")
@pytest.mark.parametrize("count", COUNTS)
def bench_first_call(benchmark: Any, count: int) -> None:
    """Trace, differentiate, optimise, plan and run: 15 us an operation is the aim."""
    x = np.linspace(0, 1, 16)
    benchmark.pedantic(
        lambda function: sd.value_and_grad(function)(x),
        setup=lambda: ((graphs.operations(count, stagedad.numpy),), {}),
        rounds=10,
        warmup_rounds=1,
    )


@pytest.mark.benchmark(group="front: call")
@pytest.mark.parametrize("name", ["rosenbrock", "logistic", "mlp"])
def bench_call(benchmark: Any, name: str) -> None:
    """A later call at the smallest size: what the front adds to the run of the program."""
    row = ROWS[name]
    arguments = row.arguments(row.sizes[0])
    staged = sd.value_and_grad(row.over(stagedad.numpy), row.wrt)
    staged(*arguments)
    benchmark(staged, *arguments)
