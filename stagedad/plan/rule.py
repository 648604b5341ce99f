"""Lowering rules: one function an op, found by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from stagedad.plan._view import View
from stagedad.types import TensorType

Dims: TypeAlias = tuple[int, ...]
Operands: TypeAlias = Sequence[View]
Results: TypeAlias = Sequence[TensorType]
# The first argument is the Emitter, which itself knows of no rules.
Rule: TypeAlias = Callable[[Any, Operands, Mapping[str, Any], Results], Sequence[View]]

RULES: dict[str, Rule] = {}
"""Kind -> rule.  A rule gets the operands' views, the node's attributes and the
types of its results, and gives the results' views; it may emit no step at all."""


RuleT = TypeVar("RuleT", bound=Rule)


def rule(*kinds: str) -> Callable[[RuleT], RuleT]:
    """Return a decorator that makes a function the rule of `kinds`."""

    def register(function: RuleT) -> RuleT:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def static_shape(type: TensorType) -> Dims:
    """Return the shape of a type that a plan has worked out: every dim is known."""
    return type.shape  # type: ignore[return-value]
