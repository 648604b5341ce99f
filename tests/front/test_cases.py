"""Cases that people met in other libraries, as far as the ops reach."""

# ruff: noqa: ARG005, PT017
import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import TraceError
from stagedad.front import grad, jit, trace, value_and_grad, vjp
from stagedad.transform import differentiate

X = np.array([1.0, 2.0])


# A. NaN and singular points


def test_a1_norm_squared_at_the_origin():
    f = grad(lambda x: np.linalg.norm(x) ** 2)
    np.testing.assert_array_equal(f(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(f(X), 2 * X)


def test_a3_an_untaken_branch_does_not_poison():
    f = grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0)))
    np.testing.assert_array_equal(f(np.array([-1.0, 0.0, 4.0])), [0, 0, 0.25])
    g = grad(lambda x: np.sum(np.where(x > 0, np.log(x) / x, -x)))
    np.testing.assert_array_equal(g(np.array([0.0, 1.0])), [-1, 1])


def test_a5_a_product_with_a_root_at_0():
    assert grad(lambda x: x * x**0.5)(0.0) == 0
    assert grad(lambda x: x * np.sqrt(x))(0.0) == 0


def test_a7_powers_of_zero():
    assert grad(lambda y: 0.0**y)(1.0) == 0
    assert grad(lambda x, y: x**y, argnums=1)(0.0, 1.0) == 0
    assert grad(lambda x, y: np.power(x, y), argnums=1)(0.0, 2.0) == 0
    np.testing.assert_array_equal(grad(lambda x: np.sum(x**3))(np.zeros(2)), [0, 0])


def test_a10_variance_and_deviation_of_a_constant_vector():
    constant = np.ones(3)
    np.testing.assert_array_equal(grad(np.var)(constant), [0, 0, 0])
    # The deviation is a norm at the origin, whose gradient is declared 0 there.
    np.testing.assert_array_equal(grad(np.std)(constant), [0, 0, 0])
    x = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(grad(np.std)(x), (x - x.mean()) / (3 * x.std()))


@pytest.mark.parametrize(
    ("x", "wanted"), [([0, 2, 3], [6, 0, 0]), ([0, 0, 3], [0, 0, 0]), ([2, 5], [5, 2])]
)
def test_a14_product_beside_zeros(x, wanted):
    np.testing.assert_array_equal(grad(np.prod)(np.array(x, float)), wanted)


@pytest.mark.parametrize(
    ("x", "wanted"), [([2, 0, 3, 4], [1, 32, 0, 0]), ([2, 0, 3], [1, 8, 0])]
)
def test_a15_running_product_beside_zeros(x, wanted):
    got = grad(lambda x: np.sum(np.cumprod(x)))(np.array(x, float))
    np.testing.assert_array_equal(got, wanted)


# B. Ties and ordering


def test_b19_maximum_of_equal_values():
    assert grad(lambda x: np.maximum(x, x))(1.0) == 1
    dx, dy = grad(lambda x, y: np.maximum(x, y), argnums=(0, 1))(1.0, 1.0)
    assert dx + dy == 1
    dx, dy = grad(lambda x, y: np.minimum(x, y), argnums=(0, 1))(1.0, 1.0)
    assert dx + dy == 1


def test_b20_the_maximum_of_ties():
    x = np.array([1.0, 1.0, 0.0])
    whole = grad(np.max)(x)
    assert whole.sum() == 1
    assert whole[2] == 0
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.max(x, axis=0)))(x), whole)
    np.testing.assert_array_equal(grad(lambda x: -np.min(-x))(x), whole)


@pytest.mark.parametrize("shape", [(256, 10), (2, 3)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_b22_sort_hands_back_along_the_axis(shape, axis):
    x = np.random.default_rng(0).normal(size=shape)
    weights = np.arange(x.size, dtype=float).reshape(shape)
    got = grad(lambda x: np.sum(weights * np.sort(x, axis=axis)))(x)
    wanted = np.zeros(shape)
    np.put_along_axis(wanted, np.argsort(x, axis=axis), weights, axis)
    np.testing.assert_array_equal(got, wanted)


# C. Indexing and aliasing


def test_c25_repeated_indices_accumulate():
    x = np.array([1.0, 2.0, 3.0])
    for index in ([0, 0, 2], np.array([0, 0, 2])):
        gradient = grad(lambda x, index=index: np.sum(x[index] ** 2))(x)
        np.testing.assert_array_equal(gradient, [4, 0, 6])
    np.testing.assert_array_equal(
        grad(lambda x: np.sum(np.take(x, [0, 0, 2]) ** 2))(x), [4, 0, 6]
    )


def test_c26_filling_a_buffer_is_right_or_loud():
    def fill(x):
        out = snp.zeros(2)
        out[0:2] = 2 * x
        return np.sum(out**2)

    try:
        np.testing.assert_array_equal(grad(fill)(X), [8, 16])
    except TraceError as error:
        assert "hint" in str(error)


def test_c31_an_input_changed_between_f_and_df():
    x, w = np.ones((2, 2)), np.array([3.0, 4.0])
    _, pull = vjp(lambda x, w: x.T @ w, x, w)
    wanted = pull(X)
    x[:] = w[:] = 0
    for got, want in zip(pull(X), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_c35_df_leaves_the_cotangent_as_it_is():
    _, pull = vjp(lambda x: x * 2 + np.sin(x), X)
    seed = np.ones(2)
    pull(seed)
    np.testing.assert_array_equal(seed, 1)


# D. Broadcasting and staged graphs


def test_d37_a_scalar_broadcast_in_one_of_two_terms():
    def f(z):
        return np.sum(np.exp(z) - 0) + np.sum(np.exp(z) - np.zeros(1000))

    assert grad(f)(1.0) == pytest.approx(1001 * np.e, rel=1e-12)


def test_d38_each_gradient_has_its_inputs_shape():
    a, b = np.ones((2, 3, 1, 5)), np.ones((2, 1, 4, 5))
    da, db = grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(da, np.full(a.shape, 4.0))
    np.testing.assert_array_equal(db, np.full(b.shape, 3.0))


def test_d41_a_weight_used_again_and_again(numerical_gradient):
    def f(w, x):
        for _ in range(5):
            x = np.tanh(w @ x)
        return np.sum(x)

    w, x = np.array([[0.5, -0.3], [0.8, 0.1]]), np.array([1.0, -1.0])
    np.testing.assert_allclose(grad(f)(w, x), numerical_gradient(f, w, x), atol=1e-8)


def test_d42_one_output_of_two_is_seeded():
    _, pull = vjp(lambda x: tuple(np.split(x**2, 2)), X)
    np.testing.assert_array_equal(pull((np.ones(1), np.zeros(1)))[0], [2, 0])
    np.testing.assert_array_equal(grad(lambda x: np.split(x**2, 2)[1][0])(X), [0, 4])


def test_d43_an_unused_input_has_zeros():
    dx, dy = grad(lambda x, y: np.sum(x), argnums=(0, 1))(X, np.ones((2, 3)))
    np.testing.assert_array_equal(dx, [1, 1])
    np.testing.assert_array_equal(dy, np.zeros((2, 3)))


def test_d45_only_requested_gradients_cost_work():
    graph = trace(lambda x, y: np.sum(np.exp(x) * np.tanh(y)), X, X)
    one = differentiate(graph, [True, False])
    both = differentiate(graph, [True, True])
    assert len(one.df) < len(both.df)
    assert len(one.df.outputs) == 1


def test_d49_einsum_with_a_repeated_index():
    np.testing.assert_array_equal(
        grad(lambda x: np.einsum("ii->", x))(np.ones((3, 3))), np.eye(3)
    )
    w, x = np.array([[1.0, 5.0], [9.0, 13.0]]), np.arange(8.0).reshape(4, 2)

    def f(x):
        return np.sum(np.einsum("nd,nn->d", x[:2], w))

    wanted = np.repeat(np.diag(w)[:, None], 2, axis=1)
    np.testing.assert_array_equal(grad(f)(x)[:2], wanted)
    g = grad(lambda a: np.sum(np.einsum("abcd->bd", a)))
    np.testing.assert_array_equal(g(np.ones((2, 3, 1, 2))), np.ones((2, 3, 1, 2)))


# E. Types, shapes, arguments, messages


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.max(x, axis=1)),
        lambda x: np.mean(x * 2.0),
        lambda x: np.sum(np.where(x > 1, x, 0.0)),
    ],
)
def test_e52_float32_in_float32_out(function):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    value, gradient = value_and_grad(function)(x)
    assert value.dtype == gradient.dtype == np.float32


def test_e53_integers_are_named_and_indices_are_fine():
    with pytest.raises(TypeError, match=r"argument `count` is i64\[3\].*\n.*astype"):
        grad(lambda count: np.sum(count))(np.arange(3))
    np.testing.assert_array_equal(grad(lambda x, i: x[i] ** 2)(X, 1), [0, 4])
    np.testing.assert_array_equal(grad(lambda x, i: x[i] ** 2)(X, np.array(-1)), [0, 4])


def test_e56_arrays_without_elements():
    b = np.arange(4.0)
    gradient = grad(lambda b: np.sum(np.zeros((4, 0)) + b[:, None]))(b)
    np.testing.assert_array_equal(gradient, np.zeros(4))
    empty = grad(lambda x: np.sum(x * 2) + np.sum(x, axis=0)[1])(np.zeros((0, 2)))
    assert empty.shape == (0, 2)
    x = np.arange(10.0)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.repeat(x, 0)))(x), np.zeros(10))
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.diff(x)))(np.ones(1)), [0])
    assert jit(lambda x: x[:0] @ x[:0])(x) == 0
    assert jit(lambda x: np.concatenate([x[:0], x[:0]]))(x).shape == (0,)


def test_e59_gradients_suit_an_optimiser():
    x = np.arange(6.0).reshape(2, 3).T
    gradient = grad(lambda x: np.sum(x.T**2))(x)
    assert type(gradient) is np.ndarray
    assert gradient.dtype == np.float64
    assert gradient.flags.c_contiguous
    assert gradient.flags.writeable
    assert gradient.flags.owndata or gradient.base is not None


# G. Levels


def test_g73_levels_are_kept_apart():
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1


# H. Traps of tracing


def test_h_concatenate_of_lists_with_traced_scalars():
    np.testing.assert_array_equal(
        grad(lambda x: np.sum(np.concatenate([x, [x @ x]]) ** 2))(X), [22, 44]
    )
    np.testing.assert_array_equal(
        grad(lambda x: snp.sum(snp.concatenate([x, [x @ x]]) ** 2))(X), [22, 44]
    )


def test_h_full_like_with_a_traced_value():
    f = grad(lambda x: snp.sum(snp.full_like(snp.zeros(3), 2 * x[0])))
    np.testing.assert_array_equal(f(X), [6, 0])
    with pytest.raises(TraceError, match=r"test_cases\.py:\d+"):
        grad(lambda x: np.sum(np.full_like(np.zeros(3), 2 * x[0])))(X)


@pytest.mark.parametrize("namespace", [np, snp])
def test_h_where_with_lists(namespace):
    f = grad(lambda x: namespace.sum(namespace.where([True, False], x, [x[1], x[0]])))
    np.testing.assert_array_equal(f(X), [2, 0])


def test_h_plain_numpy():
    np.testing.assert_allclose(grad(lambda x: np.sum(np.sin(x)))(X), np.cos(X), rtol=1e-15)


def test_h_a_foreign_ufunc_is_right_or_loud():
    special = pytest.importorskip("scipy.special")
    try:
        gradient = grad(lambda x: np.sum(special.erf(x)))(X)
    except TraceError as error:
        assert f"{__file__}:" in str(error)
    else:
        np.testing.assert_allclose(gradient, [0.4151, 0.0207], atol=1e-4)


def test_h_float_is_an_error():
    with pytest.raises(TraceError, match=r"float: .*test_cases\.py:\d+.*\nhint"):
        grad(lambda x: float(x[0]) * x[1])(X)
