"""Derivative rules as templates: a formula, run once on slots instead of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stagedad.errors import NotDifferentiable
from stagedad.ops import OPS, infer
from stagedad.ops.formula import ZERO, bind, named_cotangents, vjp
from stagedad.ops.registry import advice
from stagedad.transform._template import Template
from stagedad.types import TensorType

__all__ = ["Recorder", "Slot", "check_signature", "rule_codes", "specialise"]

Types = tuple["TensorType | None", ...]

# ORDER RULES: as the enum in _reverse.pyx.
_CODES = {"formula": 0, "zero": 1, "non_differentiable": 2, "not_implemented": 3}
_NONE = -1


class Slot:
    """Stands for a value that will exist when the template is instantiated."""

    __slots__ = ("index", "type")

    def __init__(self, index: int, type_: TensorType | None) -> None:
        self.index = index
        self.type = type_


class Recorder:
    """An emitter that writes down what a formula emits."""

    def __init__(self, first_slot: int) -> None:
        self.first_slot = first_slot
        self.made: dict[tuple[Any, ...], Any] = {}
        self.steps: list[tuple[str, tuple[int, ...], dict[str, Any], Types]] = []
        self.next_slot = first_slot

    def emit(self, kind: str, operands: Sequence[Slot], attributes: dict[str, Any]) -> Any:
        """Record a node; returns the slot of its output, or a tuple of them.

        One that was recorded before is not recorded again: the formulas of two arguments may
        have parts in common.
        """
        types = infer(kind, tuple(operand.type for operand in operands), attributes)
        own = {k: v for k, v in attributes.items() if not _is_default(kind, k, v)}
        indices = tuple(operand.index for operand in operands)
        # By their text: 1, 1.0 and True are equal, and so are 0.0 and -0.0.  That of a long
        # array leaves out its middle, so arrays count as themselves.
        held = tuple(id(value) for value in own.values() if isinstance(value, np.ndarray))
        key = (kind, indices, held, repr(sorted(own.items())))
        if key in self.made:
            return self.made[key]
        self.steps.append((kind, indices, own, types))
        slots = tuple(Slot(self.next_slot + i, type_) for i, type_ in enumerate(types))
        self.next_slot += len(types)
        self.made[key] = slots[0] if len(slots) == 1 else slots
        return self.made[key]

    def template(self, results: Sequence[int], primal_slots: int) -> Template:
        """Return the steps that the results need, renumbered without the others."""
        needed = set(results)
        kept = []
        slot = self.next_slot
        for kind, operands, attributes, types in reversed(self.steps):
            slot -= len(types)
            if needed.intersection(range(slot, slot + len(types))):
                kept.append((slot, (kind, operands, attributes, types)))
                needed.update(operands)
        renumbered = {index: index for index in range(_NONE, self.first_slot)}
        steps = []
        slot = self.first_slot
        for old, (kind, operands, attributes, types) in reversed(kept):
            steps.append((kind, tuple(renumbered[i] for i in operands), attributes, types))
            for i in range(len(types)):
                renumbered[old + i] = slot
                slot += 1
        reads = sorted(
            {i for _, operands, _, _ in steps for i in operands if i < primal_slots}
            | {i for i in results if 0 <= i < primal_slots}
        )
        return Template(self.first_slot, steps, [renumbered[i] for i in results], reads)


def specialise(
    kind: str,
    attributes: dict[str, Any],
    inputs: Types,
    outputs: Types,
    wanted: int,
    present: int,
    *,
    masked: bool = True,
) -> Template:
    """Return the rule of a node: bit i of `wanted` asks for the cotangent of operand i.

    Bit j of `present` says that output j has a cotangent; the others are structural zeros.
    Raises: NotDifferentiable, naming op and argument, if a wanted operand has no rule.
    """
    op = OPS.get(kind)
    if op is None:
        raise NotDifferentiable(
            f"{kind}: is not an op of the table, so has no derivative",
            op=kind,
            hint=advice(kind),
        )
    check_signature(kind, attributes, inputs, outputs)
    primal = len(inputs) + len(outputs)
    recorder = Recorder(primal + len(outputs))
    operands = [Slot(i, type_) for i, type_ in enumerate(inputs)]
    results = [Slot(len(inputs) + j, type_) for j, type_ in enumerate(outputs)]
    cotangents = [
        Slot(primal + j, type_) if present >> j & 1 else ZERO for j, type_ in enumerate(outputs)
    ]
    env = bind(op, operands, attributes, results, **named_cotangents(op, cotangents))
    found = [_NONE] * len(inputs)
    for number, argument in enumerate(op.arguments):
        count = len(inputs) - number if argument.is_list else 1
        flags = [bool(wanted >> i & 1) for i in range(number, number + count)]
        if not any(flags):
            continue
        try:
            each = flags if argument.is_list else None
            parts = vjp(op, argument.name, env, recorder, masked, each)
        except NotDifferentiable as error:
            raise _named(error, kind, argument.name) from None
        for i, part in enumerate(parts if argument.is_list else (parts,), number):
            if flags[i - number] and part is not ZERO:
                found[i] = part.index
    return recorder.template(found, primal)


def check_signature(
    kind: str, attributes: dict[str, Any], inputs: Types, outputs: Types
) -> None:
    """Raise NotDifferentiable if an op of the table does not take or give so much.

    A node that was edited may have operands or results too few or too many; a rule would
    read past them, or ignore some in silence.
    """
    try:
        count = len(infer(kind, inputs, attributes))
    except (TypeError, ValueError) as error:
        raise NotDifferentiable(str(error), op=kind) from error
    if count != len(outputs):
        raise NotDifferentiable(f"{kind}: gives {count} results: {len(outputs)}", op=kind)


def _named(error: NotDifferentiable, kind: str, argument: str) -> NotDifferentiable:
    """Return `error` as one of op `kind`: a rule may have met it in an op that it uses."""
    text = str(error)
    if error.op is not None and error.op != kind:
        text = text.replace(f"{error.op}: ", f"{kind}: ", 1)
    made = NotDifferentiable(text, op=kind, argument=error.argument or argument)
    made.hint = error.hint
    return made


def rule_codes(kind: str) -> tuple[bytes, bool, bool, tuple[str, ...]]:
    """Return the rule of each argument, if the last is a list, and if complex is right.

    The last are attributes that the rule hands on as they are, deciding no type by them: one
    template does for all their values.

    An op that is not in the table has arguments without a rule, as many as there are.
    """
    op = OPS.get(kind)
    if op is None:
        return bytes([_CODES["not_implemented"]]), True, True, ()
    codes = bytes(_CODES[argument.rule] for argument in op.arguments)
    does_not_vary = not op.is_differentiable and "zero" not in {a.rule for a in op.arguments}
    return (
        codes,
        bool(op.arguments) and op.arguments[-1].is_list,
        op.is_complex or does_not_vary,
        tuple(op.facts.get("forwards", "").split()),
    )


def _is_default(kind: str, name: str, value: object) -> bool:
    default = OPS[kind].attributes.get(name)
    return type(default) is type(value) and bool(default == value)
