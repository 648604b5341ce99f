"""Tests of front/exact.py: arguments that compare equal do not share a program."""

import dataclasses
import enum
import functools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from stagedad.front import flatten, grad, jit
from stagedad.front.exact import Exact


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Sly:
    """Equal to everything."""

    def __eq__(self, other):
        raise AssertionError("user code")

    def __hash__(self):
        return 1


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float
    names: tuple = ()


@dataclasses.dataclass(frozen=True, slots=True)
class SlotSettings:
    rate: float


DIFFERENT = [
    (1, 1.0),
    (1, True),
    (1.0, True),
    (0, False),
    (0.0, -0.0),
    (1, Number.ONE),
    (1, np.int64(1)),
    (np.float32(1), np.float64(1)),
    (complex(1, 0.0), complex(1, -0.0)),
    ((1,), (1.0,)),
    ((0.0,), (-0.0,)),
    (frozenset({1}), frozenset({1.0})),
    (frozenset({0.0}), frozenset({-0.0})),
    (Decimal("1.0"), Decimal("1.000")),
    (Decimal(1), Fraction(1)),
    (Settings(1), Settings(1.0)),
    (Settings(0.0), Settings(-0.0)),
    (Settings(1.0, (1,)), Settings(1.0, (True,))),
    (SlotSettings(1), SlotSettings(True)),
    (Sly(), Sly()),
    (range(0), range(0, 0, 2)),
    ("a".encode, "b".encode),
]

SAME = [
    lambda: "".join(["a", "b"]),
    lambda: 10**6,
    lambda: Decimal("1.50"),
    lambda: Fraction(1, 3),
    lambda: float("nan"),
    lambda: (1, (2.5, "x")),
    lambda: frozenset({1, "a"}),
    lambda: Settings(0.5, ("a",)),
    lambda: SlotSettings(0.5),
    lambda: np.int32(7),
    lambda: Colour.RED,
    lambda: math.sin,
    lambda: int,
    lambda: len,
    functools.partial(getattr, Colour, "mro"),
]


@pytest.mark.parametrize("pair", DIFFERENT, ids=repr)
def test_equal_values_that_differ_are_different_keys(pair):
    one, other = pair
    assert Exact(one) != Exact(other)
    assert Exact(one) == Exact(one)
    assert hash(Exact(one)) == hash(Exact(one))
    assert flatten({one: 2.0}, []) != flatten({other: 2.0}, [])


@pytest.mark.parametrize("made", SAME)
def test_the_same_value_again_is_the_same_key(made):
    assert Exact(made()) == Exact(made())
    assert len({Exact(made()), Exact(made())}) == 1


def test_keys_of_dicts_keep_their_types():
    scaled = jit(lambda d: {key: value * 2 for key, value in d.items()})
    for key in (True, 1.0, 1, np.int64(1), 1.0, True):
        (found,) = scaled({key: 1.5})
        assert type(found) is type(key)
    weighted = grad(lambda d: sum(value * math.copysign(1, key) for key, value in d.items()))
    assert list(weighted({0.0: 1.0}).values()) == [1]
    assert list(weighted({-0.0: 1.0}).values()) == [-1]
    assert list(weighted({-0.0: 1.0}).values()) == [-1]
    kinds = jit(lambda d: {key: value for key, value in d.items()})  # noqa: C416
    assert type(*kinds({True: 1.0})) is bool
    assert type(*kinds({1: 1.0})) is int
    assert type(*kinds({(1.0,): 1.0}).popitem()[0]) is float
    assert type(*kinds({(1,): 1.0}).popitem()[0]) is int


def test_static_arguments_keep_their_types():
    f = jit(lambda x, s: x * (2 if any(type(item) is int for item in s) else 3))
    for items, wanted in (({1}, 2), ({1.0}, 3), ({1}, 2), ({True}, 3)):
        assert f(1.0, frozenset(items)) == wanted
    sign = jit(lambda x, s: x * math.copysign(1, *s))
    assert sign(1.0, frozenset({0.0})) == 1
    assert sign(1.0, frozenset({-0.0})) == -1
    digits = jit(lambda x, d: x * len(str(d)))
    assert digits(1.0, Decimal("1.0")) == 3
    assert digits(1.0, Decimal("1.000")) == 5
    rate = jit(lambda x, settings: x * settings.rate)
    assert rate(1.0, Settings(2.0)) == rate(1.0, Settings(2.0)) == 2
    assert rate.cache_info().misses == 1
    assert rate(1, Settings(2)).dtype == np.int64
    assert rate(1, Settings(2.0)).dtype == np.float64


def test_static_objects_that_call_themselves_equal():
    class Rate:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    f = jit(lambda x, rate: x * rate.value)
    one, two = Rate(1.0), Rate(2.0)
    assert [f(1.0, each) for each in (one, two, one, two)] == [1, 2, 1, 2]
    assert f.cache_info().misses == 2
    one.value = 5.0
    assert f(1.0, one) == 5


def test_zeros_of_complex_constants_keep_their_signs():
    f = jit(lambda x: (x + complex(1, 0.0), x + complex(1, -0.0)))
    x = np.array(complex(0, -0.0))
    assert [math.copysign(1, each.imag) for each in f(x)] == [1, -1]
    k = complex(1, 0.0)
    g = jit(lambda x: x + k)
    assert math.copysign(1, g(x).imag) == 1
    k = complex(1, -0.0)
    assert math.copysign(1, g(x).imag) == -1
