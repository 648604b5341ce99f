"""Tests of ops/places.py: lines and columns, whichever way TOML writes a key and its value."""

import pytest

from stagedad.errors import DeclarationError
from stagedad.ops.loader import load_texts
from stagedad.ops.places import Places

TEXT = '''# A comment with [brackets] and "quotes = 1"
top = 1

[mul] # behind a header
signature = "mul(self)"
 indented . key = 'literal'
points = [ # over lines, with [mul] and x = 1 in comments
    { at = { self = 1.0 }, "quoted key" = [[1], [2]] }, 1979-05-27 07:32:00,
]
partial = { self = "a", other = "b" }
long = """
first
  second \\
     third"""
raw = \'\'\'[neg]
flops = 2\'\'\'
five = """""a"""""

["neg"]
flops = 1
"esc\\u0061ped" = 2
[mul.vjp]
self = "\\u00e9\\t\\U0001F600x"
[[list]]
x = 1
'''


@pytest.mark.parametrize(
    ("path", "offset", "line", "column"),
    [
        ("top", None, 2, 1),
        ("mul", None, 4, 1),
        ("mul signature", None, 5, 1),
        ("mul signature", 0, 5, 14),
        ("mul signature", 4, 5, 18),
        ("mul indented key", None, 6, 2),
        ("mul indented key", 3, 6, 23),
        ("mul points", None, 7, 1),
        ("mul points", 3, 7, 1),
        ("mul partial", None, 10, 1),
        ("mul partial self", None, 10, 13),
        ("mul partial other", 0, 10, 34),
        ("mul long", 0, 12, 1),
        ("mul long", 6, 13, 1),
        ("mul long", 15, 14, 6),
        ("mul long", 17, 14, 8),
        ("mul raw", 0, 15, 10),
        ("mul raw", 6, 16, 1),
        ("mul five", 2, 17, 13),
        ("neg", None, 19, 1),
        ("neg flops", None, 20, 1),
        ("neg escaped", None, 21, 1),
        ("mul vjp self", None, 23, 1),
        ("mul vjp self", 0, 23, 9),
        ("mul vjp self", 1, 23, 15),
        ("mul vjp self", 2, 23, 17),
        ("mul vjp self", 3, 23, 27),
        ("mul vjp self", 99, 23, 28),
        ("mul vjp other", None, 22, 1),
        ("mul absent deeper", 4, 4, 1),
        ("absent", None, 1, 1),
        ("list", None, 24, 1),
    ],
)
def test_finds(path, offset, line, column):
    assert Places(TEXT).find(tuple(path.split(" ")), offset) == (line, column)
    with_returns = TEXT.replace("\n", "\r\n")
    assert Places(with_returns).find(tuple(path.split(" ")), offset) == (line, column)


OP = """[neg]
signature = "neg(self) -> result"
type = "elementwise"
expr = "-a"
flops = 1
partial.self = {}
"""


@pytest.mark.parametrize(
    ("value", "line", "column"),
    [
        ('"1 + slf"', 6, 21),
        ("'1 + slf'", 6, 21),
        ('"\\u0031 + slf"', 6, 26),
        ('"é + slf"', 6, 17),
        ('"self if é else slf"', 6, 25),
        ('"""\n1 +\\\n  slf"""', 8, 3),
        ("'''(1\n + slf)'''", 7, 4),
        ("'''(self.ndim +\n  self.ndim +\n  é.ndim)'''", 8, 3),
        ("'''(self.ndim *\n  1) 2'''", 7, 6),
        ('"1 + self + slf"', 6, 28),
        ('"1 +"', 6, 20),
        ('"mul(1, slf)"', 6, 17),
        ('"1 if slf else 2"', 6, 22),
    ],
)
def test_errors_of_formulas_point_at_characters(value, line, column):
    text = OP.format(value) + OP.format('"1"').replace("neg", "add").replace(
        "(self)", "(self, x)"
    )
    text += 'partial.x = "1"\n'
    with pytest.raises(DeclarationError) as caught:
        load_texts({"a.toml": text})
    assert (caught.value.line, caught.value.column) == (line, column)
    assert (caught.value.entry, caught.value.key) == ("neg", "partial.self")


def test_errors_of_keys_point_at_the_key():
    for text, line, column in (
        ("neg.flop = 1\n", 1, 1),
        ("['neg']\n  flop = 1", 2, 3),
        ("[neg]\nvjp = { slf = 'g' }\ntype = 'same'\nsignature = 'neg(self) -> x'", 2, 9),
        ("neg = { type = 'same', signature = 'neg(self) -> x', vjp.self = 'h' }", 1, 66),
    ):
        with pytest.raises(DeclarationError) as caught:
            load_texts({"a.toml": text})
        assert (caught.value.line, caught.value.column) == (line, column), text
