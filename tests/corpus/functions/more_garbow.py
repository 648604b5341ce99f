"""The test functions of Moré, Garbow and Hillstrom (1981)."""

import numpy as np


def extended_rosenbrock(x):
    n = len(x)
    f = np.zeros(n)
    for i in range(n // 2):
        f[2 * i] = 10 * (x[2 * i + 1] - x[2 * i] ** 2)
        f[2 * i + 1] = 1 - x[2 * i]
    return f


def helical_valley(x):
    theta = np.arctan(x[1] / x[0]) / (2 * np.pi)
    if x[0] < 0:
        theta += 0.5
    f = np.zeros(3)
    f[0] = 10 * (x[2] - 10 * theta)
    f[1] = 10 * (np.sqrt(x[0] ** 2 + x[1] ** 2) - 1)
    f[2] = x[2]
    return f


def watson(x):
    n = x.size
    f = np.zeros(31)
    for i in range(29):
        t = (i + 1) / 29
        slope = 0.0
        level = 0.0
        for j in range(n):
            if j > 0:
                slope += j * x[j] * t ** (j - 1)
            level += x[j] * t**j
        f[i] = slope - level**2 - 1
    f[29] = x[0]
    f[30] = x[1] - x[0] ** 2 - 1
    return f @ f


def extended_powell_singular(x):
    a, b, c, d = x[0::4], x[1::4], x[2::4], x[3::4]
    f = np.zeros_like(x)
    f[0::4] = a + 10 * b
    f[1::4] = np.sqrt(5.0) * (c - d)
    f[2::4] = (b - 2 * c) ** 2
    f[3::4] = np.sqrt(10.0) * (a - d) ** 2
    return f


def variably_dimensioned(x):
    weights = np.arange(1, x.shape[0] + 1)
    s = np.sum(weights * (x - 1))
    return np.concatenate([x - 1, [s, s**2]])


def brown_almost_linear(x):
    n = len(x)
    f = x + np.sum(x) - (n + 1)
    product = 1.0
    for xi in x:
        product *= xi
    f[-1] = product - 1
    return f


def discrete_boundary_value(x):
    n = len(x)
    h = 1.0 / (n + 1)
    padded = np.zeros(n + 2)
    padded[1:-1] = x
    t = h * np.arange(1, n + 1)
    return 2 * x - padded[:-2] - padded[2:] + 0.5 * h**2 * (x + t + 1) ** 3


def broyden_tridiagonal(x):
    f = (3 - 2 * x) * x + 1
    f[1:] -= x[:-1]
    f[:-1] -= 2 * x[1:]
    return f


def broyden_banded(x):
    n = len(x)
    f = x * (2 + 5 * x**2) + 1
    for i in range(n):
        for j in range(max(0, i - 5), min(n, i + 2)):
            if j != i:
                f[i] -= x[j] * (1 + x[j])
    return np.sum(f**2)


def chebyquad(x):
    n = len(x)
    f = np.zeros(n)
    for xj in x:
        previous, current = 1.0, 2 * xj - 1
        for i in range(n):
            f[i] += current / n
            previous, current = current, 2 * (2 * xj - 1) * current - previous
    for i in range(1, n, 2):
        f[i] += 1 / ((i + 1) ** 2 - 1)
    return f


EXAMPLES = {
    "extended_rosenbrock": [(np.array([-1.2, 1.0, 0.4, -0.7]),)],
    "helical_valley": [(np.array([-1.0, 0.4, 0.3]),), (np.array([1.2, 0.5, -0.2]),)],
    "watson": [(np.array([0.1, 0.9, -0.2, 0.3]),)],
    "extended_powell_singular": [(np.array([3.0, -1.0, 0.2, 1.0, 2.0, -0.5, 0.4, 1.5]),)],
    "variably_dimensioned": [(np.array([0.75, 0.5, 0.25, 0.1]),)],
    "brown_almost_linear": [(np.array([0.5, 0.7, 1.1, 0.9]),)],
    "discrete_boundary_value": [(np.array([-0.1, -0.2, -0.15, -0.05]),)],
    "broyden_tridiagonal": [(np.array([-1.0, -0.8, -0.6, 0.3, -1.2]),)],
    "broyden_banded": [(np.array([-1.0, 0.4, -0.3, 0.2, -0.8, 0.6, 0.1]),)],
    "chebyquad": [(np.array([0.15, 0.4, 0.55, 0.9]),)],
}
