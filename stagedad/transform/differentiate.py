"""`differentiate`: split a graph into f and its vjp df."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from stagedad.errors import NotDifferentiable
from stagedad.ir import Graph, Node
from stagedad.ops import OPS
from stagedad.transform._reverse import TEMPLATES_LIMIT, Sweep
from stagedad.transform.dce import dce
from stagedad.transform.gradient import Capture, Gradient
from stagedad.transform.templates import check_signature, rule_codes, specialise

__all__ = ["NAN_POLICIES", "TEMPLATES_LIMIT", "differentiate", "is_differentiable"]

NAN_POLICIES = ("masked", "strict")

# One cache of templates a policy; keys are kinds, masks, types and attributes.
_templates: dict[str, dict[Any, Any]] = {policy: {} for policy in NAN_POLICIES}


def differentiate(
    graph: Graph,
    requires_grad: Sequence[bool],
    *,
    consume: bool = False,
    save: str | int = "all",
    nan_policy: str = "masked",
) -> Gradient:
    """Split `graph` into f, which also yields what df needs, and df, its vjp.

    `requires_grad` has one flag an input.  `graph` is copied, unless `consume` gives it away:
    it is emptied then and says so when used.  The contract of the pair is on `Gradient`.

    `save="all"` captures every value that df reads (constants are copied into df instead).
    `nan_policy="masked"`: where an incoming cotangent element is exactly 0, its product with a
    non-finite partial derivative of a singular op is 0; `"strict"` is IEEE arithmetic.

    Shapes: the cotangent of a value has its shape and dtype.
    Cost:   O(nodes + uses); the order of additions is that of the nodes.
    Raises: ValueError if the flags do not fit the inputs or the graph is not wholly at stage 0;
            TypeError for a flag on an integer or boolean input; NotDifferentiable, naming op,
            argument and line, if a cotangent reaches a node that has no rule.  The graph is
            untouched then, also under `consume`.
    Source: Pearlmutter & Siskind 2008, Reverse-mode AD in a functional framework, section 3.
    """
    flags = checked_flags("differentiate", graph, requires_grad)
    if save != "all":
        raise ValueError(f"differentiate: save={save!r} is not built\nhint: built: 'all'")
    checked_policy("differentiate", nan_policy)
    joint = graph.copy()
    dce(joint)
    sweep = new_sweep(joint, nan_policy)
    real_outputs = len(graph.outputs)
    sweep.activity(flags)
    sweep.captures(flags)
    sweep.emit(flags)
    if os.environ.get("STAGEDAD_CHECK") == "1":
        joint.verify()
    f, df, captured = sweep.split(real_outputs)
    if os.environ.get("STAGEDAD_CHECK") == "1":
        f.verify()
        df.verify()
    # Conjugation is left out where the dtype is unknown; programs check this flag.
    df.assumes_real = joint.assumes_real or any(v.type is None for v in joint.inputs)
    if consume:
        graph.take_over()
    return Gradient(
        f=f,
        df=df,
        f_real_outputs=real_outputs,
        df_input_captures=[
            Capture(Capture.INPUT if from_input else Capture.OUTPUT, offset)
            for from_input, offset in captured
        ],
        df_input_vjps=sweep.input_vjps,
        df_output_vjps=sweep.output_vjps,
    )


def new_sweep(graph: Graph, nan_policy: str, *, whole: bool = False) -> Sweep:
    """Return the reverse sweep over `graph`, which it will extend."""
    rule = partial(specialise, masked=nan_policy == "masked")
    return Sweep(graph, rule_codes, rule, _templates[nan_policy], whole)


def is_differentiable(node: Node) -> bool:
    """Return whether a cotangent can pass through `node`, with its operand types.

    A structural zero (floor) counts: its derivative is known.  Integer and boolean results do
    not carry cotangents.
    """
    outputs = tuple(value.type for value in node.outputs)
    if node.kind not in OPS or not any(t is None or t.is_inexact for t in outputs):
        return False
    inputs = tuple(value.type for value in node.inputs)
    attributes = node.attributes.explicit()
    codes, _, is_complex, _ = rule_codes(node.kind)
    if not is_complex and any(t is not None and t.dtype.kind == "c" for t in inputs):
        return False
    # The last argument may be a list, whose rule is that of each operand left.
    rules = [codes[min(i, len(codes) - 1)] for i in range(len(inputs))] if codes else []
    wanted = 0
    is_zero = False
    for i, (rule, type_) in enumerate(zip(rules, inputs, strict=True)):
        if rule == 3 and (type_ is None or type_.is_inexact):
            return False
        if type_ is None or type_.is_inexact:
            wanted |= (rule == 0) << i
            is_zero |= rule == 1
    try:
        if wanted:
            present = (1 << len(outputs)) - 1
            specialise(node.kind, attributes, inputs, outputs, wanted, present)
        else:
            check_signature(node.kind, attributes, inputs, outputs)
    except NotDifferentiable:
        return False
    return is_zero or wanted != 0


def checked_policy(caller: str, nan_policy: str) -> None:
    """Raise ValueError unless `nan_policy` is one there is."""
    if nan_policy not in NAN_POLICIES:
        raise ValueError(f"{caller}: nan_policy={nan_policy!r}\nhint: one of {NAN_POLICIES}")


def checked_flags(caller: str, graph: Graph, flags: Sequence[bool]) -> list[bool]:
    """Return the flags as a list, one an input, for a graph that is wholly at stage 0.

    Raises: TypeError or ValueError, as `differentiate` says.
    """
    if not isinstance(graph, Graph):
        raise TypeError(
            f"{caller}: a Graph is wanted: {type(graph).__name__}\n"
            "hint: sd.trace(f, *args) makes one; sd.grad takes the function itself"
        )
    inputs = graph.inputs
    try:
        found = list(flags)
    except TypeError:
        raise TypeError(
            f"{caller}: one flag an input is wanted: {type(flags).__name__}\n"
            f"hint: [True] * {len(inputs)}"
        ) from None
    if len(found) != len(inputs):
        raise ValueError(f"{caller}: {len(inputs)} inputs: {len(found)} flags given")
    for i, flag in enumerate(found):
        if not isinstance(flag, (bool, int)) and type(flag).__name__ not in ("bool", "bool_"):
            raise TypeError(f"{caller}: flag {i} is not a bool: {type(flag).__name__}")
    stages = [value.stage for value in inputs]
    stages += [graph.stage] if len(graph) == 0 else [next(reversed(graph)).stage]
    if graph.stage or any(stages):
        raise ValueError(f"{caller}: the graph has stage {max(graph.stage, *stages)}, not 0")
    for i, (value, flag) in enumerate(zip(inputs, found, strict=True)):
        if flag and value.type is not None and not value.type.is_inexact:
            raise TypeError(
                f"{caller}: input {i} (%{value.name or value.id}) is {value.type}, which "
                "carries no gradient\nhint: convert it with astype(float), or pass False for it"
            )
    return [bool(flag) for flag in found]
