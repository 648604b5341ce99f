"""What a declaration says beside its formulas: whether it goes together, points, domain."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from stagedad.errors import suggestion
from stagedad.ops.literals import check_c, is_array
from stagedad.ops.op import Formula

if TYPE_CHECKING:
    from stagedad.ops.draft import Draft

VARIANTS = ("functional", "inplace", "out")


def check_policy(
    draft: Draft,
    traits: set[str],
    partials: Mapping[str, Formula],
    rules: Mapping[str, str],
) -> None:
    """Check that what the entry says of the op goes together."""
    raw, operands, is_single = draft.raw, dict(draft.operands), len(draft.results) == 1
    is_single = is_single and not draft.returns_list
    if "singular" in traits and not partials:
        key = "singular" if raw.get("singular") else "traits"
        draft.fail(key, "means partials, and there are none")
    if partials and not ("elementwise" in traits and is_single):
        draft.fail("partial", "of an op that is not elementwise with one result", "vjp and jvp")
    for trait in ("comparison", "stepwise"):
        if trait in traits and "formula" in rules.values():
            draft.fail("traits", f"{trait}: the result is locally constant, but has a rule")
    if "commutative" in traits and list(operands.values()) != [False, False]:
        draft.fail("traits", "commutative: takes two operands")
    viewed = raw.get("view_of")
    if viewed is not None and viewed not in operands:
        draft.fail("view_of", f"no argument '{viewed}'", suggestion(viewed, operands))
    if viewed is not None and operands[viewed]:
        draft.fail("view_of", f"'{viewed}' is a list")
    if ("view" in traits) != (viewed is not None):
        key = "traits" if viewed is None else "view_of"
        draft.fail(key, "the trait view and view_of go together")
    variants = raw.get("variants", VARIANTS[:1])
    if VARIANTS[0] not in variants:
        draft.fail("variants", "without functional")
    if len(variants) > 1 and not (is_single and operands and viewed is None):
        draft.fail("variants", "inplace and out are of ops with operands and one new result")
    for name in raw.get("forwards", "").split():
        if name not in dict(draft.attributes):
            hint = suggestion(name, dict(draft.attributes))
            draft.fail("forwards", f"no attribute '{name}'", hint)
    if "expr" in raw:
        draft.checked("expr", check_c, raw["expr"], len(operands))


def points(draft: Draft) -> tuple[dict[str, Any], ...]:
    """Return the points with known gradients, as literals."""
    names = {name for name, _ in draft.operands}
    for point in draft.raw.get("points", ()):
        if not isinstance(point, dict) or not {"at", "gradient"} <= point.keys():
            draft.fail("points", "a point has at and gradient")
        unknown = point.keys() - {"at", "gradient", "attributes", "cotangent"}
        if unknown:
            draft.fail("points", f"unknown: {', '.join(sorted(unknown))}")
        draft.check_literal("points", point, finite=False)
        tables = [point[key] for key in ("at", "gradient", "attributes") if key in point]
        if not all(isinstance(table, dict) for table in tables):
            draft.fail("points", "at, gradient and attributes are tables")
        if set(point["at"]) != names or not set(point["gradient"]) <= names:
            draft.fail("points", f"is not about {', '.join(sorted(names))}")
        numbers = [*point["at"].values(), *point["gradient"].values()]
        for value in (*numbers, point.get("cotangent", 1)):
            if not is_array(value):
                draft.fail("points", f"not an array: {value!r}")
        for name in point.get("attributes", ()):
            if name not in dict(draft.attributes):
                hint = suggestion(name, dict(draft.attributes))
                draft.fail("points", f"no attribute '{name}'", hint)
    points: tuple[dict[str, Any], ...] = _finite(tuple(draft.raw.get("points", ())))
    return points


def domain(draft: Draft) -> dict[str, tuple[float, float]]:
    """Return where the samples of each operand lie."""
    names = [name for name, _ in draft.operands]
    for name, bounds in draft.raw.get("domain", {}).items():
        if name not in names:
            draft.fail(f"domain.{name}", f"no argument '{name}'", suggestion(name, names))
        if not isinstance(bounds, list) or len(bounds) != 2:
            draft.fail(f"domain.{name}", "is not [low, high]")
        draft.check_literal(f"domain.{name}", bounds)
        numbers = [
            bound
            for bound in bounds
            if isinstance(bound, int | float) and not isinstance(bound, bool)
        ]
        if len(numbers) < 2 or numbers[0] > numbers[1]:
            draft.fail(f"domain.{name}", f"is not [low, high]: {bounds}")
    return {name: tuple(bounds) for name, bounds in draft.raw.get("domain", {}).items()}


def _finite(value: Any) -> Any:
    """Return nested literals with inf and nan, which are none, as text."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_finite, value))
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value
