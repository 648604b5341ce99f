"""Linear algebra and Fourier transforms in programs: NumPy's loops, and their silent errors."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.ops import evaluate
from stagedad.ops.samples import samples
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile
from stagedad.types import TensorType

KINDS = ["inv", "solve", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "tril", "triu"]
KINDS += ["fft", "ifft", "rfft", "irfft"]
# NumPy's gufuncs of singular values had other names before these.
KINDS += ["svd", "svdvals"] if hasattr(np.linalg._umath_linalg, "svd_s") else []


def program(kind, *types, **attributes):
    graph = Graph()
    results = graph.insert(kind, *[graph.add_input(type) for type in types], **attributes)
    for value in results if isinstance(results, tuple) else (results,):
        graph.register_output(value)
    return compile(graph)


@pytest.mark.skipif(not loops_enabled(), reason="loops are off")
@pytest.mark.parametrize("kind", KINDS)
def test_no_python_is_called(kind):
    for dtype in ("f4", "f8", "c8", "c16", "i4"):
        for sample in samples(kind, dtype):
            if sample.layout == "empty":
                continue
            types = [TensorType.of(array) for array in sample.arrays]
            compiled = program(kind, *types, **sample.attributes)
            compiled(*sample.arrays)
            assert {record.kind for record in compiled.instructions} <= {
                "loop",
                "gufunc",
                "own",
            }


SINGULAR = np.ones((2, 2))
BAD = {
    "inv": (SINGULAR,),
    "solve": (SINGULAR, np.ones(2)),
    "cholesky": (-np.eye(2),),
    "svdvals": (np.full((2, 2), np.nan),),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_fails_says_so_and_what_follows_does_not(kind):
    bad = BAD[kind]
    good = (np.array([[2.0, 0.5], [0.5, 1.0]]), *bad[1:])
    compiled = program(kind, *[TensorType.of(array) for array in bad])
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            compiled(*bad)
        np.testing.assert_array_equal(compiled(*good)[0], evaluate(kind, good, {})[0])


@pytest.mark.parametrize("kind", ["inv", "cholesky"])
def test_one_bad_matrix_of_a_stack_is_enough(kind):
    stack = np.stack([np.eye(2), np.eye(2), 0 * np.eye(2), np.eye(2)]).reshape(2, 2, 2, 2)
    compiled = program(kind, TensorType.of(stack))
    for view in (stack, stack.swapaxes(0, 1)):
        with pytest.raises(np.linalg.LinAlgError, match=kind):
            compiled(view)


def test_a_flag_raised_before_is_no_failure():
    graph = Graph()
    x, a = graph.add_input(TensorType("f8", (2,))), graph.add_input(TensorType("f8", (2, 2)))
    graph.register_output(graph.insert("log", x))
    graph.register_output(graph.insert("inv", a))
    logs, inverse = compile(graph)(np.array([-1.0, 1.0]), 2 * np.eye(2))
    assert np.isnan(logs[0])
    np.testing.assert_array_equal(inverse, np.eye(2) / 2)


@pytest.mark.parametrize("kind", ["inv", "det", "eigh", "svdvals", "fft", "rfft"])
def test_flags_raised_before_are_still_reported(kind):
    graph = Graph()
    x, a = graph.add_input(TensorType("f8", (2,))), graph.add_input(TensorType("f8", (2, 2)))
    graph.register_output(graph.insert("log", x))
    results = graph.insert(kind, a)
    for value in results if isinstance(results, tuple) else (results,):
        graph.register_output(value)
    compiled = compile(graph)
    with np.errstate(all="raise"):
        compiled(np.array([2.0, 1.0]), 2 * np.eye(2))
        with pytest.raises(FloatingPointError, match="invalid value encountered in log"):
            compiled(np.array([-1.0, 1.0]), 2 * np.eye(2))


def test_flags_of_decompositions_mean_nothing_and_those_of_det_do():
    tiny = 1e-300 * np.array([[2.0, 1.0], [1.0, 3.0]])
    with np.errstate(all="raise"):
        for kind in ("inv", "eigh", "svdvals", "cholesky"):
            program(kind, TensorType.of(tiny))(tiny)
        with pytest.raises(FloatingPointError, match="underflow encountered in det"):
            program("det", TensorType.of(tiny))(tiny)


def test_a_failure_names_its_node():
    compiled = program("inv", TensorType("f8", (2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match=r"inv: singular matrix|Singular") as caught:
        compiled(SINGULAR)
    assert any("inv" in note for note in caught.value.__notes__)


def test_views():
    stack = np.random.default_rng(0).standard_normal((3, 4, 5, 5)) + 5 * np.eye(5)
    compiled = program("inv", TensorType.of(stack[::-1, ::2].swapaxes(-1, -2)))
    view = stack[::-1, ::2].swapaxes(-1, -2)
    np.testing.assert_array_equal(compiled(view)[0], np.linalg.inv(view))
