"""Tests of front/_call: a call of a known signature takes no detour through Python."""

import copy
import functools
import gc
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

from stagedad.front import grad, jit, staged, value_and_grad
from stagedad.run import live_counts

Point = namedtuple("Point", "a b")


@pytest.fixture(autouse=True, params=["0", "1"], ids=["", "checked"])
def checked(request, monkeypatch):
    """With checks every program has a twin, and numbers become arrays to run it."""
    monkeypatch.setenv("STAGEDAD_CHECK", request.param)
    return request.param == "1"


@pytest.fixture
def detours(monkeypatch):
    """A list that gets an entry for each call that took the slow path."""
    found = []
    slow = staged.Staged._call

    def counted(self, args, kwargs):
        found.append((args, kwargs))
        return slow(self, args, kwargs)

    monkeypatch.setattr(staged.Staged, "_call", counted)
    return found


X = np.array([1.0, 2.0, 3.0])
CALLS = {
    "an array": lambda: (X,),
    "another array": lambda: (X.copy(),),
    "a strided array": lambda: (np.arange(6.0)[::2],),
    "a read-only array": lambda: (np.broadcast_to(np.float64(2.0), (3,)),),
    "a float": lambda: (float("2.5"),),
    "an int": lambda: (int("-7"),),
    "a complex number": lambda: (complex("1+2j"),),
    "a scalar of NumPy": lambda: (np.float64(2.5),),
    "a small scalar": lambda: (np.float32(2.5),),
    "a complex scalar": lambda: (np.complex64(1 - 2j),),
    "an integer scalar": lambda: (np.int16(-3),),
    "a boolean scalar": lambda: (np.bool_(True),),
    "a 0-d array": lambda: (np.array(3.0),),
    "an empty array": lambda: (np.empty((0, 3)),),
    "a dict": lambda: ({"w": X.copy(), "b": [2.0, (X.copy(),)]},),
    "keys that are numbers": lambda: ({1: X.copy(), 2: X.copy()},),
    "a named tuple": lambda: (Point(X.copy(), {"c": 1.5}),),
    "None": lambda: ((X.copy(), None),),
    "an empty list": lambda: ([X.copy(), [], {}],),
}


def total(tree):
    """Sum of all numbers in nested containers, with weights that tell them apart."""
    if tree is None:
        return 0.0
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return sum((i + 1.0) * total(item) for i, item in enumerate(tree))
    return np.sum(np.real(tree)) * 1.0


@pytest.mark.parametrize("name", CALLS)
def test_a_known_signature_takes_no_detour(name, detours):
    step = jit(total)
    make = CALLS[name]
    first = step(*make())
    for _ in range(3):
        again = step(*make())
        assert type(again) is type(first)
        np.testing.assert_array_equal(again, first)
    assert len(detours) == 1
    assert step.cache_info()[:2] == (3, 1)
    np.testing.assert_allclose(first, total(*make()), rtol=1e-14)


@pytest.mark.parametrize("name", ["a float", "a dict", "a named tuple", "an empty list"])
def test_gradients_keep_their_structure(name, detours):
    step = grad(total)
    wanted = step(*CALLS[name]())
    found = step(*CALLS[name]())
    assert len(detours) == 1
    if name == "a named tuple":
        assert type(found) is type(wanted) is Point
        assert found.b == wanted.b == {"c": 2.0}
    else:
        assert repr(found) == repr(wanted)


def test_signatures_in_turn_take_no_detour(detours):
    step = value_and_grad(lambda x, mode: np.sum(x) * (2 if mode == "double" else 1))
    calls = [(np.ones(n), mode) for n in (1, 2, 3) for mode in ("double", "single")]
    for _ in range(4):
        for x, mode in calls:
            value, gradient = step(x, "".join(mode))
            factor = 2 if mode == "double" else 1
            assert value == factor * x.size
            assert gradient.tolist() == [factor] * x.size
    assert len(detours) == len(calls)
    assert step.cache_info() == (18, 6, 64, 6)


def test_static_arguments_are_compared_as_they_are(detours):
    def scaled(x, mode):
        return x * (3.0 if mode is True or mode == "three" else 2.0)

    step = jit(scaled)
    for mode, factor in (("three", 3), (True, 3), (False, 2), (b"three", 2), ("two", 2)):
        assert step(1.0, mode) == factor
        assert step(1.0, mode) == factor
    text = "".join(["th", "ree"])
    assert text is not "three"  # noqa: F632
    assert step(1.0, text) == 3
    assert len(detours) == 5


@pytest.mark.parametrize(
    ("call", "args"),
    [
        (lambda f, x, y: f(x, weights=y), "x, *, weights"),
        (lambda f, x, y: f(x=x, weights=y), "x, weights"),
        (lambda f, x, y: f(weights=y, x=x), "x, weights"),
        (lambda f, x, y: f(x, y), "x, weights"),
        (lambda f, x, y: f(*[x], **{"weights": y}), "x, **more"),
    ],
)
def test_keywords_take_no_detour(call, args, detours):
    body = "more['weights']" if "more" in args else "weights"
    function = eval(f"lambda {args}: np.sum(x * {body} ** 2)", {"np": np})
    step = value_and_grad(function)
    y = np.array([2.0, 3.0, 4.0])
    for _ in range(3):
        value, gradient = call(step, X, y)
        assert value == np.sum(X * y**2)
        assert gradient.tolist() == [4, 9, 16]
    assert len(detours) == 1


def test_one_signature_called_in_two_ways(detours):
    step = value_and_grad(lambda x, y: np.sum(x * y**2), argnums=(0, 1))
    for _ in range(3):
        for value, (by_x, by_y) in (step(X, 2 * X), step(x=X, y=2 * X), step(y=2 * X, x=X)):
            assert value == 4 * np.sum(X**3)
            assert by_x.tolist() == [4, 16, 36]
            assert by_y.tolist() == [4, 16, 36]
    assert len(detours) == 3
    assert step.cache_info().misses == 1


def test_every_way_to_call(detours):
    class Model:
        scale = 2.0

        @jit
        def predict(self, x):
            return self.scale * x

    step = jit(lambda x: x * 2)
    step(1.0)
    assert list(map(step, [1.0, 2.0])) == [2, 4]
    assert functools.partial(step, 3.0)() == 6
    assert step(*(4.0,), **{}) == 8
    assert step.__call__(5.0) == 10
    assert len(detours) == 1 + 1  # `__call__` as a method is none of them
    model = Model()
    assert [model.predict(3.0) for _ in range(3)] == [6, 6, 6]
    assert len(detours) == 2 + 1


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_any_number_of_inputs_and_outputs(count, detours):
    def double(numbers):
        return [number * 2 for number in numbers]

    step = jit(double)
    for start in range(3):
        given = [float(start + i) for i in range(count)]
        found = step(given)
        assert found == [2 * number for number in given]
        assert {type(each) for each in found} == {np.float64}
    assert len(detours) == 1


def test_results_of_every_structure(detours):
    def function(x):
        return {"a": x, "b": [x * 2, (x * 3, "text", None)], 3: ()}

    step = jit(function)
    for _ in range(2):
        found = step(X)
        assert list(found) == ["a", "b", 3]
        assert found["b"][1][1:] == ("text", None)
        assert found["b"][1][0].tolist() == [3, 6, 9]
        assert not np.shares_memory(found["a"], X)
    assert len(detours) == 1
    step = jit(lambda x: Point(x + 1, "text"))
    for _ in range(2):
        found = step(1.0)
        assert type(found) is Point
        assert found == (2.0, "text")
    assert len(detours) == 2


def test_what_only_python_takes_apart_stays_right(detours):
    step = jit(lambda d: next(iter(d.values())) * 2)
    one, two = OrderedDict(a=1.0, b=2.0), OrderedDict(a=1.0, b=2.0)
    two.move_to_end("a")
    for _ in range(2):
        assert step(one) == 2
        assert step(two) == 4
    assert len(detours) == 4
    assert step.cache_info().misses == 2


def test_other_signatures_do_not_fit():
    others = [
        np.ones(3),
        np.ones(4), np.ones((3, 1)), np.ones(3, np.float32), 1.0, 1, 1j, np.float64(1),
        np.float32(1), np.array(1.0), (np.ones(3),), [np.ones(3)], {"a": np.ones(3)},
        np.ones(3).astype(">f8"),
    ]  # fmt: skip
    step = jit(total)
    for _ in range(2):
        for other in others:
            found, wanted = step(other), total(other)
            assert (type(found), found) == (type(wanted), wanted)
    # The bytes of the last are swapped, which makes it another array, not another signature.
    assert step.cache_info() == (len(others) + 1, len(others) - 1, 64, len(others) - 1)


def test_an_equal_dtype_is_the_same(detours):
    step = jit(lambda x: x * 2)
    step(np.ones(3))
    made = np.ones(3, copy.deepcopy(np.dtype("f8")))
    assert step(made).tolist() == [2, 2, 2]
    assert len(detours) == 1


def test_an_integer_beyond_64_bits_raises_on_the_short_way(detours):
    step = jit(lambda n: n + 1)
    assert step(2**63 - 2) == 2**63 - 1
    assert step(-(2**63)) == -(2**63) + 1
    with pytest.raises(OverflowError, match="64 bits"):
        step(2**63)
    assert step(1) == 2
    assert len(detours) == 2


def test_a_wrong_call_says_what_python_says():
    step = jit(lambda x, y=1.0: x * y)
    step(1.0)
    with pytest.raises(TypeError, match="positional argument"):
        step()
    with pytest.raises(TypeError, match="unexpected keyword"):
        step(1.0, z=2.0)
    assert step(1.0) == 1


def test_arguments_are_held_during_a_call_and_not_longer():
    step = jit(lambda d: d["x"] * 2)
    x = np.ones(3)
    step({"x": x})
    step({"x": x})
    gone = weakref.ref(x)
    del x
    assert gone() is None


def test_arguments_that_do_not_fit_are_let_go():
    step = jit(lambda a, b: a * b)
    step(np.ones(3), 1.0)
    x = np.ones(3)
    step(x, 2)  # the first leaf fits the other signature, the second does not
    gone = weakref.ref(x)
    del x
    assert gone() is None


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_no_more_programs_than_signatures(bound, checked):
    gc.collect()
    before = live_counts()["codes"]
    step = jit(lambda x: x * 2, max_signatures=bound)
    for n in (1, 2, 3, 4, 5, 1, 2):
        assert step(np.ones(n)).tolist() == [2] * n
        assert live_counts()["codes"] - before <= bound * (1 + checked)
    assert step.cache_info()[2:] == (bound, bound)
    # A signature that goes by the short way all the time is not the one to go.
    step.cache_clear()
    step(np.ones(9))
    for n in range(1, 6):
        for _ in range(3):
            step(np.ones(9))
        step(np.ones(n))
    assert step.cache_info().misses == (6 if bound > 1 else 10)


def test_a_change_drops_the_short_way(detours):
    scale = [2.0]
    step = jit(lambda x: x * scale[0])
    for factor in (2.0, 3.0, 3.0, 4.0):
        scale[0] = factor
        assert step(1.0) == factor
        assert step(1.0) == factor
    assert len(detours) == 3
    step.cache_clear()
    assert step(1.0) == 4
    assert len(detours) == 4
