"""Tests of ops/formula.py, ops/builder.py and ops/macros.py: what is emitted, and what not."""

import dataclasses

import numpy as np
import pytest

from stagedad.errors import DeclarationError, NotDifferentiable
from stagedad.ops import OPS, infer
from stagedad.ops.calls import MACROS
from stagedad.ops.expression import Scope, Signature, parse
from stagedad.ops.formula import ZERO, Builder, bind, evaluate, jvp, vjp
from stagedad.ops.reading import ExpressionError
from stagedad.types import as_type

SIGNATURES = {
    op.kind: Signature((len(op.arguments), len(op.arguments)), tuple(op.attributes))
    for op in OPS.values()
}


class Symbol:
    """An operand that has a name and a type."""

    def __init__(self, name, type):
        self.name, self.type = name, as_type(type)

    def __repr__(self):
        return self.name


class Writer:
    """Emitter that writes lines `kind(operands)`."""

    def __init__(self):
        self.lines = []

    def emit(self, kind, operands, attributes):
        types = [operand.type for operand in operands]
        text = ", ".join(
            [operand.name for operand in operands]
            + [f"{k}={v}" for k, v in attributes.items() if k in ("value", "shape", "axis")]
        )
        self.lines.append(f"{kind}({text})")
        return Symbol(f"%{len(self.lines)}", infer(kind, types, attributes)[0])


def written(kind, argument, *types, g=None, attributes=None, **options):
    """Lines of the vjp of `argument`, and what it gives."""
    op, writer = OPS[kind], Writer()
    operands = [Symbol(name, type) for name, type in zip("xyz", types, strict=False)]
    (type,) = infer(kind, [operand.type for operand in operands], attributes or {})
    result = Symbol("r", type)
    g = Symbol("g", type) if g is None else g
    env = bind(op, operands, attributes or {}, [result], g=g)
    return writer.lines, vjp(op, argument, env, writer, **options)


A, B, C = "f64[2, 3]", "f64[3]", "c128[2, 3]"


@pytest.mark.parametrize(
    ("kind", "argument", "types", "lines"),
    [
        ("add", "self", [A, A], []),
        ("add", "other", [A, B], ["sum_to(g, shape=(3,))"]),
        ("sub", "other", [A, A], ["neg(g)"]),
        ("sub", "other", [A, B], ["sum_to(g, shape=(3,))", "neg(%1)"]),
        ("neg", "self", [A], ["neg(g)"]),
        ("mul", "self", [A, A], ["mul(g, y)"]),
        ("mul", "other", [A, B], ["mul(g, x)", "sum_to(%1, shape=(3,))"]),
        ("mul", "self", [C, C], ["conj(y)", "mul(g, %1)"]),
        ("mul", "self", [A, C], ["conj(y)", "mul(g, %1)", "real(%2)"]),
        ("mul", "self", ["f32[2, 3]", A], ["mul(g, y)", "astype(%1)"]),
        ("mul", "self", [None, None], ["mul(g, y)", "sum_to_like(%1, x)"]),
        ("mul", "self", ["f64[?]", "f64[?]"], ["mul(g, y)", "sum_to_like(%1, x)"]),
        ("mul", "self", [None, "f64[]"], ["mul(g, y)"]),
        ("add", "self", [None, None], ["sum_to_like(g, x)"]),
        ("exp", "self", [A], ["mul0(g, r)"]),
        ("exp", "self", [None], ["mul0(g, r)"]),
        ("square", "self", [A], ["constant(value=2)", "mul(%1, x)", "mul(g, %2)"]),
        ("square", "self", [None], ["constant_like(x, value=2)", "mul(%1, x)", "mul(g, %2)"]),
        ("conj", "self", [A], []),
        ("conj", "self", [C], ["conj(g)"]),
        ("copy", "self", [A], []),
        ("real", "self", [C], ["astype(g)"]),
        ("real", "self", [A], []),
        ("sum", "self", [A], ["broadcast_to(g, shape=(2, 3))"]),
        ("sum", "self", [None], ["broadcast_like(g, x)"]),
        (
            "mean",
            "self",
            [None],
            [
                "constant_like(g, value=1)",
                "broadcast_like(%1, x)",
                "sum(%2, axis=None)",
                "div(g, %3)",
                "broadcast_like(%4, x)",
            ],
        ),
        ("matmul", "self", [A, "f64[3, 4]"], ["transpose(y)", "matmul(g, %1)"]),
        ("matmul", "other", [A, B], ["transpose(x)", "expand_dims(g, axis=-1)",
                                     "matmul(%1, %2)", "squeeze(%3, axis=-1)"]),
    ],
)  # fmt: skip
def test_emits(kind, argument, types, lines):
    found, cotangent = written(kind, argument, *types)
    assert found == lines
    assert cotangent.name == (f"%{len(lines)}" if lines else "g")


def test_strict_multiplies():
    assert written("exp", "self", A, masked=False)[0] == ["mul(g, r)"]


def test_alpha_counts():
    lines, _ = written("sub", "other", A, B, attributes={"alpha": 3})
    assert lines == ["sum_to(g, shape=(3,))", "constant(value=-3)", "mul(%1, %2)"]
    lines, _ = written("add", "other", C, C, attributes={"alpha": 2j})
    assert lines == ["constant(value=-2j)", "mul(g, %1)"]
    assert written("add", "other", A, A, attributes={"alpha": 0}) == ([], ZERO)


@pytest.mark.parametrize("op", OPS.values(), ids=repr)
def test_zero_cotangents_emit_nothing(op):
    for argument in op.arguments:
        types = ["b1[3]" if argument.name == "condition" else B] * len(op.arguments)
        operands = [Symbol("x", type) for type in types]
        env = {a.name: (operands[0],) if a.is_list else operands[0] for a in op.arguments}
        writer = Writer()
        found = vjp(op, argument.name, {**env, "g": ZERO}, writer)
        assert found == ((ZERO,) if argument.is_list else ZERO)
        assert writer.lines == []


@pytest.mark.parametrize("kind", ["floor", "sign", "less", "isnan", "zeros_like"])
def test_stepwise_ops_give_zero(kind):
    types = [A] * len(OPS[kind].arguments)
    assert written(kind, "self", *types) == ([], ZERO)


def test_integers_carry_no_cotangent():
    assert written("mul", "self", "i64[3]", "f64[3]") == ([], ZERO)


def test_refuses_a_gradient_of_indices():
    env = {"self": Symbol("x", B), "indices": Symbol("y", B), "g": Symbol("g", B)}
    with pytest.raises(NotDifferentiable, match=r"^take: 'indices' is not differentiable"):
        vjp(OPS["take"], "indices", env, Writer())


def test_refuses_what_is_not_implemented():
    op = OPS["mul"]
    arguments = tuple(dataclasses.replace(a, rule="not_implemented") for a in op.arguments)
    op = dataclasses.replace(op, arguments=arguments)
    env = {"self": Symbol("x", B), "other": Symbol("y", B), "g": Symbol("g", B)}
    with pytest.raises(NotDifferentiable, match=r"^mul: no derivative with respect to 'self'"):
        vjp(op, "self", env, Writer())


def test_refuses_unknown_shapes_where_they_matter():
    slices = {"start": (0,), "stop": (2,), "step": (1,)}
    with pytest.raises(NotDifferentiable, match="needs the shape of its operands"):
        written("slice", "self", "f64[?]", attributes=slices)
    with pytest.raises(NotDifferentiable, match=r"^matmul: .* needs the shape"):
        written("matmul", "self", None, None)


def test_list_arguments_give_wanted_parts_only():
    op, writer = OPS["concatenate"], Writer()
    operands = [Symbol(name, B) for name in "xyz"]
    env = bind(op, operands, {}, [Symbol("r", "f64[9]")], g=Symbol("g", "f64[9]"))
    parts = vjp(op, "arrays", env, writer, wanted=[False, True, False])
    assert parts[0] is ZERO
    assert parts[2] is ZERO
    assert str(parts[1].type) == "f64[3]"
    assert writer.lines == ["slice(g)"]
    assert len(vjp(op, "arrays", env, Writer())) == 3


def tangent(kind, types, tangents, **attributes):
    op, writer = OPS[kind], Writer()
    operands = [Symbol(name, type) for name, type in zip("xyz", types, strict=False)]
    (type,) = infer(kind, [operand.type for operand in operands], attributes)
    moving = {f"{name}_t": Symbol(f"{name}_t", types[0]) for name in tangents}
    env = bind(op, operands, attributes, [Symbol("r", type)], **moving)
    return writer.lines, jvp(op, env, writer)


@pytest.mark.parametrize(
    ("kind", "types", "moving", "lines"),
    [
        ("add", [A, A], ["self"], []),
        ("add", [B, A], ["self"], ["broadcast_to(self_t, shape=(2, 3))"]),
        ("mul", [A, A], ["self"], ["mul(self_t, y)"]),
        ("mul", [A, A], ["self", "other"],
         ["mul(self_t, y)", "mul(other_t, x)", "add(%1, %2)"]),
        ("exp", [A], ["self"], ["mul0(self_t, r)"]),
        ("sum", [A], ["self"], ["sum(self_t, axis=None)"]),
        ("matmul", [A, "f64[3, 2]"], ["self"], ["matmul(self_t, y)"]),
        ("mul", [C, C], ["self"], ["mul(self_t, y)"]),
    ],
)  # fmt: skip
def test_emits_tangents(kind, types, moving, lines):
    assert tangent(kind, types, moving)[0] == lines


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.arguments], ids=repr)
def test_no_tangent_emits_nothing(op):
    env = {a.name: Symbol("x", B) for a in op.arguments} | {"result": Symbol("r", B)}
    writer = Writer()
    assert jvp(op, env, writer) is ZERO
    assert writer.lines == []


def test_missing_tangents_beside_others_are_zeros():
    op, writer = OPS["concatenate"], Writer()
    env = bind(op, [Symbol("x", B), Symbol("y", B)], {}, [Symbol("r", "f64[6]")])
    jvp(op, {**env, "arrays_t": (ZERO, Symbol("y_t", B))}, writer)
    assert writer.lines == ["zeros_like(x)", "concatenate(%1, y_t, axis=0)"]


def expand(text, **env):
    names = frozenset(env)
    scope = Scope(names, frozenset({"n"}), frozenset({"g"}), SIGNATURES, MACROS)
    formula, _ = parse(text, scope)
    writer = Writer()
    return evaluate(formula, {"n": 2, **env}, writer), writer.lines


def test_numbers_compute_in_python():
    found, lines = expand("n * 3 - 4 / 2 + 2 ** n", x=Symbol("x", A))
    assert (found, lines) == (8, [])


@pytest.mark.parametrize(
    "text", ["9 ** 9 ** 9", "x * 10 ** 10 ** 10", "x + 1 / 0", "1e999 * x", f"x * {'9' * 400}"]
)
def test_numbers_that_are_none_do_not_load(text):
    with pytest.raises(ExpressionError, match="not a finite number"):
        expand(text, x=Symbol("x", A))


def test_ops_of_numbers_alone_do_not_load():
    with pytest.raises(ExpressionError, match="sqrt of numbers only"):
        expand("x * sqrt(-2 * 3)", x=Symbol("x", A))


def test_structural_zeros_flow():
    x = Symbol("x", A)
    assert expand("g * x", x=x, g=ZERO) == (ZERO, [])
    assert expand("g + x", x=x, g=ZERO) == (x, [])
    assert expand("x - g", x=x, g=ZERO) == (x, [])
    assert expand("g - x", x=x, g=ZERO)[1] == ["neg(x)"]
    assert expand("-g / x", x=x, g=ZERO) == (ZERO, [])
    assert expand("sum(g) + matmul(x, g)", x=x, g=ZERO) == (ZERO, [])
    assert expand("where(x, g, 0)", x=x, g=ZERO) == (ZERO, [])
    assert expand("where(x, g, x)", x=x, g=ZERO)[1] == ["constant(value=0)", "where(x, %1, x)"]
    with pytest.raises(DeclarationError, match=r"^exp: of a structural zero"):
        expand("exp(g)", x=x, g=ZERO)


def test_conditions_decide_by_metadata():
    x = Symbol("x", A)
    assert expand("x if x.ndim == 2 and n > 1 else -x", x=x) == (x, [])
    assert expand("x if not (x.size < 3 or n is None) else -x", x=x) == (x, [])
    assert expand("-x if n != 2 else x", x=x) == (x, [])


def test_builder_masks_without_a_type():
    writer = Writer()
    Builder(writer).mask(Symbol("c", None), Symbol("x", None))
    assert writer.lines == [
        "constant_like(x, value=1)",
        "constant_like(x, value=0)",
        "where(c, %1, %2)",
    ]


def test_numbers_do_not_change_the_dtype():
    x = Symbol("x", "f32[2]")
    found, _ = expand("x * 0.5", x=x)
    assert found.type.dtype == np.float32
    found, _ = expand("x * 0.5", x=Symbol("x", "i64[2]"))
    assert found.type.dtype == np.float64


def test_macros_say_what_they_use():
    assert all(set(macro.uses) <= OPS.keys() for macro in MACROS.values())
