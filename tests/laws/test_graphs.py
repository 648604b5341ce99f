"""Laws of graphs: f, df and joint fit together, print and parse, and survive the passes."""

import numpy as np

from stagedad.ir import Graph, parse_graph
from stagedad.ops import OPS
from stagedad.run import compile
from stagedad.transform import Capture, cse, dce, differentiate, joint


def pairs(call):
    return call.gradient, call.squared_gradient


def seeds_of(call, gradient):
    """Random cotangents of the real outputs, by output."""
    return {
        j: call.normal(np.empty(value.type.shape, value.type.dtype))
        for j, value in enumerate(gradient.f.outputs[: gradient.f_real_outputs])
        if j in gradient.df_input_vjps
    }


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_joint_is_f_then_df(over):
    def law(call):
        for gradient in pairs(call):
            seeds = seeds_of(call, gradient)
            pair = compile(gradient)
            outputs, pullback = pair(*call.arrays)
            wanted = [*outputs, *pullback(*seeds.values())]
            assert_same(wanted[len(outputs) :], call.pull(gradient, seeds).values())
            both = joint(gradient)
            assert_same(compile(both)(*call.arrays, *seeds.values()), wanted)
            assert_same(pair.joint(*call.arrays, *seeds.values()), wanted)
        return 1

    over(law)


def comes_back(graph):
    graph.verify()
    again = parse_graph(str(graph), graph.constants)
    again.verify()
    assert again == graph
    assert str(again) == str(graph)
    assert again.fingerprint() == graph.fingerprint()
    copy = graph.copy()
    copy.verify()
    assert copy == graph


def test_text_comes_back(over):
    def law(call):
        comes_back(call.graph)
        if CALL_REFUSED(call):
            return 1
        for gradient in pairs(call) if call.carries else [call.gradient]:
            for graph in (gradient.f, gradient.df, joint(gradient), both_as_they_are(gradient)):
                comes_back(graph)
        return 1

    over(law)


def CALL_REFUSED(call):
    """Whether no gradient is to be had."""
    return not call.op.is_complex and any(array.dtype.kind == "c" for array in call.arrays)


def both_as_they_are(gradient):
    """f and df in one graph, without the cleaning that `joint` does."""
    graph = Graph()
    inputs = [graph.add_input(value.type) for value in gradient.f.inputs]
    outputs = graph.inline(gradient.f, inputs)
    real = gradient.f_real_outputs
    given = {j: graph.add_input(outputs[j].type) for j in gradient.df_input_vjps if j < real}
    for j in gradient.df_input_vjps:
        if j >= real:
            given[j] = graph.insert("zeros_like", outputs[j])
    saved = [
        (inputs if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]
    found = graph.inline(gradient.df, [*saved, *(given[j] for j in gradient.df_input_vjps)])
    for value in (*outputs[:real], *found):
        graph.register_output(value)
    return graph


def repeated(call):
    """The op twice, its operands the other way round if it is commutative."""

    def product(graph, inputs, result):
        order = inputs[::-1] if "commutative" in call.op.traits else inputs
        again = graph.insert(call.op.kind, *order, **call.attributes)
        return graph.insert("mul", result, again)

    return call.build(product)


def test_passes_keep_results(over):
    def law(call):
        graph = repeated(call)
        changes = []
        for gradient in (*pairs(call), differentiate(graph, call.flags)):
            both = both_as_they_are(gradient)
            arrays = [*call.arrays, *seeds_of(call, gradient).values()]
            wanted = compile(both)(*arrays)
            for run in (cse, dce, cse, dce):
                before = both.fingerprint()
                changed = run(both)
                assert changed == (before != both.fingerprint())
                changes.append(changed)
                both.verify()
                assert not run(both)
                assert_same(compile(both)(*arrays), wanted)
            assert not changes[-2]
            assert not changes[-1]
        assert any(changes)
        return 1

    over(law)


def flops(graph):
    """Additions that `graph` costs, as the declarations count them; reductions one an element."""
    total = 0
    for node in graph.nodes():
        op = OPS[node.kind]
        size = max((value.type.size for value in (*node.inputs, *node.outputs)), default=0)
        total += size * (op.flops if op.flops is not None else "reduction" in op.traits)
    return total


def test_vjp_costs_at_most_five_functions(over):
    def law(call):
        for flags in [call.flags]:
            gradient = differentiate(call.graph, flags)
            assert flops(gradient.df) <= 5 * flops(gradient.f)
        return 1

    over(law)
