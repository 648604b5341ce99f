"""Steps that say the same in fewer."""

import numpy as np

from stagedad.plan._step cimport Step, make_step
from stagedad.plan._view cimport View
from stagedad.plan.kernels import ufunc_kernel

cdef enum:
    # ORDER STEP: as in stagedad/plan/step.py.
    CALL = 0

cdef object negative = np.negative
cdef object add = np.add


def subtract_negated(list steps):
    """`steps` with x + (-y) as x - y: the same bits, and often one step less.

    The cotangents of subtractions are sums of such terms.  The negation stays
    for other readers, or dies.  It is one no more when something else is written
    to its buffer, as where scattered entries are added to it.
    """
    cdef dict negations = {}            # buffer -> the step that put a negation there
    cdef list result = []
    cdef Step step
    cdef Step made
    cdef object kernel = None
    cdef object ufunc = None
    for item in steps:
        step = item
        if negations:
            for view in step.operands[step.inputs:]:
                negations.pop((<View> view).buffer, None)
        if step.kind == CALL and step.kernel is not None:
            if step.kernel is not kernel:
                kernel = step.kernel
                ufunc = kernel.computes
            if ufunc is negative:
                if (<View> step.operands[0]).dense and (<View> step.operands[1]).dense:
                    negations[(<View> step.operands[1]).buffer] = step
            elif ufunc is add and step.donates and negations:
                made = subtraction(step, negations)
                if made is not None:
                    step = made
        result.append(step)
    return result


cdef Step subtraction(Step step, dict negations):
    """The step as a subtraction; None if it adds no negation."""
    cdef Step made
    cdef Step negation
    cdef View view
    cdef int negated
    cdef int other
    for negated in (1, 0):
        other = 1 - negated
        view = step.operands[negated]
        negation = negations.get(view.buffer)
        if negation is None or not view.covers_same(<View> negation.operands[1]):
            continue
        kernel = ufunc_kernel(np.subtract, step.kernel.dtypes[:2], step.origin.op)
        if step.kernel.ufunc is None and kernel.short is not None:
            kernel = kernel.short
        made = make_step(
            CALL,
            step.origin,
            kernel,
            (step.operands[other], negation.operands[0], step.operands[2]),
            2,
            step.dims,
            (step.strides[other], step.strides[negated], step.strides[2]),
            (),
        )
        made.donates = True
        return made
    return None
