"""Gradients written by hand in NumPy: what one writes when the microseconds count.

Temporaries are updated in place where that loses nothing; nothing is kept between calls, so
that the functions are as re-entrant as the ones they stand beside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.peers import Missing, Step
from bench.rows import Array, Row


def make(row: Row, size: int) -> Step:
    """Bind the hand-written gradient of a row to its inputs."""
    arguments = row.arguments(size)
    if row.cotangent is not None:
        arguments = (*arguments, row.cotangent(size))
    if row.name not in GRADIENTS:
        raise Missing(f"numpy: no gradient written by hand: {row.name}")
    return partial(GRADIENTS[row.name], *arguments)


def make_value(row: Row, size: int) -> Step:
    """Bind the row itself, as written, with no gradient; the step gives the bare value."""
    return partial(row.function, np, *row.arguments(size))


def chain(a: Array, b: Array, g: Array, nodes: int = 100) -> tuple[Array, Array, Array]:
    """Gives c, da, db. Only the left operands of products are needed on the way back.

    In place, but for one element: there NumPy's check for overlap costs more than a new
    array, 1.6 times the whole (measured; `out=None` makes a new array).
    """
    mul, add, sub = np.multiply, np.add, np.subtract
    reuse = b.size > 1
    factors = []
    c = a
    for i in range(nodes):
        if i % 3 == 0:
            factors.append(c)
            c = mul(c, b)
        elif i % 3 == 1:
            c = add(c, b, c if reuse else None)
        else:
            c = sub(c, b, c if reuse else None)
    g, db = g.copy(), np.zeros_like(b)
    product = np.empty_like(b) if reuse else None
    for i in reversed(range(nodes)):
        if i % 3 == 0:
            db = add(db, mul(g, factors.pop(), product), db if reuse else None)
            g = mul(g, b, g if reuse else None)
        elif i % 3 == 1:
            db = add(db, g, db if reuse else None)
        else:
            db = sub(db, g, db if reuse else None)
    return c, g, db


def rosenbrock(x: Array) -> tuple[Any, Array]:
    """Gives the value and dx, from the two residuals of every pair of neighbours."""
    head = x[:-1]
    valley = x[1:] - head * head
    slope = 1 - head
    value = 100 * (valley @ valley) + slope @ slope
    valley *= 200
    slope *= -2
    dx = np.empty_like(x)
    dx[0] = 0
    dx[1:] = valley
    valley *= head
    valley *= -2
    valley += slope
    dx[:-1] += valley
    return value, dx


def logistic(w: Array, x: Array, y: Array) -> tuple[Any, Array]:
    """Gives the value and dw; d log1p(e) of e = exp(m) is e / (1 + e) dm."""
    e = x @ w
    e *= y
    np.negative(e, out=e)
    np.exp(e, out=e)
    count = len(y)
    value = np.log1p(e).sum() / count
    e /= 1 + e
    e *= y
    dw = e @ x
    dw /= -count
    return value, dw


def operations(count: int, x: Array) -> tuple[Any, Array]:
    """Gives value and dx of `graphs.operations`: c = tanh(c x + 0.5) over and over."""
    values = [x]
    for _ in range((count - 1) // 3):
        values.append(np.tanh(values[-1] * x + 0.5))
    g, dx = np.ones_like(x), np.zeros_like(x)
    for before, after in zip(values[-2::-1], values[:0:-1], strict=True):
        g = g * (1 - after * after)
        dx += g * before
        g = g * x
    return values[-1].sum(), dx + g


def mlp(
    w1: Array, b1: Array, w2: Array, b2: Array, x: Array, y: Array
) -> tuple[Any, Array, Array, Array, Array]:
    """Gives the value, dw1, db1, dw2, db2; the shift by the maximum has no derivative."""
    h = x @ w1
    h += b1
    np.tanh(h, out=h)
    z = h @ w2
    z += b2
    z -= z.max(axis=1, keepdims=True)
    scores = np.vdot(z, y)
    np.exp(z, out=z)
    total = z.sum(axis=1, keepdims=True)
    batch = len(x)
    value = (np.log(total).sum() - scores) / batch
    z /= total
    z -= y
    z /= batch
    dw2 = h.T @ z
    db2 = z.sum(axis=0)
    dh = z @ w2.T
    h *= h
    np.subtract(1, h, out=h)
    dh *= h
    return value, x.T @ dh, dh.sum(axis=0), dw2, db2


GRADIENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    function.__name__: function for function in (chain, rosenbrock, logistic, mlp)
}
