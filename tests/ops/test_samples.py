"""Tests of ops/samples.py: the table (op, law, layout) has no holes."""

import numpy as np
import pytest

from stagedad.errors import DTypeError
from stagedad.ops import OPS, evaluate, linalg_rules
from stagedad.ops.registry import scipy_ops
from stagedad.ops.samples import ABSENT, LAYOUTS, layouts, samples
from stagedad.types import CODES

LINEAR = set(vars(linalg_rules)) - {"matmul", "triangle"}

# Dtypes that an op does not take: the only reason to have no samples.
REFUSES = {
    "sub": ["b1"],
    "neg": ["b1"],
    "sign": ["b1"],
    "floor": ["c64", "c128"],
    "heaviside": ["c64", "c128"],
    "copysign": ["c64", "c128"],
    "sigmoid": ["c64", "c128"],
    "rfft": ["c64", "c128"],
    # LAPACK has no half precision.
    **{kind: ["f16"] for kind, op in OPS.items() if op.type_rule in LINEAR},
}
REFUSES |= {
    kind: [code for code in CODES if CODES[code].kind in "biu" or code == "f16"]
    for kind in ("over_gaps", "over_columns")
}
REAL = """
    softplus relu logsumexp cbrt hypot arctan2 logaddexp logaddexp2 deg2rad rad2deg fabs ceil
    trunc fmod remainder floor_divide nextafter spacing ldexp frexp_exponent signbit
"""
INTEGERS = "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count"
for kinds, codes in (
    (REAL, "c64 c128"),
    (INTEGERS, "f16 f32 f64 c64 c128"),
    ("recurrence", "b1 i8 i16 i32 i64 u8 u16 u32 u64"),
    # Each call counts on: no two are alike.  See tests/front/test_random.py.
    ("random_key", " ".join(CODES)),
    ("gcd lcm", "b1 f16 f32 f64 c64 c128"),
):
    REFUSES.update({kind: codes.split() for kind in kinds.split()})
# Of SciPy's, those with loops that take nothing but complex numbers.
COMPLEX = "erf erfc erfcx gamma loggamma psi xlogy xlog1py ndtr log_ndtr riemann_zeta"
REFUSES |= {kind: ["c64", "c128"] for kind in scipy_ops() if kind not in COMPLEX.split()}


@pytest.mark.parametrize("kind", OPS)
@pytest.mark.parametrize("code", CODES)
def test_every_op_has_every_layout_in_every_dtype(kind, code):
    found = samples(kind, CODES[code])
    if code in REFUSES.get(kind, ()):
        assert found == []
    else:
        assert len(found) >= 8
        assert layouts(kind, found) == set()


@pytest.mark.parametrize("kind", OPS)
def test_layouts_are_what_they_say(kind):
    for sample in samples(kind, "float64"):
        result = evaluate(kind, sample.arrays, sample.attributes)[0]
        shapes = [array.shape for array in (*sample.arrays, result)]
        if sample.layout == "reversed" and max(map(np.size, sample.arrays)) > 1:
            assert any(min(array.strides, default=0) < 0 for array in sample.arrays)
        if sample.layout == "strided":
            assert not all(array.flags.c_contiguous for array in sample.arrays)
        if sample.layout == "broadcast":
            assert any(0 in array.strides for array in sample.arrays)
        if sample.layout == "4-d":
            assert max(map(len, shapes)) >= 4
        if sample.layout == "empty":
            assert any(0 in shape for shape in shapes)
        if sample.layout == "size-1":
            assert any(1 in shape for shape in shapes)
        if sample.layout == "0-d":
            assert () in shapes


def test_samples_are_the_same_every_time():
    first, second = samples("mul", "float64"), samples("multiply", np.float64)
    for one, two in zip(first, second, strict=True):
        for a, b in zip(one.arrays, two.arrays, strict=True):
            np.testing.assert_array_equal(a, b)


def test_reasons_are_about_something():
    for kind, layout in ABSENT:
        assert layout in LAYOUTS
        assert layout not in {sample.layout for sample in samples(kind, "float64")}


def test_refuses_other_dtypes():
    with pytest.raises(DTypeError):
        samples("mul", "longdouble")
