"""Laws of second order: differentiating df, through what it captures or as one program."""

import numpy as np

from stagedad.run import compile
from stagedad.transform import differentiate, joint


def flags_of(graph, known):
    """Which inputs to move; `known` says it of the first ones."""
    rest = [value.type.is_inexact for value in graph.inputs[len(known) :]]
    return [*known, *rest]


def twice(call, gradient):
    """Check the vjp of df: captures, cotangents, temporaries, each moved by itself."""
    arrays = call.arrays
    outputs = compile(gradient).f(*arrays)
    seeds = [call.normal(outputs[j]) for j in gradient.df_input_vjps]
    saved = [
        arrays[offset] if kind.name == "INPUT" else outputs[offset]
        for kind, offset in gradient.df_input_captures
    ]
    known = [
        call.flags[offset] if kind.name == "INPUT" else outputs[offset].dtype.kind in "fc"
        for kind, offset in gradient.df_input_captures
    ]
    second = differentiate(gradient.df, flags_of(gradient.df, known))
    assert second.f_real_outputs == len(gradient.df.outputs)
    return call.check(second, [*saved, *seeds])


def test_second_order_through_df(over):
    def law(call):
        if not call.carries:
            return 1
        return twice(call, call.gradient) and twice(call, call.squared_gradient)

    over(law)


def test_second_order_through_the_joint_program(over):
    def law(call):
        if not call.carries:
            return 1
        for gradient in (call.gradient, call.squared_gradient):
            both = joint(gradient)
            seeds = [
                call.normal(np.empty(value.type.shape, value.type.dtype))
                for value in both.inputs[len(call.arrays) :]
            ]
            assert call.check(
                differentiate(both, flags_of(both, call.flags)), [*call.arrays, *seeds]
            )
        return 1

    over(law)
