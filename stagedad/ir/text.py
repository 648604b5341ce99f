"""The text form of graphs: `print_graph` writes it, `parse_graph` reads it back.

graph(%a : f64[2, 3], %b : f64[?]) {
%2 : f64[2, 3] = mul(%a, %b)
return (%2)
}
"""

from __future__ import annotations

import ast
import cmath
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stagedad.errors import ParseError
from stagedad.ir._graph import Graph
from stagedad.ir._handles import Node, Value
from stagedad.types import TensorType, dtype_code, parse_type

__all__ = ["parse_graph", "print_graph"]

INLINE = 16  # elements up to which a constant stands in the text


def print_graph(graph: Graph, *, locations: bool = False, exact: bool = False) -> str:
    """Return the text form; `locations` adds each node's file and line as a comment.

    Constants of more than 16 elements are `constant[ref=k]()`: array k of
    `graph.constants`.  `exact` adds scopes and locations, for pickling.
    """
    shown: dict[Value, str] = {}

    def define(value: Value) -> str:
        shown[value] = f"%{value.name or value.id}"
        return shown[value] if value.type is None else f"{shown[value]} : {value.type}"

    def known(value: Value) -> str:  # a broken graph can be printed too
        return shown.get(value) or f"%{value.name or value.id}"

    stage = 0
    inputs = []
    for value in graph.inputs:
        rise = ""
        if value.stage > stage:
            stage = value.stage
            rise = f"\n---- stage {stage} ----\n      "
        inputs.append(f"{rise}{define(value)}")
    lines = [f"graph({', '.join(inputs)}) {{"]
    stage, references = 0, 0
    for node in graph.nodes():
        if node.stage > stage:
            stage = node.stage
            lines.append(f"  ---- stage {stage} ----")
        attributes = node.attributes.explicit()
        if node.kind == "constant" and isinstance(attributes["value"], np.ndarray):
            if attributes["value"].size > INLINE:
                del attributes["value"]
                attributes["ref"] = references
            references += 1
        operands = ", ".join([known(value) for value in node.inputs])
        line = f"{node.kind}{_attributes(attributes)}({operands})"
        outputs = ", ".join([define(value) for value in node.outputs])
        if outputs:
            line = f"{outputs} = {line}"
        lines.append(f"  {line}{_comment(node) if locations or exact else ''}")
    lines.append(f"  return ({', '.join([known(value) for value in graph.outputs])})")
    lines.append("}")
    return "\n".join(lines)


def _attributes(attributes: dict[str, Any]) -> str:
    if not attributes:
        return ""
    return f"[{', '.join(f'{name}={_literal(value)}' for name, value in attributes.items())}]"


def _comment(node: Node) -> str:
    parts = []
    if node.location is not None:
        parts.append(f"{node.location[0]}:{node.location[1]}")
    if node.scope is not None:
        parts.append(f"scope {node.scope}")
    return f"  # {', '.join(parts)}" if parts else ""


def _literal(value: Any) -> str:
    if isinstance(value, np.dtype):
        return f"dtype({dtype_code(value)})"
    if isinstance(value, np.ndarray):
        text = _literal(value.tolist())
        return text if value.ndim else f"array({text})"
    if isinstance(value, complex) and not _plain_complex(value):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, tuple):
        items = ", ".join(_literal(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    raise TypeError(f"text: an attribute has no text form: {type(value).__name__}")


def _plain_complex(value: complex) -> bool:
    """Whether the literal 1+2j gives the number back: no nan, inf or minus zero."""
    return cmath.isfinite(value) and all(
        part or math.copysign(1, part) > 0 for part in (value.real, value.imag)
    )


# Reading: one pass over the text.

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_VALUE = re.compile(r"%([A-Za-z_][A-Za-z0-9_.]*|\d+)")
_TYPE = re.compile(r"\s*:\s*([a-z]\w*\[[^\]]*\](?:@[\w:]+)?)")
_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_STAGE = re.compile(r"-+ stage (\d+) -+")
_PLAIN = re.compile(
    r"\s*%([\w.]+)(?: : ([a-z]\w*\[[^\]]*\](?:@[\w:]+)?))? = ([A-Za-z_][\w.]*)"
    r"\(((?:%[\w.]+(?:, (?=%))?)*)\)[ \t]*(?=\n)",
    re.ASCII,
)
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\[\]]")
_COMMENT = re.compile(r"[ \t]*#[ ](?P<text>[^\n]*)")
_LOCATION = re.compile(r"(?:(?P<file>.+?):(?P<line>\d+))?(?:, )?(?:scope (?P<scope>.+))?\Z")


def parse_graph(text: str, constants: Sequence[np.ndarray] | None = None) -> Graph:
    """Return the graph that `text` describes, verified.

    `constants` gives the arrays of `constant[ref=k]()`.  Raises ParseError with line and
    column; VerifyError if the graph breaks an invariant.
    """
    return _Reader(text, constants or ()).graph_()


class _Reader:
    """One pass over the text, a position and the values seen so far."""

    def __init__(self, text: str, constants: Sequence[np.ndarray]) -> None:
        self.text = text
        self.at = 0
        self.start = 0  # of the value read last
        self.constants = constants
        self.graph = Graph()
        self.values: dict[str, Value] = {}
        self.types: dict[str, TensorType] = {}

    def graph_(self) -> Graph:
        self.expect("graph")
        self.inputs()
        self.expect("{")
        self.graph.stage = 0
        while not self.accept("return"):
            stage = self.match(_STAGE)
            if stage:
                self.enter(stage)
            else:
                self.statement()
        for value in self.operands():
            self.graph.register_output(value)
        self.expect("}")
        self.space()
        if self.at != len(self.text):
            self.fail("nothing may follow the graph")
        self.graph.verify()
        return self.graph

    def inputs(self) -> None:
        self.expect("(")
        while not self.accept(")"):
            stage = self.match(_STAGE)
            if stage:
                self.enter(stage)
            name, type_ = self.typed()
            named = None if name.isdigit() else name
            start = self.start
            self.define(name, self.graph.add_input(type_, name=named), start)
            if not self.accept(","):
                self.expect(")")
                break

    def enter(self, stage: re.Match[str]) -> None:
        try:
            self.graph.stage = int(stage[1])
        except ValueError:
            self.fail(f"no stage: {stage[1][:20]}", stage.start(1))

    def statement(self) -> None:
        plain = _PLAIN.match(self.text, self.at)
        if plain and plain[3] != "constant":
            try:
                done = self.plain(*plain.groups())
            except (TypeError, ValueError) as error:
                self.fail(str(error), plain.start(3))
            if done:
                self.at = plain.end()
                return
        names, types, places = [], [], []
        if self.peek("%"):
            while True:
                name, type_ = self.typed()
                names.append(name)
                types.append(type_)
                places.append(self.start)
                if not self.accept(","):
                    break
            self.expect("=")
        self.space()
        start = self.at
        kind = self.match(_KIND)
        if not kind:
            self.fail("the name of an op was expected")
        attributes = self.attributes()
        operands = self.operands()
        if kind[0] == "constant":
            self.constant(attributes, types)
        location, scope = self.comment()
        try:
            outputs = self.graph.insert_typed(
                kind[0], operands, attributes, types, location=location, scope=scope
            )
        except (TypeError, ValueError) as error:
            self.fail(str(error), start)
        for name, value, place in zip(names, outputs, places, strict=True):
            self.define(name, value, place)
            if not name.isdigit():
                value.name = name

    def plain(self, name: str, type_: str | None, kind: str, operands: str) -> bool:
        """Read a node without attributes in one go; False where anything is unusual."""
        values = self.values
        try:
            inputs = (
                [values[operand[1:]] for operand in operands.split(", ")] if operands else []
            )
            known = None if type_ is None else self.types[type_]
        except KeyError:
            if type_ is not None and type_ not in self.types:
                try:
                    self.types[type_] = parse_type(type_)
                except (ValueError, SyntaxError):
                    return False
                return self.plain(name, type_, kind, operands)
            return False
        if name in values:
            return False
        (value,) = self.graph.insert_typed(kind, inputs, {}, (known,))
        values[name] = value
        if not name.isdigit():
            value.name = name
        return True

    def constant(self, attributes: dict[str, Any], types: list[Any]) -> None:
        """Turn `ref` and lists into arrays of the type's dtype and shape."""
        if "ref" in attributes:
            index = attributes.pop("ref")
            if not isinstance(index, int) or not 0 <= index < len(self.constants):
                self.fail(f"constants has no array {index!r}: {len(self.constants)} given")
            attributes["value"] = self.constants[index]
        elif (
            isinstance(attributes.get("value"), (list, tuple, np.ndarray))
            and types
            and types[0] is not None
        ):
            try:
                array = np.array(attributes["value"], types[0].dtype).reshape(types[0].shape)
            except (TypeError, ValueError, OverflowError):
                self.fail(f"the value is no {types[0]}")
            attributes["value"] = array

    def comment(self) -> tuple[tuple[str, int] | None, str | None]:
        found = _COMMENT.match(self.text, self.at)
        parts = _LOCATION.match(found["text"].rstrip()) if found else None
        if parts is None:
            return None, None
        location = (parts["file"], int(parts["line"])) if parts["file"] else None
        return location, parts["scope"]

    def typed(self) -> tuple[str, Any]:
        value = self.match(_VALUE)
        if not value:
            self.fail("a value (%name) was expected")
        self.start = value.start()
        type_ = _TYPE.match(self.text, self.at)
        if not type_:
            if self.accept(":"):
                self.fail("a type was expected, as f64[2, 3]")
            return value[1], None
        self.at = type_.end()
        try:
            return value[1], parse_type(type_[1])
        except (ValueError, SyntaxError) as error:
            self.fail(str(error), type_.start(1))

    def attributes(self) -> dict[str, Any]:
        if not self.text.startswith("[", self.at):
            return {}
        self.at += 1
        start, depth = self.at, 1
        for bracket in _BRACKET.finditer(self.text, start):
            depth += {"[": 1, "]": -1}.get(bracket[0], 0)
            if depth == 0:
                self.at = bracket.end()
                break
        else:
            self.fail("the attributes do not end")
        source = self.text[start : self.at - 1]
        try:
            call = ast.parse(f"f({source})", mode="eval").body
            if not isinstance(call, ast.Call) or call.args:
                raise ValueError("attributes are name=value")
            found = {str(word.arg): _value(word.value) for word in call.keywords}
            if len(found) != len(call.keywords):
                raise ValueError("an attribute stands twice")
            return found
        except ParseError as error:
            self.fail(str(error), start)
        except SyntaxError as error:
            self.fail(f"attributes: {error.msg}", start)
        except (ValueError, TypeError, RecursionError, MemoryError):
            self.fail(f"not attributes: {source[:60]}\nhint: name=literal, ...", start)

    def operands(self) -> list[Value]:
        values: list[Value] = []
        end = self.at
        if not self.accept("("):
            self.fail("`(` was expected", end)
        while not self.accept(")"):
            value = self.match(_VALUE)
            if not value:
                self.fail("a value (%name) was expected")
            if value[1] not in self.values:
                self.fail(f"%{value[1]} is not defined", value.start())
            values.append(self.values[value[1]])
            if not self.accept(","):
                self.expect(")")
                break
        return values

    def define(self, name: str, value: Value, place: int) -> None:
        if name in self.values:
            self.fail(f"%{name} is defined twice", place)
        self.values[name] = value

    def space(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def peek(self, word: str) -> bool:
        self.space()
        return self.text.startswith(word, self.at)

    def accept(self, word: str) -> bool:
        if self.peek(word):
            self.at += len(word)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"`{word}` was expected")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.space()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def fail(self, problem: str, place: int | None = None) -> NoReturn:
        if place is not None:
            self.at = place
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        raise ParseError(
            f"text: line {line}, column {column}: {problem}", lineno=line, offset=column
        )


def _value(node: ast.expr) -> Any:
    """Value of a literal: Python's, and inf, nan, dtype(f32), complex(re, im)."""
    if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
        return math.inf if node.id == "inf" else math.nan
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [_value(item) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if (
            node.func.id == "dtype"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Name)
        ):
            return parse_type(f"{node.args[0].id}[]").dtype
        if node.func.id == "array" and len(node.args) == 1:
            return np.asarray(_value(node.args[0]))
        if node.func.id == "complex" and len(node.args) == 2:
            return complex(*[_value(item) for item in node.args])
    return ast.literal_eval(node)
