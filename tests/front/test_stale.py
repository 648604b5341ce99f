"""Planted changes: whatever a function closes over is changed between two calls of it.

Every case under every transform, on the short way of a known signature and on the long one.
"""

import functools
import sys
import types

import numpy as np
import pytest

import stagedad as sd

RATE = 2.0
X = np.array([1.0, 2.0, 3.0])
HELPERS = """
import numpy as np

GAIN = 2.0
TABLE = {"bias": [1.0, 2.0]}

def amplified(x):
    return x * GAIN + TABLE["bias"][1]

def outer(x):
    return np.sum(amplified(x) ** 2)
"""


@pytest.fixture
def module(monkeypatch):
    """A module of helpers, imported as any other."""
    made = types.ModuleType("helpers_of_a_user")
    exec(HELPERS, made.__dict__)
    monkeypatch.setitem(sys.modules, "helpers_of_a_user", made)
    return made


def rebound_global():
    def function(x):
        return np.sum(x**2) * RATE

    def change(value):
        globals()["RATE"] = value

    yield function
    try:
        for value in (3.0, 3, -0.0, 0.0):
            yield functools.partial(change, value)
    finally:
        change(2.0)


def rebound_cell():
    rate = 2.0

    def function(x):
        return np.sum(x**2) * rate

    def change(value):
        nonlocal rate
        rate = value

    yield function
    for value in (3.0, np.float32(3.0), 4, True):
        yield functools.partial(change, value)


def mutated_array():
    weights = np.array([1.0, 2.0, 3.0])
    yield lambda x: np.sum(x**2 * weights)
    yield functools.partial(weights.__setitem__, 1, 7.0)
    yield functools.partial(weights.fill, 0.5)
    yield weights.sort


def array_read_in_python():
    weights = np.array([1.0, 2.0, 3.0])
    yield lambda x: np.sum(x**2) * float(weights[1]) + (1.0 if weights[0] > 0 else 2.0)
    yield functools.partial(weights.__setitem__, 1, 7.0)
    yield functools.partial(weights.__setitem__, 0, -1.0)


def another_array():
    held = {"w": np.ones(3)}
    yield lambda x: np.sum(x**2 * held["w"])
    others = np.full(3, 2.0), np.full(3, 2.0, np.float32), np.full(1, 3.0), np.ones((2, 3))
    for made in others:
        yield functools.partial(held.__setitem__, "w", made)


def changed_attribute():
    class Settings:
        rate = 2.0

    settings = Settings()
    yield lambda x: np.sum(x**2) * settings.rate
    yield functools.partial(setattr, settings, "rate", 3.0)
    yield functools.partial(setattr, Settings, "rate", 9.0)  # behind the instance's own
    yield functools.partial(delattr, settings, "rate")


def changed_entry():
    held = {"rates": [1.0, {"deep": 2.0}], "name": "double"}

    def function(x):
        factor = 2.0 if held["name"] == "double" else 1.0
        return (
            np.sum(x**2)
            * held["rates"][1]["deep"]
            * factor
            * sum(rate for rate in held["rates"] if not isinstance(rate, dict))
        )

    yield function
    yield functools.partial(held["rates"].__setitem__, 0, 5.0)
    yield functools.partial(held["rates"][1].__setitem__, "deep", 3.0)
    yield functools.partial(held["rates"].append, 4.0)
    yield functools.partial(held.__setitem__, "name", "single")
    yield functools.partial(held.update, rates=[1.0, {"deep": 1.0}])


def changed_default():
    def function(x, power=2, *, rate=1.0):
        return np.sum(x**power) * rate

    yield function
    yield functools.partial(setattr, function, "__defaults__", (3,))
    yield functools.partial(setattr, function, "__kwdefaults__", {"rate": 2.0})
    other = function.__code__.replace(co_consts=function.__code__.co_consts)
    yield functools.partial(setattr, function, "__code__", other)


def method_of_a_changed_object():
    class Model:
        def __init__(self):
            self.weights, self.rate = np.ones(3), 2.0

        def loss(self, x):
            return np.sum(x**2 * self.weights) * self.scaled()

        def scaled(self):
            return self.rate

    def halved(self):
        return self.rate / 2

    model = Model()
    yield model.loss
    yield functools.partial(setattr, model, "rate", 3.0)
    yield functools.partial(model.weights.__setitem__, 0, 4.0)
    yield functools.partial(setattr, model, "weights", np.full(3, 2.0))
    yield functools.partial(setattr, Model, "scaled", halved)


def helper_of_another_module(module):
    def function(x):
        from helpers_of_a_user import outer

        return outer(x)

    yield function
    yield functools.partial(setattr, module, "GAIN", 3.0)
    yield functools.partial(module.TABLE["bias"].__setitem__, 1, 5.0)
    yield functools.partial(setattr, module, "amplified", lambda x: x * 7.0)


def function_of_another_module(module):
    yield module.outer
    yield functools.partial(setattr, module, "GAIN", 3.0)
    yield functools.partial(module.TABLE.__setitem__, "bias", [0.0, 9.0])


def partial_and_wrapped():
    options = {"rate": 2.0}

    def loss(x, options):
        return np.sum(x**2) * options["rate"]

    inner = sd.jit(functools.partial(loss, options=options))
    yield lambda x: inner(x) + 1.0
    yield functools.partial(options.__setitem__, "rate", 3.0)


CASES = [
    rebound_global, rebound_cell, mutated_array, array_read_in_python, another_array,
    changed_attribute, changed_entry, changed_default, method_of_a_changed_object,
    helper_of_another_module, function_of_another_module, partial_and_wrapped,
]  # fmt: skip


def vjp_in_jit(function):
    def both(x):
        value, pull = sd.vjp(function, x)
        return value, pull(1.0)[0]

    return sd.jit(both)


def grad_in_jit(function):
    return sd.jit(lambda x: sd.grad(function)(x) * x)


TRANSFORMS = [sd.jit, sd.grad, sd.value_and_grad, vjp_in_jit, grad_in_jit]


def flat(result):
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_change_is_seen(case, transform, module):
    steps = case(module) if case.__code__.co_argcount else case()
    function = next(steps)
    staged = transform(function)
    for _ in range(3):
        staged(X)
    misses = staged.cache_info().misses
    for number, change in enumerate(steps):
        change()
        wanted = flat(transform(function)(X))
        for _ in range(2):
            for found, right in zip(flat(staged(X)), wanted, strict=True):
                assert found.dtype == right.dtype
                np.testing.assert_array_equal(found, right, err_msg=f"change {number}")
    if case is mutated_array and transform in (sd.jit, sd.grad, sd.value_and_grad):
        assert staged.cache_info().misses == misses  # what is read at each run is not traced


@pytest.mark.parametrize("case", CASES)
def test_nothing_changed_is_no_change(case, module):
    steps = case(module) if case.__code__.co_argcount else case()
    staged = sd.value_and_grad(next(steps))
    for _ in range(5):
        staged(X)
    assert staged.cache_info()[:2] == (4, 1)
