"""The text form of graphs: `print_graph` writes it, `parse_graph` reads it back.

graph(%a : f64[2, 3], %b : f64[?]) {
%2 : f64[2, 3] = mul(%a, %b)
return (%2)
}

A node's blocks follow it, indented: `block0(%c : f64[]) {` ... `return (%5)` `}`.  Where a
derivative assumed that inputs of unknown dtype are real, it says `graph(%a) for reals {`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from stagedad.errors import ParseError
from stagedad.ir._blocks import Block
from stagedad.ir._graph import Graph, frozen_copy
from stagedad.ir._handles import Node, Value
from stagedad.ir._held import held_graphs
from stagedad.ops.reading import python_expression
from stagedad.types import CODES, TensorType, dtype_code, parse_type

__all__ = ["parse_graph", "print_graph"]

INLINE = 16  # elements up to which a constant stands in the text
DEEPEST = 20  # blocks up to which the text is indented further

_CARRIED = frozenset(CODES.values())


def print_graph(graph: Graph, *, locations: bool = False, exact: bool = False) -> str:
    """Return the text form; `locations` adds each node's file, line and scope as a comment.

    Arrays of more than 16 elements, or with NaNs whose bits no text has, are
    `constant[ref=k]()`, in other attributes `array(ref=k)`: array k of `graph.constants`.
    Graphs that attributes hold follow, as `with graph 0 = graph(...)`; the attribute is
    `graph(0)`.  `exact` is for pickling.
    """
    held = held_graphs(graph)
    printer = _Printer({id(each): k for k, each in enumerate(held)}, locations or exact)
    printer.print(graph, "graph(")
    for k, each in enumerate(held):
        printer.print(each, f"with graph {k} = graph(")
    return "\n".join(printer.lines)


class _Printer:
    """The lines so far, and what is counted through all graphs of a text."""

    def __init__(self, graphs: dict[int, int], comments: bool) -> None:
        self.graphs = graphs
        self.comments = comments
        self.arrays = 0
        self.lines: list[str] = []
        self.shown: dict[Value, str] = {}

    def define(self, value: Value) -> str:
        """The value where it is computed, with its type."""
        text = self.shown[value] = f"%{value.name or value.id}"
        return text if value.type is None else f"{text} : {value.type}"

    def read(self, values: Sequence[Value]) -> str:
        """The values where they are read; a broken graph can be printed too."""
        shown = self.shown
        return ", ".join([shown.get(v) or f"%{v.name or v.id}" for v in values])

    def print(self, graph: Graph, head: str) -> None:
        """Add the lines of one graph."""
        lines = self.lines
        reals = " for reals" if graph.assumes_real else ""
        lines.append(f"{head}{self.inputs(graph)}){reals} {{")
        stage = 0
        # What is to be gone on with: a block is begun where its nodes are None.
        stack: list[tuple[Graph | Block, Iterator[Node] | None, int, int]]
        stack = [(graph, graph.nodes(), 0, 0)]
        while stack:
            around, nodes, number, depth = stack.pop()
            outer = "    " * min(depth, DEEPEST)
            if nodes is None:
                inputs = ", ".join([self.define(value) for value in around.inputs])
                lines.append(f"{outer}block{number}({inputs}) {{")
                nodes = around.nodes()
            for node in nodes:
                if node.stage > stage and depth == 0:
                    stage = node.stage
                    lines.append(f"  ---- stage {stage} ----")
                lines.append(f"{outer}  {self.node(node)}")
                blocks = node.blocks
                if blocks:
                    stack.append((around, nodes, number, depth))
                    stack += [(b, None, k, depth + 1) for k, b in enumerate(blocks)][::-1]
                    break
            else:
                lines.append(f"{outer}  return ({self.read(around.outputs)})")
                lines.append(f"{outer}}}")

    def inputs(self, graph: Graph) -> str:
        stage = 0
        inputs = []
        for value in graph.inputs:
            rise = ""
            if value.stage > stage:
                stage = value.stage
                rise = f"\n---- stage {stage} ----\n      "
            inputs.append(f"{rise}{self.define(value)}")
        return ", ".join(inputs)

    def node(self, node: Node) -> str:
        """One node, without its blocks."""
        attributes = node.attributes.explicit()
        written = self.attributes(node, attributes) if attributes else ""
        line = f"{node.kind}{written}({self.read(node.inputs)})"
        outputs = ", ".join([self.define(value) for value in node.outputs])
        if outputs:
            line = f"{outputs} = {line}"
        return f"{line}{_comment(node)}" if self.comments else line

    def attributes(self, node: Node, attributes: dict[str, Any]) -> str:
        is_constant = node.kind == "constant"
        written = []
        for name, value in attributes.items():
            if is_constant and name == "value" and isinstance(value, np.ndarray):
                written.append(self.constant(node, value))
            else:
                written.append(f"{name}={self.literal(value)}")
        return f"[{', '.join(written)}]"

    def constant(self, node: Node, array: np.ndarray) -> str:
        """The array of a constant; its dtype and shape only if they are not the type's."""
        self.arrays += 1
        if not _is_inline(array):
            return f"ref={self.arrays - 1}"
        types = [value.type for value in node.outputs[:1]]
        if types == [TensorType.of(array)]:
            text = _literal(array.tolist() if array.size else [])
            return f"value={text}" if array.ndim else f"value=array({text})"
        return f"value={_array(array)}"

    def literal(self, value: Any) -> str:
        """As `_literal`, for what is counted besides."""
        if isinstance(value, Graph):
            return f"graph({self.graphs[id(value)]})"
        if isinstance(value, tuple):
            return _tuple([self.literal(item) for item in value])
        if not isinstance(value, np.ndarray):
            return _literal(value)
        self.arrays += 1
        return _array(value) if _is_inline(value) else f"array(ref={self.arrays - 1})"


def _is_inline(array: np.ndarray) -> bool:
    """Whether the array stands in the text: it is small, and read back bit for bit."""
    dtype = array.dtype.newbyteorder("=")
    if type(array) is not np.ndarray or array.size > INLINE or dtype not in _CARRIED:
        return False
    if dtype.kind not in "fc":
        return True
    numbers = array.astype(dtype).reshape(-1)
    parts = numbers.view(numbers.real.dtype)
    nans = parts[np.isnan(parts)]
    plain = np.copysign(nans.dtype.type(np.nan), nans)
    return bool(plain.tobytes() == nans.tobytes())


def _array(array: np.ndarray) -> str:
    listed = array.tolist() if array.size else []
    shape = "" if array.size or array.shape == (0,) else f", {array.shape}"
    return f"array({_literal(listed)}, {dtype_code(array.dtype)}{shape})"


def _comment(node: Node) -> str:
    parts = []
    location, origin, scope = node.location, node.origin, node.scope
    if location is not None:
        file = location[0] if _FILE.fullmatch(location[0]) else repr(location[0])
        parts.append(f"{file}:{location[1]}")
    if origin is not None:
        parts.append(f"from %{origin}")
    if scope is not None:
        parts.append(f"scope {scope}")
    return f"  # {', '.join(parts)}" if parts else ""


def _literal(value: Any) -> str:
    if isinstance(value, np.dtype):
        return f"dtype({dtype_code(value)})"
    if isinstance(value, TensorType):
        return f"type({str(value)!r})"
    if isinstance(value, complex) and not _plain_complex(value):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, tuple):
        return _tuple([_literal(item) for item in value])
    if isinstance(value, float) and math.isnan(value):
        return "nan" if math.copysign(1, value) > 0 else "-nan"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    raise TypeError(f"text: an attribute has no text form: {type(value).__name__}")


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _plain_complex(value: complex) -> bool:
    """Whether the sum that Python writes gives the number back, to the signs of zeros."""
    real, imaginary = value.real, value.imag
    if not (math.isfinite(real) and math.isfinite(imaginary)):
        return False
    # -1j is the negative of 1j, with a real part of -0.0.
    return all(part or math.copysign(1, part) > 0 for part in (real, imaginary)) and (
        real != 0 or imaginary >= 0
    )


# Reading: one pass over the text.

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_VALUE = re.compile(r"%([A-Za-z_][A-Za-z0-9_.]*|\d+)")
_TYPE = re.compile(r"\s*:\s*([a-z]\w*\[[^\]]*\](?:@[\w:]+)?)")
_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_REALS = re.compile(r"for\s+reals(?=\s*\{)")
_RETURN = re.compile(r"return(?=\s*\()")
# A node of a kind named `block0` has no `{` behind it.
_BLOCK = re.compile(r"block(\d+)(?=\([^(){}]*\)\s*\{)")
_SECTION = re.compile(r"^with graph (\d+) = (?=graph\()", re.MULTILINE)
_STAGE = re.compile(r"-+ stage (\d+) -+")
_PLAIN = re.compile(
    r"\s*%([\w.]+)(?: : ([a-z]\w*\[[^\]]*\](?:@[\w:]+)?))? = ([A-Za-z_][\w.]*)"
    r"\(((?:%[\w.]+(?:, (?=%))?)*)\)[ \t]*(?=\n)",
    re.ASCII,
)
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\[\]]")
_COMMENT = re.compile(r"[ \t]*#[ ](?P<text>[^\n]*)")
_FILE = re.compile(r"[^\s'\"%,#]+")
_LOCATION = re.compile(
    rf"(?:(?P<file>{_FILE.pattern}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"):(?P<line>\d+)"
    r"(?=,|\Z))?(?:, )?(?:from %(?P<origin>\d+))?(?:, )?(?:scope +(?P<scope>.+))?\Z"
)


def parse_graph(text: str, constants: Sequence[np.ndarray] | None = None) -> Graph:
    """Return the graph that `text` describes, verified.

    `constants` gives the arrays of `constant[ref=k]()`.  Raises ParseError with line and
    column; VerifyError if the graph breaks an invariant; TypeError if an argument is no
    text or no sequence of arrays.
    """
    arrays = _sequence(constants)
    sections = [*_SECTION.finditer(text)]
    ends = [*(section.start() for section in sections), len(text)]
    held: dict[int, Graph] = {}
    used: set[int] = set()
    # A graph holds only later ones, so that none comes to hold itself.
    for k, section in reversed([*enumerate(sections)]):
        reader = _Reader(text, section.end(), ends[k + 1], arrays, held, used)
        if section[1] != str(k):
            reader.fail(f"graph {section[1][:20]}: to be graph {k}", section.start(1))
        made = reader.graph_()
        try:
            held[k] = frozen_copy(made)
        except ValueError as error:  # too many, one in the other
            reader.fail(str(error), section.start(1))
    reader = _Reader(text, 0, ends[0], arrays, held, used)
    graph = reader.graph_()
    for k, section in enumerate(sections):
        if k not in used:
            reader.fail(f"no attribute holds graph {k}", section.start(1))
    return graph


def _sequence(constants: Sequence[np.ndarray] | None) -> tuple[np.ndarray, ...]:
    if isinstance(constants, np.ndarray):
        raise TypeError("parse_graph: constants: one array\nhint: [array], a sequence of them")
    arrays = tuple(constants or ())
    for k, array in enumerate(arrays):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"parse_graph: constants: {k} is no array: {type(array).__name__}")
    return arrays


class _Reader:
    """One pass over the text of a graph, a position and the values seen so far."""

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        constants: Sequence[np.ndarray],
        held: dict[int, Graph],
        used: set[int],
    ) -> None:
        self.text = text
        self.at = start
        self.end = end
        self.start = start  # of the value read last
        self.constants = constants
        self.held = held
        self.used = used
        self.graph = Graph()
        self.last: Node | None = None
        self.values: dict[str, Value] = {}
        self.types: dict[str, TensorType] = {}
        self.bare: set[str] = set()  # attributes read last that are arrays without a dtype

    def graph_(self) -> Graph:
        self.expect("graph")
        self.inputs(self.graph)
        if self.match(_REALS):
            self.graph.assumes_real = True
        self.expect("{")
        self.graph.stage = 0
        self.body()
        self.space()
        if self.at != self.end:
            self.fail("nothing may follow the graph")
        self.graph.verify()
        return self.graph

    def body(self) -> None:
        """Read nodes and blocks until the graph's own `return (...) }`."""
        around: list[tuple[Block, Any]] = []
        while True:
            if self.match(_RETURN):
                block = around[-1][0] if around else self.graph
                for value in self.operands():
                    block.register_output(value)
                self.expect("}")
                if not around:
                    return
                self.last = around[-1][0].node
                around.pop()[1].__exit__()
            elif self.text.startswith("block", self.at) and (found := self.match(_BLOCK)):
                around.append(self.block(found))
            elif stage := self.match(_STAGE):
                if around:
                    self.fail("a block has one stage", stage.start())
                self.enter(stage)
            else:
                self.statement()

    def block(self, found: re.Match[str]) -> tuple[Block, Any]:
        """Begin a block of the node read last."""
        if self.last is None or found[1] != str(len(self.last.blocks)):
            self.fail("a block follows its node, block0 first", found.start())
        block = self.last.add_block()
        self.inputs(block)
        self.expect("{")
        self.last = None
        inside = self.graph.inside(block)
        inside.__enter__()
        return block, inside

    def inputs(self, around: Graph | Block) -> None:
        self.expect("(")
        while not self.accept(")"):
            stage = self.match(_STAGE)
            if stage:
                self.enter(stage)
            name, type_ = self.typed()
            named = None if name.isdigit() else name
            start = self.start
            self.define(name, around.add_input(type_, name=named), start)
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
            attributes = self.constant(attributes, types[0] if types else None, start)
        where = self.comment()
        origin = where.pop("origin", None)
        try:
            self.last = self.graph.insert_typed(kind[0], operands, attributes, types, **where)
            self.last.origin = origin
        except (TypeError, ValueError) as error:
            self.fail(str(error), start)
        for name, value, place in zip(names, self.last.outputs, places, strict=True):
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
        self.last = self.graph.insert_typed(kind, inputs, {}, (known,))
        values[name] = value = self.last.output
        if not name.isdigit():
            value.name = name
        return True

    def constant(
        self, attributes: dict[str, Any], type_: TensorType | None, start: int
    ) -> dict[str, Any]:
        """Turn `ref` into the array, and what has no dtype into an array of the type."""
        try:
            if "ref" in attributes:
                if "value" in attributes:
                    raise ParseError("a constant has a value or a ref")
                array = self.array(attributes["ref"])
                items = attributes.items()  # in their order, which the text keeps
                return dict(("value", array) if k == "ref" else (k, v) for k, v in items)
            value = attributes.get("value")
            if type_ is not None and "value" in self.bare:
                listed = value.tolist() if isinstance(value, np.ndarray) else value
                shape = type_.shape if type_.is_static else None
                attributes["value"] = _read_array(listed, type_.dtype, shape)
        except ParseError as error:
            self.fail(str(error), start)
        except (TypeError, ValueError, ArithmeticError):
            self.fail(f"the value is no {type_}", start)
        return attributes

    def comment(self) -> dict[str, Any]:
        """Location, scope and origin of a node, from the comment behind it."""
        found = _COMMENT.match(self.text, self.at)
        parts = _LOCATION.match(found["text"].rstrip()) if found else None
        if found is None or parts is None:
            return {}
        file, origin = parts["file"], parts["origin"]
        try:
            if file and file[0] in "'\"":
                file = ast.literal_eval(python_expression(file))
            return {
                "location": (file, int(parts["line"])) if file else None,
                "scope": parts["scope"],
                "origin": int(origin) if origin else None,
            }
        except (SyntaxError, ValueError) as error:
            problem = str(error).partition("\n")[0].partition(" (<unknown>")[0]
            self.fail(f"no place in a file: {problem}", found.start("text"))

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
        whole = f"f({source})"
        try:
            call = python_expression(whole)
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                raise ValueError("attributes are name=value")
            if ")" in source and ast.get_source_segment(whole, call) != whole:
                raise ValueError("more than attributes")
            words = {word.arg: word.value for word in call.keywords if word.arg}
            if call.args or len(words) != len(call.keywords):
                raise ValueError("an attribute without a name, or twice")
            self.bare = {name for name, value in words.items() if _is_bare(value)}
            return {name: self.value(value) for name, value in words.items()}
        except ParseError as error:
            self.fail(str(error), start)
        except SyntaxError as error:
            self.fail(f"attributes: {error.msg}", start)
        except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
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

    def value(self, node: ast.expr) -> Any:
        """Value of a literal: Python's, and inf, nan, dtype(f32), complex(re, im), ..."""
        match node:
            case ast.Name(id="inf" | "nan"):
                return float(node.id)
            case ast.UnaryOp(op=ast.USub()):
                return -_number(self.value(node.operand))
            case ast.Tuple():
                return tuple([self.value(item) for item in node.elts])
            case ast.List():
                return [self.value(item) for item in node.elts]
            case ast.Call(func=ast.Name(id="dtype"), args=[ast.Name() as name], keywords=[]):
                return parse_type(f"{name.id}[]").dtype
            case ast.Call(
                func=ast.Name(id="type"), args=[ast.Constant(value=str(text))], keywords=[]
            ):
                return parse_type(text)
            case ast.Call(func=ast.Name(id="complex"), args=[real, imaginary], keywords=[]):
                parts = self.value(real), self.value(imaginary)
                if not all(isinstance(part, (int, float)) for part in parts):
                    raise ParseError("complex(re, im) takes two real numbers")
                return complex(*parts)
            case ast.Call(
                func=ast.Name(id="graph"), args=[ast.Constant(value=int(k))], keywords=[]
            ):
                if isinstance(k, bool) or k not in self.held:
                    raise ParseError(f"graph {k} does not follow")
                self.used.add(k)
                return self.held[k]
            case ast.Call(
                func=ast.Name(id="array"),
                args=[],
                keywords=[ast.keyword(arg="ref", value=ast.Constant(value=index))],
            ):
                return self.array(index)
            case ast.Call(func=ast.Name(id="array"), args=[value], keywords=[]):
                return _read_array(self.value(value), None, None)
            case ast.Call(
                func=ast.Name(id="array"), args=[value, ast.Name() as name], keywords=[]
            ):
                return _read_array(self.value(value), parse_type(f"{name.id}[]").dtype, None)
            case ast.Call(
                func=ast.Name(id="array"), args=[value, ast.Name() as name, shape], keywords=[]
            ):
                return _read_array(
                    self.value(value), parse_type(f"{name.id}[]").dtype, self.value(shape)
                )
        return ast.literal_eval(node)

    def array(self, index: object) -> np.ndarray:
        if type(index) is not int or not 0 <= index < len(self.constants):
            raise ParseError(
                f"constants has no array {index!a:.20}: {len(self.constants)} given"
            )
        return self.constants[index]

    def fail(self, problem: str, place: int | None = None) -> NoReturn:
        if place is not None:
            self.at = place
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        raise ParseError(
            f"text: line {line}, column {column}: {problem}", lineno=line, offset=column
        )


def _is_bare(value: ast.expr) -> bool:
    """Whether this is written as an array without a dtype: `[1, 2]` or `array(1)`."""
    match value:
        case ast.List() | ast.Tuple():
            return True
        case ast.Call(func=ast.Name(id="array"), args=[_], keywords=[]):
            return True
    return False


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float, complex)):
        raise ParseError("a minus stands before a number")
    return value


# The elements that are no rounder as arrays of a kind of dtype.
_ELEMENTS: dict[str | None, tuple[type, ...]] = {
    "b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex),
    None: (bool, int, float, complex),
}  # fmt: skip


def _read_array(listed: Any, dtype: np.dtype | None, shape: Any) -> np.ndarray:
    """Return an array of the elements, none of them another number than what stands there.

    Raises: ParseError, or a ValueError or ArithmeticError of NumPy's.
    """
    wanted = _ELEMENTS[None if dtype is None else dtype.kind]
    rest = [listed]
    while rest:
        item = rest.pop()
        if isinstance(item, (list, tuple)):
            rest += item
        elif type(item) not in wanted:
            raise ParseError(f"an array of {dtype or 'numbers'} does not hold {item!r:.40}")
    with np.errstate(over="raise"):
        array = np.array(listed, dtype)
    if array.dtype not in _CARRIED:
        raise ParseError("an array of numbers that no dtype holds")
    if shape is None:
        return array
    if not isinstance(shape, tuple) or not all(type(d) is int and d >= 0 for d in shape):
        raise ParseError("a shape is a tuple of dims")
    return array.reshape(shape)
