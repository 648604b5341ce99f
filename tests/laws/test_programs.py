"""Law: a program of one op gives what the reference gives, in every dtype and layout."""

import numpy as np
import pytest

from stagedad.ops import evaluate
from stagedad.plan import kernels
from stagedad.run import compile

# Sums of products in another order than NumPy's, or products of complex numbers that
# contract where NumPy's do not.
INEXACT = {"matmul", "take_add", "mul0", "sum_to", "sum_to_like"}


def few_ulps(op, result, wanted):
    """Assert that two results are equal, up to the order of the sums that `op` makes."""
    assert type(result) is np.ndarray
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.shape
    if wanted.dtype.kind not in "fc" or not ("reduction" in op.traits or op.kind in INEXACT):
        np.testing.assert_array_equal(result, wanted)
        # Which sign a NaN has depends on the loop that made it.
        signs = [np.signbit(np.where(np.isnan(x), 0, x.real)) for x in (result, wanted)]
        np.testing.assert_array_equal(*signs)
        return
    eps = float(np.finfo(wanted.dtype).eps)
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0)))
    np.testing.assert_allclose(result, wanted, rtol=32 * eps, atol=32 * eps * scale)


def agrees(call):
    wanted = evaluate(call.op.kind, call.arrays, call.attributes)
    before = [array.copy() for array in call.arrays]
    program = compile(call.graph)
    results = program(*call.arrays)
    for result, want, value in zip(results, wanted, call.graph.outputs, strict=True):
        few_ulps(call.op, result, want)
        assert (result.dtype, result.shape) == (value.type.dtype, value.type.shape)
        assert not any(np.shares_memory(result, array) for array in call.arrays)
        result[...] = 0  # is the caller's own
    for array, old in zip(call.arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    # Contiguous operands take other code than views do.
    wanted = evaluate(call.op.kind, before, call.attributes)
    for result, want in zip(program(*before), wanted, strict=True):
        few_ulps(call.op, result, want)
    return len(results)


@pytest.fixture
def without_loops(monkeypatch):
    """As under STAGEDAD_LOOPS=off."""
    cached = [
        kernels._resolve,
        kernels.own_kernel,
        kernels.quiet_kernel,
        kernels.extremum_kernel,
    ]
    monkeypatch.setattr(kernels, "_use_loops", False)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_programs_agree_with_the_reference(over):
    over(agrees)


@pytest.mark.usefixtures("without_loops")
def test_programs_agree_without_loops_too(over):
    over(agrees)


@pytest.mark.usefixtures("without_loops")
def test_ufuncs_are_called_as_objects_then(laws):
    for kind in ("add", "exp", "matmul", "less"):
        program = compile(laws.calls(kind, "f64")[-1].graph)
        program(*laws.calls(kind, "f64")[-1].arrays)
        assert {record.kind for record in program.instructions} == {"object"}
