"""Tests of bench/rows.py and of the gradients that bench/peers/numpy_hand.py writes by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

import stagedad as sd

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "rows.py").exists():
    pytest.skip("bench/ is not beside the tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last: an installed stagedad comes first

from bench.agree import difference  # noqa: E402
from bench.peers.numpy_hand import GRADIENTS  # noqa: E402
from bench.rows import ROWS  # noqa: E402

SMALL = {"chain": 3, "rosenbrock": 5, "logistic": 6, "mlp": 2}


def doubled(row):
    """Arguments and cotangent of a small size in float64, for exact enough differences."""
    size = SMALL[row.name]
    cotangent = 1.0 if row.cotangent is None else row.cotangent(size)
    arguments = [argument.astype(float) for argument in row.arguments(size)]
    if row.name == "chain":  # 34 factors under one half leave nothing to see a difference in
        arguments = [argument + 0.75 for argument in arguments]
    return arguments, cotangent


def by_hand(row, arguments, cotangent):
    given = [] if row.cotangent is None else [cotangent]
    return GRADIENTS[row.name](*arguments, *given)


@pytest.fixture(params=sorted(ROWS))
def row(request):
    """Each row in turn."""
    return ROWS[request.param]


def test_every_row_is_a_function_by_its_name(row):
    import bench.rows

    assert getattr(bench.rows, row.name) is row
    assert row.over(np)(*row.arguments(SMALL[row.name])) is not None


def test_value_by_hand_is_the_rows_value(row):
    arguments, cotangent = doubled(row)
    value = by_hand(row, arguments, cotangent)[0]
    assert difference(float, (value,), (row(np, *arguments),)) is None


def test_gradient_by_hand_agrees_with_finite_differences(row):
    arguments, cotangent = doubled(row)
    gradients = by_hand(row, arguments, cotangent)[1:]
    random = np.random.default_rng(6)
    for position, gradient in zip(row.wrt, gradients, strict=True):
        assert gradient.shape == arguments[position].shape
        for _ in range(5):
            direction = random.standard_normal(gradient.shape)
            slope = _slope(row, arguments, cotangent, position, direction)
            scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
            assert np.vdot(gradient, direction) == pytest.approx(slope, abs=1e-7 * scale)


def test_gradient_by_hand_keeps_dtype_and_arguments(row):
    size = SMALL[row.name]
    arguments = row.arguments(size)
    cotangent = None if row.cotangent is None else row.cotangent(size)
    results = by_hand(row, arguments, cotangent)
    assert {np.asarray(result).dtype for result in results} == {arguments[0].dtype}
    for kept, fresh in zip(arguments, row.arguments(size), strict=True):
        np.testing.assert_array_equal(kept, fresh)
    if cotangent is not None:
        np.testing.assert_array_equal(cotangent, row.cotangent(size))


def test_the_pullback_costs_at_most_five_functions(row):
    for size in row.sizes:
        arguments = row.arguments(size)
        wanted = [position in row.wrt for position in range(len(arguments))]
        cost = sd.differentiate(sd.trace(row.over(np), *arguments), wanted).cost()
        assert cost.f > arguments[0].size
        assert 0 < cost.df <= 5 * cost.f


def test_arguments_are_the_same_in_every_run(row):
    for size in row.sizes[:2]:
        for one, other in zip(row.arguments(size), row.arguments(size), strict=True):
            assert one is not other
            np.testing.assert_array_equal(one, other)


def _slope(row, arguments, cotangent, position, direction, step=1e-4):
    """Derivative along a direction by five points, contracted with the cotangent."""

    def at(distance):
        moved = list(arguments)
        moved[position] = moved[position] + distance * direction
        return np.vdot(cotangent, row(np, *moved))

    near, far = at(step) - at(-step), at(2 * step) - at(-2 * step)
    return (8 * near - far) / (12 * step)
