"""Tests of the derivatives of linear algebra beside the laws."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.ops import evaluate
from stagedad.run import compile
from stagedad.transform import differentiate
from stagedad.types import TensorType


def normal(random, like):
    values = random.standard_normal(like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * random.standard_normal(like.shape)
    return np.asarray(values).astype(like.dtype)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_is_its_own_derivative_among_hermitian_matrices(dtype, lower):
    random = np.random.default_rng(0)
    a = normal(random, np.empty((2, 3, 3), dtype))
    a = a + np.conj(np.swapaxes(a, 1, 2))
    (result,) = evaluate("hermitian", [a], {"lower": lower})
    np.testing.assert_array_equal(result, a)
    graph = Graph()
    x = graph.add_input(TensorType.of(a))
    graph.register_output(graph.insert("hermitian", x, lower=lower))
    _, pullback = compile(differentiate(graph, [True]))(a)
    g = normal(random, a)
    (pulled,) = pullback(g)
    np.testing.assert_array_equal(pulled, np.conj(np.swapaxes(pulled, 1, 2)))
    np.testing.assert_allclose(np.vdot(pulled, a).real, np.vdot(g, a).real)


def test_hermitian_reads_one_triangle():
    a = np.array([[1 + 5j, 2j], [3.0, 4]])
    np.testing.assert_array_equal(evaluate("hermitian", [a], {})[0], [[1, 3], [3, 4]])
    upper = evaluate("hermitian", [a], {"lower": False})[0]
    np.testing.assert_array_equal(upper, [[1, 2j], [-2j, 4]])
