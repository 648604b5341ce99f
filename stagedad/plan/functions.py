"""Lowering functions of numbers that are no single loop, or a loop of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagedad.ops import OPS
from stagedad.plan._emitter import Emitter
from stagedad.plan._view import View
from stagedad.plan.rule import Operands, Results, rule

_INTEGERS = (
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_count", "invert", "left_shift",
    "right_shift", "gcd", "lcm",
)  # fmt: skip


@rule(*_INTEGERS)
def integers(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """Run the ufunc's loop."""
    ufunc = OPS[emitter.origin.op].ufunc
    assert ufunc is not None
    return (emitter.elementwise(ufunc, reads, results[0]),)


@rule("softplus")
def softplus(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """max(x, 0) + log1p(exp(-abs(x))), whose exponential never overflows."""
    (result,) = results
    x = view = emitter.cast(reads[0], result.dtype)
    for ufunc in (np.absolute, np.negative, np.exp, np.log1p):
        view = emitter.elementwise(ufunc, (view,), result)
    zero = emitter.number(0, result.dtype)
    kept = emitter.elementwise(np.maximum, (x, zero), result)
    return (emitter.elementwise(np.add, (kept, view), result),)


@rule("relu")
def relu(
    emitter: Emitter, reads: Operands, attributes: Mapping[str, Any], results: Results
) -> Sequence[View]:
    """max(x, 0)."""
    (result,) = results
    x = emitter.cast(reads[0], result.dtype)
    zero = emitter.number(0, result.dtype)
    return (emitter.elementwise(np.maximum, (x, zero), result),)
