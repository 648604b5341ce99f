"""Tests of front/staged.py: signatures, their cache, pickling and threads."""

# ruff: noqa: ARG001
import collections
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest

from stagedad.errors import DTypeError
from stagedad.front import grad, jit, staged, value_and_grad
from stagedad.run import CacheInfo


def cube(x):
    return np.sum(x**3)


@grad
def slope(x):
    return x * x


class Holder:
    @staticmethod
    @jit
    def twice(x):
        return 2 * x


def test_a_signature_is_traced_once():
    step = value_and_grad(cube)
    for _ in range(3):
        step(np.ones(3))
    assert step.cache_info() == (2, 1, 64, 1)
    step(np.ones(4))
    step(np.ones(3, np.float32))
    step(np.ones((3, 1)))
    step(1.0)
    step(np.float64(1))
    assert step.cache_info() == (2, 6, 64, 6)
    step(np.ones(4))
    assert step.cache_info() == (3, 6, 64, 6)
    step.cache_clear()
    assert step.cache_info() == (0, 0, 64, 0)
    assert step(np.ones(2))[0] == 2


def test_every_layout_and_contents_serve_one_signature():
    step = jit(lambda x: x * 2)
    base = np.arange(24.0).reshape(4, 6)
    for x in (base[:2, :3], base[::2, ::2], base.T[:2, :3], base[::-2, ::-2], base[1:3, 1:4]):
        np.testing.assert_array_equal(step(x), x * 2)
    assert step.cache_info().misses == 1
    swapped = np.ones((2, 3)).astype(">f8")
    np.testing.assert_array_equal(step(swapped), 2)
    packed = np.zeros(2, dtype=[("a", "i1"), ("b", "f8", (2, 3))])["b"][0]
    np.testing.assert_array_equal(step(packed), 0)
    assert step.cache_info().misses == 1


def test_past_the_bound_results_stay_right():
    step = jit(lambda x: np.sum(x), max_signatures=4)

    def sums():
        return [step(np.ones(n)) for n in [1, 2, 3, 4, 5, 6, 7] * 2]

    with pytest.warns(UserWarning, match="more than max_signatures=4 signatures") as caught:
        assert sums() == [1, 2, 3, 4, 5, 6, 7] * 2
    assert [each.filename for each in caught] == [__file__]
    assert step.cache_info().currsize == 4
    assert step.cache_info().maxsize == 4


def test_static_arguments_are_part_of_the_signature():
    @jit
    def f(x, mode, options=None, flag=False):
        if flag:
            return x
        return x * 2 if mode == "twice" else x * options["by"]

    for _ in range(3):
        assert f(1.0, "twice") == 2
        assert f(1.0, "by", {"by": 3.0}) == 3
        assert f(1.0, "by", options={"by": 4}) == 4
        assert f(1.0, "", None, flag=True) == 1
    with pytest.raises(TypeError, match=r"set.*hashable.*\nhint"):
        f(1.0, {1, 2})


def test_containers_take_the_shortcut_too():
    step = value_and_grad(lambda p, x: np.sum(p["w"] * x[0]) + p["b"][0] * x[1])
    p, x = {"w": np.ones(3), "b": (2.0,)}, [np.arange(3.0), 4.0]
    for _ in range(3):
        value, gradient = step(p, x)
        assert value == 11
        np.testing.assert_array_equal(gradient["w"], [0, 1, 2])
        assert gradient["b"] == (4.0,)
    assert step.cache_info().misses == 1
    with pytest.raises(IndexError):
        step(p, [np.arange(3.0)])
    with pytest.raises(KeyError):
        step({"w": np.ones(3)}, x)
    assert step({"b": (2.0,), "w": np.ones(3), "c": 1.0}, x)[0] == 11
    assert step.cache_info().misses == 2


def test_a_function_that_raises_is_not_remembered():
    def f(x):
        raise KeyError("mine")

    step = jit(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            step(1.0)
    assert step.cache_info().currsize == 0
    assert grad(lambda x: x * 2)(1.0) == 2


def test_an_integer_beyond_64_bits_raises():
    with pytest.raises(OverflowError, match=r"71 bits.*test_staged.py:\d+\nhint"):
        jit(lambda x: x + 1)(2**70)
    with pytest.raises(OverflowError, match=r"call.*test_staged.py"):
        jit(lambda x: x + 1)(-(2**63) - 1)
    assert jit(lambda x: x + 1)(-(2**63)) == 1 - 2**63
    for function in (
        lambda x: x * 2**70,
        lambda x: 2**70 + x,
        lambda x: x**2**70,
        lambda x: np.maximum(x, 2**70),
        lambda x: np.where(x > 0, x, 2**70),
        lambda x: np.clip(x, 0, 2**70),
        lambda x: np.stack([x[0], 2**70]),
    ):
        with pytest.raises((OverflowError, DTypeError), match=r"test_staged.py:\d+"):
            jit(function)(np.ones(2, int))
    with pytest.raises(OverflowError, match=r"test_staged.py:\d+"):
        jit(lambda x: x * 2**5000)(np.ones(2))
    assert jit(lambda x: x * 2**70)(2.0) == 2.0**71


@pytest.mark.parametrize("made", [grad(cube), value_and_grad(cube, 0), jit(cube), slope])
def test_pickles_where_the_function_does(made):
    made(np.float64(2))
    again = pickle.loads(pickle.dumps(made))
    assert again(3.0) == made(3.0)
    assert again.__name__ == made.__name__


def test_a_decorated_function_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(slope)) is slope
    assert pickle.loads(pickle.dumps(Holder.twice)) is Holder.twice
    options = grad(cube, nan_policy="strict", max_signatures=3)
    assert pickle.loads(pickle.dumps(options)).cache_info().maxsize == 3


@pytest.mark.filterwarnings("ignore:.*max_signatures")
def test_many_threads_call_one_function():
    step = value_and_grad(cube, max_signatures=8)
    barrier = Barrier(8)

    def work(seed):
        random = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(200):
            x = random.standard_normal(random.integers(1, 12))
            value, gradient = step(x)
            np.testing.assert_allclose(value, np.sum(x**3), rtol=1e-12)
            np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-12)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def _in_time(function):
    """Return what `function` gives in a thread, which must not hang."""
    found = []
    thread = Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join(30)
    assert found, "it hangs"
    return found[0]


@pytest.mark.filterwarnings("ignore:.*max_signatures")
def test_finalisers_of_dropped_entries_may_call():
    calls = []

    class Mode:
        def __del__(self):
            calls.append((float(f(1.0, None)), f.cache_info().maxsize))

    f = jit(lambda x, _mode: x * 2, max_signatures=1)

    def work():
        for _ in range(3):
            f(1.0, Mode())
        f.cache_clear()
        f(1.0, Mode())
        f.cache_clear()
        return True

    assert _in_time(work)
    assert len(calls) >= 3
    assert set(calls) == {(2.0, 1)}


def test_what_is_read_again_may_call():
    class Rate:
        value = 2.0

        def __get__(self, instance, owner):
            f.cache_info()
            other = Thread(target=f.cache_clear if instance is None else int, daemon=True)
            other.start()
            other.join(20)
            assert not other.is_alive()
            return f(1.0, None) * 2

    class Settings:
        rate = Rate()

    settings = Settings()
    f = jit(lambda x, s: x if s is None else x * s.rate)
    assert _in_time(lambda: [float(f(1.0, settings)) for _ in range(3)]) == [2, 2, 2]


def test_hashes_of_static_arguments_may_call():
    class Mode:
        def __hash__(self):
            return int(f(1.0, None))

        def __eq__(self, other):
            return bool(f(1.0, None))

    f = jit(lambda x, mode: x * (2 if mode is None else 3))
    assert _in_time(lambda: [float(f(1.0, mode)) for mode in (Mode(), Mode())]) == [3, 3]


@pytest.mark.parametrize("known", [False, True])
def test_a_call_under_way_does_not_undo_cache_clear(known, monkeypatch):
    state = collections.deque([2.0])  # beyond the reach
    reached, go_on = Event(), Event()
    f = jit(lambda x: x * state[0])
    if known:
        f(1.0)
    original = staged.Entry.program.fget

    def program(entry):
        reached.set()
        assert go_on.wait(30)
        return original(entry)

    monkeypatch.setattr(staged.Entry, "program", property(program))
    results = []
    # A keyword goes past the shortcut, as does the first call.
    thread = Thread(target=lambda: results.append(f(np.float64(1.0) if known else 1.0)))
    thread.start()
    assert reached.wait(30)
    state[0] = 5.0
    f.cache_clear()
    go_on.set()
    thread.join(30)
    assert results == [2]
    assert f.cache_info() == (0, 0, 64, 0)
    assert f(1.0) == f(np.float64(1.0)) == 5


def test_the_counters_are_of_one_class():
    assert type(jit(cube).cache_info()) is CacheInfo
