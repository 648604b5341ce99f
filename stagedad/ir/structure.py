"""Equality and fingerprints of graphs: structure alone, not names, locations or identities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from stagedad.errors import VerifyError
from stagedad.ir._graph import Graph
from stagedad.ir._handles import Value

__all__ = ["equal", "fingerprint"]

_END = object()


def equal(left: Graph, right: Graph) -> bool:
    """Return whether two graphs have the same inputs, nodes, attributes, types and outputs."""
    return all(a == b for a, b in zip_longest(_walk(left), _walk(right), fillvalue=_END))


def fingerprint(graph: Graph) -> str:
    """Return the SHA-256 of the structure and the constants' contents, as hexadecimal text."""
    digest = hashlib.sha256()
    for row in _walk(graph):
        digest.update(repr(row).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _walk(graph: Graph) -> Iterator[tuple[Any, ...]]:
    """Yield a comparable row for the inputs, each node, and the outputs."""
    numbers: dict[Value, int] = {}

    def number(values: tuple[Value, ...]) -> tuple[int, ...]:
        for value in values:
            numbers[value] = len(numbers)
        return tuple(numbers[value] for value in values)

    inputs = graph.inputs
    number(inputs)
    yield "inputs", tuple((str(value.type), value.stage) for value in inputs)
    for node in graph.nodes():
        try:
            operands = tuple(numbers[value] for value in node.inputs)
        except KeyError as error:
            raise _not_computed(error.args[0]) from None
        outputs = node.outputs
        number(outputs)
        yield (
            node.kind,
            node.stage,
            operands,
            tuple(str(value.type) for value in outputs),
            tuple(sorted((k, _content(v)) for k, v in node.attributes.explicit().items())),
        )
    try:
        yield "outputs", tuple(numbers[value] for value in graph.outputs)
    except KeyError as error:
        raise _not_computed(error.args[0]) from None


def _not_computed(value: Value) -> VerifyError:
    return VerifyError(f"graph: %{value.name or value.id} is not computed in the graph")


def _content(value: object) -> str:
    """Text that two attribute values share only if they are alike."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        content = hashlib.sha256(array.tobytes()).hexdigest()
        return f"array({array.dtype.str}, {np.shape(value)}, {content})"
    return f"{type(value).__name__}:{value!r}"
