"""Classes, closures, containers and generators around NumPy code."""

from collections import namedtuple
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

State = namedtuple("State", ["position", "velocity"])


class Layer:
    def __init__(self, weights, bias):
        self.weights = weights
        self.bias = bias

    def __call__(self, x):
        return np.tanh(self.weights @ x + self.bias)


def network_of_layers(w1, b1, w2, b2):
    layers = [Layer(w1, b1), Layer(w2, b2)]
    x = np.array([0.5, -1.0])
    for layer in layers:
        x = layer(x)
    return x.sum()


class Accumulator:
    def __init__(self, n):
        self.total = np.zeros(n)
        self.count = 0

    def push(self, index, value):
        self.total[index] += value
        self.count += 1

    @property
    def mean(self):
        return self.total / self.count


def accumulator_object(x):
    acc = Accumulator(2)
    for i, v in enumerate(x):
        acc.push(i % 2, v**2)
    return acc.mean


@dataclass
class Material:
    stiffness: float
    yield_strain: float

    def stress(self, strain):
        if abs(strain) < self.yield_strain:
            return self.stiffness * strain
        sign = 1 if strain > 0 else -1
        return (
            sign
            * self.stiffness
            * (self.yield_strain + 0.1 * (abs(strain) - self.yield_strain))
        )


def elastic_plastic(stiffness, limit):
    material = Material(stiffness, limit)
    strains = 0.02 * np.array([0.5, 1.2, -2.0, 0.1])
    return np.array([material.stress(s) for s in strains])


def named_tuple_state(x0, v0, k):
    state = State(x0, v0)
    for _ in range(5):
        force = -k * state.position
        state = state._replace(velocity=state.velocity + 0.1 * force)
        state = State(state.position + 0.1 * state.velocity, state.velocity)
    return state.position**2 + state.velocity**2


def closure_counter(x):
    calls = []

    def cost(scale):
        calls.append(scale)
        return scale * np.sum(x**2) + len(calls)

    return sum(cost(s) for s in (x[0], x[1], 2.0))


def partial_application(x):
    def power(base, exponent, offset=0.0):
        return base**exponent + offset

    square = partial(power, exponent=2)
    shifted = partial(power, offset=x[0], exponent=3)
    return square(x) @ shifted(x)


def composed_functions(x):
    steps = [np.sin, lambda v: v * x[0], np.exp, partial(np.multiply, 0.5)]
    return reduce(lambda value, step: step(value), steps, x).sum()


def perceptron_with_dict(params):
    x = np.array([[0.5, -1.0], [1.5, 0.3]])
    for name in ("first", "second"):
        x = x @ params[name]["W"] + params[name]["b"]
        if name == "first":
            x = np.maximum(x, 0)
    return np.mean(x**2)


def nested_pairs(pair):
    (a, (b, c)), *rest = pair
    return a * b + c @ rest[0], {"last": rest[-1] ** 2}


def generator_of_partial_sums(x):
    def partial_sums():
        s = 0.0
        for v in x:
            s = s + v
            yield s

    return sum(s**2 for s in partial_sums())


class Polynomial:
    def __init__(self, coefficients):
        self.coefficients = list(coefficients)

    def __mul__(self, other):
        out = [0.0] * (len(self.coefficients) + len(other.coefficients) - 1)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                out[i + j] += a * b
        return Polynomial(out)

    def __call__(self, x):
        return sum(c * x**k for k, c in enumerate(self.coefficients))


def polynomial_object(p, q, x):
    product = Polynomial(p) * Polynomial(q)
    return product(x)


def memoized_fibonacci(x):
    cache = {0: x[0], 1: x[1]}

    def fib(n):
        if n not in cache:
            cache[n] = fib(n - 1) + np.sin(fib(n - 2))
        return cache[n]

    return fib(7)


MATRIX = np.array([[0.4, -0.3], [0.8, 0.5]])

EXAMPLES = {
    "network_of_layers": [
        (MATRIX, np.array([0.1, -0.2]), MATRIX.T - 0.2, np.array([0.3, 0.05]))
    ],
    "accumulator_object": [(np.array([0.5, -1.0, 2.0, 0.3]),)],
    "elastic_plastic": [(200.0, 0.015), (150.0, 0.03)],
    "named_tuple_state": [(1.0, 0.3, 2.0)],
    "closure_counter": [(np.array([0.5, -1.0, 2.0]),)],
    "partial_application": [(np.array([0.5, -1.0, 2.0]),)],
    "composed_functions": [(np.array([0.5, -1.0, 2.0]),)],
    "perceptron_with_dict": [
        (
            {
                "first": {"W": MATRIX, "b": np.array([0.1, -0.2])},
                "second": {"W": MATRIX.T - 0.2, "b": np.array([0.3, 0.05])},
            },
        )
    ],
    "nested_pairs": [(((0.5, (2.0, np.array([1.0, -2.0]))), np.array([0.3, 0.7]), 1.5),)],
    "generator_of_partial_sums": [(np.array([0.5, -1.0, 2.0]),)],
    "polynomial_object": [(np.array([1.0, -0.5]), np.array([0.3, 0.8, 2.0]), 0.7)],
    "memoized_fibonacci": [(np.array([0.5, 0.8]),)],
}
