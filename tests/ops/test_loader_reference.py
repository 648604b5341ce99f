"""What a loader of declarations must refuse, by the numbers of the list it was written from.

The list is of a loader of YAML with formulas in C++.  L1 to L21 are its errors, in their
order; G1 to G8 the mistakes that it lets through; F1 and F2 what its generator refuses later;
C1 to C27 the checks that the list proposes instead.  `ROWS` says which test is about a row, or,
after a dash, why there can be no such declaration here.
"""

import ast
import inspect
import re

import pytest

from stagedad.errors import DeclarationError, ForwardModeUnsupported, NotDifferentiable
from stagedad.ops import (
    OPS,
    builder,
    expression,
    fft_macros,
    fft_reference,
    functions,
    linalg_macros,
    linalg_reference,
    macros,
    random_reference,
    samples,
    sequence_macros,
    sequence_reference,
)
from stagedad.ops.draft import KEYS
from stagedad.ops.formula import bind, jvp, vjp
from stagedad.ops.loader import load_texts
from stagedad.ops.op import Op
from stagedad.ops.table import make_op
from stagedad.types import as_type

ROWS = {
    # Errors of the loader.
    "L1 schema not declared": "test_refuses[L1]",
    "L2 duplicate schema": "test_names_one_op_once",
    "L3 grad and grads mixed": "test_refuses[L3]",
    "L4 only ever grads[0]": "test_refuses[L4]",
    "L5 grads[i] out of bounds": "test_refuses[L5]",
    "L6 grad_x mixed with grad": "test_refuses[L6]",
    "L7 differentiable and non_differentiable": "test_refuses[L7]",
    "L8 both argument and result": "test_refuses[L8]",
    "L9 reserved argument names": "test_refuses[L9]",
    "L10 bare x in a forward rule": "- x is the primal and x_t the tangent; L14 finds the slip",
    "L11 elementwise rule of several": "test_refuses[L11]",
    "L12 linear rule of several results": "test_loads_linear_ops_of_several_results",
    "L13 in-place rule of the original": "- one rule, of the values before, is every variant's",
    "L14 forward rule without tangent": "test_refuses[L14]",
    "L15 number of forward rules": "test_refuses[L15]",
    "L16 rule of a non-tensor argument": "test_refuses[L16]",
    "L17 rule without differentiable result": "test_refuses[L17]",
    "L18 output_differentiability": "test_refuses[L18]",
    "L19 strides": "test_refuses[L19]",
    "L20 unknown dispatch key": "test_refuses[L20]",
    "L21 entry of a composite": "test_refuses[L21]",
    # What its generator refuses later.
    "F1 forward rule of neither tensor nor list": "test_refuses[F1]",
    "F2 other argument without forward rule": "test_refuses_tangents_of_any_argument",
    # What it lets through.
    "G1 cotangents counted in two ways": "test_results_that_are_constant_have_no_name",
    "G2 unknown names": "test_refuses[G2]",
    "G3 duplicate keys": "test_refuses_duplicates",
    "G4 truncated and retyped text": "test_refuses[G4]",
    "G5 no reasoning about shapes": "test_refuses[G5]",
    "G6 names inside strings": "test_refuses[G6]",
    "G7 VJP and JVP that disagree": "- by tests/laws: adjointness; partials give both",
    "G8 names in lists kept by hand": "test_names_in_lists_are_of_ops",
    # Checks that are proposed.
    "C1 strict text": "test_refuses_duplicates",
    "C2 unknown keys": "test_refuses[C2]",
    "C3 signatures": "test_refuses[C3]",
    "C4 one rule an argument": "test_refuses[C4]",
    "C5 rule of a non-tensor argument": "test_refuses[L16]",
    "C6 names": "test_refuses[G2]",
    "C7 functions": "test_refuses[C7]",
    "C8 nodes": "test_loader_hostile.py",
    "C9 cotangents of differentiable results": "test_results_that_are_constant_have_no_name",
    "C10 lost cotangents": "test_refuses[C10]",
    "C11 kinds of results": "test_refuses[C11]",
    "C12 auxiliary results": "test_auxiliary_results_are_loud",
    "C13 in-place variants": "test_refuses[C13]",
    "C14 aliasing": "test_refuses[C14]",
    "C15 out variants take no rule": "test_refuses[C15]",
    "C16 linear": "test_refuses[C16]",
    "C17 elementwise": "test_refuses[L11]",
    "C18 forward rules of all results": "test_refuses[L15]",
    "C19 broadcasting": "- partials undo it; of other rules by tests/laws, which broadcast",
    "C20 dtypes": "- vjp and jvp cast to that of operand and result; tests/ops/test_formula.py",
    "C21 complex": "test_complex_is_refused_unless_declared",
    "C22 maximal order": "test_orders_follow_through_formulas",
    "C23 saved values": "test_tells_what_is_saved",
    "C24 in-place rules that need a copy": "- see C23; a tape checks what was saved",
    "C25 two entries of one name": "test_names_one_op_once",
    "C26 policy in the entry": "test_every_fact_of_an_op_is_of_its_entry",
    "C27 determinism": "test_the_table_is_a_function_of_the_text",
}

MUL = """
[mul]
signature = "mul(self, other) -> result"
type = "elementwise"
expr = "a * b"
flops = 1
partial.self = "other"
partial.other = "self"

[neg]
signature = "neg(self) -> result"
type = "elementwise"
expr = "-a"
flops = 1
partial.self = "-1"
"""

MAX = """
[max]
signature = "max(self, *, axis=None) -> (values, indices)"
type = "reduction"
outputs.indices = "integral"
vjp.self = "spread(g_values, indices, axis)"
jvp = "(pick(self_t, indices, axis),)"

[spread]
signature = "spread(self, indices, *, axis) -> result"
type = "reduction"
traits = ["linear"]
vjp.self = "pick(g, indices, axis)"
vjp.indices = "non_differentiable"
jvp = "linear"

[pick]
signature = "pick(self, indices, *, axis) -> result"
type = "reduction"
traits = ["linear"]
vjp.self = "spread(g, indices, axis)"
vjp.indices = "non_differentiable"
jvp = "linear"
"""

JOIN = """
[join_all]
signature = "join_all(*arrays, axis=0) -> result"
type = "concatenate"
traits = ["linear"]
vjp.arrays = "pieces(g, arrays.shape, axis)"
jvp = "linear"
"""

BASES = {"mul": MUL, "max": MAX, "join_all": JOIN}
RULE = 'partial.self = "other"'
PULL = 'vjp.self = "spread(g_values, indices, axis)"'
PUSH = 'jvp = "(pick(self_t, indices, axis),)"'

# Row, entry, what of its base becomes what, the key of the error, and its problem.
REFUSED = [
    ("L1", "mul", "mul(self", "mull(self", "signature", "is not of 'mul'"),
    ("L1", "mul", '"elementwise"', '"elementwize"', "type", "no type rule 'elementwize'"),
    ("L1", "mul", '"elementwise"', '"any_ufunc"', "type", "no type rule 'any_ufunc'"),
    ("L1", "mul", '"elementwise"', '"told"', "type", "no type rule 'told'"),
    ("L3", "max", PULL, 'vjp.self = "g_values + g"', "vjp.self", "unknown op 'add'"),
    ("L3", "max", PULL, 'vjp.self = "spread(g, indices, axis)"', "vjp.self", "name 'g'"),
    ("L4", "max", PULL, 'vjp.self = "g[0]"', "vjp.self", "not allowed in a formula: Subscript"),
    ("L5", "max", PULL, 'vjp.self = "g[2]"', "vjp.self", "not allowed in a formula: Subscript"),
    ("L6", "mul", RULE, 'vjp.self = "mul(g, g_result)"', "vjp.self", "unknown name 'g_result'"),
    ("L7", "mul", RULE, RULE + '\nvjp.self = "non_differentiable"', "vjp.self",
     "'self' has a rule already"),
    ("L8", "mul", "-> result", "-> other", "signature", "'other' twice"),
    ("L9", "mul", "self, other)", "self, g)", "signature", "'g' means a cotangent"),
    ("L9", "mul", "self, other)", "self, g_other)", "signature", "'g_other' means a cotangent"),
    ("L9", "mul", "self, other)", "self, self_t)", "signature", "'self_t' means a cotangent"),
    ("L9", "mul", "self, other)", "self, *, result=1)", "signature", "'result' twice"),
    ("L11", "mul", "-> result", "-> (result, rest)", "partial", "elementwise with one result"),
    ("L11", "mul", "-> result", "-> (*result,)", "partial", "elementwise with one result"),
    ("L11", "mul", '"elementwise"', '"reduction"', "partial", "elementwise with one result"),
    ("L14", "max", PUSH, 'jvp = "(pick(self, indices, axis),)"', "jvp", "never uses 'self_t'"),
    ("L14", "max", PUSH, 'jvp = "(pick(self, indices, self_t.ndim),)"', "jvp",
     "never uses 'self_t'"),
    ("L14", "mul", 'partial.self = "-1"', 'vjp.self = "-g"', None, "no jvp"),
    ("L15", "max", PUSH, 'jvp = "(pick(self_t, indices, axis), 0)"', "jvp",
     "gives 2 tangents for 1 results"),
    ("L15", "max", PUSH, 'jvp = "pick(self_t, indices, axis)"', "jvp", "gives an array"),
    ("L15", "max", PUSH, "", None, "no jvp"),
    ("L16", "max", PULL, PULL + '\nvjp.axis = "zero"', "vjp.axis", "no tensor argument 'axis'"),
    ("L16", "max", PULL, PULL + '\nvjp.values = "zero"', "vjp.values",
     "no tensor argument 'values'"),
    ("L17", "max", "outputs.", 'outputs.values = "integral"\noutputs.', "vjp.self",
     "without a differentiable result"),
    ("L17", "mul", "flops", 'outputs.result = "boolean"\nflops', "partial.self",
     "without a differentiable result"),
    ("L17", "mul", "flops", 'traits = ["comparison"]\nflops', "traits", "locally constant"),
    ("L17", "mul", "flops", 'traits = ["stepwise"]\nflops', "traits", "locally constant"),
    ("L18", "max", "outputs.indices", "outputs.positions", "outputs.positions",
     "no result 'positions'"),
    ("L18", "max", "outputs.indices", "output.indices", "output",
     "unknown key\nhint: did you mean 'outputs'?"),
    ("L18", "max", 'outputs.indices = "integral"', "outputs.indices = false", "outputs.indices",
     "unknown: False"),
    ("L19", "mul", RULE, 'partial.self = "mul(other, other.strides)"', "partial.self",
     "unknown attribute 'strides'"),
    ("L20", "mul", "flops", "dispatch.Default = 1\nflops", "dispatch", "unknown key"),
    ("L21", "mul", "[mul]", "[ties]", None, "is the name of a macro"),
    ("F1", "max", PUSH, 'jvp = "self_t.shape"', "jvp", "gives a shape"),
    ("F1", "max", PUSH, 'jvp = "None"', "jvp", "gives None"),
    ("F1", "max", "-> (values", "-> (values.shape", "signature", "results are named"),
    ("F1", "max", "-> (values", "-> ((values, counts)", "signature", "results are named"),
    ("F1", "join_all", "-> result", "-> dict(result=1)", "signature", "results are named"),
    ("F1", "join_all", 'jvp = "linear"', 'jvp = "arrays_t"', "jvp", "gives a list"),
    ("F1", "join_all", 'jvp = "linear"', 'jvp = "(arrays_t, 1)"', "jvp", "gives a tuple"),
    ("G2", "mul", RULE, 'partial.self = "othr"', "partial.self",
     "unknown name 'othr'\nhint: did you mean 'other'?"),
    ("G2", "mul", RULE, 'partial.self = "mull(self, other)"', "partial.self",
     "unknown op 'mull'\nhint: did you mean 'mul'?"),
    ("G2", "mul", "flops", 'numpy = "multipli"\nflops', "numpy",
     "no function of NumPy: 'multipli'\nhint: did you mean 'multiply'?"),
    ("G2", "mul", "a * b", "a * c", "expr", "unknown name 'c' in C"),
    ("G2", "mul", "a * b", "pow(a)", "expr", "pow takes 2 arguments: 1"),
    ("G2", "mul", "a * b", "a * 1e5", "expr", "not allowed in a C expression: '1'"),
    ("G2", "mul", "a * b", "b + exp (a)", "expr", "exp is not called"),
    ("G2", "mul", "flops", 'scipy = "f()"\nflops', "scipy", "no function of scipy.special"),
    ("G4", "mul", RULE, 'partial.self = "other # of g"', "partial.self", "not allowed: '#'"),
    ("G4", "mul", "self, other)", "self, *, x=1) # other)", "signature", "not allowed: '#'"),
    ("G4", "mul", RULE, "partial.self = 1", "partial.self", "wrong type: int"),
    ("G4", "mul", RULE, "partial.self = false", "partial.self", "wrong type: bool"),
    ("G4", "mul", RULE, "partial.self = 1979-05-27", "partial.self", "wrong type: date"),
    ("G4", "mul", "flops", "no = 1\nflops", "no", "unknown key"),
    ("G5", "mul", RULE, 'partial.self = "other.shape"', "partial.self", "gives a shape"),
    ("G5", "mul", RULE, 'partial.self = "mul(other, other.dtype)"', "partial.self",
     "a dtype in the place of an array"),
    ("G5", "mul", RULE, 'partial.self = "other * other.shape"', "partial.self",
     "a shape in the place of an array"),
    ("G5", "mul", RULE, 'partial.self = "(other, other)"', "partial.self", "gives a tuple"),
    ("G5", "mul", RULE, 'partial.self = "other if self.ndim > 0 else None"', "partial.self",
     "gives None"),
    ("G5", "mul", RULE, 'partial.self = "other if self.shape > 0 else 1"', "partial.self",
     "not of numbers"),
    ("G5", "max", PULL, 'vjp.self = "spread(g_values, indices, self)"', "vjp.self",
     "an attribute that is the value of 'self'"),
    ("G5", "max", PULL, 'vjp.self = "spread(max(g_values), indices, axis)"', "vjp.self",
     "a list in the place of an array"),
    ("G5", "join_all", 'vjp.arrays = "pieces(g, arrays.shape, axis)"', 'vjp.arrays = "g"',
     "vjp.arrays", "gives an array\nhint: one cotangent for each"),
    ("G6", "mul", RULE, "partial.self = \"mul(other, 'self')\"", "partial.self",
     "not a number: 'self'"),
    ("C2", "mul", "flops", "flop", "flop", "unknown key\nhint: did you mean 'flops'?"),
    ("C2", "mul", "partial.self", "vjp.self.formula", "vjp.self", "wrong type: dict"),
    ("C2", "mul", "flops", 'traits = ["comutative"]\nflops', "traits",
     "unknown: 'comutative'\nhint: did you mean 'commutative'?"),
    ("C3", "mul", "self, other)", "self, other", "signature", "not a signature"),
    ("C3", "mul", "self, other)", "self: int, other)", "signature", "has an annotation"),
    ("C3", "mul", "self, other)", "self, /, other)", "signature", "operands have no defaults"),
    ("C3", "mul", "self, other)", "self, other=1)", "signature", "operands have no defaults"),
    ("C3", "mul", "self, other)", "self, other, **more)", "signature", "have no defaults"),
    ("C3", "mul", "self, other)", "self, self)", "signature", "'self' twice"),
    ("C3", "mul", "-> result", "", "signature", "results are named"),
    ("C3", "mul", "-> result", "-> result: pass\\nclass other", "signature", "not a signature"),
    ("C3", "mul", "other)", "other, *, x=[])", "signature", "default of 'x' is not a literal"),
    ("C3", "mul", "other)", "other, *, x=1e999)", "signature", "default of 'x' is not finite"),
    ("C3", "mul", "other)", "other, *, x=b'')", "signature", "default of 'x' is not a number"),
    ("C4", "mul", RULE, "", None, "no rule for argument 'self'"),
    ("C4", "mul", RULE, 'partial.self = "non_diferentiable"', "partial.self",
     "hint: did you mean 'non_differentiable'?"),
    ("C4", "mul", RULE, RULE + '\nvjp.self = "zero"', "vjp.self", "has a rule already"),
    ("C4", "mul", RULE, RULE + '\nvjp.self = "not_implemented"', "vjp.self", "rule already"),
    ("C4", "mul", RULE, RULE + '\nvjp.self = "g"', "vjp.self", "has a rule already"),
    ("C4", "mul", RULE, 'vjp = "zro"\n', "vjp", "is for all arguments one of"),
    ("C7", "mul", RULE, 'partial.self = "mul(other)"', "partial.self", "takes 2 operands: 1"),
    ("C7", "mul", RULE, 'partial.self = "mul(other, 1, 1)"', "partial.self",
     "takes 2 operands: 3"),
    ("C7", "max", "axis)\"\njvp = \"(pick", "axes=axis)\"\njvp = \"(pick", "vjp.self",
     "unknown attribute of spread 'axes'\nhint: did you mean 'axis'?"),
    ("C7", "max", PULL, 'vjp.self = "spread(g_values, indices)"', "vjp.self",
     "spread needs axis"),
    ("C7", "max", PULL, 'vjp.self = "spread(g_values, indices, 0, axis=1)"', "vjp.self",
     "spread gets axis twice"),
    ("C7", "mul", RULE, 'partial.self = "ties(self)"', "partial.self", "takes 4 arguments"),
    ("C7", "mul", RULE, 'partial.self = "ties(self, other, axis=0, keepdims=1)"',
     "partial.self", "ties takes no keywords"),
    ("C10", "mul", 'partial.self = "-1"', 'jvp = "-self_t"\nvjp.self = "1"', "vjp.self",
     "never uses 'g'"),
    ("C10", "max", PULL, 'vjp.self = "spread(1, indices, axis)"', "vjp.self",
     "never uses 'g_values'"),
    ("C10", "max", PULL, 'vjp.self = "spread(1, indices, g_values.ndim)"', "vjp.self",
     "never uses 'g_values'"),
    ("C10", "max", 'outputs.indices = "integral"\n', "", "vjp.self", "never uses 'g_indices'"),
    ("C11", "max", '"integral"', '"integer"', "outputs.indices",
     "unknown: 'integer'\nhint: did you mean 'integral'?"),
    ("C13", "mul", "flops", 'variants = ["inplace"]\nflops', "variants", "without functional"),
    ("C13", "max", "outputs", 'variants = ["functional", "inplace"]\noutputs', "variants",
     "one new result"),
    ("C14", "mul", "flops", 'view_of = "othr"\nflops', "view_of",
     "no argument 'othr'\nhint: did you mean 'other'?"),
    ("C14", "mul", "flops", 'view_of = "other"\nflops', "view_of", "go together"),
    ("C14", "mul", "flops", 'traits = ["view"]\nflops', "traits", "go together"),
    ("C14", "join_all", '["linear"]', '["linear", "view"]\nview_of = "arrays"', "view_of",
     "'arrays' is a list"),
    ("C14", "mul", "flops", 'view_of = "self"\nvariants = ["functional", "inplace"]\n'
     'traits = ["view"]\nflops', "variants", "one new result"),
    ("C15", "mul", RULE, RULE + '\nvjp.out = "g"', "vjp.out", "no tensor argument 'out'"),
    ("C16", "max", PUSH, 'jvp = "linear"', "jvp", "without the trait linear"),
    ("C16", "max", PUSH, 'jvp = "linear"\ntraits = ["linear"]', "jvp",
     "not every result is differentiable"),
]  # fmt: skip


def refused(texts):
    with pytest.raises(DeclarationError) as caught:
        load_texts(texts)
    return caught.value


@pytest.mark.parametrize("case", REFUSED, ids=[f"{case[0]}-{case[4]}" for case in REFUSED])
def test_refuses(case):
    _, kind, old, new, key, problem = case
    base = BASES[kind]
    load_texts({"base.toml": base})
    assert old in base
    text = base.replace(old, new, 1)
    error = refused({"base.toml": text})
    assert problem in str(error)
    entry = next(name for name in re.findall(r"(?m)^\[(\w+)\]", text))
    if "neg" in old or (old, kind) == ('partial.self = "-1"', "mul"):
        entry = "neg"
    assert (error.file, error.entry, error.key) == ("base.toml", entry, key)
    line = text.split("\n")[error.line - 1]
    assert line.startswith(f"[{entry}]" if key is None else key.split(".")[0])
    assert 1 <= error.column <= len(line)
    place = f"base.toml:{error.line}:{error.column}: {entry}: "
    assert str(error).startswith(place + (f"{key}: " if key else ""))


def test_every_row_has_a_test_or_a_reason():
    listed = [row.split()[0] for row in ROWS]
    counts = {"L": 21, "F": 2, "G": 8, "C": 27}
    assert sorted(listed) == sorted(
        f"{letter}{number}" for letter, most in counts.items() for number in range(1, most + 1)
    )
    tried = {case[0] for case in REFUSED}
    for row, where in ROWS.items():
        if where.startswith("test_refuses["):
            assert where[13:-1] in tried, row
        elif not where.startswith(("- ", "test_loader_hostile.py")):
            assert where in globals(), row
        assert len(where) > 10


def test_names_one_op_once():
    error = refused({"a.toml": MUL, "b.toml": MUL})
    assert "declared in a.toml already" in str(error)
    assert (error.file, error.entry, error.line) == ("b.toml", "mul", 3)
    for alias in ("mul", "neg", "times"):
        text = MUL.replace("[neg]", f'[neg]\naliases = ["times", "{alias}"]')
        assert f"'{alias}' names" in str(refused({"a.toml": text}))
    for alias in ("a b", "", "__import__('os')"):
        text = MUL.replace("[neg]", f'[neg]\naliases = ["{alias}"]')
        assert refused({"a.toml": text}).key == "aliases"


@pytest.mark.parametrize(
    ("old", "new", "entry", "key", "line"),
    [
        ("flops = 1", "flops = 1\nflops = 2", "mul", "flops", 7),
        (RULE, RULE + "\n" + RULE, "mul", "partial.self", 8),
        (RULE, RULE + '\npartial = { self = "1" }', "mul", "partial", 8),
        (RULE, RULE + '\npartial.self.deep = "1"', "mul", "partial.self.deep", 8),
        ("[neg]", "[mul]", "mul", None, 10),
    ],
)
def test_refuses_duplicates(old, new, entry, key, line):
    error = refused({"base.toml": MUL.replace(old, new, 1)})
    assert (error.file, error.entry, error.key) == ("base.toml", entry, key)
    assert (error.line, error.column is None) == (line, False)


def test_loads_linear_ops_of_several_results():
    text = """
[halves]
signature = "halves(self) -> (left, right)"
type = "reduction"
traits = ["linear"]
vjp.self = "mul(g_left, g_right)"
jvp = "linear"
"""
    assert load_texts({"a.toml": text + MUL})["halves"]["jvp"] == "linear"


def test_results_that_are_constant_have_no_name():
    """By name and not by number, so that no result is meant by the number of another."""
    entry = load_texts({"a.toml": MAX})["max"]
    assert entry["vjps"]["self"][2] == ("indices",)
    assert entry["max_order"] is None
    text = MAX.replace("g_values, indices, axis", "g_indices, indices, axis")
    error = refused({"a.toml": text})
    assert "unknown name 'g_indices'" in str(error)
    lines = text.split("\n")
    assert lines[error.line - 1][error.column - 1 :].startswith("g_indices")


class Operand:
    def __init__(self, type):
        self.type = as_type(type)


class Counting:
    """Emitter that notes the ops."""

    def __init__(self):
        self.kinds = []

    def emit(self, kind, _operands, _attributes):
        self.kinds.append(kind)
        return Operand("f64[3]")


def expanded(text, kind="max"):
    op = make_op(load_texts({"a.toml": text})[kind])
    x, values, indices, g = (Operand(f"{dtype}[3]") for dtype in ("f64", "f64", "f64", "f64"))
    env = bind(op, [x], {"axis": 0}, [values, indices])
    return op, env, g


@pytest.mark.parametrize("kind", ["integral", "boolean", "detached"])
def test_constant_results_pass_nothing_on(kind):
    op, env, g = expanded(MAX.replace('"integral"', f'"{kind}"').replace("reduction", "same"))
    emitter = Counting()
    assert vjp(op, "self", {**env, "g_indices": g}, emitter) is builder.ZERO
    assert emitter.kinds == []
    # One tangent is declared, of `values`; it is that of the first of the two results.
    plain = 'jvp = "(self_t,)"'
    op, env, g = expanded(MAX.replace('"integral"', f'"{kind}"').replace(PUSH, plain))
    assert jvp(op, {**env, "self_t": g}, emitter) == (g, builder.ZERO)
    swapped = MAX.replace("(values, indices)", "(indices, values)").replace(PUSH, plain)
    op, env, g = expanded(swapped.replace('"integral"', f'"{kind}"'))
    assert jvp(op, {**env, "self_t": g}, emitter) == (builder.ZERO, g)


def test_numbers_in_the_place_of_tangents():
    """Zero is the structural one, whichever branch of a formula gives it; others are none."""
    pair = MAX.replace('outputs.indices = "integral"\n', "").replace(
        "spread(g_values, indices, axis)", "0 if axis == 0 else mul(g_values, g_indices)"
    )
    op, env, g = expanded(pair.replace(PUSH, 'jvp = "(self_t, 0)"') + MUL)
    assert jvp(op, {**env, "self_t": g}, Counting()) == (g, builder.ZERO)
    assert vjp(op, "self", {**env, "g_values": g}, Counting()) is builder.ZERO
    op, env, g = expanded(pair.replace(PUSH, 'jvp = "(self_t, 2)"') + MUL)
    with pytest.raises(DeclarationError, match="of a number only: 2"):
        jvp(op, {**env, "self_t": g}, Counting())


def test_auxiliary_results_are_loud():
    text = MAX.replace('"integral"', '"aux"').replace(PUSH, "")
    entry = load_texts({"a.toml": text})["max"]
    assert entry["max_order"] == 1
    assert load_texts({"a.toml": MAX})["max"]["max_order"] is None
    unread = text.replace("spread(g_values, indices, axis)", "g_values")
    assert load_texts({"a.toml": unread})["max"]["max_order"] is None
    op, env, g = expanded(text)
    with pytest.raises(NotDifferentiable, match="auxiliary result 'indices'"):
        vjp(op, "self", {**env, "g_indices": g}, Counting())
    with pytest.raises(ForwardModeUnsupported, match="auxiliary result 'indices'"):
        jvp(op, {**env, "self_t": g}, Counting())
    error = refused({"a.toml": MAX.replace('"integral"', '"aux"')})
    assert (error.key, "refuses forward mode" in str(error)) == ("jvp", True)


def test_refuses_tangents_of_any_argument():
    """A list refuses like an array; other arguments are attributes, which have no tangent."""
    text = """
[stats]
signature = "stats(*arrays, axis=0) -> (mean, spread)"
type = "reduction"
outputs.spread = "aux"
vjp.arrays = "pieces(g_mean, arrays.shape, axis)"
"""
    op = make_op(load_texts({"a.toml": text})["stats"])
    x, g = Operand("f64[3]"), Operand("f64[3]")
    env = bind(op, [x, x], {}, [x, x], arrays_t=(builder.ZERO, g))
    with pytest.raises(ForwardModeUnsupported, match="auxiliary result 'spread'"):
        jvp(op, env, Counting())
    still = {**env, "arrays_t": (builder.ZERO, builder.ZERO)}
    assert jvp(op, still, Counting()) is builder.ZERO
    error = refused({"a.toml": text + 'vjp.axis = "g_mean"\n'})
    assert (error.key, "no tensor argument 'axis'" in str(error)) == ("vjp.axis", True)


def test_complex_is_refused_unless_declared():
    assert load_texts({"a.toml": MUL})["mul"]["is_complex"] is False
    op = make_op(load_texts({"a.toml": MUL})["neg"])
    z = Operand("c128[3]")
    env = bind(op, [z], {}, [z], g=z, self_t=z)
    for rule in (lambda: vjp(op, "self", env, Counting()), lambda: jvp(op, env, Counting())):
        with pytest.raises(NotDifferentiable, match="no derivative at complex operands"):
            rule()


def test_orders_follow_through_formulas():
    text = MUL + """
[last]
signature = "last(self) -> result"
type = "same"
vjp = "not_implemented"
[first]
signature = "first(self) -> result"
type = "same"
vjp.self = "mul(g, middle(self))"
jvp = "mul(self_t, middle(self))"
[middle]
signature = "middle(self) -> result"
type = "same"
vjp.self = "mul(g, last(self))"
jvp = "mul(self_t, self)"
[round]
signature = "round(self) -> result"
type = "same"
vjp.self = "mul(g, round(self))"
jvp = "mul(self_t, first(self))"
"""  # fmt: skip
    orders = {kind: entry["max_order"] for kind, entry in load_texts({"a.toml": text}).items()}
    assert orders == {"mul": None, "neg": None, "last": 0, "first": 2, "middle": 1, "round": 3}


def test_tells_what_is_saved():
    text = MUL.replace(RULE, 'partial.self = "other * result.size if self.ndim > 1 else other"')
    partials = load_texts({"a.toml": text})["mul"]["partials"]
    assert (partials["self"][2], partials["other"][2]) == (("other",), ("self",))


def test_every_fact_of_an_op_is_of_its_entry():
    """Each key of an entry comes to the table; an op has nothing else."""
    computed = {"kind", "family", "max_order", "is_complex", "facts"}
    computed |= {"ufunc", "function", "typing"}  # what calls run, of ops made at run time
    written = {"signature", "type", "partial", "vjp", "complex", "singular", "random"}
    facts = {"batch", "effect", "forwards", "source", "notes", "may_fail", "outputs"}
    fields = {
        "arguments",
        "attributes",
        "results",
        "returns_list",
        "type_rule",
        "partials",
        "vjps",
    }
    assert set(Op.__dataclass_fields__) == computed | fields | (KEYS.keys() - written - facts)


def test_the_table_is_a_function_of_the_text():
    texts = {"a.toml": MUL, "b.toml": MAX}
    assert repr(load_texts(texts)) == repr(load_texts(texts))


MACRO_MODULES = (macros, fft_macros, linalg_macros, sequence_macros)


def test_names_in_lists_are_of_ops():
    lists = [builder.LIKE, builder.LIKE.values(), builder._SPECIAL]
    lists += [expression._LIKE, expression._LIKE.values(), expression.BINARY.values()]
    modules = (functions, fft_reference, linalg_reference, random_reference, sequence_reference)
    lists += [module.FUNCTIONS for module in modules]
    lists += [samples._CASES, {kind for kind, _ in samples.ABSENT}]
    lists += [macro.uses for macro in macros.MACROS.values()]
    for names in lists:
        assert not set(names) - OPS.keys()
    assert builder.LIKE == expression._LIKE
    for name in builder._SPECIAL:
        assert callable(getattr(builder.Builder, name))


def test_macros_say_all_that_they_emit():
    """The order of an op follows from these names, so that a forgotten one would lie."""
    emitted, called = {}, {}
    for module in MACRO_MODULES:
        for function in ast.parse(inspect.getsource(module)).body:
            if isinstance(function, ast.FunctionDef):
                nodes = [*ast.walk(function)]
                calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
                kinds = [
                    part.value
                    for node in calls
                    if isinstance(node.func, ast.Attribute)
                    and node.func.attr in ("call", "emit")
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant)
                ]
                emitted.setdefault(function.name, set()).update(kinds)
                names = {node.id for node in nodes if isinstance(node, ast.Name)}
                called.setdefault(function.name, set()).update(names)

    def reached(name, seen):
        if name in seen or name not in emitted:
            return set()
        seen.add(name)
        return emitted[name].union(*(reached(each, seen) for each in called[name]))

    assert len(set().union(*emitted.values())) > 30
    for name, macro in macros.MACROS.items():
        assert not reached(name, set()) - set(macro.uses), name
