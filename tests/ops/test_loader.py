"""Tests of ops/loader.py and ops/expression.py: what does not load, and where it says so."""

import pytest

from stagedad.errors import DeclarationError
from stagedad.ops.loader import load_texts

GOOD = """
[mul]
signature = "mul(self, other) -> result"
type = "elementwise"
numpy = "multiply"
expr = "a * b"
flops = 1
partial.self = "other"
partial.other = "self"
"""


ADD = """
[add]
signature = "add(self, other) -> result"
type = "elementwise"
expr = "a + b"
flops = 1
vjp = "zero"
"""


def load(text, file="good.toml"):
    return load_texts({file: text})


def failure(text):
    with pytest.raises(DeclarationError) as caught:
        load(text)
    return caught.value


def test_loads_into_literals():
    entry = load(GOOD)["mul"]
    assert entry["arguments"] == (("self", False, "formula"), ("other", False, "formula"))
    assert entry["partials"]["self"] == ("other", ("name", "other"), ("other",), ())
    assert entry["family"] == "good"
    assert entry["max_order"] is None
    assert entry["results"] == ("result",)


def test_reads_flops_as_a_number_or_a_formula():
    assert load(GOOD)["mul"]["flops"] == 1
    text = GOOD.replace("flops = 1", 'flops = "2 * result.size"')
    tree = ("binary", "mul", ("number", 2), ("meta", "result", "size"))
    assert load(text)["mul"]["flops"] == ("2 * result.size", tree, (), ("mul",))


def test_reads_signatures():
    text = """
[concatenate]
signature = "concatenate(*arrays, axis=0, mode=None, shape) -> result"
vjp = "zero"
"""
    entry = load(text)["concatenate"]
    assert entry["arguments"] == (("arrays", True, "zero"),)
    assert entry["attributes"] == (("axis", (0,)), ("mode", (None,)), ("shape", ()))


def test_reads_lists_of_results():
    text = """
[split]
signature = "split(self, *, sections) -> (*parts,)"
vjp.self = "join(g, parts.shape, self.shape, sections, 0)"
jvp = "linear"
traits = ["linear"]
"""
    entry = load(text)["split"]
    assert (entry["results"], entry["returns_list"]) == (("parts",), True)
    assert load(GOOD)["mul"]["returns_list"] is False


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("flops = 1", "flop = 1", "flop", "unknown key\nhint: did you mean 'flops'"),
        ("flops = 1", "flops = 1.5", "flops", "wrong type: float"),
        ("flops = 1", "flops = true", "flops", "wrong type: bool"),
        ("flops = 1", "flops = -1", "flops", "negative: -1"),
        ("flops = 1", 'flops = "self.siz"', "flops", "unknown attribute 'siz'"),
        ("flops = 1", 'flops = "2 * self"', "flops", "reads the value of 'self'"),
        ("flops = 1", 'flops = "2 * g.size"', "flops", "unknown tensor 'g'"),
        ("flops = 1", 'flops = "sum_to(self.size)"', "flops", "unknown op 'sum_to'"),
        ("flops = 1", 'flops = "ties(self, result, 0, 0)"', "flops", "unknown op 'ties'"),
        ("flops = 1", "", None, "an elementwise op needs expr and flops"),
        ('type = "elementwise"', 'type = "elementwize"', "type", "no type rule 'elementwize'"),
        ('type = "elementwise"', 'type = "promote"', "type", "no type rule 'promote'"),
        ("mul(self", "mull(self", "signature", "is not of 'mul'"),
        ("mul(self", "mul((self", "signature", "not a signature"),
        ("other) ->", "other=1) ->", "signature", "operands have no defaults"),
        ("other) ->", "self) ->", "signature", "'self' twice"),
        ("other) ->", "other, *, axis=f()) ->", "signature", "default of 'axis'"),
        (" -> result", "", "signature", "results are named"),
        (" -> result", " -> (q, *rest)", "signature", "results are named"),
        (" -> result", " -> other", "signature", "'other' twice"),
        (" -> result", " -> g", "signature", "'g' means a cotangent"),
        ('partial.self = "other"', "", None, "no rule for argument 'self'"),
        ('partial.self = "other"', "partial.self = 1", "partial.self", "wrong type: int"),
        ("partial.other", "partial.othr", "partial.othr", "no tensor argument 'othr'"),
        ("partial.other", 'vjp.self = "g"\npartial.other', "vjp.self", "has a rule already"),
        ("partial.other", "vjp.other", "vjp.other", "never uses 'g'"),
        ('partial.other = "self"', 'vjp.other = "g"', "vjp", "formulas beside partials"),
        ('partial.self = "other"', 'partial.self = "othr"', "partial.self",
         "unknown name 'othr'\nhint: did you mean 'other'"),
        ('partial.self = "other"', 'partial.self = "g * other"', "partial.self",
         "unknown name 'g'"),
        ('partial.self = "other"', 'partial.self = "mull(self, other)"', "partial.self",
         "unknown op 'mull'\nhint: did you mean 'mul'"),
        ('partial.self = "other"', 'partial.self = "mul(self)"', "partial.self",
         "mul takes 2 operands: 1"),
        ('partial.self = "other"', 'partial.self = "mul(self, other, 3)"', "partial.self",
         "mul takes 2 operands: 3"),
        ('partial.self = "other"', 'partial.self = "mul(self, other, axis=3)"', "partial.self",
         "unknown attribute of mul 'axis'"),
        ('partial.self = "other"', 'partial.self = "inverse_axes()"', "partial.self",
         "inverse_axes takes 1 arguments: 0"),
        ('partial.self = "other"', 'partial.self = "self.shap"', "partial.self",
         "unknown attribute 'shap'\nhint: did you mean 'shape'"),
        ('partial.self = "other"', 'partial.self = "1 if other else 2"', "partial.self",
         "decided by the value of 'other'"),
        ("flops = 1", 'jvp = "linear"\nflops = 1', "jvp", "follows from the partials"),
        ("flops = 1", 'traits = ["linaer"]\nflops = 1', "traits", "unknown: 'linaer'"),
        ("flops = 1", 'variants = ["out_"]\nflops = 1', "variants", "unknown: 'out_'"),
        ("flops = 1", 'aliases = ["mul"]\nflops = 1', "aliases", "'mul' names mul already"),
        ("flops = 1", 'view_of = "x"\nflops = 1', "view_of", "no argument 'x'"),
        ("flops = 1", "domain.x = [0, 1]\nflops = 1", "domain.x", "no argument 'x'"),
        ("flops = 1", "points = [{ at = {} }]\nflops = 1", "points", "has at and gradient"),
    ],
)  # fmt: skip
def test_refuses(old, new, key, message):
    assert old in GOOD
    error = failure(GOOD.replace(old, new))
    assert message in str(error)
    assert (error.file, error.entry, error.key) == ("good.toml", "mul", key)
    lines = GOOD.replace(old, new).splitlines()
    expected = "[mul]" if key is None else key.split(".")[0]
    assert error.line is not None
    if key != "vjp":
        assert lines[error.line - 1].startswith(expected)


def test_points_at_the_column():
    error = failure(GOOD.replace('"other"', '"2 * othr"'))
    assert (error.line, error.column) == (8, 21)
    assert str(error).startswith("good.toml:8:21: mul: partial.self: unknown name 'othr'")


def test_points_into_tables_below_their_own_header():
    text = GOOD.replace("partial.self", "# ").replace("partial.other", "# ")
    text += '[mul.partial]\nself = "other"\nother = "slf"\n'
    error = failure(text)
    assert text.splitlines()[error.line - 1] == 'other = "slf"'


def test_points_at_broken_toml():
    error = failure(GOOD + "[mul\n")
    assert (error.file, error.line) == ("good.toml", 10)
    assert "not TOML" in str(error)
    assert "not TOML" in str(failure(GOOD + 'partial.self = "1"\n'))


def test_refuses_keys_outside_of_entries():
    assert "not an entry" in str(failure("flops = 1\n" + GOOD))


def test_refuses_one_op_in_two_files():
    with pytest.raises(DeclarationError, match=r"declared in a\.toml already"):
        load_texts({"a.toml": GOOD, "b.toml": GOOD})


def test_other_ops_need_a_forward_rule():
    text = '[same]\nsignature = "same(self) -> result"\nvjp.self = "g"\n'
    assert "no jvp" in str(failure(text))
    assert "without the trait linear" in str(failure(text + 'jvp = "linear"\n'))
    assert "never uses 'self_t'" in str(failure(text + 'jvp = "self"\n'))
    assert load(text + 'jvp = "linear"\ntraits = ["linear"]\n')["same"]["jvp"] == "linear"
    assert load(text + 'jvp = "self_t"\n')["same"]["jvp"][0] == "self_t"


def test_one_word_rules_speak_for_all():
    text = '[same]\nsignature = "same(self) -> result"\nvjp = "{}"\n'
    assert load(text.format("zero"))["same"]["arguments"] == (("self", False, "zero"),)
    assert "is for all arguments one of" in str(failure(text.format("g")))
    with pytest.raises(DeclarationError, match="without a vjp"):
        load(text.format("zero") + 'jvp = "linear"\ntraits = ["linear"]\n')


def test_orders_follow_from_what_formulas_use():
    text = (
        GOOD
        + """
[same]
signature = "same(self) -> result"
vjp = "not_implemented"
[square]
signature = "square(self) -> result"
type = "elementwise"
expr = "a"
flops = 1
partial.self = "same(self)"
[exp]
signature = "exp(self) -> result"
type = "elementwise"
expr = "a"
flops = 1
partial.self = "square(result)"
"""
    )
    orders = {kind: entry["max_order"] for kind, entry in load(text).items()}
    assert orders == {"mul": None, "same": 0, "square": 1, "exp": 2}


def test_several_results_have_a_cotangent_each():
    text = """
[same]
signature = "same(self) -> (q, r)"
vjp.self = "{}"
jvp = "(self_t, self_t)"
"""
    assert "never uses 'g_r'" in str(failure(text.format("g_q")))
    assert "unknown name 'g'" in str(failure(text.format("g")))
    assert load(text.format("g_q + g_r") + ADD)["same"]["vjps"]["self"][2] == ()
    short = text.replace("(self_t, self_t)", "(self_t,)").format("g_q + g_r") + ADD
    assert "jvp: gives 1 tangents for 2 results" in str(failure(short))
    partial = '[same]\nsignature = "same(self) -> (q, r)"\npartial.self = "1"\n'
    assert "partial: of an op that is not elementwise with one result" in str(
        failure(partial + ADD)
    )


HOSTILE = [
    "__import__('os').system('touch {mark}')",
    "open('{mark}', 'w')",
    "self.__class__",
    "self.__class__.__bases__",
    "self.shape.__class__",
    "(lambda: self)()",
    "[self for self in self]",
    "{{self: self}}",
    "{{self}}",
    "[self]",
    "f'{{self}}'",
    "'self'",
    "b'self'",
    "self[0]",
    "self.shape[0]",
    "mul(*self)",
    "mul(**self)",
    "mul(self, other)(self)",
    "self.shape()",
    "eval('self')",
    "(self := other)",
    "await self",
    "yield",
    "self; other",
    "import os",
    "self\nother",
    "self\x00other",
    "~self",
    "+self",
    "self // other",
    "self % other",
    "self << 3",
    "self & other",
    "self < other < self",
    "self in other",
    "...",
    "print",
    "exec",
    "_binary",
    "",
    "-" * 900 + "self",
    "self" + " + self" * 1000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_formulas_neither_load_nor_run(text, tmp_path):
    mark = tmp_path / "mark"
    value = text.replace("{mark}", str(mark)).replace("{{", "{").replace("}}", "}")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    quoted = quoted.replace("\x00", "\\u0000")
    error = failure(GOOD.replace('partial.self = "other"', f'partial.self = "{quoted}"'))
    assert error.key == "partial.self"
    assert not mark.exists()


def test_loading_computes_nothing():
    power = ADD.replace("add", "pow")
    error = failure(GOOD.replace('"other"', '"9 ** 9 ** 9 ** 9"') + power)
    assert "mul: partial.self: not a finite number" in str(error)
