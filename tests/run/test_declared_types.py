"""Programs run on what their graph was made for: types have gone into its attributes."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import DTypeError, ShapeError

ONES = np.ones(3)


def test_a_shape_that_went_into_a_constant_is_checked():
    program = sd.compile(sd.trace(lambda x: x.sum() / x.size, ONES))
    assert program(ONES)[0] == 1
    with pytest.raises(ShapeError, match=r"argument 0.*\(5,\).*f64\[3\]"):
        program(np.ones(5))
    with pytest.raises(ShapeError):
        program.run([np.ones(5)], [np.zeros(())])


def test_a_pair_refuses_what_would_need_another_derivative():
    graph = sd.trace(lambda x, y: x * y, ONES, ONES)
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    with pytest.raises(ShapeError):
        pair(ONES, np.ones(1))
    with pytest.raises(DTypeError, match=r"c128\[3\].*f64\[3\]"):
        pair(ONES * 1j, ONES * 1j)
    with pytest.raises(ShapeError):
        pair.joint(ONES, np.ones(1), ONES)


def test_unknown_dims_take_any():
    graph = sd.Graph()
    x = graph.add_input("f64[?]")
    graph.register_output(graph.insert("mul", x, x))
    program = sd.compile(graph)
    assert program(np.array([2.0]))[0].tolist() == [4]
    assert program(np.array([2.0, 3.0]))[0].tolist() == [4, 9]
    with pytest.raises(ShapeError):
        program(np.ones((1, 1)))
    with pytest.raises(DTypeError):
        program(np.ones(2, np.float32))


def test_an_untyped_graph_takes_real_arrays_of_any_shape():
    graph = sd.Graph()
    x, y = graph.add_input(), graph.add_input()
    graph.register_output(graph.insert("mul", x, y))
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    (out,), pull = pair(ONES, np.float32([2]))
    dx, dy = pull(ONES)
    assert out.tolist() == dx.tolist() == [2, 2, 2]
    assert dy.tolist() == [3]


def test_an_untyped_derivative_refuses_complex_arrays():
    # Whether to conjugate is decided by types.
    graph = sd.Graph()
    x, y = graph.add_input(), graph.add_input()
    graph.register_output(graph.insert("mul", x, y))
    assert sd.compile(graph)(ONES * 1j, ONES)[0].tolist() == [1j] * 3
    gradient = sd.differentiate(graph, [True, True])
    for program, count in ((sd.compile(gradient).joint, 3), (sd.compile(gradient.df), 3)):
        with pytest.raises(DTypeError, match="real"):
            program(*[ONES * 1j] * count)


def test_typed_complex_graphs_conjugate():
    graph = sd.Graph()
    x, y = graph.add_input("c128[3]"), graph.add_input("c128[3]")
    graph.register_output(graph.insert("mul", x, y))
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    _, pull = pair(ONES * 1j, ONES * 2j)
    dx, dy = pull(ONES * (1 + 0j))
    assert dx.tolist() == [-2j] * 3
    assert dy.tolist() == [-1j] * 3


def test_numbers_take_the_declared_dtype():
    graph = sd.Graph()
    x, a = graph.add_input("f32[2]"), graph.add_input("f32[]")
    graph.register_output(graph.insert("mul", x, a))
    (result,) = sd.compile(graph)(np.float32([1, 2]), 2.5)
    assert result.dtype == np.float32
    assert result.tolist() == [2.5, 5]
    with pytest.raises(DTypeError):
        sd.compile(graph)(np.float32([1, 2]), 2j)


def test_an_array_of_a_constant_keeps_its_shape():
    graph = sd.Graph()
    held = np.arange(3.0)
    graph.register_output(graph.insert("sum", graph.constant(held)))
    program = sd.compile(graph)
    assert program()[0] == 3
    held[0] = 5
    assert program()[0] == 8
    held.resize((3, 1), refcheck=False)
    with pytest.raises(ShapeError, match="constant"):
        program()
