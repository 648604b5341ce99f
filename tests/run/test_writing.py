"""Writing into arrays: in place where nobody looks, and linear in what is written."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph
from stagedad.ops import evaluate
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile
from stagedad.transform import differentiate


def at(i, n=1):
    return {"start": (i,), "stop": (i + n,), "step": (1,)}


def filled(n, kind="slice_set", *, recurrent=False):
    """out[i] = sin(x[i]), or sin(x[i] * out[i - 1]), an element at a time."""
    graph = Graph()
    x = graph.add_input(f"f64[{n}]", "x")
    out = graph.insert("broadcast_to", graph.constant(0.0), shape=(n,))
    for i in range(n):
        part = graph.insert("slice", x, **at(i))
        if recurrent and i:
            part = graph.insert("mul", part, graph.insert("slice", out, **at(i - 1)))
        value = graph.insert("sin", part)
        if kind.startswith("slice"):
            out = graph.insert(kind, out, value, **at(i))
        else:
            out = graph.insert(kind, out, graph.constant(np.array([i])), value)
    graph.register_output(out)
    return graph


def cost(program):
    """Instructions, and bytes that they write."""
    found = program.instructions
    assert all(record.calls == 1 for record in found)
    written = 0
    for record in found:
        # What is scattered is as much as there are values.
        written += record.types[0 if record.kernel.startswith("scatter") else -1].nbytes
    return len(found), written


@pytest.mark.parametrize("kind", ["slice_set", "slice_add", "index_set", "index_add"])
@pytest.mark.parametrize("recurrent", [False, True])
def test_filling_element_by_element_is_linear_forward_and_reverse(kind, recurrent):
    costs = []
    for n in (20, 40, 80):
        graph = filled(n, kind, recurrent=recurrent)
        program, joint = compile(graph), compile(differentiate(graph, [True])).joint
        x = np.linspace(0.5, 1.5, n)
        wanted, slope = np.zeros(n), np.zeros((n, n))
        for i in range(n):
            before, moved = (
                (1.0, np.zeros(n)) if not recurrent or i == 0 else (wanted[i - 1], slope[i - 1])
            )
            wanted[i] = np.sin(x[i] * before)
            slope[i] = np.cos(x[i] * before) * (x[i] * moved + before * np.eye(n)[i])
        u = np.cos(np.arange(n))
        np.testing.assert_array_equal(program(x)[0], wanted)
        result, cotangent = joint(x, u)
        np.testing.assert_array_equal(result, wanted)
        np.testing.assert_allclose(cotangent, u @ slope, rtol=1e-12, atol=1e-14)
        costs.append((cost(program), cost(joint)))
    (f, df), (f2, df2), (f4, df4) = costs
    for one, two, four in zip((*f, *df), (*f2, *df2), (*f4, *df4), strict=True):
        assert four - two == 2 * (two - one)
    instructions, nbytes = f4
    assert instructions <= (3 if recurrent or kind != "slice_set" else 1) * 80 + 2
    assert nbytes <= 24 * 80 + 1000
    instructions, nbytes = df4
    assert instructions <= 13 * 80
    assert nbytes <= 13 * 8 * 80 + 3000


def test_what_is_computed_for_a_part_is_computed_there():
    found = compile(filled(5)).instructions
    assert [record.kernel for record in found].count("sin") == 5
    # The first value waits for the zeros to be there.
    assert copied(compile(filled(5))) == [40, 8]

    def build(graph, x, y):
        return graph.insert("concatenate", graph.insert("exp", x), graph.insert("sin", y))

    graph = Graph()
    graph.register_output(build(graph, graph.add_input("f64[3]"), graph.add_input("f64[4]")))
    program = compile(graph)
    assert [record.kernel for record in program.instructions] == ["exp", "sin"]
    x, y = np.arange(3.0), np.arange(4.0)
    np.testing.assert_array_equal(program(x, y)[0], [*np.exp(x), *np.sin(y)])


def program_of(build, *types):
    graph = Graph()
    results = build(graph, *[graph.add_input(type) for type in types])
    for value in results if isinstance(results, tuple) else (results,):
        graph.register_output(value)
    return compile(graph)


def copied(program):
    """Bytes of the copies in a program, by size."""
    return [
        record.types[-1].nbytes
        for record in program.instructions
        if record.kernel.startswith("copy")
    ]


def test_arguments_and_constants_are_never_written_to():
    held = np.arange(8.0)

    def build(graph, x):
        first = graph.insert("slice_set", x, graph.constant(7.0), **at(2))
        return first, graph.insert("slice_add", graph.constant(held), first, **at(0, 8))

    program = program_of(build, "f64[8]")
    x = np.ones(8)
    for _ in range(2):
        first, second = program(x)
        np.testing.assert_array_equal(first, [1, 1, 7, 1, 1, 1, 1, 1])
        np.testing.assert_array_equal(second, held + first)
    np.testing.assert_array_equal(x, np.ones(8))
    np.testing.assert_array_equal(held, np.arange(8))
    assert copied(program) == [64, 8, 64]


def test_an_array_that_is_read_afterwards_is_copied():
    def build(graph, x):
        y = graph.insert("exp", x)
        z = graph.insert("slice_set", y, graph.constant(0.0), **at(0, 8))
        return graph.insert("mul", y, z), graph.insert("sum", y)

    program = program_of(build, "f64[16]")
    assert 128 in copied(program)
    x = np.arange(16.0) / 8
    y = np.exp(x)
    product, total = program(x)
    np.testing.assert_array_equal(product, np.where(np.arange(16) < 8, 0, y * y))
    assert total == np.sum(y)


def test_an_array_that_is_an_output_too_is_copied():
    def build(graph, x):
        y = graph.insert("exp", x)
        return y, graph.insert("slice_set", y, graph.constant(0.0), **at(1)), y

    program = program_of(build, "f64[4]")
    first, second, third = program(np.zeros(4))
    np.testing.assert_array_equal(first, np.ones(4))
    np.testing.assert_array_equal(second, [1, 0, 1, 1])
    np.testing.assert_array_equal(third, np.ones(4))


def test_an_array_read_for_the_last_time_is_written_in_place():
    def build(graph, x):
        y = graph.insert("exp", x)
        total = graph.insert("sum", y)
        z = graph.insert("slice_set", y, graph.constant(0.0), **at(1))
        return graph.insert("neg", graph.insert("slice_add", z, total, **at(0, 2)))

    program = program_of(build, "f64[512]")
    assert copied(program) == [8]
    y = np.exp(np.zeros(512))
    y[1] = 0
    y[:2] += 512
    np.testing.assert_array_equal(program(np.zeros(512))[0], -y)


def test_small_parts_read_afterwards_are_copied_instead():
    def build(graph, x):
        y = graph.insert("exp", x)
        first = graph.insert("slice", y, start=(0, 0), stop=(1, 8), step=(1, 1))
        column = graph.insert("slice", y, start=(0, 1), stop=(8, 2), step=(1, 1))
        z = graph.insert(
            "slice_set", y, graph.constant(0.0), start=(0, 0), stop=(8, 8), step=(1, 1)
        )
        return graph.insert("add", z, first), graph.insert("neg", column)

    program = program_of(build, "f64[8, 8]")
    assert sorted(copied(program)) == [64, 64, 512]  # a row, a column; zeros
    x = np.arange(64.0).reshape(8, 8) / 64
    first, second = program(x)
    np.testing.assert_array_equal(first, np.broadcast_to(np.exp(x)[:1], (8, 8)))
    np.testing.assert_array_equal(second, -np.exp(x)[:, 1:2])


def test_a_value_that_overlaps_its_target_is_read_first():
    def build(graph, x, n, m):
        y = graph.insert("exp", x)
        return graph.insert("slice_set", y, graph.insert("slice", y, **at(0, n)), **at(m, n))

    for n, m in ((6, 1), (1, 2), (3, 5), (2, 1)):
        program = program_of(lambda graph, x, n=n, m=m: build(graph, x, n, m), "f64[16]")
        wanted = np.exp(np.arange(16.0) / 16)
        wanted[m : m + n] = wanted[:n].copy()
        np.testing.assert_array_equal(program(np.arange(16.0) / 16)[0], wanted)


def test_two_writes_into_one_array_keep_apart():
    def build(graph, x):
        y = graph.insert("exp", x)
        first = graph.insert("slice_set", y, graph.constant(0.0), **at(0))
        second = graph.insert("slice_set", y, graph.constant(5.0), **at(1))
        return graph.insert("mul", first, second)

    program = program_of(build, "f64[4]")
    np.testing.assert_array_equal(program(np.zeros(4))[0], [0, 5, 1, 1])
    assert copied(program).count(32) == 1


def test_of_values_for_one_place_the_last_stays_and_alone_has_a_gradient():
    def build(graph, x, i, v):
        return graph.insert("index_set", x, i, v)

    graph = Graph()
    inputs = [graph.add_input(type) for type in ("f64[4]", "i64[5]", "f64[5]")]
    graph.register_output(graph.insert("index_set", *inputs))
    joint = compile(differentiate(graph, [True, False, True])).joint
    x, v, i = np.arange(4.0), np.arange(5.0) + 10, np.array([1, 3, 1, -1, 0])
    result, dx, dv = joint(x, i, v, np.array([1.0, 2.0, 4.0, 8.0]))
    np.testing.assert_array_equal(result, [14, 12, 2, 13])
    np.testing.assert_array_equal(dx, [0, 0, 4, 0])
    np.testing.assert_array_equal(dv, [0, 0, 2, 8, 1])


@pytest.mark.parametrize("dtype", "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
def test_writes_every_dtype(dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    v = np.array([[1, 2], [0, 1], [1, 1]]).astype(dtype)
    i = np.array([-1, 1], np.int32)
    for kind in ("index_set", "index_add"):
        program = program_of(
            lambda graph, x, i, v, kind=kind: graph.insert(kind, x, i, v, axis=1), *[None] * 3
        )
        for given in (x, np.asfortranarray(x), x[::-1, ::-1][::-1, ::-1]):
            wanted = given.copy()
            if kind == "index_set":
                wanted[:, i] = v
            else:
                np.add.at(wanted, (slice(None), i), v)
            np.testing.assert_array_equal(program(given, i, v)[0], wanted)


@pytest.mark.parametrize("kind", ["take", "take_last", "index_set", "index_add"])
@pytest.mark.parametrize(
    ("shape", "index"),
    [((3,), 3), ((3,), -4), ((0,), 0), ((0, 2), 0), ((3, 0), 5), ((3, 0), -4), ((2, 3), 2)],
)
def test_indices_out_of_bounds_raise_also_where_there_is_nothing(kind, shape, index):
    graph = Graph()
    inputs = [graph.add_input(), graph.add_input()]
    inputs += [graph.constant(1.0)] if kind.startswith("index") else []
    graph.register_output(graph.insert(kind, *inputs, location=("user.py", 7)))
    program = compile(graph)
    good = np.zeros(0, int)
    x = np.ones(shape)
    problem = f"^{kind}: index out of bounds: {index}: axis 0 of size {shape[0]}"
    with pytest.raises(IndexError, match=problem) as caught:
        program(x, np.array([index]))
    assert "user.py:7" in "".join(caught.value.__notes__)
    (result,) = program(x, good)
    np.testing.assert_array_equal(result, x if kind.startswith("index") else x[good])


def test_programs_with_writes_survive_the_check_of_memory(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "1")
    graph = filled(30, recurrent=True)
    joint = sd.compile(sd.differentiate(graph, [True])).joint
    x = np.linspace(0.5, 1, 30)
    first = joint(x, np.ones(30))
    for one, other in zip(joint(x, np.ones(30)), first, strict=True):
        np.testing.assert_array_equal(one, other)
    assert loops_enabled() or joint.instructions[0].kind == "object"


def random_writes(rng):
    """A graph of reads and writes over each other, its arguments and its values."""
    graph, values = Graph(), []
    arrays = [*rng.normal(size=(2, 8)), rng.integers(-8, 8, 3)]
    handles = [graph.add_input(type) for type in ("f64[8]", "f64[8]", "i64[3]")]
    values.extend(arrays)
    whole, small = [0, 1], []

    def put(places, kind, *operands, **attributes):
        (value,) = evaluate(str(kind), [values[i] for i in operands], attributes)
        handles.append(graph.insert(str(kind), *[handles[i] for i in operands], **attributes))
        values.append(value)
        places.append(len(values) - 1)

    for _ in range(rng.integers(5, 40)):
        x = whole[-1] if rng.random() < 0.7 else rng.choice(whole)
        n = int(rng.integers(1, 4))
        place = at(int(rng.integers(0, 9 - n)), n)
        fits = [s for s in small if values[s].shape in ((n,), (1,), ())]
        fits_indices = [s for s in small if values[s].shape in ((3,), (1,), ())]
        sort = rng.integers(8)
        if sort <= 1:
            put(small, "slice", x, **place)
        elif sort <= 3 and fits:
            put(whole, rng.choice(["slice_set", "slice_add"]), x, rng.choice(fits), **place)
        elif sort == 4:
            put(small, rng.choice(["take", "take_last"]), x, 2)
        elif sort == 5 and fits_indices:
            kind = rng.choice(["index_set", "index_add"])
            put(whole, kind, x, 2, rng.choice(fits_indices))
        elif sort == 6 and small:
            s = rng.choice(small)
            put(small, "mul", s, s)
            put(small, "cos", small[-1])
        elif sort == 7:
            put(small, "sum", x, keepdims=True)
            put(whole, "mul", x, rng.choice(whole))
    chosen = [len(values) - 1, *rng.integers(0, len(values), rng.integers(0, 3))]
    for i in chosen:
        graph.register_output(handles[i])
    return graph, arrays, [values[i] for i in chosen]


@pytest.mark.parametrize("seed", range(80))
def test_random_reads_and_writes(seed):
    rng = np.random.default_rng(seed)
    graph, arrays, wanted = random_writes(rng)
    before = [array.copy() for array in arrays]
    pair = compile(differentiate(graph, [True, True, False]))
    outputs, pullback = pair(*arrays)
    for result, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-12)
    real = [j for j in pair.gradient.df_input_vjps if j < len(wanted)]
    seeds = [rng.normal(size=wanted[j].shape) for j in real]
    joint = pair.joint(*arrays, *seeds)
    for one, other in zip(joint, [*outputs, *pullback(*seeds)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
