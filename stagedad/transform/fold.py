"""Constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagedad.ir import Graph, Node
from stagedad.ops import OPS, evaluate
from stagedad.ops.reference import FUNCTIONS
from stagedad.transform import _passes
from stagedad.transform.registry import graph_pass

__all__ = ["fold"]

_LARGEST = 16  # elements of a folded result; a larger one costs more memory than time
_NEVER = {"effect", "random"}
_constant = FUNCTIONS["constant"]
_DEFAULTS = OPS["constant"].attributes
_PYTHON = [np.dtype(kind) for kind in (float, np.int64, complex, bool)]  # those of its numbers
_TRIGGERS = _passes.Triggers(
    {
        kind: [_passes.NUMBERS]
        for kind, op in OPS.items()
        if op.arguments and not op.traits & _NEVER
    }
)


@graph_pass
def fold(graph: Graph) -> bool:
    """Compute nodes that read nothing but numbers.  Returns whether there were any.

    Before:  graph(%a : f64[]) {
               %1 : f64[] = constant[value=2.0]()
               %2 : f64[] = exp(%1)
               %3 : f64[] = mul(%a, %2)
               return (%3)
             }
    After:   graph(%a : f64[]) {
               %1 : f64[] = constant[value=2.0]()
               %4 : f64[] = constant[value=7.38905609893065]()
               %2 : f64[] = exp(%1)
               %3 : f64[] = mul(%a, %4)
               return (%3)
             }

    Arrays are held by reference and may change, so they are not folded: only numbers are.  The
    node stays behind, dead, for `dce`.  The arithmetic is NumPy's, so results do not change.
    """
    changed = False
    for node in _passes.hits(graph, _TRIGGERS):
        if _is_foldable(node):
            changed |= _fold(graph, node)
    return changed


def _is_foldable(node: Node) -> bool:
    outputs = node.outputs
    if len(outputs) != 1 or not outputs[0].has_uses():
        return False
    type_ = outputs[0].type
    return (
        type_ is not None
        and type_.size is not None
        and type_.size <= _LARGEST
        and type_.device == "cpu"
        and all(_is_number(value.node) for value in node.inputs)
    )


def _is_number(node: Node) -> bool:
    return node.kind == "constant" and not isinstance(node.attributes["value"], np.ndarray)


def _held(constant: Node) -> np.ndarray[Any, Any]:
    held: np.ndarray[Any, Any] = _constant(**{**_DEFAULTS, **constant.attributes.explicit()})
    return held


def _fold(graph: Graph, node: Node) -> bool:
    (value,) = node.outputs
    try:
        with np.errstate(all="ignore"):
            operands = [_held(v.node) for v in node.inputs]
        (result,) = evaluate(node.kind, operands, node.attributes.explicit())
    except (ValueError, TypeError, IndexError, OverflowError):
        return False  # the program will say what is wrong, when it runs
    if result.dtype != value.type.dtype or result.shape != value.type.shape:  # type: ignore[union-attr]
        return False
    flat = result.ravel()
    first = flat[:1].tobytes()
    if flat.tobytes() != first * flat.size:
        return False  # no number
    attributes: dict[str, Any] = {"shape": result.shape} if result.shape else {}
    if result.dtype not in _PYTHON:
        attributes["dtype"] = result.dtype
    filler = flat[0] if result.size else result.dtype.type(0)
    constant = graph.create(
        "constant",
        value=filler.item(),
        location=node.location,
        scope=node.scope,
        **attributes,
    )
    constant.insert_before(node)
    constant.stage = constant.output.stage = node.stage
    value.replace_all_uses_with(constant.output)
    return True
