"""Laws of graphs: f, df and joint fit together, print and parse, and survive the passes."""

import numpy as np

from stagedad.ir import Graph, parse_graph
from stagedad.ops import evaluate
from stagedad.run import compile
from stagedad.transform import Capture, cse, dce, differentiate, joint
from stagedad.transform.joint import add_gradients


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


def assert_close(found, wanted):
    """The same up to the order of sums and to loops that differ by memory layout."""
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        if one.dtype.kind not in "fc":
            np.testing.assert_array_equal(one, other)
            continue
        eps = float(np.finfo(one.dtype).eps)
        scale = max(1.0, float(np.max(np.abs(other), initial=0)))
        np.testing.assert_allclose(one, other, rtol=32 * eps, atol=32 * eps * scale)


def test_joint_is_f_then_df(over):
    def law(call):
        for gradient in pairs(call):
            seeds = seeds_of(call, gradient)
            pair = compile(gradient)
            outputs, pullback = pair(*call.arrays)
            wanted = [*outputs, *pullback(*seeds.values())]
            assert_close(wanted[len(outputs) :], call.pull(gradient, seeds).values())
            found = compile(joint(gradient))(*call.arrays, *seeds.values())
            assert_close(found, wanted)
            assert_same(pair.joint(*call.arrays, *seeds.values()), found)
        return 1

    over(law)


def test_gradients_added_in_place_are_the_joint_ones(over):
    def law(call):
        for gradient, source in zip(pairs(call), (call.graph, call.squared), strict=True):
            flags = [i in gradient.df_output_vjps for i in range(len(source.inputs))]
            graph = source.copy()
            outputs, grads = add_gradients(graph, flags)
            for value in (*outputs, *grads):
                graph.register_output(value)
            graph.verify()
            seeds = [
                np.ones(value.type.shape, value.type.dtype)
                for j, value in enumerate(source.outputs)
                if j in gradient.df_input_vjps
            ]
            wanted = compile(joint(gradient))(*call.arrays, *seeds)
            assert_close(compile(graph)(*call.arrays), wanted)
        return 1

    over(law)


def comes_back(graph):
    graph.verify()
    again = parse_graph(str(graph), graph.constants)
    again.verify()
    assert again == graph
    text = str(again)  # numbers without the gaps that passes left
    assert str(parse_graph(text, again.constants)) == text
    assert again.fingerprint() == graph.fingerprint()
    copy = graph.copy()
    copy.verify()
    assert copy == graph


def test_text_comes_back(over):
    def law(call):
        comes_back(call.graph)
        if is_refused(call):
            return 1
        gradient = call.squared_gradient if call.carries else call.gradient
        for graph in (gradient.f, gradient.df, joint(gradient)):
            comes_back(graph)
        return 1

    over(law)


def is_refused(call):
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


def one_by_one(graph, arrays):
    """The outputs of `graph`, each node by its reference: nothing fused or reordered."""
    values = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.nodes():
        operands = tuple(values[value] for value in node.inputs)
        values.update(
            zip(node.outputs, evaluate(node.kind, operands, node.attributes), strict=True)
        )
    return [values[value] for value in graph.outputs]


def repeated(call, laws):
    """The op twice, its operands the other way round if it is commutative."""

    def product(graph, inputs, result):
        order = inputs[::-1] if "commutative" in call.op.traits else inputs
        again = laws.results_of(graph.insert(call.op.kind, *order, **call.attributes))
        return graph.insert("mul", result, again[result.node.outputs.index(result)])

    return call.build(product)


def test_passes_keep_results(over, laws):
    def law(call):
        graph = repeated(call, laws)
        changes = []
        for gradient in (*pairs(call), differentiate(graph, call.flags)):
            both = both_as_they_are(gradient)
            arrays = [*call.arrays, *seeds_of(call, gradient).values()]
            wanted = one_by_one(both, arrays)
            for run in (cse, dce, cse, dce):
                before = both.fingerprint()
                changed = run(both)
                assert changed == (before != both.fingerprint())
                changes.append(changed)
                both.verify()
                assert not run(both)
                assert_same(one_by_one(both, arrays), wanted)
                # A planner may sum in another order when two operands became one.
                assert_close(compile(both)(*arrays), wanted)
            assert not changes[-2]
            assert not changes[-1]
        assert any(changes)
        return 1

    over(law)


# Numbers whose gradient takes what costs more than they do: cofactors by singular values, two
# solves, eigenvectors, singular vectors.
DEARER = {"det": 45, "cholesky": 30, "eigvalsh": 16, "svdvals": 10}


def test_vjp_costs_at_most_five_functions(over):
    def law(call):
        cost = call.gradient.cost()
        # What only moves elements writes them; an empty result is computed from what is read.
        read, written = (
            sum(value.type.size for value in values)
            for values in (call.graph.inputs, call.graph.outputs)
        )
        each = call.op.flops if isinstance(call.op.flops, int) else 1
        most = DEARER.get(call.op.kind, 5)
        assert cost.df <= most * max(cost.f, written or read * max(each, 1))
        return 1

    over(law)
