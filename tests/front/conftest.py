"""What the tests of the front share."""

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.front import grad, jit


@pytest.fixture
def numerical_gradient():
    """Central differences of a scalar function of arrays, by the array at `argnum`."""

    def gradient(function, *arrays, argnum=0, step=1e-6):
        point = [np.array(array, dtype=float) for array in arrays]
        found = np.zeros_like(point[argnum])
        for index in np.ndindex(found.shape):
            values = []
            for side in (step, -step):
                moved = [array.copy() for array in point]
                moved[argnum][index] += side
                values.append(function(*moved))
            found[index] = (values[0] - values[1]) / (2 * step)
        return found

    return gradient


@pytest.fixture
def same_as_numpy(numerical_gradient):
    """Check one function of (np, x): values, types and gradients, with both namespaces.

    The function gives an array, or arrays in tuples and lists.
    """

    def check(function, x):
        wanted = leaves(function(np, x))
        weights = [np.cos(np.arange(each.size) + 1.0).reshape(each.shape) for each in wanted]
        for namespace in (np, snp):
            found = leaves(jit(lambda x, np=namespace: function(np, x))(x))
            assert len(found) == len(wanted)
            for got, want in zip(found, wanted, strict=True):
                assert got.dtype == want.dtype
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)

        def scalar(x):
            parts = zip(weights, leaves(function(np, x)), strict=True)
            total = 0.0
            for weight, part in parts:
                if part.dtype.kind == "c":
                    total = total + np.sum(weight * (np.real(part) + 0.7 * np.imag(part)))
                elif part.dtype.kind == "f":
                    total = total + np.sum(weight * part)
            return total

        got = grad(scalar)(x)
        assert got.dtype == x.dtype
        assert got.shape == x.shape
        np.testing.assert_allclose(got, numerical_gradient(scalar, x), rtol=2e-6, atol=4e-6)

    return check


def leaves(result):
    """The arrays of nested results; scalars and traced values as they are."""
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in leaves(each)]
    return [result]
