"""Equality and fingerprints of graphs: structure alone, not names, locations or identities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from stagedad.errors import VerifyError
from stagedad.ir._blocks import Block
from stagedad.ir._graph import Graph
from stagedad.ir._handles import Node, Value

__all__ = ["equal", "fingerprint"]

_END = object()


def equal(left: Graph, right: Graph) -> bool:
    """Return whether two graphs have the same inputs, nodes, attributes, types and outputs."""
    known: dict[int, str] = {}
    pairs = zip_longest(_walk(left, known), _walk(right, known), fillvalue=_END)
    return all(a == b for a, b in pairs)


def fingerprint(graph: Graph) -> str:
    """Return the SHA-256 of the structure and the arrays' contents, as hexadecimal text."""
    return _fingerprint(graph, {})


def _fingerprint(graph: Graph, known: dict[int, str]) -> str:
    """`known` has the fingerprints of held graphs by identity: one may be held many times."""
    if id(graph) not in known:
        digest = hashlib.sha256()
        for row in _walk(graph, known):
            digest.update(repr(row).encode())
            digest.update(b"\n")
        known[id(graph)] = digest.hexdigest()
    return known[id(graph)]


def _walk(graph: Graph, known: dict[int, str]) -> Iterator[tuple[Any, ...]]:
    """Yield a comparable row for the inputs, each node, each block's ends, and the outputs."""
    numbers: dict[Value, int] = {}

    def number(values: tuple[Value, ...]) -> tuple[int, ...]:
        for value in values:
            numbers[value] = len(numbers)
        return tuple(numbers[value] for value in values)

    def read(values: tuple[Value, ...]) -> tuple[int, ...]:
        try:
            return tuple(numbers[value] for value in values)
        except KeyError as error:
            raise _not_computed(error.args[0]) from None

    def typed(values: tuple[Value, ...]) -> tuple[str, ...]:
        return tuple(str(value.type) for value in values)

    stack: list[tuple[Graph | Block, Iterator[Node] | None]] = [(graph, None)]
    while stack:
        around, nodes = stack.pop()
        if nodes is None:
            inputs = around.inputs
            number(inputs)
            yield "inputs", typed(inputs), tuple(value.stage for value in inputs)
            nodes = around.nodes()
        for node in nodes:
            operands = read(node.inputs)
            outputs = node.outputs
            number(outputs)
            attributes = node.attributes.explicit()
            blocks = node.blocks
            yield (
                node.kind,
                node.stage,
                operands,
                typed(outputs),
                tuple(sorted((k, _content(v, known)) for k, v in attributes.items())),
                len(blocks),
            )
            if blocks:
                stack.append((around, nodes))
                stack.extend((block, None) for block in reversed(blocks))
                break
        else:
            yield "outputs", read(around.outputs)


def _not_computed(value: Value) -> VerifyError:
    return VerifyError(f"graph: %{value.name or value.id} is not computed in the graph")


def _content(value: object, known: dict[int, str]) -> str:
    """Text that two attribute values share only if they are alike."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        content = hashlib.sha256(array.tobytes()).hexdigest()
        return f"array({array.dtype.str}, {np.shape(value)}, {content})"
    if isinstance(value, Graph):
        return f"graph({_fingerprint(value, known)})"
    if isinstance(value, tuple):
        return f"({', '.join(_content(item, known) for item in value)})"
    return f"{type(value).__name__}:{value!r}"
