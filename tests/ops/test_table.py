"""Tests of ops/table.py and ops/__init__.py."""

import subprocess
import sys

import numpy as np
import pytest

import stagedad.ops
from stagedad.ops import OPS, REQUIRED, evaluate, infer, resolve
from stagedad.ops.c_source import TOKEN
from stagedad.types import parse_type

F = parse_type("f64[2]")


def test_resolves_the_names_of_ufuncs():
    names = {
        "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div",
        "negative": "neg", "power": "pow", "absolute": "abs", "conjugate": "conj",
    }  # fmt: skip
    assert {name: resolve(name) for name in names} == names
    assert resolve("mul") == "mul"
    assert resolve("unheard_of") == "unheard_of"


@pytest.mark.parametrize("op", OPS.values(), ids=repr)
def test_is_whole(op):
    assert op.argument(op.arguments[0].name) is op.arguments[0] if op.arguments else True
    if op.ufunc is not None:
        assert resolve(op.ufunc.__name__.lstrip("_")) == op.kind
        assert op.ufunc.nin == len(op.arguments)
    if "elementwise" in op.traits:
        assert op.expr or op.scipy
    assert op.flops is not None
    no_rule = op.arguments and all(a.rule == "not_implemented" for a in op.arguments)
    assert op.max_order == (0 if no_rule else None)


# Functions of C that are an op by another name, or no more than one instruction.
AS_OPS = {
    "fabs": "abs", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip
# A function that is less than the op of its name.
COSTS = {"ldexp": 4}


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.expr], ids=repr)
def test_flops_are_those_of_the_expression(op):
    """Operators, comparisons and choices count one each; a function what its op declares."""
    count, end = 0, 0
    for word in TOKEN.finditer(op.expr):
        assert word.start() == end
        end = word.end()
        if word["call"]:
            name = word["call"]
            count += COSTS.get(name) or OPS[AS_OPS.get(name, name)].flops
        elif word["quotient"]:
            count += OPS["div"].flops
        elif word["order"] or word["arithmetic"] or word["logic"]:
            count += 1
    assert end == len(op.expr)
    assert op.flops == count


def test_knows_what_a_derivative_reads():
    assert OPS["mul"].reads("self") == {"other"}
    assert OPS["mul"].reads("other") == {"self"}
    assert OPS["add"].reads("self") == set()
    assert OPS["exp"].reads("self") == {"result"}
    assert OPS["div"].reads("other") == {"result", "other"}
    assert OPS["sum"].reads("self") == set()
    assert OPS["less"].reads("self") == set()
    assert OPS["matmul"].reads("self") == {"other"}


def test_attributes_have_defaults_or_are_required():
    assert OPS["add"].attributes == {"alpha": 1}
    assert OPS["reshape"].attributes == {"shape": REQUIRED}
    assert repr(REQUIRED) == "REQUIRED"


def test_refuses_a_wrong_number_of_operands():
    with pytest.raises(TypeError, match=r"^mul: takes 2 operands: 1"):
        infer("mul", [F], {})
    with pytest.raises(TypeError, match=r"^exp: takes 1 operand: 2"):
        evaluate("exp", [np.ones(2)] * 2, {})
    with pytest.raises(TypeError, match=r"^concatenate: takes 1 operands or more: 0"):
        infer("concatenate", [], {})


def test_refuses_attributes_with_a_suggestion():
    with pytest.raises(TypeError, match=r"^sum: no attribute: axs\nhint: did you mean 'axis'"):
        infer("sum", [F], {"axs": 0})
    with pytest.raises(TypeError, match=r"^exp: no attribute: base\nhint: it has none"):
        infer("exp", [F], {"base": 2})
    with pytest.raises(TypeError, match=r"^reshape: missing attribute: shape"):
        infer("reshape", [F], {})


def test_module_is_a_collection_of_kinds():
    assert list(stagedad.ops) == list(OPS)
    assert len(stagedad.ops) == len(OPS)
    assert "multiply" in stagedad.ops
    assert "unheard_of" not in stagedad.ops
    assert 3 not in stagedad.ops
    assert stagedad.ops["multiply"] is OPS["mul"]


def test_import_needs_neither_toml_nor_samples():
    code = (
        "import sys, stagedad.ops; "
        "print(*sorted({'tomllib', 'ast', 'stagedad.ops.samples', 'stagedad.ops.loader'} "
        "& set(sys.modules) - before))"
    )
    code = "import numpy, sys; before = set(sys.modules); " + code
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""
