"""Tests of front/caches: everything that is kept is bounded, and can be let go."""

import gc
import weakref
from threading import Thread

import numpy as np
import pytest

import stagedad as sd
from stagedad import types
from stagedad.front import elementwise, signature, tree
from stagedad.ir import live_graph_count
from stagedad.run import idle_memory, limit_idle_memory, live_counts

EVERY = {
    "types", "inferred types", "places", "structures", "leaves", "dtypes of literals",
    "names in code", "kernels, resolve", "kernels, own_kernel", "rules, masked",
    "rules, strict", "workspace",
}  # fmt: skip


@pytest.fixture
def bound():
    """A function that sets the bound of idle workspace for one test."""
    before = idle_memory()[1]
    yield limit_idle_memory
    limit_idle_memory(before)


def use_everything():
    def function(x, y, n):
        z = np.where(x > 0.5, np.sin(x) * 2, x[::-1])
        return np.sum(z @ y) + np.sum(np.ones((20, 20)) * x[0], axis=0)[3] * np.sum(n * 2.0)

    step = sd.value_and_grad(function)
    x, y = np.linspace(0, 1, 4), np.ones((4, 3))
    n = np.arange(3)
    step(x, y, n)
    sd.grad(function, nan_policy="strict")(x, y, n)
    return step, (x, y, n)


def test_the_list_is_whole():
    kept = use_everything()  # the workspace would go with its program
    found = sd.cache_info()
    assert set(found) >= EVERY
    for name, (size, most) in found.items():
        assert (name in EVERY) <= size <= most, name
    del kept


def test_clearing_leaves_nothing_and_harms_nothing():
    step, args = use_everything()
    program = sd.compile(sd.trace(lambda x: np.exp(x), args[0]))
    program(args[0])
    wanted = step(*args)
    sd.clear_caches()
    assert {size for size, _ in sd.cache_info().values()} == {0}
    assert step.cache_info() == (0, 0, 64, 0)
    assert program.cache_info() == (0, 0, 64, 0)
    found = step(*args)
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_array_equal(program(args[0])[0], np.exp(args[0]))
    assert step.cache_info().misses == 1


def test_types_stay_one_object():
    made = sd.TensorType("f8", (7, 5))
    sd.clear_caches()
    assert sd.TensorType("f8", (7, 5)) is made


def test_what_a_function_kept_goes():
    gc.collect()
    before = live_counts(), live_graph_count()
    step = sd.value_and_grad(lambda x: np.sum(x * x))
    for n in range(1, 12):
        step(np.ones(n))
    gone = [weakref.ref(entry) for entry in step._entries.values()]
    assert live_counts()["codes"] > before[0]["codes"]
    sd.clear_caches()
    gc.collect()
    assert len(gone) == 11
    assert {each() for each in gone} == {None}
    assert live_counts()["codes"] <= before[0]["codes"]
    assert live_graph_count() <= before[1]
    assert step(np.ones(2))[0] == 2


@pytest.mark.parametrize(
    ("name", "module", "limit", "use"),
    [
        ("types", types, "_RECENT_LIMIT", lambda n: sd.TensorType("f8", (n,))),
        ("leaves", signature, "_LEAVES_LIMIT", lambda n: sd.jit(np.exp)(np.ones(n))),
        ("structures", tree, "_TREES_LIMIT", lambda n: tree.flatten([0.0] * n, [])),
        ("dtypes of literals", elementwise, "LITERALS_LIMIT", lambda n: use_literals(n)),
    ],
)
def test_caches_keep_their_bounds(name, module, limit, use, monkeypatch):
    sd.clear_caches()
    monkeypatch.setattr(module, limit, 10)
    for n in range(1, 40):
        use(n)
        assert 0 < sd.cache_info()[name].currsize <= 10


def use_literals(n):
    dtype = np.dtype(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"][n % 10])
    number = [2, 2.5, 2j][n % 3]
    sd.trace(lambda x: x * number + x * True, np.ones(3, dtype))


def test_functions_and_programs_may_go_while_caches_are_cleared():
    stop = []

    def make():
        while not stop:
            sd.jit(lambda x: x * 2)(1.0)

    thread = Thread(target=make)
    thread.start()
    for _ in range(50):
        sd.clear_caches()
    stop.append(True)
    thread.join()
    assert live_counts()["busy_arenas"] == 0


# -- workspace ------------------------------------------------------------------------


def workspaces(*sizes):
    """Programs with a workspace of their argument's size."""
    for size in sizes:
        x = np.ones(size)
        graph = sd.trace(lambda x: (x + 0.5).reshape(1, -1) @ x.reshape(-1, 1), x)
        program = sd.compile(graph)
        program(x)
        yield program, x


def test_idle_workspace_is_counted_and_bounded(bound):
    sd.clear_caches()
    assert idle_memory()[0] == 0
    bound(1_000_000)
    kept = list(workspaces(40_000, 40_000, 40_000, 40_000))
    assert all(program.workspace_bytes >= 320_000 for program, _ in kept)
    idle, most = idle_memory()
    assert most == 1_000_000
    assert 640_000 <= idle <= most
    assert sd.cache_info()["workspace"] == (idle, most)


def test_what_has_been_idle_longest_goes_first(bound):
    sd.clear_caches()
    bound(1_000_000)
    (first, x), (second, _), (third, _) = workspaces(40_000, 40_000, 40_000)
    arenas = live_counts()["arenas"]
    first(x)  # makes an arena again: the first had to go when the third came
    second(x)
    third(x)
    assert live_counts()["arenas"] == arenas
    assert idle_memory()[0] <= 1_000_000


def test_memory_of_one_huge_call_is_not_kept(bound):
    sd.clear_caches()
    bound(100_000)
    ((program, x),) = workspaces(40_000)
    assert idle_memory()[0] == 0
    before = live_counts()["arenas"]
    program(x)
    assert live_counts()["arenas"] == before


def test_bound_of_nothing_frees_all(bound):
    kept = list(workspaces(40_000, 50_000))
    assert idle_memory()[0] > 0
    before = bound(0)
    assert before == 256 << 20
    assert idle_memory() == (0, 0)
    for program, x in kept:
        assert program(x)[0] == 1.5 * x.size


def test_workspace_goes_with_its_program():
    sd.clear_caches()
    kept = list(workspaces(40_000))
    assert idle_memory()[0] > 0
    del kept
    gc.collect()
    assert idle_memory()[0] == 0


def test_a_run_takes_the_workspace_of_the_one_before():
    ((program, x),) = workspaces(1_000)
    before = live_counts()
    for _ in range(10):
        program(x)
    assert live_counts() == before
