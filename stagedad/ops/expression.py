"""The formula language: one Python expression, parsed against a whitelist.

A formula comes from a file, so it is never evaluated as Python.  `parse` turns
it into nested tuples of literals, which `ops/formula.py` interprets:

    ("number", 2)                 ("name", "self")          ("meta", "self", "shape")
    ("binary", "mul", a, b)       ("negative", a)           ("tuple", (a, ...))
    ("call", kind, operands, ((attribute, value), ...))     ("macro", name, arguments)
    ("if", test, yes, no)         ("compare", "<", a, b)    ("and" | "or", (a, ...))
    ("not", a)                    ("literal", None | True | False)

Names are resolved here, so that a formula that loads can only fail on shapes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from threading import Lock
from typing import Any

from stagedad.errors import suggestion
from stagedad.ops.op import Formula, Tree

BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
COMPARE = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
}
METADATA = ("shape", "dtype", "ndim", "size")
LONGEST = 1000
"""Characters of a formula; keeps parser and interpreter off their recursion limits."""


class ExpressionError(Exception):
    """A formula that is not one; `offset` is the place in its text."""

    def __init__(self, problem: str, offset: int = 0, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.offset, self.hint = problem, offset, hint


@dataclass(frozen=True, slots=True)
class Signature:
    """How a call is written: an op's operands and attributes, or a macro's arguments."""

    operands: tuple[int, int | None]
    """Least and most number of operands; None: no most."""
    attributes: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    """What a macro emits."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a formula may use."""

    tensors: frozenset[str]
    """Arguments and results of the op."""
    others: frozenset[str]
    """Attributes."""
    gradients: frozenset[str]
    """Cotangents or tangents."""
    ops: Mapping[str, Signature]
    macros: Mapping[str, Signature]


def python_expression(text: str) -> ast.expr:
    """Parse one Python expression, in one thread at a time.

    CPython 3.11 counts the depth of syntax trees for all threads together, and raises
    SystemError where two make one at a time.
    """
    with PARSING:
        return ast.parse(text, mode="eval").body


PARSING = Lock()


def parse(text: str, scope: Scope) -> tuple[Formula, frozenset[str]]:
    """Return the formula that `text` writes, and the names of `scope` that it mentions.

    Raises: ExpressionError with the offset, if `text` is no formula.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", LONGEST)
    try:
        tree = python_expression(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        offset = max((getattr(error, "offset", None) or 1) - 1, 0)
        reason = getattr(error, "msg", None) or error
        raise ExpressionError(f"not an expression: {reason}", offset) from None
    parser = _Parser(scope)
    try:
        parsed = parser.node(tree)
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    mentioned = frozenset(parser.mentioned)
    reads = frozenset(parser.reads)
    return Formula(text, parsed, reads, frozenset(parser.uses)), mentioned


class _Parser:
    """Walks a syntax tree, collecting what it reads and uses."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.reads: set[str] = set()
        self.uses: set[str] = set()
        self.mentioned: set[str] = set()
        self.only_metadata = False

    def node(self, node: ast.expr) -> Tree:
        visit = getattr(self, f"_{type(node).__name__}", None)
        if visit is None:
            what = type(node).__name__
            raise ExpressionError(f"not allowed in a formula: {what}", node.col_offset)
        parsed: Tree = visit(node)
        return parsed

    def _Constant(self, node: ast.Constant) -> Tree:  # noqa: N802
        value = node.value
        if value is None or isinstance(value, bool):
            return ("literal", value)
        if isinstance(value, int | float | complex):
            return self._finite(("number", value), node)
        raise ExpressionError(f"not a number: {value!r}", node.col_offset)

    def _Name(self, node: ast.Name) -> Tree:  # noqa: N802
        name, scope = node.id, self.scope
        if name in scope.tensors or name in scope.gradients:
            if self.only_metadata:
                raise ExpressionError(
                    f"decided by the value of '{name}'",
                    node.col_offset,
                    "conditions see shapes, dtypes and attributes only; use where(...)",
                )
            (self.reads if name in scope.tensors else self.mentioned).add(name)
        elif name not in scope.others:
            self._unknown("name", name, node, scope.tensors | scope.gradients | scope.others)
        self.mentioned.add(name)
        return ("name", name)

    def _Attribute(self, node: ast.Attribute) -> Tree:  # noqa: N802
        if not isinstance(node.value, ast.Name):
            raise ExpressionError("attribute of an expression", node.col_offset)
        name = node.value.id
        if name not in self.scope.tensors and name not in self.scope.gradients:
            self._unknown("tensor", name, node, self.scope.tensors | self.scope.gradients)
        if node.attr not in METADATA:
            self._unknown("attribute", node.attr, node, METADATA)
        self.mentioned.add(name)
        return ("meta", name, node.attr)

    def _BinOp(self, node: ast.BinOp) -> Tree:  # noqa: N802
        kind = BINARY.get(type(node.op))
        if kind is None:
            what = type(node.op).__name__
            raise ExpressionError(f"not allowed in a formula: {what}", node.col_offset)
        self._use(kind, node)
        self.uses |= {"constant", "constant_like"} & self.scope.ops.keys()
        return self._finite(("binary", kind, self.node(node.left), self.node(node.right)), node)

    def _UnaryOp(self, node: ast.UnaryOp) -> Tree:  # noqa: N802
        if isinstance(node.op, ast.USub):
            self._use("neg", node)
            return ("negative", self.node(node.operand))
        if isinstance(node.op, ast.Not):
            return ("not", self._metadata(node.operand))
        what = type(node.op).__name__
        raise ExpressionError(f"not allowed in a formula: {what}", node.col_offset)

    def _Compare(self, node: ast.Compare) -> Tree:  # noqa: N802
        symbol = COMPARE.get(type(node.ops[0]))
        if len(node.ops) != 1 or symbol is None:
            raise ExpressionError("not a plain comparison", node.col_offset)
        left, right = self._metadata(node.left), self._metadata(node.comparators[0])
        return ("compare", symbol, left, right)

    def _BoolOp(self, node: ast.BoolOp) -> Tree:  # noqa: N802
        word = "and" if isinstance(node.op, ast.And) else "or"
        return (word, tuple(self._metadata(value) for value in node.values))

    def _IfExp(self, node: ast.IfExp) -> Tree:  # noqa: N802
        return ("if", self._metadata(node.test), self.node(node.body), self.node(node.orelse))

    def _Tuple(self, node: ast.Tuple) -> Tree:  # noqa: N802
        return ("tuple", tuple(self.node(item) for item in node.elts))

    def _Call(self, node: ast.Call) -> Tree:  # noqa: N802
        if not isinstance(node.func, ast.Name):
            raise ExpressionError("call of an expression", node.col_offset)
        name = node.func.id
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            raise ExpressionError("starred argument", node.col_offset)
        if name in self.scope.macros:
            return self._macro(name, node)
        if name in self.scope.ops:
            return self._op(name, node)
        return self._unknown("op", name, node, [*self.scope.ops, *self.scope.macros])

    def _macro(self, name: str, node: ast.Call) -> Tree:
        signature = self.scope.macros[name]
        least, most = signature.operands
        if node.keywords:
            raise ExpressionError(f"{name} takes no keywords", node.col_offset)
        if not least <= len(node.args) <= (least if most is None else most):
            problem = f"{name} takes {least} arguments: {len(node.args)}"
            raise ExpressionError(problem, node.col_offset)
        self.uses |= signature.uses & self.scope.ops.keys()
        return ("macro", name, tuple(self.node(argument) for argument in node.args))

    def _op(self, name: str, node: ast.Call) -> Tree:
        """Parse a call of an op; arguments after the operands are attributes in order."""
        signature = self.scope.ops[name]
        least, most = signature.operands
        count = len(node.args) if most is None else min(len(node.args), most)
        rest = node.args[count:]
        if count < least or len(rest) > len(signature.attributes):
            problem = f"{name} takes {least} operands: {len(node.args)}"
            raise ExpressionError(problem, node.col_offset)
        operands = tuple(self.node(argument) for argument in node.args[:count])
        if operands and all(number_of(operand) is not None for operand in operands):
            raise ExpressionError(f"{name} of numbers only", node.col_offset, "write its value")
        attributes = dict(zip(signature.attributes, map(self.node, rest), strict=False))
        for keyword in node.keywords:
            key = str(keyword.arg)
            if key not in signature.attributes:
                self._unknown(f"attribute of {name}", key, keyword.value, signature.attributes)
            if key in attributes:
                raise ExpressionError(f"{name} gets {key} twice", keyword.value.col_offset)
            attributes[key] = self.node(keyword.value)
        missing = signature.required - attributes.keys()
        if missing:
            problem = f"{name} needs {', '.join(sorted(missing))}"
            raise ExpressionError(problem, node.col_offset)
        self.uses.add(name)
        self.uses |= {_LIKE.get(name, name)} & self.scope.ops.keys()
        return ("call", name, operands, tuple(attributes.items()))

    def _finite(self, tree: Tree, node: ast.expr) -> Tree:
        """Return `tree`; what it computes of numbers alone must be a number too."""
        try:
            number = number_of(tree)
            good = number is None or isfinite(abs(number))
        except (ArithmeticError, TypeError):
            good = False
        if not good:
            raise ExpressionError("not a finite number", node.col_offset)
        return tree

    def _metadata(self, node: ast.expr) -> Tree:
        """Parse what Python decides while the formula is expanded."""
        before, self.only_metadata = self.only_metadata, True
        try:
            return self.node(node)
        finally:
            self.only_metadata = before

    def _use(self, kind: str, node: ast.expr) -> None:
        """Note the op that an operator stands for."""
        if kind not in self.scope.ops:
            self._unknown("op", kind, node, self.scope.ops)
        self.uses.add(kind)

    def _unknown(self, what: str, name: str, node: ast.expr, known: Iterable[str]) -> Tree:
        hint = suggestion(name, known)
        raise ExpressionError(f"unknown {what} '{name}'", node.col_offset, hint)


def number_of(tree: Tree) -> Any:
    """Return what a formula of numbers alone is worth; None for any other.

    Raises: ArithmeticError, TypeError where Python does.
    """
    if tree[0] == "number":
        return tree[1]
    if tree[0] == "negative":
        inner = number_of(tree[1])
        return None if inner is None else -inner
    if tree[0] != "binary":
        return None
    left, right = number_of(tree[2]), number_of(tree[3])
    return None if left is None or right is None else ARITHMETIC[tree[1]](left, right)


def power(base: Any, exponent: Any) -> Any:
    """Raise a number to a number; one that would grow long becomes a float."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * abs(exponent) > 1024:
        base = float(base)
    return base**exponent


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": power,
    "matmul": operator.matmul,
}

_LIKE = {
    "broadcast_to": "broadcast_like",
    "reshape": "reshape_like",
    "sum_to": "sum_to_like",
}
