"""Functions on which global optimisers are compared."""

import math

import numpy as np


def ackley(x, a=20.0, b=0.2):
    d = len(x)
    s1 = s2 = 0.0
    for xi in x:
        s1 += xi**2
        s2 += np.cos(2 * np.pi * xi)
    return -a * np.exp(-b * np.sqrt(s1 / d)) - np.exp(s2 / d) + a + math.e


def levy(x):
    w = 1 + (x - 1) / 4
    first = np.sin(np.pi * w[0]) ** 2
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return first + middle + last


def griewank(x):
    i = np.arange(1.0, len(x) + 1)
    return np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(i))) + 1


def trid(x):
    distance = sum((xi - 1) ** 2 for xi in x)
    return distance - sum(x[i] * x[i - 1] for i in range(1, len(x)))


def powell_blocks(x):
    blocks = x.reshape(-1, 4)
    f = 0.0
    for p, q, r, s in blocks:
        f += (p + 10 * q) ** 2 + 5 * (r - s) ** 2 + (q - 2 * r) ** 4 + 10 * (p - s) ** 4
    return f


EXAMPLES = {
    "ackley": [(np.array([0.7, -0.4, 1.3]),)],
    "levy": [(np.array([1.7, -0.4, 2.3]),)],
    "griewank": [(np.array([1.7, -2.4, 0.8]),)],
    "trid": [(np.array([1.5, 2.0, 0.3, -1.0]),)],
    "powell_blocks": [(np.array([3.0, -1.0, 0.2, 1.0, 0.3, 0.4, -0.5, 1.1]),)],
}
