"""Tests of ops/c_source.py; tests/ops/test_expr.py compiles and runs what it writes."""

import dataclasses

import numpy as np
import pytest

from stagedad.ops import OPS
from stagedad.ops.c_source import TOKEN, c_function
from stagedad.types import CODES

F32, F64, I32, BOOL = (CODES[code] for code in ("f32", "f64", "i32", "b1"))


def text(expr, *operands, result=None):
    """The function of an op with the expression `expr`."""
    op = dataclasses.replace(OPS["add"], expr=expr)
    return c_function("f", op, operands, result or operands[-1], prefix="")


@pytest.mark.parametrize(
    ("expr", "operands", "wanted"),
    [
        ("1 / (1 + exp(-a))", [F32], "1.0f / (1.0f + expf(-a))"),
        ("1 / (1 + exp(-a))", [F64], "1.0 / (1.0 + exp(-a))"),
        ("a * 0.25", [F64], "a * 0.25"),
        ("a * 0.25", [F32], "a * 0.25f"),
        ("a < -2 ? -1 : a - 1", [F32], "a < -2.0f ? -1.0f : a - 1.0f"),
        ("copysign(HUGE_VAL, a)", [F32], "copysignf(HUGE_VALF, a)"),
        ("a ? b : c", [BOOL, F32, F64], "a ? b : c"),
        ("ldexp(b, (int)a)", [I32, F32], "ldexpf(b, (int)a)"),
        ("a > b ? a : -1", [I32, I32], "a > b ? a : -1"),
        ("a * 2", [I32], "(uint64_t)a * 2"),
    ],
)
def test_numbers_and_functions_get_the_type_of_the_operands(expr, operands, wanted):
    assert f"({wanted});" in text(expr, *operands)


def test_is_a_function_of_the_dtypes():
    wanted = "bool f(double a, double b) { return (bool)(a < b); }\n"
    assert text("a < b", F64, F64, result=BOOL) == wanted
    assert c_function("g", OPS["neg"], [F32], F32) == (
        "static inline float g(float a) { return (float)(-a); }\n"
    )


@pytest.mark.parametrize("expr", ["exp(a)", "1 / a", "a * 0.5", "a > 0 ? a + 1 : a", "(int)a"])
def test_what_is_not_for_integers_has_no_function_of_them(expr):
    assert text(expr, I32) is None
    assert text(expr, F64) is not None


def test_integers_of_two_types_have_no_function():
    assert text("a < b", I32, CODES["u32"], result=BOOL) is None
    assert text("a ? b : c", BOOL, I32, I32) is not None


def test_other_numbers_have_no_functions():
    for code in ("f16", "c64", "c128"):
        assert text("a", CODES[code]) is None
        assert text("a", F64, result=CODES[code]) is None
    assert text(None, F64) is None


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.expr], ids=repr)
def test_expressions_are_words_of_the_language(op):
    assert "".join(word[0] for word in TOKEN.finditer(op.expr)) == op.expr
    letters = {word["operand"] for word in TOKEN.finditer(op.expr)} - {None}
    assert letters <= set("abc"[: len(op.arguments)])


@pytest.mark.parametrize("expr", ["a | b", "x", "a; b", "a[0]", "a = b", "sizeof a", '"a"'])
def test_other_words_are_none(expr):
    assert "".join(word[0] for word in TOKEN.finditer(expr)) != expr


def test_products_of_sixteen_bits_are_no_overflow():
    """Without the wide operands, C multiplies them as `int`: 65535 * 65535 is undefined."""
    dtype = np.dtype("u2")
    found = c_function("f", OPS["mul"], (dtype, dtype), dtype)
    assert "(uint64_t)a * (uint64_t)b" in found
