"""Steps that say the same in fewer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stagedad.plan._step import Step
from stagedad.plan._view import Buffer
from stagedad.plan.kernels import ufunc_kernel
from stagedad.plan.step import CALL


def subtract_negated(steps: Sequence[Step]) -> list[Step]:
    """Return `steps` with x + (-y) as x - y: the same bits, and often one step less.

    The cotangents of subtractions are sums of such terms.  The negation stays
    for other readers, or dies.  It is one no more when something else is written
    to its buffer, as where scattered entries are added to it.
    """
    negations: dict[Buffer, Step] = {}
    result = []
    for step in steps:
        if negations:
            for write in step.operands[step.inputs :]:
                negations.pop(write.buffer, None)
        ufunc = None if step.kernel is None or step.kind != CALL else step.kernel.computes
        if ufunc is np.negative and step.operands[0].dense and step.operands[1].dense:
            negations[step.operands[1].buffer] = step
        elif ufunc is np.add and step.donates and negations:
            step = _subtraction(step, negations) or step
        result.append(step)
    return result


def _subtraction(step: Step, negations: dict[Buffer, Step]) -> Step | None:
    for negated, other in ((1, 0), (0, 1)):
        view = step.operands[negated]
        negation = negations.get(view.buffer)
        if negation is None or not view.covers_same(negation.operands[1]):
            continue
        assert step.kernel is not None
        kernel = ufunc_kernel(np.subtract, step.kernel.dtypes[:2], step.origin.op)
        if step.kernel.ufunc is None and kernel.short is not None:
            kernel = kernel.short
        made = Step(
            CALL,
            step.origin,
            kernel,
            (step.operands[other], negation.operands[0], step.operands[2]),
            2,
            step.dims,
            (step.strides[other], step.strides[negated], step.strides[2]),
        )
        made.donates = True
        return made
    return None
