"""Every C expression of the table, compiled, against the op's NumPy function."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from stagedad.ops import OPS, evaluate
from stagedad.ops.samples import samples

WRITTEN = [op for op in OPS.values() if op.expr]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One C function an op, over doubles."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("expr")
    lines = ["#include <math.h>"]
    for op in WRITTEN:
        operands = ", ".join(f"double {name}" for name in "abc"[: len(op.arguments)])
        lines.append(f"double sad_{op.kind}({operands}) {{ return {op.expr}; }}")
    (folder / "expr.c").write_text("\n".join(lines) + "\n")
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "expr.c", "-o", "expr.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "expr.so"))


@pytest.mark.parametrize("op", WRITTEN, ids=repr)
def test_agrees_with_numpy_to_4_ulp(op, library):
    function = getattr(library, f"sad_{op.kind}")
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * len(op.arguments)
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan])
    whole = np.array([-1080, -1, 0, 1, 2000])
    calls = [(sample.arrays, sample.attributes) for sample in samples(op.kind, "float64")]
    if op.kind != "astype":
        names = [argument.name for argument in op.arguments]
        grid = np.meshgrid(*[whole if name == "exponent" else special for name in names])
        calls.append((tuple(grid), {}))
    for arrays, attributes in calls:
        defaults = {k: v for k, v in attributes.items() if op.attributes[k] != v}
        if defaults and attributes != {"dtype": np.dtype("float64")}:
            continue
        expected = evaluate(op.kind, arrays, attributes)[0].astype(np.float64)
        operands = np.broadcast_arrays(*arrays)
        found = [
            function(*map(float, values))
            for values in zip(*map(np.ravel, operands), strict=True)
        ]
        found = np.reshape(found, expected.shape)
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        with np.errstate(all="ignore"):
            near = np.abs(found - expected) <= 4 * np.spacing(np.abs(expected))
        assert np.all(same | near), (arrays, found, expected)
