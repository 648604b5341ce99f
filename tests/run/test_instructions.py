"""What programs are made of: counts of instructions, loops, bytes.  No times."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile
from stagedad.transform import differentiate

needs_loops = pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")


def built(build, *types):
    graph = Graph()
    results = build(graph, *[graph.add_input(type) for type in types])
    for value in results if isinstance(results, tuple) else (results,):
        graph.register_output(value)
    return compile(graph)


def kernels(program):
    return [record.kernel for record in program.instructions]


def chain(type):
    graph = Graph()
    a, b = graph.add_input(type, "a"), graph.add_input(type, "b")
    c = a
    for i in range(100):
        c = graph.insert(("mul", "add", "sub")[i % 3], c, b)
    graph.register_output(c)
    return graph


def test_views_cost_nothing():
    def build(graph, x):
        x = graph.insert("transpose", x)
        x = graph.insert("expand_dims", x, axis=0)
        x = graph.insert("broadcast_to", x, shape=(5, 3, 2))
        x = graph.insert("slice", x, start=(1, 0, None), stop=(4, 3, None), step=(2, 1, -1))
        x = graph.insert("copy", graph.insert("squeeze", x))
        x = graph.insert("real", x)
        return graph.insert("exp", graph.insert("split", x, indices_or_sections=1, axis=1))

    assert kernels(built(build, "f64[2, 3]")) == ["exp"]


def test_parts_cost_nothing():
    def build(graph, x):
        first, _, last = graph.insert("split", x, indices_or_sections=(30, -30))
        return graph.insert("exp", graph.insert("mul", first, last))

    assert len(kernels(built(build, "f64[100]"))) == 2


def test_static_values_cost_nothing():
    def build(graph, x):
        zeros = graph.insert("zeros_like", x)
        two = graph.insert("constant_like", x, value=2)
        return graph.insert("add", graph.insert("mul", x, two), zeros)

    assert len(kernels(built(build, "f64[2, 3]"))) == 2


def test_dead_nodes_are_not_run():
    def build(graph, x):
        graph.insert("exp", graph.insert("sin", x))
        return graph.insert("cos", x)

    assert kernels(built(build, "f64[3]")) == ["cos"]


def test_casts_only_where_dtypes_differ():
    def build(graph, x, y):
        return graph.insert("add", graph.insert("add", x, x), y)

    program = built(build, "f32[200]", "f64[200]")
    assert kernels(program) == ["add", "cast_f32_f64", "add"]
    assert kernels(built(build, "f64[200]", "f64[200]")) == ["add", "add"]


def test_a_cast_is_made_before_stretching():
    def build(graph, x, y):
        wide = graph.insert("broadcast_to", x, shape=(100, 3))
        return graph.insert("add", wide, y)

    program = built(build, "i64[3]", "f64[100, 3]")
    assert str(program.instructions[0].types[0]) == "i64[1, 3]"


def test_transposed_operands_of_matmul_are_not_copied():
    def build(graph, x, y):
        return (
            graph.insert("matmul", graph.insert("transpose", x), y),
            graph.insert("matmul", y, graph.insert("transpose", y)),
            graph.insert(
                "matmul", x, graph.insert("slice", y, start=(0, 0), stop=(4, 2), step=(1, 1))
            ),
        )

    program = built(build, "f64[4, 4]", "f64[4, 4]")
    assert kernels(program) == ["matmul"] * 3
    assert {record.kind for record in program.instructions} <= {"gufunc", "object"}


def test_operands_that_blas_cannot_take_are_copied():
    def build(graph, x):
        return graph.insert(
            "matmul", x, graph.insert("slice", x, start=(0, 0), stop=(4, 4), step=(1, 2))
        )

    assert kernels(built(build, "f64[4, 4]")) != ["matmul"]
    program = built(lambda graph, x: graph.insert("matmul", x, x), None)
    x = np.arange(64.0).reshape(8, 8)[::2, ::2]
    assert np.array_equal(program(x)[0], x @ x)
    assert kernels(program) == ["copy_8", "copy_8", "matmul"]


def test_a_stack_times_a_matrix_is_one_product():
    program = built(
        lambda graph, x, y: graph.insert("matmul", x, y), "f64[6, 5, 4]", "f64[4, 3]"
    )
    assert [record.calls for record in program.instructions] == [1]


def calls(program):
    return [(record.kernel, record.calls) for record in program.instructions]


@needs_loops
def test_axes_are_merged_and_the_best_is_the_inner_one():
    def both(graph, x, y):
        return graph.insert("maximum", x, y)

    program = built(both, None, None)
    x = np.arange(6000.0).reshape(20, 10, 30)
    row, column, plane = x[:1, :1], x[:, :1, :1], x[0]
    for first, second, n in (
        (x, x, 1),
        (x, np.float64(1), 1),
        (x, plane, 20),  # two axes merged
        (x, row, 200),
        (x, column, 20),
        (x[:, ::2], x[:, ::2], 100),
        (x[..., :1], x[..., 1:2], 1),
        (x[..., :3], x[..., :3], 3),  # the long axes merge, and go inside
        (x.transpose(0, 2, 1), x.transpose(0, 2, 1), 200),  # along which two lie dense
        (x[0].T, x[1].T, 10),
    ):
        np.testing.assert_array_equal(program(first, second)[0], np.maximum(first, second))
        assert calls(program) == [("maximum", n)]


@needs_loops
def test_each_reduction_is_one_instruction():
    x = np.arange(24_000.0).reshape(20, 30, 40)
    for axis in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2)):
        for given in (x, x.T, x[::-1], x[:, ::2]):
            program = built(lambda graph, x, axis=axis: graph.insert("sum", x, axis=axis), None)
            np.testing.assert_allclose(program(given)[0], given.sum(axis))
            assert [record.kind for record in program.instructions] == ["reduce"]
            assert [record.calls for record in program.instructions] == [1]


def test_products_take_every_order_of_rows_and_columns_as_it_is():
    program = built(lambda graph, x, y: graph.insert("matmul", x, y), None, None)
    a = np.arange(30.0).reshape(5, 6) % 7
    wide = np.zeros((8, 9))
    wide[1:6, 2:8] = a
    stack = np.stack([a, a + 1, a - 1])
    taken = [a, np.asfortranarray(a), wide[1:6, 2:8], np.asfortranarray(wide)[1:6, 2:8]]
    for left in taken:
        for right in taken:
            np.testing.assert_array_equal(program(left, right.T)[0], a @ a.T)
            assert kernels(program) == ["matmul"]
    for left, right in ((stack, a.T), (stack, stack.transpose(0, 2, 1)), (a, stack[0].T)):
        np.testing.assert_array_equal(program(left, right)[0], left @ right)
        assert kernels(program) == ["matmul"]
    # What BLAS cannot take: neither axis dense; rows that run backwards, or overlap.
    program.cache_clear()
    overlapping = np.lib.stride_tricks.as_strided(np.arange(20.0), (5, 6), (8, 8))
    for left in (wide[::2, ::2][:, :4], a[::-1], a[:, ::-1], overlapping):
        right = np.ones((left.shape[1], 2))
        np.testing.assert_array_equal(program(left, right)[0], np.array(left) @ right)
        assert kernels(program) == ["copy_8", "matmul"]
    # Integers are not BLAS's.
    left = np.arange(20)[::-1].reshape(4, 5)
    np.testing.assert_array_equal(program(left, left.T)[0], left @ left.T)
    assert kernels(program) == ["matmul"]


def test_memory_is_reused():
    program = compile(chain("f64[100]"))
    assert program.workspace_bytes <= 2 * 832

    def build(graph, x):
        for _ in range(50):
            x = graph.insert("exp", graph.insert("transpose", x))
        return graph.insert("sum", x)

    assert built(build, "f64[16, 16]").workspace_bytes <= 3 * 2048


def test_an_operand_seen_in_two_ways_is_not_written_over():
    def build(graph, x):
        y = graph.insert("exp", x)
        return graph.insert("sum", graph.insert("add", y, graph.insert("transpose", y)), axis=0)

    program = built(build, "f64[40, 40]")
    x = np.random.default_rng(0).normal(size=(40, 40))
    y = np.exp(x)
    np.testing.assert_allclose(program(x)[0], (y + y.T).sum(0))


@needs_loops
def test_a_chain_and_its_gradient_call_no_object():
    for n in (1, 16, 1000, 5000):
        joint = compile(differentiate(chain(f"f64[{n}]"), [True, True])).joint
        found = joint.instructions
        assert {record.kind for record in found} <= {"loop", "own", "block", "fill"}
        assert len(found) <= 305
        assert all(record.calls == 1 for record in found if record.kind != "block")


@needs_loops
def test_long_elementwise_programs_run_in_blocks():
    joint = compile(differentiate(chain("f64[1000000]"), [True, True])).joint
    found = joint.instructions
    assert [record.kind for record in found].count("block") == 1
    assert found[0].calls == len(found) - 1
    # Full arrays: none but inputs and outputs.
    assert joint.workspace_bytes < 150_000


@needs_loops
def test_blocks_read_scalars_and_rows_beside_whole_arrays():
    def build(graph, x, y):
        z = graph.insert("mul", graph.insert("add", x, y), x)
        return z, graph.insert("sum", graph.insert("exp", z)), graph.insert("less", z, y)

    program = built(build, None, None)
    rng = np.random.default_rng(1)
    for y in (rng.normal(), rng.normal(size=5000), rng.normal(size=10_000)[::2]):
        x = rng.normal(size=5000)
        first, second, third = program(x, y)
        assert np.array_equal(first, (x + y) * x)
        assert np.isclose(second, np.exp((x + y) * x).sum())
        assert np.array_equal(third, first < y)
        assert any(record.kind == "block" for record in program.instructions)


def test_instructions_name_their_nodes():
    graph = Graph()
    x = graph.add_input("f64[3]")
    y = graph.insert("exp", x, location=("user.py", 8))
    graph.register_output(y)
    (record,) = compile(graph).instructions
    assert (record.op, record.node, record.location) == ("exp", y.id, ("user.py", 8))
    assert [str(type) for type in record.types] == ["f64[3]", "f64[3]"]
    assert str(record).endswith("exp(in0, out0)  # user.py:8")


def reading(n):
    """s = sum of x[i] * x[i], an element at a time."""
    graph = Graph()
    x = graph.add_input(f"f64[{n}]")
    total = None
    for i in range(n):
        part = graph.insert("slice", x, start=(i,), stop=(i + 1,), step=(1,))
        term = graph.insert("mul", part, part)
        total = term if total is None else graph.insert("add", total, term)
    graph.register_output(total)
    return graph


def test_the_gradient_of_reading_element_by_element_is_linear():
    for n in (10, 100):
        joint = compile(differentiate(reading(n), [True])).joint
        found = joint.instructions
        written = sum(
            record.types[-1].nbytes for record in found if record.kind in ("fill", "own")
        )
        assert len(found) < 8 * n
        assert written <= 48 * n
        x = np.arange(float(n))
        total, gradient = joint(x, np.ones(1))
        assert total[0] == np.sum(x * x)
        assert np.array_equal(gradient, 2 * x)


def test_contributions_are_added_in_place_only_where_nobody_looks():
    def build(graph, x, i):
        first = graph.insert("exp", x)
        part = graph.insert("unslice", i, shape=(6,), start=(0,), stop=(6,), step=(2,))
        second = graph.insert("add", first, part)
        third = graph.insert("add", part, graph.insert("take_add", i, i, shape=(6,)))
        return first, second, third, graph.insert("add", second, third)

    program = built(build, None, None)
    x, i = np.arange(6.0), np.array([1, 3, 1])
    first, second, third, fourth = program(x, i)
    part = np.array([1, 0, 3, 0, 1, 0])
    assert np.array_equal(first, np.exp(x))
    assert np.array_equal(second, np.exp(x) + part)
    assert np.array_equal(third, part + np.array([0, 2, 0, 3, 0, 0]))
    assert np.array_equal(fourth, second + third)


def test_adding_a_negated_value_subtracts_it():
    def build(graph, x, y):
        negated = graph.insert("neg", y)
        return graph.insert("add", x, negated), graph.insert("add", negated, x)

    for n in (3, 300):
        program = built(build, f"f64[{n}]", f"f64[{n}]")
        assert len(program.instructions) == 2
        assert all("subtract" in record.kernel for record in program.instructions)
        x, y = np.random.default_rng(n).normal(size=(2, n))
        first, second = program(x, y)
        assert np.array_equal(first, x - y)
        assert np.array_equal(second, x - y)


def test_a_negated_value_that_is_read_elsewhere_stays():
    def build(graph, x, y):
        negated = graph.insert("neg", y)
        return graph.insert("add", x, negated), negated

    program = built(build, None, None)
    x, y = np.arange(4.0), np.float64(2)
    first, second = program(x, y)
    assert np.array_equal(first, x - 2)
    assert second == -2


@pytest.mark.parametrize("n", [6, 3000])
@pytest.mark.parametrize("kind", ["unslice", "take_add"])
def test_entries_added_to_a_negated_value_are_not_lost(kind, n):
    def build(graph, x, y, few, indices):
        negated = graph.insert("neg", y)
        if kind == "unslice":
            part = graph.insert(kind, few, shape=(n,), start=(1,), stop=(3,), step=(1,))
        else:
            part = graph.insert(kind, few, indices, shape=(n,))
        return graph.insert("add", x, graph.insert("add", negated, part))

    program = built(build, f"f64[{n}]", f"f64[{n}]", "f64[2]", "i64[2]")
    x, y = np.random.default_rng(n).normal(size=(2, n))
    few = np.array([10.0, 20.0])
    (result,) = program(x, y, few, np.array([1, 2]))
    part = np.zeros(n)
    part[1:3] = few
    np.testing.assert_array_equal(result, x + (-y + part))
