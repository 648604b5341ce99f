"""Tests of front/reach.py: what a function closes over never goes stale."""

import argparse
import collections
import functools
import importlib
import sys
import types

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.front import grad, jit

scale = 2.0
table = {"k": {"deep": [1.0, 2.0]}, "array": np.array([1.0, 2.0])}
weights = np.array([1.0, 2.0])


def helper(x):
    return scale * x


def outer(x):
    return helper(x) + table["k"]["deep"][1]


class Model:
    rate = 1.0

    def __init__(self):
        self.offset = 1.0
        self.layers = [{"w": 2.0}]

    def predict(self, x):
        return self._inner(x) + self.offset * self.rate

    def _inner(self, x):
        return x * self.layers[0]["w"]


class Slots:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 1.0


@pytest.fixture
def changed(monkeypatch):
    return monkeypatch


def test_globals_of_every_function_reached(changed):
    f = jit(outer)
    assert f(1.0) == 4
    changed.setitem(globals(), "scale", 3.0)
    assert f(1.0) == 5
    table["k"]["deep"][1] = 7.0
    try:
        assert f(1.0) == 10
    finally:
        table["k"]["deep"][1] = 2.0
    changed.setitem(globals(), "helper", lambda x: x * 100)
    assert f(1.0) == 102
    assert f.cache_info().currsize == 1


def test_an_equal_value_is_no_change(changed):
    f = jit(outer)
    f(1.0)
    changed.setitem(globals(), "scale", float("2.0"))
    f(1.0)
    assert f.cache_info().misses == 1
    changed.setitem(globals(), "scale", 2)
    f(1.0)
    assert f.cache_info().misses == 2


def test_closure_cells_and_defaults():
    k, text = 2.0, "a"

    def inner(x, power=2, *, add=0.0):
        return x**power * k + add + (1 if text == "a" else 0)

    f = grad(inner)
    assert f(3.0) == 12
    k = 3.0
    assert f(3.0) == 18
    inner.__defaults__ = (3,)
    assert f(1.0) == 9
    inner.__kwdefaults__ = {"add": 5.0}
    value = jit(inner)
    assert value(1.0) == 9
    text = "b"
    assert value(1.0) == 8


def test_arrays_are_seen_by_reference():
    w = np.array([1.0, 2.0])
    f = jit(lambda x: x @ w)
    x = np.ones(2)
    assert f(x) == 3
    w[:] = 5
    assert f(x) == 10
    assert f.cache_info().misses == 1
    w = np.array([1.0, 1.0])
    assert f(x) == 2
    assert f.cache_info().misses == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * weights[0],
        lambda x: x * float(weights[0]),
        lambda x: x if weights[0] > 1 else 2 * x,
        lambda x: x * np.sum(weights * 2),
        lambda x: np.sum(x * weights) + weights[1],
        lambda x: x * weights.copy()[0],
        lambda x: x * table["array"].mean(),
    ],
)
def test_contents_read_in_python_are_seen_too(use):
    f = jit(use)
    before = weights.copy()
    try:
        for value in (1.0, 5.0, 0.5):
            weights[:] = table["array"][:] = value
            assert f(1.0) == use(1.0)
    finally:
        weights[:] = table["array"][:] = before


def test_views_of_closed_over_arrays_are_seen_by_reference():
    data = np.arange(2000.0)
    f = jit(lambda x: np.sum(x * data[10:13]))
    assert f(np.ones(3)) == 33
    data[10] = 0
    assert f(np.ones(3)) == 23
    assert f.cache_info().misses == 1


def test_instances_and_classes():
    model = Model()
    f = jit(model.predict)
    assert f(1.0) == 3
    model.offset = 2.0
    assert f(1.0) == 4
    model.layers[0]["w"] = 5.0
    assert f(1.0) == 7
    try:
        Model.rate = 2.0
        assert f(1.0) == 9
    finally:
        Model.rate = 1.0
    model.extra = 1
    assert f(1.0) == 7
    g = jit(lambda m, x: m.offset * x)
    assert g(model, 3.0) == 6
    model.offset = 3.0
    assert g(model, 3.0) == 9


def test_slots_partials_and_transformed_functions():
    holder = Slots()
    f = jit(lambda x: x * holder.value)
    assert f(2.0) == 2
    holder.value = 3.0
    assert f(2.0) == 6

    options = {"k": 2.0}
    part = jit(functools.partial(lambda x, o: x * o["k"], o=options))
    assert part(1.0) == 2
    options["k"] = 4.0
    assert part(1.0) == 4

    k = 2.0
    slope = grad(lambda x: k * x)
    nested = jit(lambda x: slope(x) * x)
    assert nested(1.0) == 2
    k = 5.0
    assert nested(1.0) == 5


def test_lists_that_grow_and_dicts_that_change_keys():
    terms, names = [1.0], {"a": 1.0}
    f = jit(lambda x: x * sum(terms) + len(names))
    assert f(1.0) == 2
    terms.append(2.0)
    assert f(1.0) == 4
    names["b"] = 2.0
    assert f(1.0) == 5
    del names["a"]
    names["c"] = 0.0
    assert f(1.0) == 5


def test_modules_of_the_user_are_entered(changed):
    module = types.ModuleType("settings_of_a_user")
    module.gain = 2.0
    changed.setitem(globals(), "settings_of_a_user", module)
    f = jit(lambda x: x * settings_of_a_user.gain)  # noqa: F821
    assert f(1.0) == 2
    module.gain = 3.0
    assert f(1.0) == 3


def test_recursion_and_cycles_end():
    loop = []
    loop.append(loop)

    def f(x, n=3):
        return x if n == 0 or not loop else x * f(x, n - 1)

    assert grad(f)(2.0) == 32


def test_a_value_changed_by_the_function_itself_is_read_again():
    state = {"calls": 0}

    def f(x):
        state["calls"] += 1
        return x * state["calls"]

    step = jit(f)
    assert [step(1.0) for _ in range(3)] == [1, 2, 3]


def test_a_change_in_a_loop_with_the_shortcut():
    k = 0.0
    f = jit(lambda x: x + k)
    for i in range(5):
        k = float(i)
        assert f(1.0) == 1 + i
        assert f(1.0) == 1 + i


def test_signed_zeros_and_nan_are_values():
    k = 0.0
    f = jit(lambda x: x / (k if k != 0 else 1.0) * np.copysign(1.0, k))
    assert f(1.0) == 1
    k = -0.0
    assert f(1.0) == -1
    k = float("nan")
    assert np.isnan(f(1.0))
    k = float("nan")
    assert np.isnan(f(1.0))


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_a_closed_over_array_that_changes_shape_or_dtype():
    w = np.ones(3)
    slope = grad(lambda x: (x * w).sum())
    np.testing.assert_array_equal(slope(np.ones(3)), [1, 1, 1])
    w.resize((3, 1), refcheck=False)
    np.testing.assert_array_equal(slope(np.ones(3)), [3, 3, 3])
    assert slope.cache_info().misses == 2
    slope(np.ones(3))
    assert slope.cache_info().misses == 2

    sizes = np.ones(3)
    f = jit(lambda x: (x * sizes).sum() / sizes.size + sizes.itemsize)
    assert f(np.ones(1)) == 9
    sizes.resize(1, refcheck=False)
    sizes[0] = 5
    assert f(np.ones(1)) == 13

    bits = np.ones(2)
    g = jit(lambda x: x * bits)
    x = np.ones(2)
    np.testing.assert_array_equal(g(x), [1, 1])
    bits.dtype = np.int64
    np.testing.assert_array_equal(g(x), x * bits)
    np.testing.assert_array_equal(g(x), x * bits)


@pytest.fixture
def settings(changed, tmp_path):
    """A package of the user's with two modules, of which `late` is not loaded."""
    folder = tmp_path / "pkg_of_a_user"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "late.py").write_text("k = 1.0")
    (folder / "cfg.py").write_text("k = 1.0\narray = [1.0]\n")
    (folder / "inner.py").write_text(
        "def relative(x):\n"
        "    from . import cfg\n"
        "    from .cfg import array\n"
        "    return x * cfg.k * array[0]\n"
    )
    changed.syspath_prepend(str(tmp_path))
    module = importlib.import_module("pkg_of_a_user.cfg")
    yield module
    for name in [name for name in sys.modules if name.startswith("pkg_of_a_user")]:
        del sys.modules[name]


def imported(x):
    import pkg_of_a_user.cfg

    return x * pkg_of_a_user.cfg.k


def imported_as(x):
    import pkg_of_a_user.cfg as settings

    return x * settings.k


def name_imported(x):
    from pkg_of_a_user.cfg import k

    return x * k


def imported_in_a_nested_function(x):
    def scaled():
        from pkg_of_a_user import cfg

        return x * cfg.k

    return scaled()


@pytest.mark.parametrize(
    "function", [imported, imported_as, name_imported, imported_in_a_nested_function]
)
def test_modules_imported_inside_the_function(settings, function):
    f = jit(function)
    for value in (1.0, 2.0, 2.0, 3.0):
        settings.k = value
        assert f(1.0) == value
    assert f.cache_info().misses == 3


def test_relative_imports_inside_the_function(settings):
    f = jit(importlib.import_module("pkg_of_a_user.inner").relative)
    for value in (1.0, 2.0):
        settings.k = value
        assert f(1.0) == value
    settings.array[0] = 5.0
    assert f(1.0) == 10


@pytest.mark.usefixtures("settings")
def test_a_module_that_the_function_loads_itself():
    def function(x):
        from pkg_of_a_user.late import k

        return x * k

    f = jit(function)
    assert f(1.0) == 1
    sys.modules["pkg_of_a_user.late"].k = 2.0
    assert f(1.0) == 2
    sys.modules["pkg_of_a_user.late"].k = 3.0
    assert f(1.0) == 3


def test_modules_in_closures_containers_and_instances(settings):
    holder, table = Model(), {"m": settings}
    holder.m = settings
    for function in (
        lambda x: x * settings.k,
        lambda x: x * table["m"].k,
        lambda x: x * holder.m.k,
    ):
        f = jit(function)
        for value in (1.0, 2.0):
            settings.k = value
            assert f(1.0) == value


def test_a_global_module_that_is_another_now(changed):
    for name, gain in (("one", 1.0), ("other", 2.0)):
        module = types.ModuleType(name + "_of_a_user")
        module.gain = gain
        changed.setitem(globals(), "current_settings", module)
        if name == "one":
            f = jit(lambda x: x * current_settings.gain)  # noqa: F821
        assert f(1.0) == gain


class AttrDict(dict):
    pass


class Private:
    __slots__ = ("__rate",)

    def __init__(self, rate):
        self.__rate = rate

    def rate(self):
        return self.__rate

    def change(self, rate):
        self.__rate = rate


@pytest.mark.parametrize(
    "make",
    [
        argparse.Namespace,
        types.SimpleNamespace,
        lambda rate: setattr(found := AttrDict(), "rate", rate) or found,
        lambda rate: setattr(found := collections.UserDict(), "rate", rate) or found,
        lambda rate: setattr(found := (lambda: None), "rate", rate) or found,
        lambda rate: setattr(found := np.ones(1).view(Sized), "rate", rate) or found,
    ],
)
def test_attributes_of_instances_of_any_class(make):
    settings = make(rate=2.0)
    deep = {"one": [settings]}
    for function in (
        lambda x: x * settings.rate,
        lambda x: x * deep["one"][0].rate,
    ):
        settings.rate = 2.0
        f = grad(function)
        for value in (2.0, 9.0, 9.0, 3.0):
            settings.rate = value
            assert f(1.0) == value
        assert f.cache_info().misses == 3


class Sized(np.ndarray):
    pass


def test_what_instances_of_other_classes_hold():
    table = collections.UserDict(k=2.0)
    f = jit(lambda x: x * table["k"])
    assert f(1.0) == 2
    table["k"] = 3.0
    assert f(1.0) == 3
    poly = np.polynomial.Polynomial([1.0, 2.0])
    g = jit(lambda x: x * poly.coef[1])
    assert g(1.0) == 2
    poly.coef[1] = 5.0
    assert g(1.0) == 5
    poly.coef = np.array([0.0, 7.0])
    assert g(1.0) == 7
    options = argparse.Namespace(rate=2.0)
    h = jit(lambda x, o: x * o.rate)
    hidden = Private(2.0)
    k = jit(lambda x: x * hidden.rate())
    assert k(1.0) == 2
    hidden.change(4.0)
    assert k(1.0) == 4
    with pytest.raises(TypeError, match="hashable"):
        h(1.0, options)


def test_a_decorator_with_attributes_of_its_own():
    class Scaled:
        def __init__(self, function, by):
            self.__wrapped__, self.by = function, by

        def __call__(self, x):
            return self.__wrapped__(x) * self.by

    double = Scaled(lambda x: x, 2.0)
    f = jit(lambda x: double(x))
    assert f(1.0) == 2
    double.by = 3.0
    assert f(1.0) == 3


def test_what_was_met_too_deep_is_entered_where_it_is_met_again():
    inner = {"k": 2.0}
    a_deep = [[[inner]]]
    f = jit(lambda x: x * inner["k"] + 0 * len(a_deep))
    assert f(1.0) == 2
    inner["k"] = 3.0
    assert f(1.0) == 3


def test_loggers_and_locks_are_no_settings():
    import logging
    import threading

    log, lock = logging.getLogger("of_a_user"), threading.Condition()

    def function(x):
        with lock:
            log.debug("called")
        return 2 * x

    f = jit(function)
    assert [f(1.0) for _ in range(3)] == [2, 2, 2]
    assert f.cache_info().misses == 1


def test_what_is_beyond_the_reach_is_seen_after_cache_clear():
    queue = collections.deque([1.0])
    f = jit(lambda x: x * queue[0])
    assert f(1.0) == 1
    queue[0] = 2.0
    f.cache_clear()
    assert f(1.0) == 2


def test_the_package_itself_is_not_walked():
    from stagedad.cli.loss import loss
    from stagedad.front.reach import reach

    assert len(reach(loss)) < 10
    assert len(reach(lambda x: snp.sum(np.exp(x)))) < 10
