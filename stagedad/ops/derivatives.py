"""The formulas of a declaration: the rule of each argument, the tangent, the operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stagedad.errors import suggestion
from stagedad.ops.calls import MACROS, METADATA_MACROS
from stagedad.ops.expression import (
    ARRAY,
    BINARY,
    Scope,
    Signature,
    gives,
    parse,
)
from stagedad.ops.op import Formula
from stagedad.ops.reading import ExpressionError

if TYPE_CHECKING:
    from stagedad.ops.draft import Draft

RULES = ("zero", "non_differentiable", "not_implemented")


def derivatives(
    draft: Draft, ops: Mapping[str, Signature]
) -> tuple[dict[str, Formula], dict[str, Formula], dict[str, str]]:
    """Return partials, vjps and the rule of each tensor argument."""
    given = draft.raw.get("vjp", {})
    if isinstance(given, str):
        if given not in RULES:
            draft.fail("vjp", "is for all arguments one of " + ", ".join(RULES))
        given = {name: given for name, _ in draft.operands}
    parts = {"partial": draft.raw.get("partial", {}), "vjp": given}
    names = [name for name, _ in draft.operands]
    found: dict[str, dict[str, Formula]] = {"partial": {}, "vjp": {}}
    rules: dict[str, str] = {}
    for section, formulas in parts.items():
        for name, text in formulas.items():
            key = f"{section}.{name}"
            if name not in names:
                draft.fail(key, f"no tensor argument '{name}'", suggestion(name, names))
            if name in rules:
                draft.fail(key, f"'{name}' has a rule already")
            if not isinstance(text, str):
                draft.fail(key, f"wrong type: {type(text).__name__}")
            if text in RULES:
                rules[name] = text
            else:
                rules[name] = "formula"
                found[section][name] = _cotangent(draft, key, text, section, ops)
    for name in names:
        if name not in rules:
            hint = "one of partial, vjp, zero, non_differentiable, not_implemented"
            draft.fail(None, f"no rule for argument '{name}'", hint)
    if found["partial"] and found["vjp"]:
        draft.fail("vjp", "formulas beside partials")
    if found["partial"] and any(is_list for _, is_list in draft.operands):
        draft.fail("partial", "of an op that takes a list")
    return found["partial"], found["vjp"], rules


def _cotangent(
    draft: Draft, key: str, text: str, section: str, ops: Mapping[str, Signature]
) -> Formula:
    cotangents: set[str] = set()
    active = draft.differentiable()
    if not active:
        draft.fail(key, "of an op without a differentiable result")
    if section == "vjp":
        many = len(draft.results) > 1
        cotangents = {f"g_{name}" for name in active} if many else {"g"}
    lists = cotangents if draft.returns_list else set()
    formula, mentioned, found = _formula(draft, key, text, cotangents, ops, lists)
    is_list = dict(draft.operands)[key.partition(".")[2]]
    wanted = ("a list", "a tuple", None) if is_list else (ARRAY, None)
    if found not in wanted:
        hint = "one cotangent for each, as a list" if is_list else None
        draft.fail(key, f"gives {found}", hint)
    for name in sorted(cotangents - mentioned):
        draft.fail(key, f"never uses '{name}'", "the gradient of that result would be lost")
    return formula


def jvp_of(
    draft: Draft,
    ops: Mapping[str, Signature],
    partials: Mapping[str, Formula],
    rules: Mapping[str, str],
) -> Formula | str | None:
    """Return the formula of the tangent, "linear", or None if partials or nothing give it."""
    text = draft.raw.get("jvp")
    active = [name for name, rule in rules.items() if rule == "formula"]
    if "aux" in draft.kinds.values():  # it would move, and nothing tells how
        if text is not None:
            draft.fail("jvp", "an op with an auxiliary result refuses forward mode")
        return None
    if text is None:
        if active and not partials:
            draft.fail(None, "no jvp", 'a formula, or "linear"')
        return None
    if partials or not active:
        draft.fail("jvp", "follows from the partials" if partials else "without a vjp")
    moving = draft.differentiable()
    if text == "linear":
        if "linear" not in draft.raw.get("traits", ()):
            draft.fail("jvp", "of an op without the trait linear")
        if len(moving) < len(draft.results):
            draft.fail("jvp", "linear, but not every result is differentiable")
        return "linear"
    tangents = {f"{name}_t" for name in active}
    lists = {f"{name}_t" for name, is_list in draft.operands if is_list}
    formula, mentioned, found = _formula(draft, "jvp", text, tangents, ops, lists)
    is_single = len(draft.results) == 1 and not draft.returns_list
    if found not in ((ARRAY, None) if is_single else ("a list", "a tuple", None)):
        if is_single or draft.returns_list:
            draft.fail("jvp", f"gives {found}", None if is_single else "a list of tangents")
        problem = f"gives {found}, no tuple of {len(moving)} tangents"
        draft.fail("jvp", problem, f"one each of {', '.join(moving)}")
    parts = formula.tree[1] if formula.tree[0] == "tuple" else moving
    if len(parts) != len(moving) and not draft.returns_list:
        problem = f"gives {len(parts)} tangents for {len(moving)} results"
        draft.fail("jvp", problem, f"of {', '.join(moving)}")
    for name in sorted(tangents - mentioned):
        draft.fail("jvp", f"never uses '{name}'")
    return formula


def _formula(
    draft: Draft,
    key: str,
    text: str,
    gradients: set[str],
    ops: Mapping[str, Signature],
    lists: set[str],
) -> tuple[Formula, frozenset[str], str | None]:
    """Return the formula, the names that it mentions, and what it gives."""
    several = {name for name, is_list in draft.operands if is_list}
    several |= set(draft.results) if draft.returns_list else set()
    scope = Scope(
        frozenset(name for name, _ in draft.operands) | frozenset(draft.results),
        frozenset(name for name, _ in draft.attributes),
        frozenset(gradients),
        ops,
        MACROS,
        frozenset(several | lists),
    )
    try:
        formula, mentioned = parse(text, scope)
    except ExpressionError as error:
        hint = suggestion(text, RULES) if key != "jvp" else suggestion(text, ["linear"])
        draft.fail(key, error.problem, hint or error.hint, error.offset)
    return formula, mentioned, gives(formula.tree, scope)


def flops(draft: Draft) -> int | tuple[Any, ...] | None:
    """Return the number of operations an element, or the formula for those of a node."""
    given: int | str | None = draft.raw.get("flops")
    if not isinstance(given, str):
        if given is not None and given < 0:
            draft.fail("flops", f"negative: {given}")
        draft.check_literal("flops", given)
        return given
    tensors = frozenset(name for name, _ in draft.operands) | frozenset(draft.results)
    others = frozenset(name for name, _ in draft.attributes)
    arithmetic = {kind: Signature((2, 2)) for kind in BINARY.values()}
    scope = Scope(tensors, others, frozenset(), arithmetic, METADATA_MACROS)
    try:
        formula, _ = parse(given, scope)
    except ExpressionError as error:
        draft.fail("flops", error.problem, error.hint, error.offset)
    for name in sorted(formula.reads):
        draft.fail("flops", f"reads the value of '{name}'", "sizes and shapes only")
    if gives(formula.tree, scope) not in (ARRAY, None):
        draft.fail("flops", f"gives {gives(formula.tree, scope)}")
    return literal(formula)


def literal(formula: Formula) -> tuple[Any, ...]:
    """Return `formula` as the table holds it."""
    reads, uses = tuple(sorted(formula.reads)), tuple(sorted(formula.uses))
    return (formula.text, formula.tree, reads, uses)
