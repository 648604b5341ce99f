"""What no declaration may do: run, take Python down, or leave the table unreadable."""

import ast
import builtins
import os
import socket
import subprocess
import sys

import pytest

from stagedad.errors import DeclarationError, suggestion
from stagedad.ops.build import HEAD
from stagedad.ops.expression import DEEPEST
from stagedad.ops.loader import load, load_texts
from stagedad.ops.reading import LONGEST

# Literal strings of TOML, so that a formula comes as it stands.
ENTRY = """
[mul]
signature = '''{signature}'''
type = "elementwise"
expr = '''{expr}'''
flops = {flops}
partial.self = '''{formula}'''
partial.other = "self"
"""
GOOD = {
    "signature": "mul(self, other) -> result",
    "expr": "a * b",
    "flops": "1",
    "formula": "other",
}

FORMULAS = [
    # Attributes and calls that lead elsewhere.
    "__import__('os').system('true')",
    "__import__(os)",
    "__builtins__",
    "other.__class__",
    "other.__class__.__mro__",
    "other.shape.__class__",
    "other.shape.shape",
    "().__class__",
    "mul.__globals__",
    "other.T",
    "other.shape()",
    "mul(other, 1)(other)",
    "(mul)(other, 1).shape",
    "getattr(other, 1)",
    "eval(other)",
    "breakpoint()",
    "print(other)",
    # Whatever binds names, loops, waits, or makes functions.
    "(lambda: other)()",
    "lambda: other",
    "[other for self in other]",
    "{other for self in other}",
    "{other: self for self in other}",
    "mul(other for self in other)",
    "(other := self)",
    "mul(self=other, other=(x := 1))",
    "await other",
    "(yield other)",
    "(yield from other)",
    "other; self",
    "other = self",
    "import os",
    "del other",
    "other\nself",
    # What looks like a value.
    'f"{other}"',
    'f"{__import__(1)}"',
    'rf"{other!r:>{self}}"',
    '"other"',
    'b"other"',
    "...",
    "[other]",
    "{other}",
    "{}",
    "{other: self}",
    "other[0]",
    "other[0:1]",
    "other.shape[0]",
    "*other",
    "mul(*other)",
    "mul(**other)",
    "(*other, self)",
    # Operators that formulas have not.
    "~other",
    "+other",
    "other // self",
    "other % self",
    "other << 9",
    "1 << 10 ** 10",
    "other >> 1",
    "other & self",
    "other < self < 1",
    "other in self",
    "other not in self",
    "other and self",
    "not other",
    "other if self else 1",
    # Numbers that no array holds.
    "1e999",
    "-1e999",
    "1e999j",
    "9" * 400,
    "0x" + "f" * 400,
    "0b" + "1" * 900,
    "1" * LONGEST,
    # Text that is none.
    "",
    " ",
    "\t",
    "#",
    "other # rest",
    "other \\",
    "other\x0cself",
    "\u2028",
    "\xb2",
    "\ufeffother",
    "other\u200b",
    "1if other else 2",
    "0_",
    "1__0",
    "012",
    "other.",
    ".other",
    "other)(",
    "mul(,)",
]


def deep(count):
    """Formulas that nest `count` deep, by every means that the language has."""
    return [
        "-" * count + "other",
        "not " * count + "other",
        "((" * count + "other" + ",),)" * count,
        "other" + "*1" * count,
        "1**" * count + "other",
        "mul(1," * count + "other" + ")" * count,
        "1 if 1 else " * count + "other",
        "other" + ".shape" * count,
        "mul" + "()" * count,
        "other" + "[0]" * count,
        "lambda:" * count + "other",
        "[" * count + "other" + "]" * count,
        "1<" * count + "other",
    ]


def text_of(**changed):
    return ENTRY.format(**{**GOOD, **changed})


def refused(text):
    with pytest.raises(DeclarationError) as caught:
        load_texts({"hostile.toml": text})
    error = caught.value
    lines = text.replace("\r\n", "\n").split("\n")
    assert error.file == "hostile.toml"
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert str(error).startswith(f"hostile.toml:{error.line}:{error.column}: ")
    return error


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch, tmp_path_factory):
    """Fail if anything is evaluated, or started, while a declaration loads."""
    tmp_path_factory.getbasetemp()  # imports, as the first suggestion does
    suggestion("mull", ["mul"])

    def never(*_arguments, **_options):
        raise AssertionError("a declaration ran")

    plain = builtins.compile

    def only_parse(source, filename, mode, flags=0, *arguments, **options):
        assert flags & 0x400, "compiled to code"  # ast.PyCF_ONLY_AST
        return plain(source, filename, mode, flags, *arguments, **options)

    monkeypatch.setattr(builtins, "eval", never)
    monkeypatch.setattr(builtins, "exec", never)
    monkeypatch.setattr(builtins, "compile", only_parse)
    monkeypatch.setattr(os, "system", never)
    monkeypatch.setattr(subprocess, "Popen", never)
    monkeypatch.setattr(socket, "socket", never)


@pytest.mark.parametrize("formula", FORMULAS, ids=ascii)
def test_formulas_that_are_none(formula):
    error = refused(text_of(formula=formula))
    assert (error.entry, error.key) == ("mul", "partial.self") or "\x0c" in formula
    assert error.line >= 7


@pytest.mark.parametrize("count", [DEEPEST, 90, 190, 330, 5_000, 100_000])
def test_deep_formulas(count):
    for formula in deep(count):
        error = refused(text_of(formula=formula))
        assert (error.entry, error.key) == ("mul", "partial.self")
        assert len(formula) <= LONGEST or "longer than" in str(error)


def test_parentheses_nest_nothing():
    plain = load_texts({"a.toml": text_of()})["mul"]["partials"]["self"]
    found = load_texts({"a.toml": text_of(formula="(" * 90 + "other" + ")" * 90)})["mul"]
    assert found["partials"]["self"][1:] == plain[1:]
    for count in (500, 100_000):
        error = refused(text_of(formula="(" * count + "other" + ")" * count))
        assert error.key == "partial.self"


def test_deep_formulas_beneath_a_deep_stack():
    """The bound is the formula's own and not what is left of the stack, as far as it goes."""

    def below(count, formula):
        if count:
            return below(count - 1, formula)
        return load_texts({"hostile.toml": text_of(formula=formula)})

    short = "other" + " * 1" * (DEEPEST - 2)
    assert below(0, short) == below(300, short)
    for formula in deep(190):
        with pytest.raises(DeclarationError):
            below(sys.getrecursionlimit() - 300, formula)


def test_the_deepest_formula_makes_a_table_that_can_be_read():
    entries = load_texts({"a.toml": text_of(formula="other" + " * 1" * (DEEPEST - 2))})
    tree = ast.parse(f"{HEAD}{entries!r}").body[-1]
    assert ast.literal_eval(tree.value) == entries


def test_characters_that_no_file_holds():
    for formula in ("other\x00", "other\ud800", "other\x0c"):
        assert "not TOML" in str(refused(text_of(formula=formula)))
    for escape in (r"\u0000", r"\f", r"\u2028", r"\ufffe"):
        text = text_of().replace("'''other'''", f'"other{escape}self"')
        error = refused(text)
        assert (error.key, error.line) == ("partial.self", 7)
    text = text_of().replace("'''other'''", r'"other\ud800"')
    assert (refused(text).entry, refused(text).key) == ("mul", "partial.self")
    # The keys of a text are of its author too.
    assert "'m\\x00'" in str(refused(text_of().replace("[mul]", r'["m\u0000"]')))
    assert refused(text_of().replace("flops", r'"fl\u001bops"')).key == "fl\x1bops"


@pytest.mark.parametrize(
    "signature",
    [
        "mul(self, other) -> result: pass\nimport os\nclass x",
        "mul(self, other) -> result: __import__('os')\nclass x",
        "mul(self, other) -> result:\n  pass\n  if x",
        "mul(self, other) -> result:\n if x",
        "mul(self, other=__import__('os')) -> result",
        "mul(self, other, *, x=__import__('os')) -> result",
        "mul(self, other, *, x=[1 for y in z]) -> result",
        "mul(self, other, *, x=lambda: 1) -> result",
        "mul(self, other, *, x={}) -> result",
        "mul(self, other, *, x=...) -> result",
        "mul(self, other, *, x=1e999) -> result",
        "mul(self, other, *, x=" + "9" * 400 + ") -> result",
        "mul(self, other, *, x=" + "9" * 5000 + ") -> result",
        "mul(self, other, *, x=" + "(" * 90 + "1" + ",)" * 90 + ") -> result",
        "mul(self, other, *, x=" + "-" * 500 + "1) -> result",
        "mul(self, other, *, x=" + "-" * 100_000 + "1) -> result",
        "mul(self: __import__('os'), other) -> result",
        "mul(self, other) -> __import__('os')",
        "mul(self, other) -> result.__class__",
        "mul(self, other) -> (result := other)",
        "mul[T](self, other) -> result",
        "mul(self, other) -> result # rest",
        "mul(self, other) -> result: pass #",
        "mul(self, lambda) -> result",
        "mul(" + "x, " * 5000 + "self, other) -> result",
        "mul",
        "",
        "\n",
    ],
)
def test_signatures_that_are_none(signature):
    error = refused(text_of(signature=signature))
    assert (error.entry, error.key) == ("mul", "signature")


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("system(a)", "unknown name 'system' in C"),
        ("a; b", "not allowed in a C expression: ';'"),
        ("a } b", "not allowed in a C expression: '}'"),
        ('a "x"', "not allowed in a C expression: '\"'"),
        ("a = b", "not allowed in a C expression: '='"),
        ("a += b", "not allowed in a C expression: '='"),
        ("a /* b", "no value before '*'"),
        ("a // b", "no value before '/'"),
        ("a\\\n", "not allowed in a C expression"),
        ("#a", "not allowed in a C expression: '#'"),
        ("a[0]", "not allowed in a C expression: '['"),
        ("&a", "not allowed in a C expression: '&'"),
        ("*a", "no value before '*'"),
        ("a.b", "not allowed in a C expression: '.'"),
        ("asm(a)", "unknown name 'asm' in C"),
        ("c + a", "unknown name 'c' in C"),
        ("exp", "ends without a value"),
        ("exp + (a)", "exp is not called"),
        ("exp()", "exp takes 1 arguments: 0"),
        ("exp(a, b)", "exp takes 1 arguments: 2"),
        ("atan2(a)", "atan2 takes 2 arguments: 1"),
        ("atan2((a, b), b)", "',' outside of a call"),
        ("exq(a)", "unknown name 'exq' in C\nhint: did you mean 'exp'?"),
        ("(a", "'(' without ')'"),
        ("a)", "')' without '('"),
        ("a b", "two values"),
        ("a (b)", "two values"),
        ("2a", "not allowed"),
        ("a +", "ends without a value"),
        ("", "not allowed"),
        ("()", "takes 1 value: 0"),
        ("a +" * 400 + "b", "longer than"),
        ("(int)", "ends without a value"),
        ("--a", "not allowed in a C expression: '-'"),
        ("a+++b", "not allowed in a C expression: '+'"),
    ],
)
def test_c_that_is_no_expression(expr, problem):
    error = refused(text_of(expr=expr))
    assert problem in str(error)
    assert (error.entry, error.key) == ("mul", "expr")


@pytest.mark.parametrize(
    "name",
    ["f2py.os.system", "__class__", "ndarray", "pi", "linalg", "ctypeslib.ctypes.CDLL",
     "add.at", "add.__call__", "", ".", "add.", "a b", "os"],
)  # fmt: skip
def test_names_that_are_of_no_function_of_numpy(name):
    error = refused(text_of().replace("flops", f"numpy = '{name}'\nflops"))
    assert (error.entry, error.key) == ("mul", "numpy")
    assert "no function of NumPy" in str(error)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flops", "-1"),
        ("flops", "true"),
        ("flops", "1.5"),
        ("flops", "nan"),
        ("flops", "0x" + "f" * 5000),
        ("flops", "9" * 5000),
        ("flops", "1979-05-27"),
        ("flops", "'self.shape'"),
        ("flops", "'__import__(1)'"),
        ("flops", "'1e999'"),
        ("domain.self", "[0]"),
        ("domain.self", "[0, inf]"),
        ("domain.self", "[nan, 0]"),
        ("domain.self", "[1, 0]"),
        ("domain.self", "['0', '1']"),
        ("domain.self", "[true, true]"),
        ("domain.self", "[1979-05-27, 1979-05-28]"),
        ("domain.self", "0"),
        ("points", "[1]"),
        ("points", "[{ at = 1, gradient = 2 }]"),
        ("points", "[{ at = { self = 1, other = 1 }, gradient = [1] }]"),
        ("points", "[{ at = { self = 1, other = '1' }, gradient = {} }]"),
        ("points", "[{ at = { self = 1, other = 1979-05-27 }, gradient = {} }]"),
        ("points", "[{ at = { self = 1, other = [[1], 2] }, gradient = {} }]"),
        ("points", "[{ at = { self = 1, other = 1 }, gradient = { result = 1 } }]"),
        ("points", "[{ at = { self = 1 }, gradient = { self = 1 } }]"),
        ("points", "[{ at = { self = 1, other = 1 }, gradient = {}, cotangent = 'g' }]"),
        ("points", "[{ at = { self = 1, other = 1 }, gradient = {}, attributes = { x = 1 } }]"),
        ("points", "[{ at = { self = 1, other = 1 }, gradient = {}, more = 1 }]"),
        ("points", "[{ at = { self = 1, other = " + "[" * 40 + "]" * 40 + "}, gradient = {}}]"),
        ("points", "[" * 3000 + "]" * 3000),
        ("points", "{ x = " * 3000 + "1" + "}" * 3000),
        ("traits", "[1]"),
        ("traits", "[['linear']]"),
        ("traits", "['linear', 'linear']"),
        ("variants", "['functional', 'functional']"),
        ("aliases", "[[]]"),
        ("aliases", "['']"),
        ("outputs.result", "1"),
        ("outputs.result", "[]"),
        ("forwards", "'axis'"),
        ("notes", "1"),
        ("complex", "1"),
        ("singular", "'true'"),
    ],
)  # fmt: skip
def test_values_that_are_none(key, value):
    text = (
        text_of() if key == "flops" else text_of().replace("[mul]", f"[mul]\n{key} = {value}")
    )
    error = refused(text if key != "flops" else text_of(flops=value))
    assert (error.entry, error.key) == ("mul", key)


@pytest.mark.parametrize(
    ("text", "entry", "key", "line"),
    [
        ("[mul", None, None, 1),
        ("[mul]\nflops = ", "mul", "flops", 2),
        ("[mul]\nflops = 'a\nnotes = 'b'", "mul", "flops", 2),
        ("[mul]\nnotes = '''a", "mul", "notes", 2),
        ("[mul]\nvjp.self = {", "mul", "vjp.self", 2),
        ("[mul.vjp]\nself = 01", "mul", "vjp.self", 2),
        ("[[mul]]\nflops = 1", "mul", None, 1),
        ("mul = 1", "mul", None, 1),
        ("\ufeff[mul]", None, None, 1),
        ("[mul]\n\x85", "mul", None, 2),
        ("[mul]\nflops = 1\rnotes = 'b'", "mul", "flops", 2),
        ("[mul]\n# \udc80", "mul", None, 2),
        ("[mul]\nnotes = '\udc80'", "mul", "notes", 2),
        ("[]", None, None, 1),
        ("=", None, None, 1),
    ],
)
def test_texts_that_are_none(text, entry, key, line):
    error = refused(text)
    assert (error.entry, error.key, error.line) == (entry, key, line)


def test_files_that_are_no_text(tmp_path):
    for data, line, column in ((b"[mul]\n# \xff", 2, 3), (b"\xff\xfe[", 1, 1)):
        (tmp_path / "raw.toml").write_bytes(data)
        with pytest.raises(DeclarationError, match="not UTF-8") as caught:
            load([tmp_path / "raw.toml"])
        error = caught.value
        assert (error.file, error.line, error.column) == ("raw.toml", line, column)


def test_files_of_one_name(tmp_path):
    """Neither is dropped for the other."""
    paths = [tmp_path / folder / "same.toml" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(text_of())
    with pytest.raises(DeclarationError, match=r"same\.toml:1:1: two files of this name"):
        load(paths)


def test_warnings_of_python_are_errors():
    """Else the first load would warn, and whether it fails would be up to the filters."""
    assert "invalid decimal literal" in str(refused(text_of(formula="1if 2else 3")))
