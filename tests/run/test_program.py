"""Tests of run/_program: calling, specialising, writing into buffers, refusing."""

import gc
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from stagedad.errors import DTypeError, KernelError, ShapeError
from stagedad.ir import Graph
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile, live_counts
from stagedad.types import TensorType

RNG = np.random.default_rng(7)


def graph_of(build, *types):
    """The graph of `build`, a function of the graph and its inputs."""
    graph = Graph()
    results = build(graph, *[graph.add_input(type) for type in types])
    for value in results if isinstance(results, tuple) else (results,):
        graph.register_output(value)
    return graph


def program_of(build, *types):
    return compile(graph_of(build, *types))


@pytest.fixture
def twice():
    """x + x, for any array."""
    return program_of(lambda graph, x: graph.insert("add", x, x), None)


def aligned_off(array):
    """The same values at an address that no loop takes."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def field_of(array):
    """The same values as a field of packed records."""
    records = np.zeros(array.shape, [("tag", "i1"), ("x", array.dtype)])
    records["x"] = array
    return records["x"]


LAYOUTS = {
    "plain": lambda a: a,
    "fortran": lambda a: np.asfortranarray(a),
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "unaligned": aligned_off,
    "unaligned, strided": lambda a: aligned_off(np.ascontiguousarray(a.T)).T,
    "field": lambda a: field_of(a),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4", "f2"])
def test_takes_every_layout(layout, dtype):
    def build(graph, x):
        y = graph.insert("add", graph.insert("transpose", x), graph.constant(1, dtype))
        return y, graph.insert("sum", x, axis=0), graph.insert("matmul", x, y)

    program = program_of(build, None)
    plain = RNG.integers(-4, 5, (3, 5)).astype(dtype)
    given = LAYOUTS[layout](plain)
    assert np.array_equal(given, plain)
    for _ in range(2):
        first, second, third = program(given)
        assert np.array_equal(first, plain.T + np.ones((), dtype))
        assert np.array_equal(second, plain.sum(0))
        assert np.array_equal(third, plain @ first)
    assert np.array_equal(given, plain)


@pytest.mark.parametrize("value", [2, 2.5, np.float32(2.5), [1.0, 2.0], (3,), True, 1j])
def test_converts_numbers_and_lists(twice, value):
    (result,) = twice(value)
    wanted = np.asarray(value) + np.asarray(value)
    assert np.array_equal(result, wanted)
    assert result.dtype == wanted.dtype
    assert type(result) is np.ndarray


class Other(np.ndarray):
    """A subclass of ndarray."""


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.zeros(2).view(Other),
        np.array(["a"]),
        np.array([None]),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, np.longdouble),
        np.zeros(2, [("x", "f8")]),
        object(),
        None,
        "text",
        {1: 2},
    ],
    ids=lambda value: type(value).__name__,
)
def test_refuses_what_is_no_plain_array(twice, value):
    with pytest.raises(DTypeError):
        twice(value)


def test_refuses_a_wrong_number_of_arrays(twice):
    with pytest.raises(TypeError, match="takes 1 array: 2"):
        twice(1.0, 2.0)
    with pytest.raises(TypeError, match="takes 1 array: 0"):
        twice()
    with pytest.raises(TypeError, match="keyword"):
        twice(x=1.0)
    with pytest.raises(TypeError, match="takes 1 array: 0"):
        twice.run([], [np.zeros(2)])


def test_is_called_in_every_way(twice):
    assert twice.__call__(1.0)[0] == 2
    assert twice(*[1.0], **{})[0] == 2
    assert list(map(twice, [1.0, 2.0]))[1][0] == 4


def test_names_the_node_that_does_not_take_the_shapes():
    graph = Graph()
    x, y = graph.add_input(), graph.add_input()
    graph.register_output(graph.insert("mul", x, y, location=("user.py", 12)))
    with pytest.raises(ShapeError) as caught:
        compile(graph)(np.zeros(2), np.zeros(3))
    assert "user.py:12" in "".join(caught.value.__notes__)


def test_refuses_unknown_kinds_and_backends():
    graph = Graph()
    x = graph.add_input("f64[2]")
    node = graph.create("frobnicate", x, outputs=1, location=("user.py", 3))
    graph.append(node)
    graph.register_output(node.output)
    with pytest.raises(KernelError, match=r"frobnicate: no kernel: user.py:3"):
        compile(graph)
    with pytest.raises(ValueError, match="numpy"):
        compile(Graph(), backend="abacus")
    with pytest.raises(TypeError):
        compile(3)


def test_later_edits_of_the_graph_do_not_matter():
    graph = graph_of(lambda graph, x: graph.insert("exp", x), "f64[2]")
    program = compile(graph)
    graph.register_output(graph.inputs[0])
    assert len(program(np.zeros(2))) == 1


def test_never_believes_a_type_written_into_the_graph():
    graph = Graph()
    x = graph.add_input("f64[4]")
    y = graph.insert("exp", x)
    y.type = "f64[1000]"
    graph.register_output(y)
    (result,) = compile(graph)(np.zeros(4))
    assert result.shape == (4,)


# -- outputs --------------------------------------------------------------------


def test_outputs_share_memory_with_nothing():
    held = np.arange(3.0)

    def build(graph, x):
        y = graph.insert("exp", x)
        flat = graph.insert("reshape", y, shape=(1, 3))
        return x, x, y, y, flat, graph.constant(held), graph.insert("zeros_like", x)

    program = program_of(build, None)
    x = np.arange(3.0)
    results = program(x)
    everything = [x, held, *results]
    for i, first in enumerate(everything):
        for second in everything[:i]:
            assert not np.shares_memory(first, second)
    for result in results:
        assert result.flags.writeable
        assert result.flags.owndata
        result[...] = 7
    assert np.array_equal(program(x)[3], np.exp(np.arange(3.0)))


def test_gives_zero_dimensional_arrays():
    program = program_of(lambda graph, x: graph.insert("sum", x), None)
    (result,) = program(np.arange(4.0))
    assert type(result) is np.ndarray
    assert result.shape == ()


def test_no_inputs_and_no_outputs():
    assert compile(Graph())() == ()
    (result,) = program_of(lambda graph: graph.constant(2.0))()
    assert result == 2


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1,) * 33, (2,) * 10])
def test_odd_shapes(twice, shape):
    x = RNG.normal(size=shape)
    assert np.array_equal(twice(x)[0], x + x)


def test_most_dimensions_that_numpy_has(twice):
    x = np.ones((1, 2) * 10 + (1,) * 44)
    assert x.ndim == 64
    assert np.array_equal(twice(x)[0], x + x)
    strided = np.ones((2,) * 18 + (1,) * 46)[::-1, ::1, ::-1]
    assert np.array_equal(twice(strided)[0], strided + strided)


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 40), (1 << 32, 1 << 28), (1 << 57,)])
def test_sizes_that_overflow_raise(shape):
    def output(graph, x):
        return graph.insert("broadcast_to", x, shape=shape)

    def temporary(graph, x):
        wide = graph.insert("exp", graph.insert("broadcast_to", x, shape=shape))
        return graph.insert("max", graph.insert("add", wide, graph.insert("exp", wide)))

    for build in (output, temporary):
        program = program_of(build, None)
        for _ in range(2):
            with pytest.raises((ValueError, MemoryError)):
                program(np.float64(1))


# -- run ------------------------------------------------------------------------


def test_run_writes_into_the_callers_buffers(twice):
    x, y = np.arange(4.0), np.empty(4)
    twice.run([x], [y])
    assert np.array_equal(y, x + x)
    twice.run((x[::2],), (y[:2],))
    assert np.array_equal(y[:2], [0, 4])


def test_run_fills_strided_and_unaligned_outputs(twice):
    x = np.arange(4.0)
    y = np.zeros((4, 2))
    twice.run([x], [y[:, 1]])
    assert np.array_equal(y, [[0, 0], [0, 2], [0, 4], [0, 6]])
    off = aligned_off(np.zeros(4))
    twice.run([x], [off])
    assert np.array_equal(off, x + x)


def test_run_refuses_before_anything_is_written():
    program = program_of(
        lambda graph, x: (graph.insert("exp", x), graph.insert("neg", x)), None
    )
    x = np.zeros(4)
    first = np.full(4, 5.0)
    locked = np.zeros(4)
    locked.flags.writeable = False
    once = np.lib.stride_tricks.as_strided(np.zeros(1), (4,), (0,))
    memory = np.zeros(6)
    wrong = [
        (TypeError, [first]),
        (TypeError, [first, first, first]),
        (TypeError, [first, [0.0] * 4]),
        (TypeError, [first, np.zeros(4).view(Other)]),
        (DTypeError, [first, np.zeros(4, "f4")]),
        (DTypeError, [first, np.zeros(4, ">f8")]),
        (ShapeError, [first, np.zeros(5)]),
        (ShapeError, [first, np.zeros((4, 1))]),
        (ValueError, [first, locked]),
        (ValueError, [first, once]),
        (ValueError, [first, first]),
        (ValueError, [first, x]),
        (ValueError, [memory[:4], memory[2:]]),
    ]
    for error, outputs in wrong:
        with pytest.raises(error):
            program.run([x], outputs)
    assert np.array_equal(first, [5] * 4)
    assert np.array_equal(x, np.zeros(4))
    assert not memory.any()


def test_run_refuses_to_write_over_a_held_array():
    held = np.arange(4.0)
    program = program_of(lambda graph, x: graph.insert("add", x, graph.constant(held)), None)
    with pytest.raises(ValueError, match="overlaps"):
        program.run([np.zeros(4)], [held])


def test_run_makes_no_arrays(twice):
    x, y = np.arange(4.0), np.empty(4)
    inputs, outputs = (x,), (y,)
    twice.run(inputs, outputs)
    arenas = live_counts()["arenas"]
    blocks = sys.getallocatedblocks()
    for _ in range(100):
        twice.run(inputs, outputs)
    assert live_counts()["arenas"] == arenas
    assert sys.getallocatedblocks() - blocks < 20


# -- constants --------------------------------------------------------------------


def test_sees_changes_of_a_held_array():
    held = np.arange(4.0)
    program = program_of(lambda graph, x: graph.insert("mul", x, graph.constant(held)), None)
    x = np.full(4, 2.0)
    assert np.array_equal(program(x)[0], [0, 2, 4, 6])
    held[...] = 1
    assert np.array_equal(program(x)[0], [2, 2, 2, 2])
    held.resize(4 * 2, refcheck=False)
    with pytest.raises(ShapeError):
        program(x)


@pytest.mark.parametrize("layout", ["swapped", "unaligned", "strided", "reversed", "field"])
def test_held_arrays_of_every_layout(layout):
    held = LAYOUTS[layout](RNG.normal(size=(2, 3)))
    program = program_of(lambda graph, x: graph.insert("add", x, graph.constant(held)), None)
    x = RNG.normal(size=(2, 3))
    for _ in range(2):
        assert np.array_equal(program(x)[0], x + held)
        held[...] = 3


def test_many_held_arrays():
    arrays = [np.full(2, float(i)) for i in range(50)]

    def build(graph, x):
        for array in arrays:
            x = graph.insert("add", x, graph.constant(array))
        return x

    assert np.array_equal(program_of(build, None)(np.zeros(2))[0], sum(arrays))


# -- specialising -------------------------------------------------------------------


def test_plans_once_a_signature(twice):
    for _ in range(3):
        twice(np.zeros(3))
        twice(np.zeros(4))
        twice(np.zeros(3, "f4"))
    info = twice.cache_info()
    assert (info.hits, info.misses, info.currsize) == (6, 3, 3)
    twice.cache_clear()
    assert twice.cache_info()[:2] == (0, 0)
    assert np.array_equal(twice(np.ones(3))[0], [2, 2, 2])


def test_the_cache_is_bounded(twice):
    for n in range(200):
        twice(np.zeros(n))
    assert twice.cache_info().currsize == twice.cache_info().maxsize
    for step in range(2, 60):
        assert np.array_equal(twice(np.arange(4.0 * step)[::step])[0], np.arange(4) * 2 * step)
    assert twice.cache_info().misses < 250


def test_specialises_ahead():
    program = program_of(lambda graph, x, y: graph.insert("matmul", x, y), None, None)
    with pytest.raises(ShapeError, match="input 0"):
        _ = program.instructions
    program.specialise(["f64[2, 3]", TensorType("f8", (3,))])
    assert [record.kernel for record in program.instructions] == ["matmul"]
    program(np.zeros((2, 3)), np.zeros(3))
    assert program.cache_info().misses == 1
    with pytest.raises(TypeError):
        program.specialise(["f64[2]"])


def test_types_known_in_the_graph_need_no_call():
    program = program_of(
        lambda graph, x: graph.insert("exp", graph.insert("exp", x)), "f64[64]"
    )
    assert len(program.instructions) == 2
    assert program.workspace_bytes == 512


def test_two_names_of_one_dtype(twice):
    x = np.arange(3, dtype=np.longlong)
    assert twice(x)[0].dtype == np.int64
    assert np.array_equal(twice(x)[0], x + x)


# -- errors while running -------------------------------------------------------------


def test_index_errors_name_node_and_place():
    graph = Graph()
    x, i = graph.add_input(), graph.add_input()
    graph.register_output(graph.insert("take", x, i, location=("user.py", 5)))
    program = compile(graph)
    for index in ([0, 3], [-4], [np.iinfo(np.int64).min], [np.iinfo(np.int64).max]):
        with pytest.raises(IndexError, match="axis 0 of size 3") as caught:
            program(np.zeros(3), np.array(index))
        assert "user.py:5" in "".join(caught.value.__notes__)
    assert live_counts()["busy_arenas"] == 0
    assert np.array_equal(program(np.arange(3.0), np.array([-1, -3]))[0], [2, 0])


def test_negative_exponents_of_integers():
    program = program_of(lambda graph, x, y: graph.insert("pow", x, y), None, None)
    with pytest.raises(ValueError, match="negative integer powers") as caught:
        program(np.arange(3), np.array([1, -1, 2], np.int8))
    assert "pow" in "".join(caught.value.__notes__)
    assert np.array_equal(program(np.arange(3), np.array([1, 0, 2]))[0], [0, 1, 4])


# -- threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 5000])
def test_threads_share_a_program(n):
    def build(graph, x, y):
        for _ in range(20):
            x = graph.insert("mul", graph.insert("add", x, y), y)
        return x, graph.insert("sum", x)

    program = program_of(build, None, None)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for step in range(100):
            x, y = rng.random(n + step % 3), rng.random(n + step % 3)
            wanted = x
            for _ in range(20):
                wanted = (wanted + y) * y
            result, total = program(x, y)
            if not (np.array_equal(result, wanted) and np.isclose(total, wanted.sum())):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert live_counts()["busy_arenas"] == 0


def test_nothing_leaks():
    gc.collect()
    before = live_counts()
    for n in range(1, 30):
        program = program_of(lambda graph, x: graph.insert("take", x, x), None)
        program(np.zeros(n, np.int64))
        with suppress(IndexError):
            program(np.full(n, n))
    del program
    gc.collect()
    assert live_counts() == before


def test_short_programs_keep_the_gil_and_long_ones_release_it():
    program = program_of(lambda graph, x: graph.insert("exp", graph.insert("sin", x)), None)
    code, _, _ = program.specialisations.select([np.zeros(4)])
    assert code.keeps_gil
    code, _, _ = program.specialisations.select([np.zeros(100_000)])
    assert code.keeps_gil != loops_enabled()


def test_planning_in_many_threads_at_once():
    results = []

    def work(n):
        program = program_of(
            lambda graph, x: graph.insert("expm1", graph.insert("log1p", x)), None
        )
        results.append(np.allclose(program(np.full(n, 0.5, "f4"))[0], 0.5))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 16
