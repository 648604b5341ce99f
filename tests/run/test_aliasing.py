"""Outputs share memory with nothing: inputs, what constants hold, or each other."""

from itertools import combinations

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.ops.samples import active, samples
from stagedad.run import compile
from stagedad.transform import differentiate
from stagedad.types import TensorType


def views(graph, value, type):
    """Values that need no computing: the same memory, seen otherwise."""
    yield value
    yield value
    yield graph.insert("copy", value)
    yield graph.insert("stop_gradient", value)
    yield graph.insert("transpose", value)
    yield graph.insert("reshape", value, shape=(-1,))
    yield graph.insert("expand_dims", value, axis=0)
    yield graph.insert("broadcast_to", value, shape=(2, *type.shape))
    slices = {"start": (0,) * type.ndim, "stop": type.shape, "step": (1,) * type.ndim}
    yield graph.insert("slice", value, **slices)
    yield graph.insert("sum_to", value, shape=type.shape)
    yield graph.insert("slice_add", value, value, **slices)
    if type.ndim and type.shape[0]:
        yield from graph.insert("split", value, indices_or_sections=(1, 1))


def assert_apart(outputs, others):
    for one, other in combinations([*outputs, *others], 2):
        if any(one is output for output in outputs):
            assert not np.may_share_memory(one, other)
    for output in outputs:
        assert type(output) is np.ndarray
        assert output.flags.owndata
        assert output.flags.c_contiguous
        assert output.flags.writeable
        assert output.flags.aligned


@pytest.mark.parametrize("dtype", ["f8", "c8", "?"])
@pytest.mark.parametrize("kind", list(OPS))
def test_results_of_every_op_and_views_of_them_are_apart(kind, dtype):
    for sample in samples(kind, dtype):
        graph, held = Graph(), np.arange(3.0)
        inputs = [graph.add_input(TensorType.of(array)) for array in sample.arrays]
        results = graph.insert(kind, *inputs, **sample.attributes)
        results = results if isinstance(results, tuple) else (results,)
        outputs = [*inputs, graph.constant(held), graph.constant(2.0)]
        for value in results:
            outputs.extend(views(graph, value, value.type))
        for value in outputs:
            graph.register_output(value)
        program = compile(graph)
        found = program(*sample.arrays)
        kept = [*sample.arrays, held]
        kept += [a for a in sample.attributes.values() if isinstance(a, np.ndarray)]
        before = [np.array(array) for array in kept]
        wanted = [np.array(array) for array in found]
        assert_apart(found, kept)
        for array in found:
            array[...] = 0
        for array, old in zip(kept, before, strict=True):
            np.testing.assert_array_equal(array, old)
        for again, want in zip(program(*sample.arrays), wanted, strict=True):
            np.testing.assert_array_equal(again, want)


@pytest.mark.parametrize("kind", [kind for kind, op in OPS.items() if op.is_differentiable])
def test_cotangents_of_every_op_are_apart(kind):
    for sample in samples(kind, "f8"):
        graph = Graph()
        inputs = [graph.add_input(TensorType.of(array)) for array in sample.arrays]
        results = graph.insert(kind, *inputs, **sample.attributes)
        for value in results if isinstance(results, tuple) else (results,):
            graph.register_output(value)
        pair = compile(differentiate(graph, active(OPS[kind], sample.arrays)))
        outputs, pullback = pair(*sample.arrays)
        seeds = [
            np.ones_like(outputs[j]) for j in pair.gradient.df_input_vjps if j < len(outputs)
        ]
        cotangents = pullback(*seeds)
        assert_apart([*outputs, *cotangents], [*sample.arrays, *seeds])
        assert_apart(pair.joint(*sample.arrays, *seeds), [*sample.arrays, *seeds, *outputs])
        # What the pullback keeps is its own.
        wanted = [np.array(cotangent) for cotangent in cotangents]
        for array in (*outputs, *cotangents, *seeds):
            array[...] = 1
        for again, want in zip(pullback(*seeds), wanted, strict=True):
            np.testing.assert_array_equal(again, want)


def test_transforms_give_arrays_of_their_own():
    x = np.ones(3)

    def f(x, y):
        return x, x[:], x.reshape(3, 1), x.T, y, np.broadcast_to(y, (2, 3)), x * 1

    outputs = sd.jit(f)(x, x)
    assert_apart(outputs, [x])
    value, pull = sd.vjp(lambda x: x[::-1], x)
    seed = np.arange(3.0)
    (cotangent,) = pull(seed)
    assert_apart([value, cotangent], [x, seed])
    gradient = sd.grad(lambda x, y: np.sum(x * y), (0, 1))(x, 2 * x)
    assert_apart(gradient, [x])
