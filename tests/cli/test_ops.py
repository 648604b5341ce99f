"""Tests of cli/ops.py."""

import json
import tomllib

import pytest

from stagedad.cli import ops as listing
from stagedad.ops.build import DECLARATIONS
from stagedad.ops.derivatives import RULES
from stagedad.ops.registry import scipy_ops
from stagedad.ops.table import TABLE

DECLARED = {
    kind: {"family": path.stem, **entry}
    for path in sorted(DECLARATIONS.rglob("*.toml"))
    for kind, entry in tomllib.loads(path.read_text()).items()
}


def test_every_op_has_a_line(call):
    result = call("ops")
    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert head.split() == list(listing._COLUMNS)
    assert {line.split()[0] for line in lines} >= {*TABLE, *scipy_ops()}
    assert "\x1b" not in result.stdout
    (line,) = [line for line in lines if line.startswith("max ")]
    assert line.split()[:7] == [
        "max", "reduction", "biufc", "reverse,forward", "every", "3", "numpy.max",
    ]  # fmt: skip
    assert line.endswith("  max(self, *, axis=None, keepdims=False) -> result")
    (line,) = [line for line in lines if line.startswith("floor ")]
    assert line.split()[2:5] == ["biuf", "zero", "every"]


@pytest.mark.parametrize("kind", DECLARED)
def test_facts_are_those_of_the_declarations(kind):
    entry = DECLARED[kind]
    found = listing.record(listing.every_op()[kind])
    assert found["signature"] == entry["signature"]
    assert found["family"] == entry["family"]
    assert found["aliases"] == entry.get("aliases", [])
    assert found["flops"] == entry.get("flops")
    assert len(found["points"]) == len(entry.get("points", []))
    given = entry.get("vjp", {})
    if isinstance(given, dict):
        rules = {f"vjp.{name}": text for name, text in given.items()}
        rules |= {f"partial.{name}": text for name, text in entry.get("partial", {}).items()}
        by_name = {
            key.replace("partial.", "vjp.") if text in RULES else key: text
            for key, text in rules.items()
        }
        assert {k: v for k, v in found["derivatives"].items() if k != "jvp"} == by_name
    else:
        assert set(found["derivatives"].values()) <= {given}
    assert found["derivatives"].get("jvp") == entry.get("jvp")


def test_one_op_is_shown_whole(call):
    text = call("ops", "div").stdout
    head, *lines = text.splitlines()
    assert head == "div(self, other) -> result"
    facts = dict(line.split(maxsplit=1) for line in lines if line)
    assert facts["function"] == "numpy.divide"
    assert facts["aliases"] == "divide true_divide"
    assert facts["partial.other"] == "-result / other"
    assert facts["expression"] == "a / b"
    assert "for cotangent 0.0: gradient self=0.0, other=0.0" in facts["point"]


@pytest.mark.parametrize(
    ("name", "kind"), [("multiply", "mul"), ("digamma", "psi"), ("jn", "jv")]
)
def test_aliases_name_ops(call, name, kind):
    assert call("ops", name).stdout.startswith(f"{kind}(self")


def test_parameters_without_a_derivative_are_listed(call):
    text = call("ops", "betainc").stdout
    assert "vjp.a      not_implemented" in text
    assert "modes      reverse, forward" in text
    assert "modes     no derivative" in call("ops", "riemann_zeta").stdout


def test_json_is_for_programs(call):
    records = json.loads(call("ops", "--json").stdout)
    assert {each["op"] for each in records} >= {*TABLE, *scipy_ops()}
    one = json.loads(call("ops", "sub", "--json").stdout)
    assert one == next(each for each in records if each["op"] == "sub")
    assert one["signature"] == "sub(self, other, *, alpha=1) -> result"
    assert one["derivatives"] == {"partial.self": "1", "partial.other": "-alpha"}
    assert one["orders"] is None
    assert "b1" not in one["dtypes"]


def test_the_page_has_every_op_and_formula(call):
    page = call("ops", "--markdown").stdout
    for kind, entry in DECLARED.items():
        assert f"\n### {kind}\n\n    {entry['signature']}\n" in page
    assert "\n- `partial.other = -result / other`\n" in page
    assert page.count("\n## ") == len({entry["family"] for entry in DECLARED.values()}) + (
        "\n## registered\n" in page
    )


@pytest.mark.parametrize(
    ("name", "near"), [("sinn", "did you mean 'sin'?"), ("digama", "did you mean 'digamma'?"),
                       ("zzzzz", "`stagedad ops` lists them")]
)  # fmt: skip
def test_unknown_names(call, refusal, name, near):
    assert call("ops", name).exit_code == 2
    assert refusal("ops", name) == f"Error: no op '{name}': {near}"
