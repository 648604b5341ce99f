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
from typing import Any

from stagedad.errors import suggestion
from stagedad.ops.op import Formula, Tree
from stagedad.ops.reading import ExpressionError, read

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
ARRAY = "an array"
DEEPEST = 64
"""Nodes below one another; keeps the interpreter, and who imports the table, off theirs."""
CONDITION, ATTRIBUTE = "decided by", "an attribute that is"
MOST_WHOLE = 2**64
"""What an integer of a declaration may be; no array holds more."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a call is written: an op's operands and attributes, or a macro's arguments."""

    operands: tuple[int, int | None]
    """Least and most number of operands; None: no most."""
    attributes: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    """What a macro emits."""
    gives: str | None = "array"
    """What comes of the call: an array, a list of them, metadata; None: not known."""


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
    lists: frozenset[str] = frozenset()
    """Which of the tensors and gradients stand for several."""


def _offset(text: str, error: ExpressionError) -> int:
    """Return the offset in characters of what the parser tells in lines and bytes."""
    if error.node is None:
        return error.offset
    lines = text.split("\n")[: error.node.lineno]
    start = sum(len(line) + 1 for line in lines[:-1])
    return start + len(lines[-1].encode()[: error.node.col_offset].decode(errors="ignore"))


def gives(tree: Tree, scope: Scope) -> str | None:
    """Return what an expression gives: ARRAY (or a number), "a list", "a shape", "None", ...

    None where only its expansion can tell, as of attributes and macros.
    """
    word = tree[0]
    if word == "literal":
        return "None" if tree[1] is None else ARRAY
    if word == "meta":
        is_number = tree[2] in ("ndim", "size") and tree[1] not in scope.lists
        return ARRAY if is_number else f"a {tree[2]}"
    if word == "name":
        if tree[1] in scope.others:
            return None
        return "a list" if tree[1] in scope.lists else ARRAY
    if word in ("call", "macro"):
        signature = (scope.ops if word == "call" else scope.macros)[tree[1]]
        return {"array": ARRAY, "list": "a list"}.get(signature.gives or "")
    if word == "if":
        branches = [gives(tree[2], scope), gives(tree[3], scope)]
        others = [each for each in branches if each not in (None, ARRAY)]
        return others[0] if others else ARRAY if branches == [ARRAY, ARRAY] else None
    return "a tuple" if word == "tuple" else ARRAY


def _other(tree: Tree, scope: Scope) -> str | None:
    """Return what an expression gives where that is known to be no array."""
    found = gives(tree, scope)
    return None if found == ARRAY else found


def parse(text: str, scope: Scope) -> tuple[Formula, frozenset[str]]:
    """Return the formula that `text` writes, and the names of `scope` that it mentions.

    Raises: ExpressionError with the offset, if `text` is no formula.
    """
    tree = read(text, "eval")
    assert isinstance(tree, ast.Expression)
    parser = _Parser(scope)
    try:
        parsed = parser.node(tree.body)
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    except ExpressionError as error:
        raise ExpressionError(error.problem, _offset(text, error), error.hint) from None
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
        self.only_metadata = ""
        self.depth = 0

    def node(self, node: ast.expr) -> Tree:
        if self.depth == DEEPEST:
            raise ExpressionError("nested too deeply", node)
        self.depth += 1
        try:
            return self._visit(node)
        finally:
            self.depth -= 1

    def _visit(self, node: ast.expr) -> Tree:
        visit = getattr(self, f"_{type(node).__name__}", None)
        if visit is None:
            what = type(node).__name__
            raise ExpressionError(f"not allowed in a formula: {what}", node)
        parsed: Tree = visit(node)
        return parsed

    def _Constant(self, node: ast.Constant) -> Tree:  # noqa: N802
        value = node.value
        if value is None or isinstance(value, bool):
            return ("literal", value)
        if isinstance(value, int | float | complex):
            return self._finite(("number", value), node)
        raise ExpressionError(f"not a number: {value!r}", node)

    def _Name(self, node: ast.Name) -> Tree:  # noqa: N802
        name, scope = node.id, self.scope
        if name in scope.tensors or name in scope.gradients:
            if self.only_metadata:
                self._refuse_array(f"the value of '{name}'", node)
            (self.reads if name in scope.tensors else self.mentioned).add(name)
        elif name not in scope.others:
            self._unknown("name", name, node, scope.tensors | scope.gradients | scope.others)
        self.mentioned.add(name)
        return ("name", name)

    def _Attribute(self, node: ast.Attribute) -> Tree:  # noqa: N802
        if not isinstance(node.value, ast.Name):
            raise ExpressionError("attribute of an expression", node)
        name = node.value.id
        if name not in self.scope.tensors and name not in self.scope.gradients:
            self._unknown("tensor", name, node, self.scope.tensors | self.scope.gradients)
        if node.attr not in METADATA:
            self._unknown("attribute", node.attr, node, METADATA)
        return ("meta", name, node.attr)

    def _BinOp(self, node: ast.BinOp) -> Tree:  # noqa: N802
        kind = BINARY.get(type(node.op))
        if kind is None:
            what = type(node.op).__name__
            raise ExpressionError(f"not allowed in a formula: {what}", node)
        self._use(kind, node)
        self.uses |= {"constant", "constant_like"} & self.scope.ops.keys()
        return self._finite(
            ("binary", kind, self._operand(node.left), self._operand(node.right)), node
        )

    def _UnaryOp(self, node: ast.UnaryOp) -> Tree:  # noqa: N802
        if isinstance(node.op, ast.USub):
            self._use("neg", node)
            return ("negative", self._operand(node.operand))
        if isinstance(node.op, ast.Not):
            return ("not", self._metadata(node.operand))
        what = type(node.op).__name__
        raise ExpressionError(f"not allowed in a formula: {what}", node)

    def _Compare(self, node: ast.Compare) -> Tree:  # noqa: N802
        symbol = COMPARE.get(type(node.ops[0]))
        if len(node.ops) != 1 or symbol is None:
            raise ExpressionError("not a plain comparison", node)
        left, right = self._metadata(node.left), self._metadata(node.comparators[0])
        is_order = symbol.startswith(("<", ">"))
        if is_order and (_other(left, self.scope) or _other(right, self.scope)):
            raise ExpressionError("not of numbers", node)
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
            raise ExpressionError("call of an expression", node)
        name = node.func.id
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            raise ExpressionError("starred argument", node)
        if name in self.scope.macros:
            return self._macro(name, node)
        if name in self.scope.ops:
            return self._op(name, node)
        return self._unknown("op", name, node, [*self.scope.ops, *self.scope.macros])

    def _macro(self, name: str, node: ast.Call) -> Tree:
        signature = self.scope.macros[name]
        least, most = signature.operands
        if node.keywords:
            raise ExpressionError(f"{name} takes no keywords", node)
        if not least <= len(node.args) <= (least if most is None else most):
            problem = f"{name} takes {least} arguments: {len(node.args)}"
            raise ExpressionError(problem, node)
        if self.only_metadata and signature.gives != "metadata":
            self._refuse_array(f"what {name} gives", node)
        self.uses |= signature.uses & self.scope.ops.keys()
        return ("macro", name, tuple(self.node(argument) for argument in node.args))

    def _op(self, name: str, node: ast.Call) -> Tree:
        """Parse a call of an op; arguments after the operands are attributes in order."""
        signature = self.scope.ops[name]
        if self.only_metadata:
            self._refuse_array(f"what {name} gives", node)
        least, most = signature.operands
        count = len(node.args) if most is None else min(len(node.args), most)
        rest = node.args[count:]
        if count < least or len(rest) > len(signature.attributes):
            problem = f"{name} takes {least} operands: {len(node.args)}"
            raise ExpressionError(problem, node)
        operands = tuple(self._operand(argument) for argument in node.args[:count])
        if operands and all(number_of(operand) is not None for operand in operands):
            raise ExpressionError(f"{name} of numbers only", node, "write its value")
        given = [self._metadata(argument, ATTRIBUTE) for argument in rest]
        attributes = dict(zip(signature.attributes, given, strict=False))
        for keyword in node.keywords:
            key = str(keyword.arg)
            if key not in signature.attributes:
                self._unknown(f"attribute of {name}", key, keyword.value, signature.attributes)
            if key in attributes:
                raise ExpressionError(f"{name} gets {key} twice", keyword.value)
            attributes[key] = self._metadata(keyword.value, ATTRIBUTE)
        missing = signature.required - attributes.keys()
        if missing:
            problem = f"{name} needs {', '.join(sorted(missing))}"
            raise ExpressionError(problem, node)
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
        if good and isinstance(number, int) and abs(number) > MOST_WHOLE:
            raise ExpressionError("too large a number", node)
        if not good:
            raise ExpressionError("not a finite number", node)
        return tree

    def _operand(self, node: ast.expr) -> Tree:
        """Parse what is an array or a number."""
        parsed = self.node(node)
        other = _other(parsed, self.scope)
        if other:
            raise ExpressionError(f"{other} in the place of an array", node)
        return parsed

    def _refuse_array(self, what: str, node: ast.expr) -> None:
        hint = "conditions see shapes, dtypes and attributes only; use where(...)"
        if self.only_metadata == ATTRIBUTE:
            hint = "attributes are numbers, shapes, dtypes, and attributes of the op"
        raise ExpressionError(f"{self.only_metadata} {what}", node, hint)

    def _metadata(self, node: ast.expr, what: str = CONDITION) -> Tree:
        """Parse what Python decides while the formula is expanded."""
        before, self.only_metadata = self.only_metadata, what
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
        raise ExpressionError(f"unknown {what} '{name}'", node, hint)


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
