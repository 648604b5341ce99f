"""C functions out of the expressions of the table: where every product that writes C starts.

An `expr` is written once, without types: `1 / (1 + exp(-a))`.  Here its numbers and functions
get those of the operands, so that float32 is computed in float32:

    static inline float sigmoid_f32(float a) { return 1.0f / (1.0f + expf(-a)); }

The text is C99, and C++ where `bool` and `int64_t` are known.  Compile it without contraction
of products and sums (-ffp-contract=off, -fmad=false), or results differ from NumPy's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from stagedad.ops.op import Op
from stagedad.types import CODES

DType: TypeAlias = "np.dtype[Any]"

HEADER: Final = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
"""What the functions need."""

_NAMES = {
    "b1": "bool", "f32": "float", "f64": "double",
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
}  # fmt: skip
C_TYPES: Final[dict[DType, str]] = {CODES[code]: name for code, name in _NAMES.items()}
"""Dtype -> its type in C; complex numbers and float16 have none."""

TOKEN: Final = re.compile(
    r"(?P<call>[a-z]\w*)(?=\()|(?P<cast>\(int\))|(?P<operand>\b[abc]\b)|(?P<huge>HUGE_VAL)"
    r"|(?P<number>(?:(?<=[?:<>=] )-)?\d+(?P<decimals>\.\d+)?)"
    r"|(?P<order>[<>]=?)|(?P<arithmetic>[-+*])|(?P<quotient>/)"
    r"|(?P<logic>[=!]=|&&|\|\||[!?])|[:(),\s]"
)
"""A word of an expression; what matches none of it is no expression.  A sign behind a choice or
a comparison belongs to its number."""


def c_function(
    name: str, op: Op, operands: Sequence[DType], result: DType, prefix: str = "static inline "
) -> str | None:
    """Return the definition of a C function that computes `op`, attributes at their defaults.

    `operands` are the dtypes that it takes, `result` what it gives: those of a loop, for
    nothing is promoted here.  None if the op has no expression, or none for these dtypes: it
    is for real numbers, and for integers of one type where no function, quotient or fraction
    is in it.  Integers wrap as NumPy's do.
    """
    if op.expr is None or not {*operands, result} <= C_TYPES.keys():
        return None
    text = _floating(op.expr, operands) if _floats(operands) else _whole(op.expr, operands)
    if text is None:
        return None
    parameters = ", ".join(
        f"{C_TYPES[dtype]} {letter}" for letter, dtype in zip("abc", operands, strict=False)
    )
    given = C_TYPES[result]
    return f"{prefix}{given} {name}({parameters}) {{ return ({given})({text}); }}\n"


def _floats(operands: Sequence[DType]) -> list[DType]:
    return [dtype for dtype in operands if dtype.kind == "f"]


def _floating(expr: str, operands: Sequence[DType]) -> str:
    """Return `expr` with the numbers and functions of the widest of `operands`."""
    suffix = "" if np.result_type(*_floats(operands)) == np.float64 else "f"

    def typed(word: re.Match[str]) -> str:
        if word["call"]:
            return word["call"] + suffix
        if word["huge"]:
            return "HUGE_VALF" if suffix else "HUGE_VAL"
        if word["number"]:
            return word["number"] + ("" if word["decimals"] else ".0") + suffix
        return word[0]

    return TOKEN.sub(typed, expr)


def _whole(expr: str, operands: Sequence[DType]) -> str | None:
    """Return `expr` for integers and booleans, or None if it is not for them."""
    if len({dtype for dtype in operands if dtype.kind != "b"}) > 1:
        return None  # C compares -1 with an unsigned number as a large one
    words = list(TOKEN.finditer(expr))
    if any(
        w["call"] or w["cast"] or w["huge"] or w["decimals"] or w["quotient"] for w in words
    ):
        return None
    if not any(word["arithmetic"] for word in words):
        return expr
    if any(word["order"] for word in words):
        return None
    # Signed overflow is undefined in C, and `int` is what it multiplies narrow numbers as.  Of
    # 64 bits without a sign the lower ones are right for every type, and so is being zero.
    return TOKEN.sub(lambda word: f"(uint64_t){word[0]}" if word["operand"] else word[0], expr)
