"""Laws of second order: differentiating df, through what it captures or as one program."""

import dataclasses

import numpy as np
import pytest

from stagedad.ops import OPS
from stagedad.ops.op import Formula
from stagedad.run import compile
from stagedad.transform import differentiate, joint, tangent


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


def second_derivatives(laws, call):
    """D2 <u, f> along v and w in each order of modes, and what differences give.

    Also the scale of the sums and the spacing of the coarsest numbers in them.

    f is the op, squared: of a linear op alone they would be 0.
    """
    graph, arrays = call.build(laws.square_of_result), list(call.arrays)
    flags = call.flags
    moving = [i for i, flag in enumerate(flags) if flag]
    u = [call.normal(np.empty(y.type.shape, y.type.dtype)) for y in graph.outputs]
    v, w = ([call.normal(arrays[i]) for i in moving] for _ in "vw")

    def along(ways, found):
        return sum(map(laws.inner, ways, found))

    # The last outputs of each program are the derivatives asked for.
    back, ahead = joint(differentiate(graph, flags)), tangent(graph, flags)
    found = {}
    for name, once, ways, wanted in (("r", back, u, v), ("f", ahead, v, u)):
        still = [False] * len(ways)
        first = len(once.outputs) - len(wanted)
        again = differentiate(once, [*flags, *still])
        seeds = {first + k: each for k, each in enumerate(wanted)}
        pulled = call.pull(again, seeds, [*arrays, *ways])
        found[f"r{name}"] = along(w, [pulled[i] for i in moving])
        moved = compile(tangent(once, [*flags, *still]))(*arrays, *ways, *w)
        found[f"f{name}"] = along(wanted, moved[-len(wanted) :])

    coarse = laws.epsilon(*arrays, *u)
    step = coarse ** (1 / 3)
    slopes = []
    for by in (step, -step):
        points = list(arrays)
        for i, way in zip(moving, w, strict=True):
            points[i] = arrays[i] + by * way
        slopes.append(compile(back)(*points, *u)[-len(v) :])
    slopes = [(high - low) / (2 * step) for high, low in zip(*slopes, strict=True)]
    return found, along(v, slopes), max(1, sum(map(laws.size, v, slopes))), coarse


def check_modes(laws, call):
    """Check that the four orders of modes give what differences give."""
    found, wanted, scale, coarse = second_derivatives(laws, call)
    assert sorted(found) == ["ff", "fr", "rf", "rr"]
    for one in found.values():
        np.testing.assert_allclose(one, wanted, rtol=0, atol=1000 * coarse ** (2 / 3) * scale)
        np.testing.assert_allclose(one, found["rr"], rtol=0, atol=2000 * coarse * scale)
    return 1


def test_second_order_in_all_four_modes(over, laws):
    over(lambda call: check_modes(laws, call) if call.carries else 1)


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("kind", ["exp", "tanh", "div", "mul"])
def test_a_partial_that_is_held_still_is_caught(kind, laws, monkeypatch):
    """Right at first order, wrong at second: of a partial its value is not all."""
    op, (name, partial) = OPS[kind], next(iter(OPS[kind].partials.items()))
    tree = ("call", "stop_gradient", (partial.tree,), ())
    still = Formula("", tree, partial.reads, partial.uses | {"stop_gradient"})
    wrong = dataclasses.replace(op, partials={**op.partials, name: still})
    monkeypatch.setitem(OPS, kind, wrong)
    call = next(each for each in laws.make_calls(wrong, "f64") if each.layout == "4-d")
    call.check(call.gradient)
    for check in (lambda: check_modes(laws, call), lambda: twice(call, call.squared_gradient)):
        with pytest.raises(AssertionError):
            check()
