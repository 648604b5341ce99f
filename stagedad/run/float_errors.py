"""What `np.errstate` asks to be done about floating-point errors of a run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stagedad.plan.step import REDUCE

if TYPE_CHECKING:
    from stagedad.plan import Step

KINDS: Final = (
    (1, "divide", "divide by zero"),
    (2, "over", "overflow"),
    (4, "under", "underflow"),
    (8, "invalid", "invalid value"),
)
"""NumPy's bit, its name in a policy and its words, in the order in which NumPy looks."""

_warned: dict[Any, Any] = {}
"""The registry of warnings: under the filter "default" a line warns once."""


def report(found: Iterable[tuple[Step, int]]) -> None:
    """Do what the policy in force says about steps and the bits of their errors, in order.

    Raises: FloatingPointError in NumPy's words, with the node and the user's line; NameError
            if a function is to be called and none is set; what that function raises.
    """
    policy: dict[str, str] = np.geterr()  # type: ignore[assignment]
    for step, bits in found:
        for bit, name, words in KINDS:
            if bits & bit:
                _act(policy[name], step, words, bits)


def _act(action: str, step: Step, words: str, bits: int) -> None:
    if action == "ignore":
        return
    message = f"{words} encountered in {_numpy_name(step)}: {step.origin}"
    if action == "raise":
        raise FloatingPointError(message)
    if action == "warn":
        if step.origin.location is None:
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        else:
            warnings.warn_explicit(
                message, RuntimeWarning, *step.origin.location, registry=_warned
            )
    elif action == "print":
        print(f"Warning: {message}", file=sys.stderr)
    else:
        handler: Any = np.geterrcall()
        if handler is None:
            raise NameError(f"no function is set, by np.seterrcall, for: {message}")
        if action == "call":
            handler(words, bits)
        else:
            handler.write(f"Warning: {message}\n")


def _numpy_name(step: Step) -> str:
    """Return what NumPy would call the loop in this message."""
    kernel = step.kernel
    if kernel is None:
        return step.origin.op
    if kernel.computes is not None:
        over_itself = step.operands[0] is step.operands[-1] and not step.donates
        return "reduce" if step.kind == REDUCE or over_itself else kernel.computes.__name__
    return "cast" if kernel.name.startswith("cast_") else step.origin.op
