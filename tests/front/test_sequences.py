"""Tests of front/reducing.py, sequences.py, ordering.py and quantiles.py against NumPy."""

# ruff: noqa: E501  (one function a line)

import warnings

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front import grad, jit, value_and_grad

X = np.array([[0.31, -1.23, 2.67, 0.9], [0.76, 1.94, -0.41, -2.2], [1.1, 0.2, 0.5, -0.7]])
V = np.array([0.5, -1.5, 2.0, 0.8])
S = np.array([-1.0, -0.3, 0.6, 1.7])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True] * 4])
GAPS = X.copy()
GAPS[0, 1] = GAPS[2, 3] = GAPS[1, 0] = np.nan
METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased",
    "normal_unbiased", "lower", "higher", "midpoint", "nearest",
]  # fmt: skip

ONE = {
    "prod": lambda np, x: np.prod(x, axis=0) + x.prod() + np.multiply.reduce(x)[0],
    "prod_axes": lambda np, x: np.prod(x[None], axis=(0, 2), keepdims=True) * x.prod(-1).sum(),
    "prod_initial": lambda np, x: np.prod(x, axis=1, initial=2.0, where=MASK),
    "sum_where": lambda np, x: np.sum(x, axis=0, where=MASK, initial=1.5) + x.sum(where=MASK),
    "sum_where_traced": lambda np, x: np.sum(x * x, where=x > 0) * np.mean(x, where=x > 0),
    "max_where": lambda np, x: np.max(x, axis=0, where=MASK, initial=-9.0) + x.min(initial=0.1),
    "mean_where": lambda np, x: np.mean(x, axis=1, where=MASK) + x.mean(where=MASK, axis=(0, 1)),
    "var_where": lambda np, x: np.var(x, axis=1, where=MASK) + np.std(x, where=MASK, ddof=1),
    "var_mean": lambda np, x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)),
    "var_correction": lambda np, x: np.var(x, axis=0, correction=1) + np.std(x, correction=0.5),
    "any_all": lambda np, x: x * np.any(x > 2, axis=0) + x * np.all(x > -2, axis=0) + x.any(),
    "logical_reduce": lambda np, x: x[0] * np.logical_or.reduce(x > 1) + x[0] * (x > 0).all(0),
    "reductions": lambda np, x: (
        np.logaddexp.reduce(x) + np.fmax.reduce(x) * np.fmin.reduce(x, axis=1, keepdims=True)
    ),
    "any_where": lambda np, x: x * np.any(x > 0, where=MASK) + x * np.all(x > 0, where=x > 0),
    "count_nonzero": lambda np, x: x * np.count_nonzero(x > 0, axis=0),
    "argmax": lambda np, x: x * np.argmax(x, axis=0) + x * np.argmin(x) + x.argmax(1)[:, None],
    "argmax_keepdims": lambda np, x: x * np.argmin(x, axis=1, keepdims=True),
    "ptp": lambda np, x: np.ptp(x, axis=0) + np.ptp(x, keepdims=True),
    "cumsum": lambda np, x: np.cumsum(x, axis=0) * x.cumsum(1) + np.add.accumulate(x),
    "cumsum_flat": lambda np, x: np.cumsum(x) * x.cumsum(),
    "cumprod": lambda np, x: np.cumprod(x, axis=-1) + x.cumprod(0) + np.multiply.accumulate(x),
    "cumprod_flat": lambda np, x: np.cumprod(x),
    "diff": lambda np, x: np.diff(x, n=2, axis=0, prepend=0.5, append=x[:1]),
    "diff_zero": lambda np, x: np.diff(x, n=0) * x,
    "ediff1d": lambda np, x: np.ediff1d(x, to_begin=x[0, 0], to_end=[1.0, 2.0]) * 2,
    "gradient": lambda np, x: np.gradient(x)[0] * np.gradient(x, axis=1),
    "gradient_spaced": lambda np, x: np.gradient(x, S, axis=1) + np.gradient(x, 0.5, axis=0),
    "gradient_edges": lambda np, x: (
        np.gradient(x, S, axis=1, edge_order=2) + np.gradient(x, 2.0, edge_order=2)[1]
    ),
    "gradient_of_points": lambda np, x: np.gradient(V, np.cumsum(x[0] ** 2), edge_order=2),
    "trapezoid": lambda np, x: np.trapezoid(x) + np.trapezoid(x, S) + np.trapezoid(x, dx=2),
    "trapezoid_axis": lambda np, x: np.trapezoid(x, [0.0, 1, 3], axis=0) + np.trapezoid(V, x)[0],
    "unwrap": lambda np, x: np.unwrap(4 * x) + np.unwrap(3 * x, axis=0, period=2.5, discont=2),
    "convolve": lambda np, x: np.convolve(x[0], V) * np.convolve(V, x[1]),
    "convolve_same": lambda np, x: np.convolve(x[0], x[1, :3], "same") + np.convolve(
        x[0, :2], x[1], "same"
    ),
    "convolve_valid": lambda np, x: np.convolve(x[0], x[1, :2], "valid"),
    "correlate": lambda np, x: np.correlate(x[0], V) * np.correlate(x[0], x[1, :3], "full"),
    "correlate_same": lambda np, x: np.correlate(x[0], x[1, :2], "same") + np.correlate(
        x[0, :3], x[1], "same"
    ),
    "correlate_valid": lambda np, x: np.correlate(x[0, :2], x[1], "valid"),
    "cross": lambda np, x: np.cross(x.T, V[:3]) * np.cross(V[:3], x, axisb=0),
    "cross_axis": lambda np, x: np.cross(x, 2 * x[:, ::-1], axis=0),
    "cov": lambda np, x: np.cov(x) + np.cov(x, bias=True) + np.cov(x, ddof=2),
    "cov_of_two": lambda np, x: np.cov(x[0], x[1]) * np.cov(x[0]) + np.cov(x[:2])[0, 0],
    "cov_weights": lambda np, x: np.cov(x, fweights=[1, 2, 1, 3], aweights=[0.1, 0.2, 1, 2]),
    "cov_columns": lambda np, x: np.cov(x, rowvar=False),
    "corrcoef": lambda np, x: np.corrcoef(x) + np.corrcoef(x[0], x[1])[0, 1],
    "sort": lambda np, x: np.sort(x) * V + np.sort(x, axis=0, kind="stable") * x,
    "sort_flat": lambda np, x: np.sort(x, axis=None) * np.arange(12),
    "argsort": lambda np, x: x * np.argsort(x) + x * x.argsort(axis=0, kind="stable"),
    "partition": lambda np, x: np.partition(x, 1)[:, 1] + np.partition(x, [0, 2], axis=0)[2, 0],
    "argpartition": lambda np, x: x[:, :1] * np.argpartition(x, 2)[:, 2:3],
    "take_along_axis": lambda np, x: (
        np.take_along_axis(x, np.argsort(x, axis=0), axis=0)
        + np.take_along_axis(x, np.array([[0, -1, 2, 0]]), axis=1)
    ),
    "take_along_broadcast": lambda np, x: np.take_along_axis(x[:1], np.ones((3, 2), int), 1),
    "searchsorted": lambda np, x: x * np.searchsorted(S, x) + x * np.searchsorted(S, x, "right"),
    "searchsorted_traced": lambda np, x: x * np.searchsorted(np.sort(x[0]), V),
    "digitize": lambda np, x: x * np.digitize(x, S) - x * np.digitize(x, S[::-1], right=True),
    "bincount": lambda np, x: np.bincount([0, 2, 2, 5], weights=x[0], minlength=7) ** 2,
    "histogram": lambda np, x: x[0, 0] * np.histogram(x, S)[0] + np.histogram(x, 3, (-1, 1))[1][1],
    "histogram_weights": lambda np, x: np.histogram(X, S, weights=x * x)[0],
    "histogram_density": lambda np, x: x[0, 0] * np.histogram(x, 4, (-3, 3), density=True)[0],
    "interp": lambda np, x: np.interp(x, S, V) + np.interp(x, S, V, left=5.0, right=-1.0),
    "interp_values": lambda np, x: np.interp(X, S, x[0]) * x,
    "interp_knots": lambda np, x: np.interp(X / 3, np.cumsum(x[1] ** 2) - 3, V),
    "interp_period": lambda np, x: np.interp(3.1 * x, S, V, period=2.9),
    "interp_one": lambda np, x: np.interp(x, S[:1], x[0, :1], left=x[1, 1]),
    "average": lambda np, x: np.average(x) + np.average(x, 0) + np.average(x, 1, weights=V)[0],
    "average_weights": lambda np, x: np.average(X, axis=0, weights=x**2) + np.average(
        x, weights=X**2, returned=True
    )[0],
    "average_total": lambda np, x: np.average(x, axis=1, weights=x[0] ** 2, returned=True)[1],
    "median": lambda np, x: np.median(x) + np.median(x, axis=0) + np.median(x, 1, keepdims=True),
    "median_axes": lambda np, x: np.median(x[None], axis=(0, 2)) * np.median(x[0, :1]),
    "quantile": lambda np, x: np.quantile(x, 0.3, axis=0) + np.quantile(x, [0.9, 0, 1.0])[0],
    "quantile_keepdims": lambda np, x: np.quantile(x, [[0.1], [0.7]], axis=1, keepdims=True),
    "percentile": lambda np, x: np.percentile(x, 30) * x + np.percentile(x, [20, 70], axis=0)[1],
    "nan_clean": lambda np, x: np.nanmedian(x, axis=0) + np.nanmax(x) + np.nanpercentile(x, 40),
    **{
        f"quantile_{method}": lambda np, x, method=method: np.quantile(
            x, [0.0, 0.13, 0.25, 0.5, 0.77, 1.0], axis=1, method=method
        )
        for method in METHODS
    },
}  # fmt: skip
if hasattr(np, "cumulative_sum"):
    ONE["cumulative"] = lambda np, x: (
        np.cumulative_sum(x, axis=0, include_initial=True)[1:] + np.cumulative_prod(x, axis=0)
    )

# Of arrays with NaNs in them.
GAPPED = {
    "nansum": lambda np, x: np.nansum(x, axis=0) + np.nansum(x, where=MASK, initial=1.0),
    "nanprod": lambda np, x: np.nanprod(x, axis=1, keepdims=True) * np.nanprod(x),
    "nancum": lambda np, x: np.nancumsum(x, axis=0) * np.nancumprod(x, axis=0),
    "nanmean": lambda np, x: np.nanmean(x, axis=0) + np.nanmean(x, where=MASK),
    "nanvar": lambda np, x: np.nanvar(x, axis=0) + np.nanstd(x, ddof=1),
    "nanmax": lambda np, x: np.nanmax(x, axis=0) * np.nanmin(x, axis=1, keepdims=True),
    "nanmedian": lambda np, x: np.nanmedian(x, axis=0) + np.nanmedian(x) + np.nanmedian(x, 1)[0],
    "nanquantile": lambda np, x: np.nanquantile(x, [0.2, 0.8], axis=0, keepdims=True)
    * np.nanpercentile(x, 35),
    **{
        f"nanquantile_{method}": lambda np, x, method=method: np.nanquantile(
            x, [0.0, 0.13, 0.5, 0.77, 1.0], axis=0, method=method
        )
        for method in METHODS
    },
}  # fmt: skip


@pytest.mark.parametrize("namespace", [np, snp], ids=["numpy", "stagedad.numpy"])
@pytest.mark.parametrize("name", [*ONE, *GAPPED])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gives_what_numpy_gives(name, namespace, dtype):
    function = ONE.get(name) or GAPPED[name]
    x = (X if name in ONE else GAPS).astype(dtype)
    wanted = np.asarray(function(np, x))
    got = jit(lambda x: function(namespace, x))(x)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    tolerance = 1e-12 if wanted.dtype == np.float64 and dtype == "f8" else 1e-5
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*ONE, *GAPPED])
def test_has_the_gradient_that_differences_give(name, numerical_gradient):
    function = ONE.get(name) or GAPPED[name]
    x = X if name in ONE else GAPS
    shape = np.shape(function(np, x))
    weights = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)

    def scalar(x):
        return np.sum(weights * function(np, x))

    value, got = value_and_grad(scalar)(x)
    np.testing.assert_allclose(value, scalar(x), rtol=1e-12)
    wanted = numerical_gradient(scalar, x)
    # What is left out has no part in the result.
    np.testing.assert_allclose(got, np.where(np.isnan(x), 0, wanted), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", [*ONE, *GAPPED])
def test_gradients_have_gradients_and_keep_the_dtype(name):
    function = ONE.get(name) or GAPPED[name]
    x = X if name in ONE else GAPS
    weights = np.cos(np.arange(np.size(function(np, x)))).reshape(np.shape(function(np, x)))
    first = grad(lambda x: np.sum(weights * function(np, x)))
    assert first(x.astype("f4")).dtype == np.float32
    random = np.random.default_rng(0)
    u, v = random.normal(size=(2, *x.shape))
    v = np.where(np.isnan(x), 0, v)
    second = grad(lambda x: np.sum(u * first(x)))(x)
    slope = (first(x + 1e-6 * v) - first(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(np.sum(v * second), np.sum(u * slope), rtol=1e-4, atol=1e-4)


OF_INTEGERS = {
    "prod": lambda i: np.prod(i, axis=0) + i.prod(),
    "sums": lambda i: np.cumsum(i, axis=0) + np.cumprod(i, axis=1) + np.sum(i, where=i > 2),
    "extrema": lambda i: np.ptp(i) + np.argmax(i, axis=0) + np.max(i, initial=9),
    "mean": lambda i: np.mean(i, where=i > 1) + np.median(i) + np.quantile(i, 0.3),
    "lower": lambda i: np.quantile(i, [0.2, 0.9], method="lower", axis=0),
    "sort": lambda i: np.sort(i) + np.argsort(i, kind="stable"),
    "nan": lambda i: np.nansum(i) + np.nanmax(i, axis=0) + np.nanmedian(i) + np.nanvar(i),
    "convolve": lambda i: np.convolve(i[0], [1, 2]) + np.ediff1d(i[0], 5, 6)[0],
    "unwrap": lambda i: np.unwrap(i, period=4) + np.unwrap(i, period=3, axis=0),
    "average": lambda i: np.average(i, weights=i, axis=0) + np.average(i),
    "gradient": lambda i: np.gradient(i, axis=1) + np.trapezoid(i, axis=0),
    "interp": lambda i: np.interp(i, [0, 3], [1, 5]) + np.digitize(i, [2, 4]),
    "digitize": lambda i: (
        np.digitize(i, [1, 2, 4])
        + 10 * np.digitize(i, [1, 2, 4], right=True)
        + 100 * np.digitize(i, [5, 3, 1])
        + 1000 * np.digitize(i, [5, 3, 1], right=True)
    ),
    "initial": lambda i: (
        np.sum(i, initial=2.0) + np.prod(i, 0, initial=3.0) + np.max(i, initial=4.0)
    ),
    "where_initial": lambda i: np.min(i, axis=0, where=i > 2, initial=6.0),
    "cov": lambda i: np.cov(i),
}


@pytest.mark.parametrize("name", OF_INTEGERS)
@pytest.mark.parametrize("dtype", ["i8", "i2"])
def test_of_integers_gives_what_numpy_gives(name, dtype):
    numbers = np.array([[3, 1, 2], [7, 5, 4]], dtype)
    wanted = OF_INTEGERS[name](numbers)
    got = jit(OF_INTEGERS[name])(numbers)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


@pytest.mark.parametrize(
    "function",
    [np.prod, np.cumprod, np.cumsum, np.sort, np.std, np.var, lambda z: np.convolve(z, z),
     lambda z: np.correlate(z, 1j * z, "full"), lambda z: np.interp([0.3, 0.9], [0, 1, 2], z),
     lambda z: np.cov([1, 2j, 3], z), np.median],
)  # fmt: skip
def test_of_complex_numbers(function):
    z = np.array([0.3 + 0.4j, -1.2 - 0.1j, 0.6 - 2j])
    np.testing.assert_allclose(jit(function)(z), function(z), rtol=1e-13)

    def real(z):
        value = function(z)
        return np.sum(np.cos(np.arange(value.size).reshape(value.shape)) * value.real) + np.sum(
            2 * np.imag(value)
        )

    got, step = grad(real)(z), 1e-6
    for number in range(3):
        for unit, part in ((1, got[number].real), (1j, got[number].imag)):
            d = step * unit * np.eye(3)[number]
            slope = (real(z + d) - real(z - d)) / (2 * step)
            np.testing.assert_allclose(part, slope, rtol=1e-5, atol=1e-7)


EMPTY = {
    "prod": lambda x: np.prod(x, axis=0) + np.sum(x) + np.prod(x),
    "cumulative": lambda x: np.cumsum(x, axis=0) + np.cumprod(x, axis=0),
    "logic": lambda x: np.any(x, axis=0) * 1.0 + np.all(x, axis=0),
    "sort": lambda x: np.sort(x, axis=0) + np.argsort(x, axis=0),
    "diff": lambda x: np.diff(x[:, :1]),
    "nansum": lambda x: np.nansum(x, axis=0),
    "searchsorted": lambda x: np.searchsorted([1.0], x) * x,
}


@pytest.mark.parametrize("name", EMPTY)
def test_of_nothing(name):
    x = np.zeros((0, 3))
    wanted = EMPTY[name](x)
    value, got = value_and_grad(lambda x: np.sum(EMPTY[name](x)))(x)
    assert got.shape == (0, 3)
    assert value == np.sum(wanted)
    assert jit(EMPTY[name])(x).shape == wanted.shape


def test_of_one_number():
    for function in (np.cumsum, np.cumprod, np.prod, np.median, np.ptp):
        x = np.float64(2.5)
        wanted = function(x)
        assert np.shape(jit(function)(x)) == np.shape(wanted)
        np.testing.assert_array_equal(jit(function)(x), wanted)
        slope = grad(lambda x, function=function: np.sum(function(x)))(x)
        assert slope == (0 if function is np.ptp else 1)


def test_a_nan_makes_a_quantile_nan_and_only_its_own():
    got = jit(lambda x: (np.median(x, axis=1), np.quantile(x, [0.2, 0.4], axis=0)))(GAPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(got[0], np.median(GAPS, axis=1))
        np.testing.assert_allclose(got[1], np.quantile(GAPS, [0.2, 0.4], axis=0))


def test_columns_of_nans_only_are_nan():
    x = np.array([[1.0, np.nan], [2.0, np.nan]])
    for function in (np.nanmax, np.nanmin, np.nanmean, np.nanmedian, np.nanvar):
        got = jit(lambda x, function=function: function(x, axis=0))(x)
        assert np.isnan(got).tolist() == [False, True]
        slope = grad(lambda x, function=function: function(x, axis=0)[0])(x)
        assert np.isfinite(slope).all()


def test_sums_of_equal_numbers_share():
    x = np.array([1.0, 1.0, 0.0])
    np.testing.assert_array_equal(grad(np.max)(x), [0.5, 0.5, 0])
    np.testing.assert_array_equal(grad(np.ptp)(x), [0.5, 0.5, -1])
    np.testing.assert_array_equal(grad(lambda x: np.sort(x)[2])(x), [0, 1, 0])
    np.testing.assert_array_equal(grad(np.std)(np.ones(3)), [0, 0, 0])
    np.testing.assert_array_equal(grad(np.nanstd)(np.ones(3)), [0, 0, 0])


REFUSED = {
    "bincount": lambda x: np.bincount(x.astype(int)),
    "digitize": lambda x: np.digitize(V, x),
    "histogram": lambda x: np.histogram(x),
    "quantile_of_traced": lambda x: np.quantile(V, x[0]),
    "quantile_weights": lambda x: np.quantile(x, 0.5, method="inverted_cdf", weights=V),
    "cov_weights": lambda x: np.cov(np.ones((2, 4)), aweights=x),
    "out": lambda x: np.cumsum(x, out=np.zeros(4)),
    "order": lambda x: np.sort(x, order="a"),
    "nanargmax": lambda x: np.nanargmax(x),
    "accumulate": lambda x: np.maximum.accumulate(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_carried_raises_at_the_users_line(name):
    with pytest.raises(TraceError, match=f"{__file__}:"):
        jit(REFUSED[name])(V)


WRONG = {
    "axis": (lambda x: np.cumsum(x, axis=1), ValueError),
    "sort_axis": (lambda x: np.sort(x, axis=3), ValueError),
    "kth": (lambda x: np.argpartition(x, 7), ShapeError),
    "q": (lambda x: np.quantile(x, 1.5), ValueError),
    "method": (lambda x: np.quantile(x, 0.5, method="middle"), ValueError),
    "complex": (lambda x: np.quantile(x * 1j, 0.5), DTypeError),
    "weights": (lambda x: np.average(x, weights=[1.0, -1, 0, 0]), ZeroDivisionError),
    "bincount": (lambda x: np.bincount([0, -1, 2, 1], weights=x), ValueError),
    "max_where": (lambda x: np.max(x, where=[True] * 4), ValueError),
    "convolve": (lambda x: np.convolve(x, x[:0]), ShapeError),
    "mode": (lambda x: np.convolve(x, x, "some"), ValueError),
    "interp": (lambda x: np.interp(0.5, x, x[:2]), ShapeError),
    "diff": (lambda x: np.diff(x, n=-1), ValueError),
    "empty": (lambda x: np.median(x[:0]), ValueError),
    "side": (lambda x: np.searchsorted(x, 1.0, side="middle"), ValueError),
    "mask": (lambda x: np.sum(x, where=np.ones((2, 4), bool)), ValueError),
    "bool": (lambda x: np.gradient(x > 0), TypeError),
    "ends": (lambda x: np.ediff1d(x, to_end=1j), TypeError),
    "complex_bins": (lambda x: np.digitize(1j * x, S), TypeError),
    "complex_weights": (lambda x: np.bincount([0, 1, 2, 1], weights=1j * x), TypeError),
    "complex_points": (lambda x: np.interp(1j * x, S, V), TypeError),
    "edge_order": (lambda x: np.gradient(x, edge_order=3), ValueError),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_raises(name):
    function, error = WRONG[name]
    with pytest.raises(error):
        jit(function)(V)


BIG = np.linspace(0.0, 1.0, 20_000).copy()
FLAGS = BIG > 0.5
WIDE = BIG.reshape(100, 200)
DERIVED = {
    "trapezoid": lambda y: np.trapezoid(y, BIG),
    "gradient": lambda y: np.sum(np.gradient(y, BIG) * y),
    "interp": lambda y: np.sum(np.interp(y, BIG, BIG)),
    "quantile": lambda y: np.sum(np.quantile(y[:5], BIG)),
    "digitize": lambda y: np.sum(np.digitize(y, BIG) * y),
    "mean": lambda y: np.mean(y, where=FLAGS) + np.var(y, where=FLAGS),
    "average": lambda y: np.average(y, weights=BIG),
    "correlate": lambda y: np.sum(np.correlate(y[:3], BIG[:2])),
    "histogram": lambda y: np.sum(y[0] * np.histogram(y, BIG)[0]),
    "cov": lambda y: np.sum(np.cov(y, BIG, aweights=BIG)),
    "cross": lambda y: np.sum(np.cross(y[:3], BIG[2:5])),
    "outer": lambda y: np.sum(np.outer(y[:2], WIDE.T)),
    "dot": lambda y: np.sum(y[:100].dot(BIG.reshape(2, 100, 100).T)),
    "tensordot": lambda y: np.tensordot(y.reshape(100, 200), WIDE.T, ([0, 1], [1, 0])),
    "einsum": lambda y: np.einsum("ij,ki->", y[:400].reshape(2, 200), WIDE[:, :2]),
    "choose": lambda y: np.sum(np.choose(FLAGS, [y, BIG])),
    "block": lambda y: np.sum(np.block([[WIDE.T], [y.reshape(200, 100)]])),
    "append": lambda y: np.sum(np.append(y, WIDE.T)),
    "select": lambda y: np.sum(np.select([FLAGS], [y], FLAGS)),
    "concatenate": lambda y: np.sum(np.concatenate([y, FLAGS])),
    "array": lambda y: np.sum(snp.array([y, FLAGS])),
    "lstsq": lambda y: np.sum(np.linalg.lstsq(np.diag(y[:50]), BIG[:50], rcond=None)[0]),
    "unwrap": lambda y: np.sum(np.unwrap(y * BIG) + np.diff(y, append=BIG[:1])),
    "searchsorted": lambda y: y[0] * np.searchsorted(BIG, y[4], sorter=np.arange(20_000)),
    "sum": lambda y: np.sum(y, where=FLAGS, initial=BIG[5]) + np.max(y, where=FLAGS, initial=0),
}


@pytest.mark.parametrize("name", DERIVED)
def test_changes_of_closed_over_arrays_are_seen(name):
    y = 0.3 + np.arange(20_000.0) / 30_000
    function = jit(DERIVED[name])
    before = BIG.copy(), FLAGS.copy()
    np.testing.assert_allclose(function(y), DERIVED[name](y), rtol=1e-10)
    try:
        BIG[...], FLAGS[...] = BIG**2, BIG < 0.3
        np.testing.assert_allclose(function(y), DERIVED[name](y), rtol=1e-10)
    finally:
        BIG[...], FLAGS[...] = before


def test_means_of_half_floats_do_not_overflow():
    x = np.full(4000, 100, "f2")
    mask = np.arange(4000) % 2 == 0
    got = jit(lambda x: np.mean(x, where=mask))(x)
    assert got == 100
    assert got.dtype == np.float16
