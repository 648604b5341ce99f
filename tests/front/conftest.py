"""What the tests of the front share."""

import numpy as np
import pytest


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
