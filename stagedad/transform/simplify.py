"""Algebraic simplification: rewrites that change no bit of any result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stagedad.ir import Graph, Node, Value
from stagedad.ops import OPS
from stagedad.transform import _passes
from stagedad.transform._passes import ANY, SAME_TYPE, TWINS, UNIT, ZERO
from stagedad.transform.registry import graph_pass

__all__ = ["simplify"]

Rule = Callable[[Node], "Value | None"]

_rules: dict[str, list[tuple[frozenset[str], Rule]]] = {}
_wanted: dict[str, set[str | tuple[str, ...]]] = {}


def _rule(kind: str, *triggers: str | tuple[str, ...]) -> Callable[[Rule], Rule]:
    """Declare a rule for nodes of `kind`, tried where one of `triggers` holds.

    A trigger is a kind that produces an operand, a tuple of kinds that produce the first
    operands, or one of ANY, ZERO, UNIT, SAME_TYPE and TWINS.
    """
    producers: set[str] = set()
    for each in triggers:
        if isinstance(each, tuple):
            producers.update(each)
        elif each not in (ANY, SAME_TYPE, TWINS):
            producers.add("constant" if each in (ZERO, UNIT) else each)

    def declare(rule: Rule) -> Rule:
        _rules.setdefault(kind, []).append((frozenset(producers), rule))
        _wanted.setdefault(kind, set()).update(triggers)
        return rule

    return declare


@graph_pass
def simplify(graph: Graph) -> bool:
    """Apply the rules of this module until none applies.  Returns whether one did.

    Before:  graph(%a : f64[3], %b : f64[3]) {
               %2 : f64[3] = neg(%b)
               %3 : f64[3] = add(%a, %2)
               return (%3)
             }
    After:   graph(%a : f64[3], %b : f64[3]) {
               %2 : f64[3] = neg(%b)
               %4 : f64[3] = sub(%a, %b)
               %3 : f64[3] = add(%a, %2)
               return (%4)
             }

    Only what IEEE arithmetic holds exactly equal is rewritten, so adding 0.0 stays (it turns
    -0.0 into 0.0), except for a structural zero.  Nodes that lose their users stay behind,
    dead, for `dce`.  Types must be known.
    """
    changed, again = False, True
    while again:
        again = False
        for node in _passes.hits(graph, _triggers):
            outputs = node.outputs
            if len(outputs) != 1 or not outputs[0].has_uses() or outputs[0].type is None:
                continue
            inputs, kind = node.inputs, node.kind
            if len(inputs) != len(OPS[kind].arguments):
                continue  # a broken graph, for `verify` to tell
            kinds = [value.node.kind for value in inputs]
            for producers, rule in _rules[kind]:
                if producers and producers.isdisjoint(kinds):
                    continue
                value = rule(node)
                if value is not None and value.type is outputs[0].type:
                    outputs[0].replace_all_uses_with(value)
                    changed = again = True
                    break
    return changed


def _made(node: Node, kind: str, *operands: Value, **attributes: Any) -> Value:
    """A new node in the place of `node`."""
    made = node.graph.create(
        kind, *operands, location=node.location, scope=node.scope, **attributes
    ).insert_before(node)
    made.stage = made.output.stage = node.stage
    return made.output


def _number(value: Value) -> complex | None:
    """The number that a constant holds, where its contents cannot change."""
    node = value.node
    if node.kind != "constant" or isinstance(node.attributes["value"], np.ndarray):
        return None
    number = node.attributes["value"]
    return number if isinstance(number, (int, float, complex)) else None


def _is_structural_zero(value: Value) -> bool:
    return value.node.kind == "constant" and bool(value.node.attributes["is_zero"])


def _is_minus_zero(value: Value) -> bool:
    number = _number(value)
    return isinstance(number, float) and number == 0 and bool(np.signbit(number))


def _negated(value: Value, node: Node) -> Value | None:
    """x where the value is neg(x), taken in the dtype in which `node` computes.

    In a narrower one an integer's negation wraps: -int8(-128) is -128.
    """
    if value.node.kind != "neg" or value.type is None:
        return None
    return value.node.inputs[0] if value.type.dtype == node.output.type.dtype else None  # type: ignore[union-attr]


def _is_plain(node: Node) -> bool:
    """Whether add or sub has alpha 1."""
    return bool(node.attributes["alpha"] == 1)


@_rule("add", ZERO, "neg")
def _add(node: Node) -> Value | None:
    left, right = node.inputs
    if not _is_plain(node):
        return None
    for zero, other in ((left, right), (right, left)):
        if _is_structural_zero(zero) or _is_minus_zero(zero):
            return other
    if (subtracted := _negated(right, node)) is not None:
        return _made(node, "sub", left, subtracted)
    if (subtracted := _negated(left, node)) is not None:
        return _made(node, "sub", right, subtracted)
    return None


@_rule("sub", ZERO, "neg")
def _sub(node: Node) -> Value | None:
    left, right = node.inputs
    if not _is_plain(node):
        return None
    number = _number(right)
    if isinstance(number, (int, float)) and number == 0 and not _is_minus_zero(right):
        return left
    if (added := _negated(right, node)) is not None:
        return _made(node, "add", left, added)
    return None


@_rule("mul", UNIT, ("neg", "neg"))
def _mul(node: Node) -> Value | None:
    left, right = node.inputs
    for factor, other in ((left, right), (right, left)):
        number = _number(factor)
        if isinstance(number, (int, float)) and not _is_complex(node):
            if number == 1:
                return other
            if number == -1 and other.type is node.output.type:
                return _made(node, "neg", other)
    first, second = _negated(left, node), _negated(right, node)
    if first is not None and second is not None:
        return _made(node, "mul", first, second)
    return None


@_rule("mul0", UNIT)
def _mul0(node: Node) -> Value | None:
    # Not mul0(g, 1), which makes 0.0 of a g of -0.0.
    cotangent, factor = node.inputs
    number = _number(cotangent)
    if isinstance(number, (int, float)) and number == 1 and not _is_complex(node):
        return factor
    return None


@_rule("div", UNIT)
def _div(node: Node) -> Value | None:
    left, right = node.inputs
    number = _number(right)
    if isinstance(number, (int, float)) and number == 1 and not _is_complex(node):
        return left
    return None


@_rule("neg", "neg")
def _neg(node: Node) -> Value | None:
    return _negated(node.inputs[0], node)


@_rule("where", TWINS)
def _where(node: Node) -> Value | None:
    _, yes, no = node.inputs
    return yes if yes == no else None


@_rule("astype", SAME_TYPE)
@_rule("reshape", SAME_TYPE)
@_rule("broadcast_to", SAME_TYPE)
@_rule("sum_to", SAME_TYPE)
@_rule("split", SAME_TYPE)
def _same_type(node: Node) -> Value | None:
    # The rule gives the operand; `simplify` checks that the types are one.  A split into one
    # part is all that it sees: it passes over nodes of several outputs.
    return node.inputs[0]


@_rule("copy", SAME_TYPE)
def _copy(node: Node) -> Value | None:
    return node.inputs[0]


@_rule("conj", SAME_TYPE)
@_rule("real", SAME_TYPE)
def _real(node: Node) -> Value | None:
    return None if _is_complex(node) else node.inputs[0]


@_rule("reshape", "reshape", "expand_dims", "squeeze")
def _reshape(node: Node) -> Value | None:
    inner = node.inputs[0].node
    return _made(node, "reshape", inner.inputs[0], shape=node.output.type.shape)  # type: ignore[union-attr]


@_rule("squeeze", "expand_dims", "reshape")
@_rule("expand_dims", "squeeze", "reshape")
def _back_again(node: Node) -> Value | None:
    return node.inputs[0].node.inputs[0]


@_rule("transpose", "transpose")
def _transpose(node: Node) -> Value | None:
    inner = node.inputs[0].node
    if inner.kind != "transpose":
        return None
    first, second = _axes(inner), _axes(node)
    both = tuple(first[axis] for axis in second)
    if both == tuple(range(len(both))):
        return inner.inputs[0]
    return _made(node, "transpose", inner.inputs[0], axes=both)


@_rule("slice", SAME_TYPE)
def _slice(node: Node) -> Value | None:
    # A slice that keeps every element gives the operand's type only if it is the operand,
    # or the operand reversed.
    steps = node.attributes["step"]
    return node.inputs[0] if all(step == 1 for step in steps) else None


def _axes(node: Node) -> tuple[int, ...]:
    axes = node.attributes["axes"]
    rank = len(node.output.type.shape)  # type: ignore[union-attr,arg-type]
    if axes is None:
        return tuple(reversed(range(rank)))
    return tuple(axis % rank for axis in axes)


def _is_complex(node: Node) -> bool:
    """Whether complex arithmetic is involved, where 1 * x need not keep the sign of zeros."""
    types = [value.type for value in (*node.inputs, *node.outputs)]
    return any(type_ is None or type_.dtype.kind == "c" for type_ in types)


assert set(_rules) <= set(OPS), "a rule for a kind that is not in the table"
_triggers = _passes.Triggers(_wanted)
