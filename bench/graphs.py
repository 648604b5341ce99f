"""Graphs and functions of any length, for what is measured by the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stagedad as sd

KINDS = ("mul", "add", "sub")


def chain(nodes: int, elements: int = 16) -> sd.Graph:
    """Build the chain of row `chain` by hand, `nodes` long: products, sums, differences."""
    graph = sd.Graph()
    c = graph.add_input(f"f64[{elements}]", "a")
    b = graph.add_input(f"f64[{elements}]", "b")
    insert = graph.insert
    for i in range(nodes):
        c = insert(KINDS[i % 3], c, b)
    graph.register_output(c)
    return graph


def chained(c: Any, b: Any, nodes: int) -> Any:
    """Compute the same chain on values of any library that has the operators."""
    for i in range(nodes):
        if i % 3 == 0:
            c = c * b
        elif i % 3 == 1:
            c = c + b
        else:
            c = c - b
    return c


def fan_out(width: int) -> tuple[sd.Graph, Any, Any]:
    """Build a graph where one value has `width` uses; gives it, and a value without any."""
    graph = sd.Graph()
    old, new = graph.add_input("f64[16]"), graph.add_input("f64[16]")
    for _ in range(width):
        graph.insert("exp", old)
    return graph, old, new


def operations(count: int, np: Any) -> Callable[[Any], Any]:
    """Give a new function of `count` operations to a scalar, to be traced for the first time.

    A third of them are functions of one argument, as in models, so that nothing collapses.
    """

    def model(x: Any) -> Any:
        c = x
        for _ in range((count - 1) // 3):
            c = np.tanh(c * x + 0.5)
        return np.sum(c)

    return model
