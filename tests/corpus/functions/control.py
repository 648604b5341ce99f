"""Python's control flow, decided by values."""

import numpy as np


def piecewise(x):
    if x[0] > 0:
        return x[0] ** 2 * x[1]
    return -x[0] * x[1] ** 2


def chained_comparison(x):
    out = 0.0
    for v in x:
        if -1 < v <= 0:
            out += v**2
        elif 0 < v < 1:
            out += v**3
        else:
            out += np.sin(v)
    return out


def biggest_and_smallest(a, b, c):
    largest = max([a, b, c])
    return largest**2 * min(a, b, c)


def sorted_weights(x):
    ranked = sorted(x, reverse=True)
    return sum(v / (k + 1) for k, v in enumerate(ranked))


def recursive_sum_of_squares(x):
    if len(x) == 1:
        return x[0] ** 2
    half = len(x) // 2
    return recursive_sum_of_squares(x[:half]) + recursive_sum_of_squares(x[half:])


def guarded_division(x):
    try:
        if x[1] == 0:
            raise ZeroDivisionError("no ratio")
        return x[0] / x[1]
    except ZeroDivisionError:
        return x[0] * 2 + x[1]


def solve_or_fall_back(A, b):
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        x = np.linalg.lstsq(A, b, rcond=None)[0]
    return x @ x


def any_and_all(x):
    if any(v < 0 for v in x):
        return np.sum(np.exp(x))
    if all(v > 1 for v in x):
        return np.sum(np.log(x))
    return np.prod(x)


def bubble_sort(x):
    a = list(x)
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return np.array(a)


def binary_search_cost(table, key):
    lo, hi = 0, len(table) - 1
    cost = 0.0
    while lo < hi:
        mid = (lo + hi) // 2
        cost += (table[mid] - key) ** 2
        if table[mid] < key:
            lo = mid + 1
        else:
            hi = mid
    return cost


def line_search(x):
    def f(z):
        return z[0] ** 4 + 2 * z[1] ** 2

    g = np.array([4 * x[0] ** 3, 4 * x[1]])
    step = 1.0
    while f(x - step * g) > f(x) - 0.3 * step * g @ g:
        step *= 0.5
    return f(x - step * g)


def collatz_of_floats(x):
    steps = 0
    while x > 1.5 and steps < 20:
        x = x / 2 if int(x) % 2 == 0 else 1.5 * x - 2
        steps += 1
    return x * steps


def dispatch_by_sign(x):
    table = {-1: np.exp, 0: np.cos, 1: np.log}
    return table[int(np.sign(x[0]))](np.abs(x)).sum()


def membership(x, thresholds=(0.5, 1.5)):
    level = len([t for t in thresholds if x.sum() > t])
    match level:
        case 0:
            return x[0] * x[1]
        case 1:
            return x[0] + x[1] ** 2
        case _:
            return np.sin(x[0]) * x[1]


EXAMPLES = {
    "piecewise": [(np.array([1.3, 0.7]),), (np.array([-1.3, 0.7]),)],
    "chained_comparison": [
        (np.array([-0.5, 0.4, 2.0, -1.5]),),
        (np.array([0.5, -0.4, 0.2, 1.5]),),
    ],
    "biggest_and_smallest": [(1.3, 0.7, 2.2), (3.3, 0.7, 0.2)],
    "sorted_weights": [(np.array([0.3, -1.2, 0.8, 0.1]),), (np.array([0.9, 0.2, -0.8, 2.1]),)],
    "recursive_sum_of_squares": [(np.array([0.3, -1.2, 0.8, 0.1, 2.0]),)],
    "guarded_division": [(np.array([1.3, 0.7]),), (np.array([-1.1, 2.0]),)],
    "solve_or_fall_back": [(np.array([[2.0, 0.3], [0.4, 1.5]]), np.array([1.0, -0.5]))],
    "any_and_all": [
        (np.array([0.3, -0.9, 0.4]),),
        (np.array([1.3, 1.9, 2.4]),),
        (np.array([0.3, 1.9, 2.4]),),
    ],
    "bubble_sort": [(np.array([0.3, -0.9, 1.4, 0.1]),), (np.array([0.1, 0.2, 0.9, 0.5]),)],
    "binary_search_cost": [
        (np.array([0.1, 0.5, 0.9, 1.7, 2.2, 3.1]), 1.2),
        (np.array([0.1, 0.5, 0.9, 1.7, 2.2, 3.1]), 2.9),
    ],
    "line_search": [(np.array([0.8, -0.5]),), (np.array([0.1, 0.3]),)],
    "collatz_of_floats": [(7.3,), (12.9,)],
    "dispatch_by_sign": [(np.array([1.3, -0.7]),), (np.array([-1.3, 0.7]),)],
    "membership": [(np.array([0.3, 0.1]),), (np.array([0.3, 0.8]),), (np.array([2.3, 0.8]),)],
}
