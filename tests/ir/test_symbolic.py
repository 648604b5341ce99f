"""Tests of ir/symbolic.py."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import ForeignValue, TraceError


@pytest.fixture
def graph():
    return sd.Graph()


def symbol(graph, type_):
    return sd.SymbolicValue(graph.add_input(type_))


def kinds(graph):
    return [node.kind for node in graph.nodes() if node.kind != "constant"]


def result(graph, value, *arrays):
    graph.register_output(value.value)
    graph.verify()
    return sd.compile(graph)(*arrays)[0]


def test_operators_insert_nodes(graph):
    a, b = symbol(graph, "f64[3]"), symbol(graph, "f64[3]")
    c = -(a + b) * a / b - a**b
    assert kinds(graph) == ["add", "neg", "mul", "div", "pow", "sub"]
    x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 0.5])
    np.testing.assert_array_equal(result(graph, c, x, y), -(x + y) * x / y - x**y)


def test_numbers_are_weak_and_stand_on_either_side(graph):
    a = symbol(graph, "f32[2]")
    b = 2 / (1 - a * 3.5)
    assert str(b.type) == "f32[2]"
    x = np.float32([1, 2])
    np.testing.assert_array_equal(result(graph, b, x), 2 / (1 - x * 3.5))


def test_numpy_scalars_are_not_weak(graph):
    a = symbol(graph, "f32[2]")
    assert str((a * np.float64(2)).type) == "f64[2]"
    assert str((np.float64(2) * a).type) == "f64[2]"


def test_arrays_become_constants_by_reference(graph):
    a = symbol(graph, "f64[2]")
    held = np.array([1.0, 2.0])
    for value in (a + held, held + a):
        assert str(value.type) == "f64[2]"
    assert all(array is held for array in graph.constants)


def test_functions_of_numpy(graph):
    a, b = symbol(graph, "f64[2, 3]"), symbol(graph, "f64[3, 2]")
    c = np.where(np.tanh(a) < 0.5, np.sum(a @ b, axis=1, keepdims=True), np.maximum(a, b.T))
    d = np.concatenate([c, np.reshape(b, (2, 3))], axis=0).max(axis=1) + np.mean(a)
    x, y = np.arange(6.0).reshape(2, 3) - 2, np.arange(6.0).reshape(3, 2)
    e = np.where(np.tanh(x) < 0.5, np.sum(x @ y, axis=1, keepdims=True), np.maximum(x, y.T))
    want = np.concatenate([e, np.reshape(y, (2, 3))], axis=0).max(axis=1) + np.mean(x)
    np.testing.assert_allclose(result(graph, d, x, y), want, rtol=1e-15)


def test_methods(graph):
    a = symbol(graph, "f64[2, 3]")
    b = a.reshape(3, 2).transpose(1, 0).astype("f4").sum(0) + a.mean(axis=0) + abs(a).max(0)
    x = np.arange(6.0).reshape(2, 3)
    want = x.reshape(3, 2).transpose(1, 0).astype("f4").sum(0) + x.mean(axis=0) + abs(x).max(0)
    np.testing.assert_allclose(result(graph, b, x), want, rtol=1e-15)


def test_untyped_values(graph):
    a = symbol(graph, None)
    b = 2 * a + 1
    assert kinds(graph) == ["constant_like", "mul", "constant_like", "add"]
    x = np.float32([1, 2])
    found = result(graph, b, x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, 2 * x + 1)


def test_nodes_get_the_graphs_stage(graph):
    a = symbol(graph, "f64[]")
    graph.advance_stage()
    assert (a * a).value.stage == 1


@pytest.mark.parametrize(
    "use", [bool, float, int, complex, len, list, np.asarray, lambda a: a[0], range],
    ids=lambda use: use.__name__,
)  # fmt: skip
def test_what_needs_numbers_raises(graph, use):
    a = symbol(graph, "f64[3]")
    with pytest.raises(TraceError):
        use(a)
    assert len(graph) == 0


@pytest.mark.parametrize(
    "use",
    [np.median, np.linalg.inv, lambda a: np.add.reduce(a), lambda a: np.exp(a, where=True),
     lambda a: np.sum(a, dtype="f4")],
)  # fmt: skip
def test_what_has_no_op_raises(graph, use):
    a = symbol(graph, "f64[3, 3]")
    with pytest.raises(TraceError):
        use(a)
    assert len(graph) == 0


def test_graphs_do_not_mix(graph):
    a, b = symbol(graph, "f64[]"), symbol(sd.Graph(), "f64[]")
    with pytest.raises(ForeignValue):
        a + b
    with pytest.raises(TypeError):
        a + "one"
    with pytest.raises(TypeError):
        sd.SymbolicValue(3)
    with pytest.raises(TypeError):
        hash(a)
