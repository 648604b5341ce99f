"""Tests of transform/tangent.py, and of Gradient.joint."""

import random

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import NotDifferentiable
from stagedad.transform import tangent

SHAPES = ["[]", "[3]", "[2, 3]"]


def random_graph(seed):
    rng = random.Random(seed)
    graph = sd.Graph()
    values = [graph.add_input(f"f64{rng.choice(SHAPES)}") for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(2, 6)):
        kind = rng.choice(["add", "sub", "mul", "mul", "div", "tanh", "tanh", "neg"])
        count = 2 if kind in ("add", "sub", "mul", "div") else 1
        values.append(graph.insert(kind, *rng.choices(values, k=count)))
    for value in rng.choices(values, k=2):
        graph.register_output(value)
    return graph


@pytest.mark.parametrize("seed", range(150))
def test_is_the_transpose_of_df(seed, run):
    """<u, J v> = <J' u, v> for random u and v."""
    graph = random_graph(seed)
    flags = [random.Random(seed).random() < 0.8 for _ in graph.inputs]
    draw = np.random.default_rng(seed)
    arrays = [draw.uniform(0.5, 1.5, value.type.shape) for value in graph.inputs]
    v = [draw.normal(size=a.shape) for a, flag in zip(arrays, flags, strict=True) if flag]
    forward = tangent(graph, flags)
    forward.verify()
    outputs = run(forward, arrays + v)
    values, moved = outputs[:2], outputs[2:]
    u = [draw.normal(size=value.shape) for value in values]
    gradient = sd.differentiate(graph, flags)
    real = [offset for offset in gradient.df_input_vjps if offset < 2]
    results = run(sd.transform.joint(gradient), [*arrays, *[u[offset] for offset in real]])
    pulled = results[2:]
    left = sum((a * b).sum() for a, b in zip(u, moved, strict=True))
    right = sum((a * b).sum() for a, b in zip(pulled, v, strict=True))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)
    for plain, value in zip(run(graph, arrays), values, strict=True):
        assert plain.tobytes() == value.tobytes()


def test_moves_along_the_derivative(run):
    graph = sd.trace(lambda x, y: np.sin(x) * y, 0.5, 2.0)
    value, moved = run(
        tangent(graph, [True, True]), [np.array(x) for x in (0.5, 2.0, 3.0, 5.0)]
    )
    assert value == np.sin(0.5) * 2
    assert moved == pytest.approx(np.cos(0.5) * 3 * 2 + np.sin(0.5) * 5, rel=1e-14)


def test_what_does_not_move_is_a_structural_zero():
    graph = sd.trace(lambda x, y: (np.floor(x), y, x < y), np.ones(3), np.ones(3))
    forward = tangent(graph, [True, False])
    assert len(forward.outputs) == 5  # a comparison has no tangent
    assert [value.node.attributes["is_zero"] for value in forward.outputs[3:]] == [1, 1]


def test_ends_at_stop_gradient(run):
    graph = sd.trace(lambda x: (x * sd.stop_gradient(x), sd.stop_gradient(x * x)), 3.0)
    forward = tangent(graph, [True])
    assert forward.outputs[3].node.attributes["is_zero"]
    results = run(forward, [np.array(3.0), np.array(2.0)])
    assert [float(x) for x in results] == [9, 9, 6, 0]


def test_of_tangent_gives_second_derivatives(run):
    graph = sd.trace(lambda x: x * x * x, 2.0)
    once = tangent(graph, [True])
    twice = tangent(once, [True, False])
    results = run(twice, [np.array(x) for x in (2.0, 1.0, 1.0)])
    assert [float(x) for x in results] == [8, 12, 12, 12]


def test_refuses_like_differentiate():
    graph = sd.Graph()
    x, n = graph.add_input("f64[]"), graph.add_input("i64[]")
    graph.register_output(graph.insert("frobnicate", x, n, location=("model.py", 7)))
    with pytest.raises(NotDifferentiable, match=r"frobnicate.*model\.py:7"):
        tangent(graph, [True, False])
    assert tangent(graph, [False, False]).outputs[0].node.kind == "frobnicate"
    with pytest.raises(TypeError, match="input 1"):
        tangent(graph, [True, True])
    with pytest.raises(ValueError, match="2 inputs: 1"):
        tangent(graph, [True])
    with pytest.raises(ValueError, match="nan_policy"):
        tangent(graph, [True, False], nan_policy="none")


def test_joint_has_both_stages(run):
    graph = sd.trace(lambda a, b: a * b * a + b, 2.0, 3.0)
    gradient = sd.differentiate(graph, [True, True])
    joint = gradient.joint
    joint.verify()
    assert [value.stage for value in joint.inputs] == [0, 0, 1, 1]
    assert [node.stage for node in joint.nodes()] == [0] * 3 + [1] * 7
    assert sd.parse_graph(str(joint)) == joint
    results = run(joint, [np.array(x) for x in (2.0, 3.0, 1.0, 0.0)])
    assert [float(x) for x in results] == [15, 6, 12, 5]


def test_parts_move_with_what_was_split(run):
    graph = sd.Graph()
    a = graph.add_input("f64[6]", name="a")
    first, _, last = graph.insert("split", a, indices_or_sections=3)
    graph.register_output(graph.insert("mul", first, last))
    forward = tangent(graph, [True])
    forward.verify()
    x, v = np.arange(6.0), np.arange(1.0, 7.0)
    value, moved = run(forward, [x, v])
    np.testing.assert_array_equal(value, x[:2] * x[4:])
    np.testing.assert_array_equal(moved, v[:2] * x[4:] + x[:2] * v[4:])
