"""Tests of front/numbers.py, and of the ufuncs: values, types, gradients."""

import numpy as np
import pytest

import stagedad as sd
import stagedad.numpy as snp
from stagedad.errors import DTypeError, TraceError
from stagedad.front import grad, jit

X = np.array([[0.31, -1.23, 2.67], [0.76, 1.94, -0.41]])
Z = np.array([0.3 + 0.4j, -1.2 - 0.1j, 0.6 - 2j])
I = np.array([5, -3, 12])  # noqa: E741
B = np.array([True, False, True])

ONE = {
    "tan": lambda np, x: np.tan(x) + np.tan(0.1 * x),
    "arc": lambda np, x: np.arcsin(x / 3) * np.arccos(x / 4) + np.arctan(x) + np.asin(x / 3),
    "arctan2": lambda np, x: np.arctan2(x, 0.5) * np.arctan2(0.5, x) + np.arctan2(x, x + 3),
    "hypot": lambda np, x: np.hypot(x, 2) + np.hypot(x, -x),
    "hyperbolic": lambda np, x: np.sinh(x) * np.cosh(x) - np.arcsinh(x),
    "hyperbolic_inverse": lambda np, x: np.arccosh(x + 3) * np.arctanh(x / 4),
    "exp2": lambda np, x: np.exp2(x) + np.log2(x * x) + np.log10(x * x),
    "logaddexp": lambda np, x: np.logaddexp(x, 1.0) * np.logaddexp2(2 * x, x),
    "cbrt": lambda np, x: np.cbrt(x) + np.reciprocal(x),
    "float_power": lambda np, x: np.float_power(x * x, 1.5) + np.float_power(x, 2),
    "fabs": lambda np, x: np.fabs(x) * x,
    "rounding": lambda np, x: x * (np.rint(x) + np.ceil(x) + np.trunc(x) + np.fix(x)),
    "round": lambda np, x: x * np.round(x, 1) + np.around(x) * x + x * x.round(-1),
    "fmod": lambda np, x: np.fmod(x, 0.7) + np.fmod(5.3, x),
    "remainder": lambda np, x: x % 0.7 + 5.3 % x + np.mod(x, 0.9) + np.remainder(-x, 0.4),
    "floor_divide": lambda np, x: x * (x // 0.7) + 5.3 // x + np.floor_divide(x, x + 9),
    "divmod": lambda np, x: divmod(x, 0.7)[1] + divmod(5.3, x)[0] * x + np.divmod(x, 0.3)[1],
    "modf": lambda np, x: np.modf(x)[0] * 2 + np.modf(x)[1] * x,
    "frexp": lambda np, x: np.frexp(x)[0] * 2 + np.frexp(x)[1] * x,
    "ldexp": lambda np, x: np.ldexp(x, 3) + np.ldexp(x, [1, -2, 0]),
    "fmax": lambda np, x: np.fmax(x, 0.1) + np.fmin(x, 0.2) * np.fmax(1.0, x),
    "degrees": lambda np, x: np.deg2rad(x) + np.radians(x) + np.rad2deg(x) * np.degrees(x),
    "nextafter": lambda np, x: np.nextafter(x, 9.0) * np.spacing(x) + np.nextafter(x, x),
    "sinc": lambda np, x: np.sinc(x) * x,
    "angle": lambda np, x: np.angle(x) * x + np.angle(x, deg=True),
    "nan_to_num": lambda np, x: np.nan_to_num(np.log(x), nan=2.0) * x + np.nan_to_num(x),
    "isclose": lambda np, x: np.where(np.isclose(x, 0.311, atol=0.01), x, x * x),
    "isclose_nan": lambda np, x: x * np.isclose(np.log(x), np.log(x), equal_nan=True),
    "polyval": lambda np, x: np.polyval([2.0, -1.0, 3.0], x) + np.polyval(x[:, 0], x[1]),
    "select": lambda np, x: np.select([x > 2, x > 0], [x * x, 3 * x], default=-1.0),
    "select_plain": lambda np, x: np.select([X > 2, X > 0], [1, x], x[0]),
    "predicates": lambda np, x: np.where(
        np.isfinite(x) & ~np.isinf(x) & ~np.signbit(x) & np.isreal(x), x * x, x
    ),
    "infinities": lambda np, x: np.where(
        np.isposinf(x / 0.0) | np.logical_xor(np.isneginf(x), np.iscomplex(x)), x * x, x
    ),
}  # fmt: skip


@pytest.mark.parametrize("namespace", [np, snp], ids=["numpy", "stagedad.numpy"])
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gives_what_numpy_gives(name, namespace, dtype):
    x = X.astype(dtype)
    with np.errstate(all="ignore"):
        wanted = ONE[name](np, x)
        got = jit(lambda x: ONE[name](namespace, x))(x)
    assert type(got) is type(wanted)
    assert got.dtype == wanted.dtype
    rtol = 1e-12 if wanted.dtype == "f8" else 2e-5
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ONE)
def test_has_the_gradient_that_differences_give(name, numerical_gradient):
    with np.errstate(all="ignore"):
        weights = np.cos(np.arange(np.size(X))).reshape(np.shape(X))

        def scalar(x):
            return np.sum(weights * ONE[name](np, x))

        got = grad(scalar)(X)
        wanted = numerical_gradient(scalar, X)
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ONE)
def test_gradients_have_gradients_and_keep_the_dtype(name):
    function = ONE[name]
    x = X
    with np.errstate(all="ignore"):
        shape = np.shape(function(np, x))
    weights = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    first = grad(lambda x: np.sum(weights * function(np, x)))
    assert first(x.astype("f4")).dtype == np.float32
    random = np.random.default_rng(0)
    u, v = random.normal(size=(2, *x.shape))
    v = np.where(np.isnan(x), 0, v)
    second = grad(lambda x: np.sum(u * first(x)))(x)
    slope = (first(x + 1e-6 * v) - first(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(np.sum(v * second), np.sum(u * slope), rtol=1e-4, atol=1e-4)


OF_INTEGERS = {
    "bits": lambda i: (i & 6) | (9 ^ i) + (~i),
    "reflected": lambda i: (6 & i) | (1 | i),
    "shifts": lambda i: (i << 2) + (i >> 1) + np.right_shift(i, [1, 0, 2]),
    "reflected_shifts": lambda i: (1 << (i & 3)) + (100 >> (i & 3)),
    "count": lambda i: np.bitwise_count(i) + np.gcd(i, 6) + np.lcm(i, 4),
    "divided": lambda i: i // 2 + i % 5 + 7 // i + np.fmod(i, 4) + divmod(i, 3)[1],
    "reciprocal": lambda i: np.reciprocal(i),
    "invert": lambda i: np.invert(i) + np.bitwise_not(i),
    "round": lambda i: np.round(i) + i.round(2) + np.ceil(i) + np.trunc(i),
    "float": lambda i: np.sinc(i) + np.fabs(i) + np.modf(i / 4)[0] + np.float_power(i * i, 2),
    "ldexp": lambda i: np.ldexp(1.5, i) + np.ldexp(i, 2),
    "nan_to_num": lambda i: np.nan_to_num(i),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_of_integers_gives_what_numpy_gives(name):
    wanted = OF_INTEGERS[name](I)
    got = jit(OF_INTEGERS[name])(I)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_bits_of_booleans_are_logic():
    got = jit(lambda b: (b & True) ^ ~b | np.bitwise_or(b, b))(B)
    np.testing.assert_array_equal(got, [True, True, True])
    assert got.dtype == bool


def test_in_place_operators_change_the_array():
    def function(i):
        j = i * 1
        k = j
        k //= 2
        k &= 7
        k <<= 1
        k %= 9
        return j

    def by_numpy(i):
        j = i * 1
        j //= 2
        j &= 7
        j <<= 1
        j %= 9
        return j

    np.testing.assert_array_equal(jit(function)(I), by_numpy(I))


def test_python_numbers_stay_weak_under_operators():
    def function(x, n):
        return x * (n // 2) + x * (n % 2) + x * (n << 1)

    got = jit(function)(X.astype("f4"), 5)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, function(X.astype("f4"), 5))


@pytest.mark.parametrize(
    "function",
    [np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.arcsinh, np.arccosh,
     np.arctanh, np.exp2, np.log2, np.log10, np.reciprocal, np.sinc, np.rint, np.nan_to_num,
     lambda z: z + np.angle(z), lambda z: z + np.angle(z, deg=True)],
)  # fmt: skip
def test_of_complex_numbers(function):
    np.testing.assert_allclose(jit(function)(Z), function(Z), rtol=1e-13)

    def real(z):
        value = function(z)
        return np.sum(value.real * value.real + 2 * value.imag)

    got, step = grad(real)(Z), 1e-6
    for number in range(3):
        for unit, part in ((1, got[number].real), (1j, got[number].imag)):
            d = step * unit * np.eye(3)[number]
            slope = (real(Z + d) - real(Z - d)) / (2 * step)
            np.testing.assert_allclose(part, slope, rtol=1e-5, atol=1e-7)


SPECIAL = [np.inf, -np.inf, np.nan, -0.0, -3.0, 0.0, 1e300, -1e-320, 2, 7]


def test_special_numbers_come_apart_as_in_numpy():
    x = np.array(SPECIAL)
    for function in (np.modf, np.frexp):
        got = jit(lambda x, function=function: tuple(function(x)))(x)
        for one, other in zip(got, function(x), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
    np.testing.assert_array_equal(jit(np.nan_to_num)(x), np.nan_to_num(x))
    given = {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}
    got = jit(lambda x: np.nan_to_num(x, **given))(x)
    np.testing.assert_array_equal(got, np.nan_to_num(x, **given))


def test_the_slope_of_a_fraction_is_one_at_whole_numbers_too():
    x = np.array([-1.0, 0.0, 2.0, 0.5])
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.modf(x)[0]))(x), np.ones(4))


def test_sinc_is_exact_at_zero_in_every_order():
    """PyTorch's is NaN or wrong there from the second derivative on."""
    f = np.sinc
    wanted = [1, 0, -(np.pi**2) / 3, 0, np.pi**4 / 5, 0, -(np.pi**6) / 7]
    for value in wanted:
        np.testing.assert_allclose(f(0.0), value, rtol=1e-14, atol=1e-14)
        f = sd.grad(f)
    # Near 0 the difference of cos and sinc would have no digits left.
    np.testing.assert_allclose(sd.grad(np.sinc)(1e-9), -(np.pi**2) / 3 * 1e-9, rtol=1e-14)


@pytest.mark.parametrize("policy", ["masked", "strict"])
@pytest.mark.parametrize("f", [np.hypot, np.arctan2])
def test_derivatives_at_the_origin_are_zero_in_every_order(f, policy):
    """There is none: the gradient is declared 0, and so is what that changes by."""
    for _ in range(3):
        for argnum in (0, 1):
            assert sd.grad(f, argnum, nan_policy=policy)(0.0, 0.0) == 0
        one, other = (sd.grad(f, argnum, nan_policy=policy) for argnum in (0, 1))

        def f(x, y, one=one, other=other):
            return one(x, y) + 2 * other(x, y)


def test_derivatives_do_not_overflow_before_the_function_does():
    x = np.array([300.0, -1000.0], "f2")
    np.testing.assert_allclose(grad(lambda x: np.sum(np.arcsinh(x)))(x), 1 / abs(x), rtol=2e-3)
    np.testing.assert_allclose(
        grad(lambda x: np.sum(np.arctan(x)))(x), [1 / 9e4, 1e-6], rtol=2e-2
    )
    np.testing.assert_allclose(grad(np.arctan2)(1e-200, 1e-200), 5e199)
    np.testing.assert_array_equal(grad(np.logaddexp)(1000.0, 0.0), 1)


def test_what_has_no_meaning_raises():
    with pytest.raises(TraceError, match="bitwise_and: not defined for: float64"):
        jit(lambda x: x & 1)(X)
    with pytest.raises(DTypeError, match="ldexp: exponents are float64"):
        jit(lambda x: np.ldexp(x, x))(X)
    with pytest.raises(TraceError, match="round: integers to negative places"):
        jit(lambda i: np.round(i, -1))(I)
    with pytest.raises(TraceError, match="copy=False"):
        jit(lambda x: np.nan_to_num(x, copy=False))(X)
