"""How exact a graph is: it is run with the last digits of every result drawn at random.

Where results cancel, that shows how little is left of them, as no bound of their sizes does.

Source: Parker 1997, Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from stagedad.ir import Graph, Value
from stagedad.ops import evaluate

Array = np.ndarray[Any, Any]


def noisy(graph: Graph, arrays: Sequence[Array], first: int, seed: int) -> list[Array]:
    """Return the outputs of `graph`, node by node by NumPy's functions.

    What is computed from the inputs `first` and later is off by up to two units in its last
    place; the rest is as it is, so that comparisons among the rest still come out alike.
    """
    random = np.random.default_rng(seed)
    values: dict[Value, Array] = dict(zip(graph.inputs, arrays, strict=True))
    moving = set(graph.inputs[first:])
    left = Counter({value: len(value.uses) for value in graph.inputs})
    for node in graph.nodes():
        operands = node.inputs
        results = evaluate(node.kind, [values[v] for v in operands], dict(node.attributes))
        is_moving = not moving.isdisjoint(operands)
        for value, result in zip(node.outputs, results, strict=True):
            if is_moving and result.dtype.kind in "fc":
                moving.add(value)
                result = _blurred(result, random)
            values[value] = result
            left[value] = len(value.uses)
        for value in operands:
            left[value] -= 1
            if not left[value]:
                del values[value]
    return [values[value] for value in graph.outputs]


def _blurred(array: Array, random: np.random.Generator) -> Array:
    digit = float(np.finfo(array.dtype).eps)
    factor = 1 + 2 * digit * random.uniform(-1, 1, array.shape)
    return np.asarray(array * factor).astype(array.dtype)
