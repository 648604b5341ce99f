"""A program of one op gives what the op's reference gives, over all samples."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.ops import OPS, evaluate
from stagedad.ops.samples import samples
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile

DTYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()

# What has no loop and goes through the reference itself: of linear algebra and Fourier
# transforms empty stacks too, and what this NumPy's loops do not fit.
OBJECT_CALLS = {
    kind for kind, op in OPS.items() if op.family in ("linalg", "fft") and kind != "matmul"
} | {
    "add_along_axis", "argmax", "argmin", "argpartition", "argsort", "convolve",
    "convolve_valid", "frexp_exponent", "logsumexp", "random_exponential", "random_integers",
    "random_normal", "random_permutation", "random_uniform", "recurrence", "searchsorted",
    "sinc", "sort", "take_along_axis",
}  # fmt: skip

# Sums in another order; NumPy's product of complex numbers contracts where it can.
INEXACT = ("matmul", "take_add", "mul0")


def program_of(kind, arrays, attributes):
    """The program of one node, its operands untyped inputs."""
    graph = Graph()
    values = [graph.add_input() for _ in arrays]
    node = graph.append(graph.create(kind, *values, **attributes))
    for value in node.outputs:
        graph.register_output(value)
    return compile(graph)


def assert_same(kind, result, wanted, *, exact):
    assert type(result) is np.ndarray
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.shape
    assert result.flags.c_contiguous
    assert result.flags.writeable
    if exact or result.dtype.kind not in "fc":
        np.testing.assert_array_equal(result, wanted, err_msg=kind)
    else:
        eps = np.finfo(result.dtype).eps
        scale = max(1.0, float(np.max(np.abs(wanted), initial=0)))
        np.testing.assert_allclose(result, wanted, rtol=64 * eps, atol=64 * eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", list(OPS))
def test_agrees_with_the_reference(kind, dtype):
    found = samples(kind, dtype)
    for sample in found:
        wanted = evaluate(kind, sample.arrays, sample.attributes)
        program = program_of(kind, sample.arrays, sample.attributes)
        results = program(*sample.arrays)
        assert len(results) == len(wanted)
        exact = "reduction" not in OPS[kind].traits and kind not in INEXACT
        for result, want in zip(results, wanted, strict=True):
            assert_same(kind, result, want, exact=exact)
            assert not any(np.shares_memory(result, array) for array in sample.arrays)
        if loops_enabled():
            listed = {record.op for record in program.instructions if record.kind == "object"}
            assert listed <= OBJECT_CALLS
