"""What fails in a run raises what NumPy raises, names op and line, and leaves no mark."""

import subprocess
import sys

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import ShapeError
from stagedad.ir import Graph
from stagedad.run import compile, live_counts

LINE = ("user.py", 12)


def program_of(kind, count, *after, types=None, **attributes):
    graph = Graph()
    inputs = [graph.add_input(type) for type in types or [None] * count]
    value = graph.insert(kind, *inputs, location=LINE, **attributes)
    for other in after:
        value = graph.insert(other, value)
    graph.register_output(value)
    return compile(graph)


def failing(program, error, match, *arrays):
    """Call and run; both fail, naming the op and the line, and write nothing."""
    before = [np.array(array) for array in arrays]
    with pytest.raises(error, match=match) as caught:
        program(*arrays)
    assert "user.py:12" in "".join(caught.value.__notes__)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert live_counts()["busy_arenas"] == 0


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("shape", [(), (3,), (40,), (5000,), (3, 700)], ids=str)
def test_integers_to_negative_powers(shape, dtype):
    program = program_of("pow", 2, "neg", "abs")
    base, exponent = np.full(shape, 2, dtype), np.ones(shape, dtype)
    bad = exponent.copy()
    bad[(-1,) * len(shape)] = -3
    with pytest.raises(ValueError, match="negative integer powers"):
        np.power(base, bad)
    for wrong in (bad, bad[..., None][..., 0].T.copy().T, np.full((), -3, dtype)):
        failing(
            program, ValueError, "^pow: integers to negative integer powers.*: -3", base, wrong
        )
        np.testing.assert_array_equal(program(base, exponent)[0], base)
    # Floats may.
    wanted = np.abs(base ** bad.astype("f8"))
    np.testing.assert_array_equal(program(base.astype("f8"), bad)[0], wanted)


def test_a_negative_power_in_a_gradient_of_a_float_is_none():
    gradient = sd.grad(lambda x: np.sum(x ** np.array([2, -1])))
    np.testing.assert_allclose(gradient(np.array([3.0, 2.0])), [6, -0.25])


@pytest.mark.parametrize("kind", ["take", "take_last"])
@pytest.mark.parametrize("n", [1, 10, 5000])
def test_indices_out_of_bounds(kind, n):
    program = program_of(kind, 2, "neg")
    x = np.arange(float(n))
    for bad in (n, -n - 1, 2**62, -(2**63)):
        indices = np.zeros(n, np.int64)
        indices[-1] = bad
        failing(program, IndexError, f"^{kind}: .*: {bad}: axis 0 of size {n}", x, indices)
        np.testing.assert_array_equal(program(x, np.full(n, -1))[0][-1], 1.0 - n)


def test_an_index_error_leaves_the_rest_of_a_pair_usable():
    graph = Graph()
    x, i = graph.add_input("f64[4]"), graph.add_input("i64[2]")
    graph.register_output(graph.insert("take", graph.insert("sin", x), i, location=LINE))
    pair = compile(sd.differentiate(graph, [True, False]))
    x, u = np.arange(4.0), np.ones(2)
    failing(pair.joint, IndexError, "take", x, np.array([0, 4]), u)
    failing(pair.f, IndexError, "take", x, np.array([0, 4]))
    _, cotangent = pair.joint(x, np.array([0, 0]), u)
    np.testing.assert_array_equal(cotangent, [2, 0, 0, 0])


SHAPES = [
    ((2, 3), (2, 3), "inner dims differ"),
    ((2, 3), (4,), "inner dims differ"),
    ((), (3,), "0-d"),
    ((2, 2, 3), (3, 3, 2), "leading dims"),
]


@pytest.mark.parametrize(("left", "right", "problem"), SHAPES)
def test_shapes_of_matmul(left, right, problem):
    program = program_of("matmul", 2)
    x, y = np.ones(left), np.ones(right)
    with pytest.raises(ValueError):  # noqa: PT011, NumPy's texts vary
        np.matmul(x, y)
    failing(program, ShapeError, f"^matmul: .*{problem}", x, y)
    (result,) = program(np.ones((2, 3)), np.ones((3, 2)))
    np.testing.assert_array_equal(result, np.full((2, 2), 3))


def test_more_dims_than_an_array_has():
    x = np.ones((1,) * 64)
    for kind, attributes in (
        ("expand_dims", {"axis": 0}),
        ("reshape", {"shape": (1,) * 65}),
        ("broadcast_to", {"shape": (1,) * 65}),
    ):
        program = program_of(kind, 1, **attributes)
        failing(program, ShapeError, f"^{kind}: more than 64 dims: 65", x)
    program = program_of("take", 2)
    failing(program, ShapeError, "more than 64 dims", x, np.zeros((1, 1), int))
    assert program(x, np.zeros(1, int))[0].ndim == 64
    with pytest.raises(ShapeError, match="more than 64 dims"):
        sd.trace(lambda y: y[None], x)


MEMORY = """
import resource
import sys
import numpy as np
from stagedad.ir import Graph
from stagedad.run import compile, live_counts

graph = Graph()
x = graph.add_input("f64[?]")
rows = graph.insert("expand_dims", x, axis=1)
wide = graph.insert("add", rows, x, location=("user.py", 12))
other = graph.insert("matmul", wide, wide)
graph.register_output(graph.insert("sum", other if sys.argv[1] == "workspace" else wide))
if sys.argv[1] == "output":
    graph.register_output(wide)
program = compile(graph)
small = np.ones(3)
def right():
    value = program(small)[0]
    return value == (36 * 3 if sys.argv[1] == "workspace" else 18)
assert right()
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
for _ in range(3):
    try:
        program(np.ones(8000))
    except MemoryError as error:
        print(error, *getattr(error, "__notes__", ()))
    assert live_counts()["busy_arenas"] == 0
    assert right()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize("what", ["workspace", "output"])
def test_memory_that_is_not_there(what):
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, what], capture_output=True, text=True, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        if what == "workspace":
            assert "bytes of workspace the largest value, of 512000000 bytes, is in" in line
        else:
            assert "Unable to allocate" in line
    if what == "workspace":
        assert "at user.py:12" in run.stdout or "matmul" in run.stdout
