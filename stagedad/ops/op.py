"""What the table holds: an op, its arguments, its formulas.  Data, no behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import numpy as np

Tree: TypeAlias = "tuple[Any, ...]"
"""A parsed formula as nested tuples of literals; see ops/expression.py."""

Rule: TypeAlias = Literal["formula", "zero", "non_differentiable", "not_implemented"]


class _Required(Enum):
    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required.REQUIRED
"""Stands for the default of an attribute that has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """One expression of a declaration, parsed and checked."""

    text: str
    tree: Tree
    reads: frozenset[str]
    """Arguments and results whose value is read, not only their shape or dtype."""
    uses: frozenset[str]
    """Kinds of op that it may emit, through macros too."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument of an op; a list takes all operands that are left."""

    name: str
    is_list: bool
    rule: Rule


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One op: all that stagedad knows of it, from one entry of `declarations`."""

    kind: str
    family: str
    arguments: tuple[Argument, ...]
    attributes: Mapping[str, Any]
    """Name -> default, or REQUIRED; in the order of the signature."""
    results: tuple[str, ...]
    returns_list: bool
    """Whether the one name in `results` is of a list; the attributes say how long it is."""
    type_rule: str
    """Name of the function in ops/type_rules.py."""
    numpy: str | None
    """Name of NumPy's function."""
    ufunc: np.ufunc | None
    """That function, where it is a ufunc."""
    expr: str | None
    """C expression over real operands a, b, c."""
    traits: frozenset[str]
    partials: Mapping[str, Formula]
    vjps: Mapping[str, Formula]
    jvp: Formula | Literal["linear"] | None
    is_complex: bool
    """Whether the derivative holds for complex operands too."""
    flops: int | Formula | None
    """Operations an element of the result, or those of a node; None where not declared."""
    points: tuple[Mapping[str, Any], ...]
    """Declared gradients at ties and singular points: {at, attributes, gradient}."""
    domain: Mapping[str, tuple[float, float]]
    """Argument -> interval in which samples are drawn; (-2, 2) where absent."""
    aliases: tuple[str, ...]
    variants: tuple[str, ...]
    view_of: str | None
    max_order: int | None
    """How often it can be differentiated; None: without end."""
    facts: Mapping[str, Any]
    """Further keys of the entry, for later products: batch, effect, source, ..."""
    scipy: str | None = None
    """Name of scipy.special's ufunc, whose loop computes it where it is none of NumPy's."""
    function: Callable[..., Any] | None = None
    """The function of an op that a user added; what is called for the ufunc, if it has one."""
    typing: Callable[..., Any] | None = None
    """From the types of operands, and attributes by name, to those of the results."""

    def argument(self, name: str) -> Argument:
        """Return the argument called `name`.

        Raises: KeyError if there is none.
        """
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(f"{self.kind}: no argument: {name}")

    def reads(self, argument: str) -> frozenset[str]:
        """Return the arguments and results whose value the cotangent of `argument` reads."""
        formula = self.partials.get(argument) or self.vjps.get(argument)
        return frozenset() if formula is None else formula.reads

    @property
    def is_registered(self) -> bool:
        """Whether a user added it, whose formulas no law has gone over."""
        return "registered" in self.facts

    @property
    def has_one_result(self) -> bool:
        """Whether every node of the op has one output, so that there are no lists of them."""
        return len(self.results) == 1 and not self.returns_list

    @property
    def is_differentiable(self) -> bool:
        """Whether some argument has a formula."""
        return any(argument.rule == "formula" for argument in self.arguments)

    def __repr__(self) -> str:
        return f"<op {self.kind}>"
