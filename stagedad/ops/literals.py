"""Checks of what an entry says beside its formulas: C expressions, names, numbers.

What passes can be written into the generated table as a literal, and holds nothing that
another product would have to run to know what it is.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import numpy as np

from stagedad.errors import suggestion
from stagedad.ops.expression import MOST_WHOLE
from stagedad.ops.reading import LONGEST, ExpressionError

_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor "
    "lgamma log log10 log1p log2 logb rint round sin sinh sqrt tan tanh tgamma trunc"
)
_TWO = "atan2 copysign fdim fmax fmin fmod hypot ldexp nextafter pow remainder"
C_FUNCTIONS = dict.fromkeys(_ONE.split(), 1) | dict.fromkeys(_TWO.split(), 2) | {"fma": 3}
"""C99's functions that an `expr` may call, with how many arguments they take."""

C_CONSTANTS = ("HUGE_VAL",)
DEEPEST_LITERAL = 32

_SUBMODULES = (["fft"], ["linalg"])

_TOKEN = re.compile(
    r"\s*(?:(?P<cast>\(int\))|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\d+(?:\.\d+)?(?![\w.]))"
    r"|(?!--|\+\+)(?P<sign>&&|\|\||[<>=!]=|[-+*/<>!?:(),]))\s*",
    re.ASCII,
)
"""Numbers, casts and calls are spelt as ops/c_source.py reads them."""


def check_c(text: str, operands: int) -> None:
    """Check that `text` is one C expression over a, b, c: the first `operands` of them.

    Names and operators alternate, and calls have the right arity; that `?` has its `:` is
    left to the compiler.

    Raises: ExpressionError with the offset.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", LONGEST)
    known = [*"abc"[:operands], *C_CONSTANTS]
    calls: list[tuple[str, int, int]] = []
    at, start, function, is_value = 0, 0, "", False
    while at < len(text) or not at:
        match = _TOKEN.match(text, at)
        if match is None:
            found = text[at : at + 1]
            raise ExpressionError(f"not allowed in a C expression: {found!r}", at)
        start, at = match.start(match.lastgroup or 0), match.end()
        name, sign = match["name"], match["sign"]
        begins = sign == "(" or sign is None
        if function and (sign != "(" or text[start - 1].isspace()):
            raise ExpressionError(f"{function} is not called", start)
        if is_value and begins:
            raise ExpressionError("two values, and no operator between them", start)
        if not is_value and not begins and sign not in ("-", "+", "!", ")"):
            raise ExpressionError(f"no value before {sign!r}", start)
        if name in C_FUNCTIONS:
            function = name
            continue
        if name is not None and name not in known:
            hint = suggestion(name, [*known, *C_FUNCTIONS])
            raise ExpressionError(f"unknown name '{name}' in C", start, hint)
        if sign == "(":
            calls.append((function, start, 0))
            function = ""
        elif sign == ",":
            calls.append(_next_argument(calls, start))
        elif sign == ")":
            _close(calls, start, is_value)
        is_value = bool(name or match["number"] or sign == ")")
    if function or not is_value:
        raise ExpressionError("ends without a value", start)
    if calls:
        raise ExpressionError("'(' without ')'", calls[-1][1])


def _next_argument(calls: list[tuple[str, int, int]], at: int) -> tuple[str, int, int]:
    if not calls or not calls[-1][0]:
        raise ExpressionError("',' outside of a call", at)
    name, start, commas = calls.pop()
    return name, start, commas + 1


def _close(calls: list[tuple[str, int, int]], at: int, is_value: bool) -> None:
    if not calls:
        raise ExpressionError("')' without '('", at)
    name, start, commas = calls.pop()
    given, expected = commas + is_value, C_FUNCTIONS.get(name, 1)
    if given != expected:
        what = f"{name} takes {expected} arguments" if name else "takes 1 value"
        raise ExpressionError(f"{what}: {given}", start)


def check_numpy(name: str) -> None:
    """Check that `name` is of a public function of NumPy, as `linalg.inv`.

    Raises: ExpressionError.
    """
    *above, last = name.split(".")
    is_public = last.isidentifier() and not last.startswith("_")
    place: Any = np
    if above:  # others hold modules of Python, or are imported when first asked for
        place = getattr(np, above[0]) if above in _SUBMODULES else None
    found = getattr(place, last, None) if is_public else None
    module = str(getattr(found, "__module__", "")).partition(".")[0]
    is_function = callable(found) and not isinstance(found, type) and module == "numpy"
    if not is_function and not isinstance(found, np.ufunc):
        hint = suggestion(last, dir(place)) if place else None
        raise ExpressionError(f"no function of NumPy: '{name}'", 0, hint)


def check_scipy(name: str) -> None:
    """Check that `name` can be of a function of scipy.special, which may not be installed.

    Raises: ExpressionError.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise ExpressionError(f"no function of scipy.special: '{name}'")


def problem_of_literal(value: Any, *, finite: bool = True, depth: int = 0) -> str | None:
    """Return what keeps `value` from being a literal of the table, or None.

    Literals are None, booleans, numbers, strings, and lists, tuples and dicts of them.
    """
    if value is None or isinstance(value, bool | str):
        return None
    if isinstance(value, int):
        return None if abs(value) <= MOST_WHOLE else "a number beyond 64 bits"
    if isinstance(value, float | complex):
        is_finite = isfinite(value.real) and isfinite(value.imag)
        return None if is_finite or not finite else f"not finite: {value}"
    if isinstance(value, dict | list | tuple):
        if depth == DEEPEST_LITERAL:
            return f"nested more than {DEEPEST_LITERAL} deep"
        parts = value.values() if isinstance(value, dict) else value
        found = (problem_of_literal(part, finite=finite, depth=depth + 1) for part in parts)
        return next((problem for problem in found if problem), None)
    return f"not a number: {value!r}"


def is_array(value: Any) -> bool:
    """Whether `value` is a number, or nested lists of them that make an array."""
    if isinstance(value, list):
        try:
            return np.asarray(value).dtype.kind in "bif"
        except (ValueError, OverflowError):
            return False
    return isinstance(value, int | float)
