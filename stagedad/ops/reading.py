"""Text as Python's syntax trees: for formulas and signatures, which are never executed."""

from __future__ import annotations

import ast
import warnings
from threading import Lock

LONGEST = 1000
"""Characters of a formula; keeps Python's parser off its limits."""


class ExpressionError(Exception):
    """A formula that is not one; `offset` is the place in its text, or `node` is there."""

    def __init__(self, problem: str, at: int | ast.expr = 0, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint
        self.offset = at if isinstance(at, int) else 0
        self.node = None if isinstance(at, int) else at


PARSING = Lock()


def python_expression(text: str) -> ast.expr:
    """Parse one Python expression, in one thread at a time.

    CPython 3.11 counts the depth of syntax trees for all threads together, and raises
    SystemError where two make one at a time.
    """
    with PARSING:
        return ast.parse(text, mode="eval").body


def read(text: str, mode: str, before: str = "", after: str = "") -> ast.AST:
    """Return Python's tree of `text`, between texts that make it whole.

    Raises: ExpressionError with the offset in `text`, also for what Python only warns of.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", LONGEST)
    if "#" in text:  # strings are none of the formulas', so that this begins a comment
        raise ExpressionError("not allowed: '#'", text.index("#"))
    try:
        with PARSING, warnings.catch_warnings():
            # Of the text alone: another thread may warn meanwhile.
            warnings.filterwarnings("error", module="<unknown>")
            return ast.parse(before + text + after, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None)
        lines = (before + text + after).split("\n")
        offset = sum(len(line) + 1 for line in lines[: line - 1]) + (column or 1) - 1
        # Python says 0 where it is the end that it did not expect.
        offset = len(text) if column == 0 else offset - len(before)
        reason = getattr(error, "msg", None) or error
        raise ExpressionError(
            f"not an expression: {reason}", min(max(offset, 0), len(text))
        ) from None
