"""Every C expression of the table, compiled in one file, against the op's NumPy function."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from stagedad.ops import OPS, evaluate, infer
from stagedad.ops.c_source import C_TYPES, HEADER, c_function
from stagedad.types import CODES, TensorType

WRITTEN = [op for op in OPS.values() if op.expr]
FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]
# Which of two equal zeros NumPy's loops take depends on their place in the array.
ANY_ZERO = {"maximum", "minimum", "fmax", "fmin"}


def loop_dtypes(op, code):
    """The dtypes (operands, result) of NumPy's loop for numbers of `code`; None if none."""
    given = []
    for argument in op.arguments:
        own = {"condition": np.dtype(bool), "exponent": CODES["i64"]}
        given.append(own.get(argument.name, CODES[code]))
    try:
        if op.ufunc is not None:
            found = op.ufunc.resolve_dtypes((*given, None))
            return tuple(found[:-1]), found[-1]
        attributes = {"dtype": CODES[code]} if op.kind == "astype" else {}
        (result,) = infer(op.kind, [TensorType(each, (2,)) for each in given], attributes)
    except TypeError:
        return None
    return tuple(given), result.dtype


def all_cases():
    """(name, op, dtypes, definition) of every function that there is, each once."""
    found = {}
    for op in WRITTEN:
        for code in CODES:
            dtypes = loop_dtypes(op, code)
            if dtypes is None:
                continue
            name = "_".join([op.kind, *(dtype.name for dtype in dtypes[0])])
            text = c_function(f"sad_{name}", op, *dtypes)
            if text is not None:
                found[name] = (name, op, dtypes, text)
    return list(found.values())


CASES = all_cases()


def loop(name, dtypes):
    """The text of a C function that calls another one for each element of arrays."""
    operands, result = dtypes
    letters = "abc"[: len(operands)]
    arrays = [f"const {C_TYPES[t]} *{x}" for x, t in zip(letters, operands, strict=True)]
    arguments = ", ".join(f"{x}[i]" for x in letters)
    return (
        f"void {name}(int64_t n, {', '.join(arrays)}, {C_TYPES[result]} *y) {{\n"
        f"  for (int64_t i = 0; i < n; i++) y[i] = sad_{name}({arguments});\n}}\n"
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All functions in one file."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("expr")
    texts = [text + loop(name, dtypes) for name, _, dtypes, text in CASES]
    (folder / "expr.c").write_text(HEADER + "".join(texts))
    command = [compiler, *FLAGS, "expr.c", "-o", "expr.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "expr.so"))


def special(dtype, domain):
    """The numbers at which a function of `dtype` may be wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        wanted = [0, 1, 2, 3, 7, -1, -2, -3, -7, 127, 128, 255, 9999, 2**31 - 1, 2**31, 2**40]
        wanted += [ends.min, ends.min + 1, ends.max // 2, ends.max - 1, ends.max]
        wanted = sorted({each for each in wanted if ends.min <= each <= ends.max})
        return np.array(wanted, dtype)
    ends = np.finfo(dtype)
    digits = ends.nmant + 1
    with np.errstate(all="ignore"):
        positive = np.array([
            0, ends.smallest_subnormal, ends.smallest_normal, ends.eps, 1 - ends.epsneg, 1,
            1 + ends.eps, 0.1, 0.5, 1.5, 2, 2.5, 3, 3.5, 7, 10, 20, 88.7, 100, 709.7, 1023.5,
            np.pi, 2.0**digits, 2.0**digits - 1, 2.0**digits + 2, 2**31, 2.0**63, 1e10,
            ends.max / 2, ends.max, np.inf, *map(abs, domain),
        ], dtype)  # fmt: skip
    return np.concatenate([positive, -positive, np.array([np.nan], dtype)])


def drawn(dtype, domain, random, count=3000):
    """Random numbers: of many magnitudes, not far from 1, and within the domain."""
    if dtype.kind == "b":
        return random.random(4 * count) < 0.5
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        bits = random.integers(0, ends.bits, 3 * count).astype(dtype)
        small = random.integers(max(ends.min, -20), 20, count)
        wide = random.integers(ends.min, ends.max, 3 * count, dtype, endpoint=True) >> bits
        return np.concatenate([small.astype(dtype), wide])
    ends = np.finfo(dtype)
    magnitudes = np.exp2(random.uniform(ends.minexp - ends.nmant, ends.maxexp, count))
    moderate = np.exp2(random.uniform(-8, 8, count))
    parts = [magnitudes, moderate, random.uniform(0, 4, count)]
    signed = np.concatenate(parts) * random.choice([-1, 1], 3 * count)
    return np.concatenate([signed, random.uniform(*domain, count)]).astype(dtype)


def operands_of(op, dtypes, random):
    """Operands as long vectors: all combinations of special numbers, then random ones."""
    domains = [op.domain.get(argument.name, (-2.0, 2.0)) for argument in op.arguments]
    pairs = list(zip(dtypes, domains, strict=True))
    grid = np.meshgrid(*[special(*pair) for pair in pairs])
    found = [
        np.concatenate([part.ravel(), random.permutation(drawn(*pair, random))])
        for part, pair in zip(grid, pairs, strict=True)
    ]
    if op.kind == "ldexp":
        # Exponents that are no overflow.
        found[0] = np.concatenate([found[0], found[0]])
        found[1] = np.concatenate([found[1], random.integers(-1100, 1100, found[1].size)])
    return found


def distance(one, other):
    """How many floats apart two arrays are; 0.0 and -0.0 are neighbours."""
    unsigned = np.dtype(f"u{one.dtype.itemsize}")
    top = unsigned.type(1) << unsigned.type(8 * one.dtype.itemsize - 1)
    places = []
    for array in (one, other):
        bits = array.view(unsigned)
        places.append(np.where(bits & top, ~bits, bits | top))
    return np.maximum(*places) - np.minimum(*places)


def assert_4_ulp(found, wanted, operands, any_zero=False):
    """Assert that `found` is `wanted`: 4 floats apart at most, NaNs and zeros alike."""
    if wanted.dtype.kind == "f":
        nan = np.isnan(wanted)
        wrong = (nan != np.isnan(found)) | (~nan & (distance(found, wanted) > 4))
        if not any_zero:
            wrong |= (found == 0) & (wanted == 0) & (np.signbit(found) != np.signbit(wanted))
    else:
        wrong = found != wanted
    places = np.flatnonzero(wrong)[:6]
    rows = [[*(x[i] for x in operands), "found", found[i], "not", wanted[i]] for i in places]
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {wrong.size}: {rows}"


def called(library, name, operands, result):
    """What the C function gives."""
    found = np.empty(operands[0].size, result)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*operands, found)]
    getattr(library, name)(ctypes.c_int64(found.size), *pointers)
    return found


@pytest.mark.parametrize(
    ("name", "op", "dtypes"), [case[:3] for case in CASES], ids=[case[0] for case in CASES]
)
def test_agrees_with_numpy_to_4_ulp(name, op, dtypes, library):
    random = np.random.default_rng(len(name))
    operands = operands_of(op, dtypes[0], random)
    attributes = {"dtype": dtypes[1]} if op.kind == "astype" else {}
    (wanted,) = evaluate(op.kind, operands, attributes)
    assert wanted.dtype == dtypes[1]
    found = called(library, name, operands, dtypes[1])
    assert_4_ulp(found, wanted, operands, op.kind in ANY_ZERO)


def test_most_ops_have_functions_of_both_floats_and_many_of_integers():
    kinds = {code: {op.kind for _, op, d, _ in CASES if CODES[code] in d[0]} for code in CODES}
    assert kinds["f64"] == {op.kind for op in WRITTEN}
    assert kinds["f32"] == kinds["f64"] - {"float_power"}  # which is of doubles
    for code in ("i8", "i64", "u8", "u64"):
        assert kinds[code] >= {"add", "mul", "maximum", "where", "less", "square"}
    assert not kinds["c128"]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([1 + 5 * 2.0**-52], [1]),
        ([0], [-0.0]),
        ([0], [np.nan]),
        ([np.nan], [0]),
        ([1e308], [np.inf]),
        ([np.inf], [-np.inf]),
        ([3e-323], [0]),
        ([1e-320], [-1e-320]),
    ],
)
def test_the_comparison_catches(found, wanted):
    found, wanted = np.array(found, float), np.array(wanted, float)
    with pytest.raises(AssertionError):
        assert_4_ulp(found, wanted, [])
    assert_4_ulp(wanted, wanted, [])


def test_the_comparison_passes_4_ulp():
    one, other = np.array([1 + 4 * 2.0**-52, 2e-323]), np.array([1, 0.0])
    assert_4_ulp(one, other, [])
    assert_4_ulp(-one, -other, [])
    assert_4_ulp(np.array([0.0]), np.array([-0.0]), [], any_zero=True)
