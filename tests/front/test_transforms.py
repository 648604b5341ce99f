"""Tests of front/transforms.py and front/lowering.py."""

# ruff: noqa: ARG005
import inspect
from collections import namedtuple

import numpy as np
import pytest

from stagedad.errors import NotDifferentiable, ShapeError, TraceError
from stagedad.front import grad, jit, stop_gradient, trace, value_and_grad, vjp

Point = namedtuple("Point", "x y")


def cube(x):
    """Cube of x."""
    return x**3


def test_trace_names_inputs_by_parameter_and_path():
    def f(params, x, *rest, scale=1.0):
        return params["w"] * x[0] * rest[0] * scale, {"a": params["b"], "c": x[1]}

    graph = trace(f, {"w": 1.0, "b": np.ones(2)}, [2.0, np.float32(3)], 4.0, scale=5.0)
    names = [value.name for value in graph.inputs]
    assert names == ["params.w", "params.b", "x.0", "x.1", "rest.0", "scale"]
    assert [str(v.type) for v in graph.inputs] == [
        "f64[]",
        "f64[2]",
        "f64[]",
        "f32[]",
        *["f64[]"] * 2,
    ]
    assert [str(v.type) for v in graph.outputs] == ["f64[]", "f64[2]", "f32[]"]
    graph.verify()


def test_trace_notes_the_users_lines():
    def f(x):
        y = np.sum(x * 2)
        return y.reshape(1)

    first = inspect.getsourcelines(f)[1]
    nodes = list(trace(f, np.ones(3)).nodes())
    assert [node.location for node in nodes if node.kind != "constant"] == [
        (__file__, first + 1),
        (__file__, first + 1),
        (__file__, first + 2),
    ]


def test_trace_passes_other_arguments_on():
    graph = trace(lambda x, mode, f, none: f(x) if mode == "f" else x, 1.0, "f", np.sin, None)
    assert [node.kind for node in graph.nodes()] == ["sin"]
    assert len(graph.inputs) == 1


def test_gradients_have_the_structure_of_the_argument():
    def f(tree):
        return np.sum(tree["a"] ** 2) + tree["b"][0] * tree["b"][1].x * 3 + tree["b"][1].y

    tree = {"b": [2.0, Point(3.0, np.float64(1))], "a": np.arange(3.0), "n": None}
    value, gradient = value_and_grad(f)(tree)
    assert value == f(tree)
    np.testing.assert_array_equal(gradient["a"], [0, 2, 4])
    assert gradient["b"] == [9.0, Point(6.0, 1.0)]
    assert gradient["n"] is None


@pytest.mark.parametrize(
    ("given", "kind"),
    [(2.0, np.float64), (np.float64(2), np.float64), (np.float32(2), np.float32),
     (np.array(2.0), np.ndarray), (np.array([2.0]), np.ndarray),
     (np.array(2.0, "f4"), np.ndarray)],
)  # fmt: skip
def test_scalars_give_scalars_and_arrays_arrays(given, kind):
    for _ in range(2):  # traced, then by the shortcut
        gradient = grad(lambda x: np.sum(x**2))(given)
        assert type(gradient) is kind
        assert gradient.dtype == np.asarray(given).dtype
        np.testing.assert_array_equal(gradient, np.asarray(4.0).reshape(np.shape(given)))


def test_a_scalar_value_is_a_python_float():
    value, _ = value_and_grad(lambda x: np.sum(x))(np.ones(2))
    assert isinstance(value, float)


def test_argnums_choose_arguments():
    def f(x, y, z):
        return np.sum(x * y) + z

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(grad(f, 1)(x, y, 1.0), x)
    dy, dx = grad(f, argnums=(1, 0))(x, y, 1.0)
    np.testing.assert_array_equal(dy, x)
    np.testing.assert_array_equal(dx, y)
    assert grad(f, argnums=-1)(x, y, 1.0) == 1
    first, second = grad(f, argnums=(0, 0))(x, y, 1.0)
    assert first is not second
    (only,) = grad(f, argnums=(2,))(x, y, 1.0)
    assert only == 1
    np.testing.assert_array_equal(grad(f, argnums=1)(x, z=1.0, y=y), x)
    with pytest.raises(TypeError, match="argnums"):
        grad(f, argnums=3)(x, y, 1.0)


def test_an_unused_input_gets_zeros():
    for function in (lambda x, y: x * 1.0, lambda x, y: x, lambda x, y: 3.0):
        dx, dy = grad(function, argnums=(0, 1))(2.0, np.ones((2, 3), np.float32))
        assert dx in (0.0, 1.0)
        np.testing.assert_array_equal(dy, np.zeros((2, 3), np.float32))
        assert dy.dtype == np.float32
        assert dy.flags.writeable


def test_results_do_not_alias_anything():
    def f(x):
        return np.sum(x * 1.0)

    gradient = grad(f)
    one, two = gradient(np.ones(3)), gradient(np.ones(3))
    one[:] = 7
    np.testing.assert_array_equal(two, 1)
    np.testing.assert_array_equal(gradient(np.ones(3)), 1)
    x = np.ones(3)
    same = jit(lambda x: x)(x)
    assert not np.shares_memory(same, x)
    held = np.ones(3)
    out = jit(lambda x: (held, held, x))(x)
    assert not np.shares_memory(out[0], held)
    assert not np.shares_memory(out[0], out[1])


def test_auxiliary_results_are_kept():
    def f(x):
        y = x * 2
        return np.sum(y**2), {"y": y, "name": "kept", "twice": np.exp(y)}

    x = np.array([1.0, 2.0])
    (value, aux), gradient = value_and_grad(f, has_aux=True)(x)
    assert value == 20
    np.testing.assert_array_equal(aux["y"], 2 * x)
    assert aux["name"] == "kept"
    np.testing.assert_array_equal(gradient, 8 * x)
    gradient, aux = grad(f, has_aux=True)(x)
    np.testing.assert_array_equal(gradient, 8 * x)
    np.testing.assert_allclose(aux["twice"], np.exp(2 * x))
    with pytest.raises(TypeError, match="has_aux"):
        grad(lambda x: x, has_aux=True)(1.0)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (3, r"argument `n` is an int.*\nhint: pass float\(n\)"),
        (np.arange(3), r"argument `n` is i64\[3\].*\nhint: pass n\.astype\(float\)"),
        (np.array([True]), r"argument `n` is b1\[1\]"),
        ({"a": [1.0, 2]}, r"argument `n.a.1` is an int"),
        ("text", r"argument `n` is a str"),
        (True, r"argument `n` is a bool"),
    ],
)
def test_an_argument_without_a_gradient_is_named(argument, message):
    with pytest.raises(TypeError, match=message):
        grad(lambda n: 1.0)(argument)
    with pytest.raises(TypeError, match=message):
        value_and_grad(lambda x, n: x, argnums=1)(1.0, argument)


def test_a_result_that_is_no_scalar_raises():
    for function in (lambda x: x, lambda x: (x[0], x[1]), lambda x: None, lambda x: x[:1]):
        with pytest.raises(ShapeError, match="not a scalar"):
            grad(function)(np.ones(2))
        with pytest.raises(TypeError, match="not a scalar"):
            grad(function)(np.ones(2))
    with pytest.raises(TypeError, match="not a float"):
        grad(lambda x: np.sum(x > 0))(np.ones(2))
    with pytest.raises(TypeError):
        grad(lambda x: "text")(np.ones(2))


def test_complex_arguments():
    z = np.array([1 + 2j, 3 - 1j])
    # The gradient of a real value is d/dx + i d/dy.
    np.testing.assert_allclose(grad(lambda z: np.sum(z.real**2 + z.imag**2))(z), 2 * z)
    np.testing.assert_allclose(grad(lambda z: np.sum((z * np.conj(z)).real))(z), 2 * z)
    np.testing.assert_allclose(grad(lambda z: np.sum(z.real + 3 * z.imag))(z), [1 + 3j] * 2)
    holomorphic = grad(lambda z: np.sum(z**3), holomorphic=True)
    np.testing.assert_allclose(holomorphic(z), 3 * z**2)
    with pytest.raises(TypeError, match="holomorphic"):
        grad(lambda z: np.sum(z**3))(z)
    with pytest.raises(TypeError, match="holomorphic"):
        holomorphic(np.ones(2))
    # Real in, complex between.
    assert grad(lambda x: np.sqrt((x * 3j).imag ** 2))(2.0) == pytest.approx(3.0)
    np.testing.assert_allclose(grad(lambda z: np.sum(np.abs(z)))(z), z / np.abs(z))
    # What has no derivative at complex numbers says so.
    with pytest.raises(NotDifferentiable, match="sign"):
        grad(lambda z: np.sum(np.real(np.sign(z))))(z)


def test_nan_policy():
    def f(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0))

    x = np.array([0.0, 4.0])
    np.testing.assert_array_equal(grad(f)(x), [0, 0.25])
    assert np.isnan(grad(f, nan_policy="strict")(x)[0])
    with pytest.raises(ValueError, match="masked"):
        grad(f, nan_policy="loose")


def test_orders_nest():
    for function in (cube, lambda x: x * x * x, lambda x: np.sum(x**3)):
        assert grad(function)(2.0) == 12
        assert grad(grad(function))(2.0) == 12
        assert grad(grad(grad(function)))(2.0) == 6
        assert grad(grad(grad(grad(function))))(2.0) == 0


def test_levels_never_mix():
    # Perturbation confusion.
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6
    assert grad(lambda x: grad(lambda y: grad(lambda z: x * y**2 * z**3)(2.0))(3.0))(5.0) == 72
    inner = grad(lambda y, x: x * y**2)
    for _ in range(2):
        assert grad(lambda x: x * inner(3.0, x))(2.0) == 24


def test_a_transform_of_plain_arguments_runs_inside_a_trace():
    slope = grad(cube)

    def f(x):
        return x * slope(2.0)

    assert grad(f)(1.0) == 12
    assert slope.cache_info().currsize == 1


def test_jit_inside_grad():
    square = jit(lambda x: {"y": x * x, "k": [x]})
    gradient = grad(lambda x: square(x)["y"] + square(2 * x)["k"][0])
    assert gradient(3.0) == 8
    assert square.cache_info()[:2] == (1, 1)


def test_value_and_grad_inside_grad():
    def f(x):
        value, slope = value_and_grad(lambda y: np.sum(y**3 * x))(np.array([1.0, 2.0]))
        return value + np.sum(slope * x)

    x = 2.0
    assert grad(f)(x) == pytest.approx(9 + 15 * 2 * x)


def test_trace_refuses_values_of_an_enclosing_trace():
    with pytest.raises(TraceError, match="traced outside"):
        grad(lambda x: x * len(trace(lambda y: x * y, 1.0)))(1.0)


def test_vjp_pulls_cotangents_back():
    def f(x, params):
        return {"a": params["w"] @ x, "b": np.sum(x)}

    x, w = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    out, pull = vjp(f, x, {"w": w})
    np.testing.assert_array_equal(out["a"], w @ x)
    assert type(out["b"]) is np.float64
    seed = np.array([1.0, 10.0, 100.0])
    for _ in range(2):
        dx, dparams = pull({"a": seed, "b": 2})
        np.testing.assert_array_equal(dx, w.T @ seed + 2)
        np.testing.assert_array_equal(dparams["w"], np.outer(seed, x))
    with pytest.raises(ShapeError, match="vjp"):
        pull({"a": np.ones(2), "b": 1.0})
    with pytest.raises(TypeError, match="vjp"):
        pull(seed)
    with pytest.raises(TypeError, match="complex"):
        pull({"a": 1j * seed, "b": 1.0})
    with pytest.raises(TypeError, match="argument `x` is i64"):
        vjp(lambda x: x, np.arange(3))


def test_vjp_keeps_auxiliary_results_and_scalars():
    out, pull, aux = vjp(lambda x: (x * x, {"x": x * 1.0, "n": "s"}), 3.0, has_aux=True)
    assert (out, aux) == (9, {"x": 3, "n": "s"})
    (slope,) = pull(1.0)
    assert slope == 6
    assert type(slope) is np.float64
    with pytest.raises(TypeError, match="has_aux"):
        vjp(cube, 1.0, has_aux=True)


def test_vjp_nests():
    def slope(x):
        _, pull = vjp(cube, x)
        return pull(1.0)[0]

    assert grad(slope)(2.0) == 12
    assert jit(slope)(2.0) == 12
    assert grad(lambda s: vjp(cube, 2.0)[1](s)[0])(1.0) == 12
    # An outer value in the closure.
    assert grad(lambda x: vjp(lambda y: x * y**2, 3.0)[1](x)[0])(2.0) == 24


def test_vjp_of_one_output_of_two():
    # Two outputs, only one of them seeded.
    _, pull = vjp(lambda x: np.split(x * x, 2), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(pull([np.ones(1), np.zeros(1)])[0], [2, 0])


def test_names_and_documentation_survive():
    for transform in (grad, value_and_grad, jit):
        made = transform(cube)
        assert made.__name__ == "cube"
        assert made.__doc__ == "Cube of x."
        assert str(inspect.signature(made)) == "(x)"
        assert made.__wrapped__ is cube
        assert "cube" in repr(made)


def test_transforms_decorate():
    @grad
    def slope(x):
        return x * x

    @value_and_grad(argnums=1)
    def both(x, y):
        return x * y

    @jit(max_signatures=2)
    def twice(x):
        return 2 * x

    class Model:
        scale = 3.0

        @jit
        def __call__(self, x):
            return self.scale * x

        @grad
        def cost(self, x):
            return x

    assert slope(2.0) == 4
    assert both(2.0, 3.0) == (6, 2)
    assert twice(2.0) == 4
    model = Model()
    assert model(2.0) == 6
    model.scale = 4.0
    assert model(2.0) == 8
    with pytest.raises(TypeError, match="argument `self`"):
        model.cost(1.0)


def test_a_value_in_place_of_a_function_is_said_to_be_one():
    for transform in (grad, jit, value_and_grad):
        with pytest.raises(TypeError, match="a function is wanted: float"):
            transform(3.0)


def test_works_on_numpy_functions_and_partials():
    from functools import partial

    assert grad(np.sin)(0.0) == 1
    assert grad(partial(np.power, 2.0))(1.0) == pytest.approx(2 * np.log(2))
    assert grad(partial(lambda x, y: x * y, y=3.0))(1.0) == 3


@pytest.mark.parametrize("argnums", ["x", 1.0, None, (0, "x"), [None]])
@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_argnums_of_another_type_raise(transform, argnums):
    with pytest.raises(TypeError, match=rf"^{transform.__name__}: argnums is not a position"):
        transform(cube, argnums=argnums)


def test_no_argnums_give_an_empty_tuple():
    assert grad(cube, argnums=())(2.0) == ()
    assert value_and_grad(cube, argnums=())(x=2.0) == (8, ())


@pytest.mark.parametrize(
    ("given", "kind"),
    [(np.array(2.0), np.ndarray), (np.float64(2.0), np.float64), (2.0, np.float64)],
)
def test_a_0d_array_that_is_passed_on_stays_one(given, kind):
    f = jit(lambda x: (x, x * 1, {"x": x}))
    for _ in range(3):
        same, scalar, inside = f(given)
        assert type(same) is type(inside["x"]) is kind
        assert type(scalar) is np.float64
        assert same is not given
        assert same == scalar == 2
    assert type(value_and_grad(lambda x: x)(given)[0]) is kind
    assert type(vjp(lambda x: x, given)[0]) is kind


def test_a_0d_array_that_is_closed_over_stays_one():
    array, scalar = np.array(3.0), np.float64(3.0)
    one, two, three = jit(lambda x: (array, scalar, 3.0))(1.0)
    assert type(one) is np.ndarray
    assert type(two) is type(three) is np.float64


def test_vjp_takes_none_for_zeros():
    def f(x):
        return x * 2, {"a": x * 3, "i": (x > 0).astype(int)}, None

    ones = np.ones(2)
    _, pull = vjp(f, ones)
    for cotangent, wanted in (
        ((ones, None, None), 2),
        ((None, {"a": ones, "i": None}, None), 3),
        ((ones, {"a": ones, "i": None}, None), 5),
        ((None, {"a": None, "i": None}, None), 0),
        (None, 0),
    ):
        (dx,) = pull(cotangent)
        np.testing.assert_array_equal(dx, [wanted, wanted])
    with pytest.raises(TypeError, match="vjp"):
        pull((ones, {"b": None}, None))
    second = grad(lambda x: np.sum(vjp(lambda y: (y * y, y), x)[1]((x, None))[0]))
    np.testing.assert_array_equal(second(ones), [4, 4])


def test_the_order_of_dicts_and_keywords_is_the_callers():
    ranked = lambda d: sum(value * i for i, value in enumerate(d.values()))  # noqa: E731
    slope = grad(ranked)
    for _ in range(3):  # the second call takes the shortcut
        for given in ({"b": 1.0, "a": 1.0}, {"a": 1.0, "b": 1.0}):
            found = slope(given)
            assert list(found) == list(given)
            assert list(found.values()) == [0, 1]
    assert slope.cache_info().misses == 2
    by_name = jit(lambda **kwargs: ranked(kwargs))
    assert by_name(b=1.0, a=2.0) == 2
    assert by_name(a=2.0, b=1.0) == 1
    twice = jit(lambda d: {key: value * 2 for key, value in reversed(d.items())})
    for _ in range(2):
        assert list(twice({"b": 1.0, "a": 2.0}).items()) == [("a", 4), ("b", 2)]


def test_a_cotangent_may_have_its_keys_in_another_order():
    value, pull = vjp(lambda x: {"b": x, "a": 3 * x}, 2.0)
    assert list(value.items()) == [("b", 2), ("a", 6)]
    assert pull({"a": 1.0, "b": 10.0}) == (13,)


def test_keys_of_the_shortcut_keep_their_types():
    scaled = jit(lambda d: {key: value * key for key, value in d.items()})
    for _ in range(2):
        for key in (2, 2.0, 10**9, np.float64(2)):
            ((found, value),) = scaled({key: 1.5}).items()
            assert type(found) is type(key)
            assert value == 1.5 * key


def test_stop_gradient():
    assert grad(lambda x: x * stop_gradient(x))(3.0) == 3
    assert grad(lambda x: stop_gradient(x * x) + x)(3.0) == 1
    assert grad(grad(lambda x: stop_gradient(x) * x**3))(2.0) == 24
    tree = grad(lambda p: p["w"] * stop_gradient(p)["w"] * stop_gradient([p["b"]])[0])
    assert tree({"w": 2.0, "b": 5.0}) == {"w": 10, "b": 0}
    x = np.ones(3, np.float32)
    assert stop_gradient(x) is x
    assert stop_gradient({"a": (x, 1.0, "text", None)}) == {"a": (x, 1.0, "text", None)}
    # A Python number stays one, which takes the dtype of what it meets.
    same = jit(lambda x, k: x * stop_gradient(k))(x, 2.0)
    assert same.dtype == np.float32
    np.testing.assert_array_equal(same, 2)
    outer = grad(lambda x: grad(lambda y: y * y * stop_gradient(x) * x)(2.0))
    assert outer(3.0) == 12
