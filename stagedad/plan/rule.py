"""Lowering rules: one function an op, found by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from stagedad.plan._view import View

if TYPE_CHECKING:
    from stagedad.plan._emitter import Emitter
    from stagedad.types import TensorType

Dims: TypeAlias = "tuple[int, ...]"
Operands: TypeAlias = "Sequence[View]"
Results: TypeAlias = "Sequence[TensorType]"
Rule: TypeAlias = "Callable[[Emitter, Operands, Mapping[str, Any], Results], Sequence[View]]"

RULES: dict[str, Rule] = {}
"""Kind -> rule.  A rule gets the operands' views, the node's attributes and the
types of its results, and gives the results' views; it may emit no step at all."""


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of `kinds`."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def static_shape(type: TensorType) -> Dims:
    """Return the shape of a type that a plan has worked out: every dim is known."""
    return type.shape  # type: ignore[return-value]
