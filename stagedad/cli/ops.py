"""`stagedad ops`: what the table of ops says, as text, JSON or a page of Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

from stagedad.errors import suggestion
from stagedad.ops import REQUIRED, Op
from stagedad.ops.op import Formula
from stagedad.ops.registry import find, load_scipy, scipy_ops
from stagedad.ops.samples import samples
from stagedad.ops.table import OPS
from stagedad.types import CODES

_COLUMNS = ("op", "family", "dtypes", "modes", "orders", "points", "function", "signature")
_SPECIAL = "scipy.special"


def print_ops(name: str | None, form: str) -> None:
    """Print all ops, or the one called `name`, as `form`: text, json or markdown.

    Raises: click.UsageError, which exits with 2, if there is no such op.
    """
    ops = every_op()
    if name is not None:
        kind = find(name) or name
        kind = next((op.kind for op in ops.values() if kind in op.aliases), kind)
        if kind not in ops:
            names = [*ops, *(alias for op in ops.values() for alias in op.aliases)]
            near = suggestion(name, names) or "`stagedad ops` lists them"
            raise click.UsageError(f"no op '{name}': {near}")
        ops = {kind: ops[kind]}
    records = [record(op) for op in ops.values()]
    if form == "json":
        click.echo(json.dumps(records if name is None else records[0], indent=2))
    elif form == "markdown":
        click.echo("\n".join(page(records)))
    elif name is None:
        click.echo("\n".join(_table(records)))
    else:
        click.echo("\n".join(_whole(records[0])))


def every_op() -> dict[str, Op]:
    """Return all ops by kind, those of SciPy too where it is not installed."""
    load_scipy()
    missing = {kind: op for kind, op in scipy_ops().items() if kind not in OPS}
    return {**OPS, **missing}


def record(op: Op) -> dict[str, Any]:
    """Return what is known of `op` as JSON has it."""
    return {
        "op": op.kind,
        "family": op.family,
        "signature": signature(op),
        "function": _function(op),
        "aliases": list(op.aliases),
        "dtypes": dtypes(op),
        "modes": modes(op),
        "orders": op.max_order,
        "complex": op.is_complex,
        "singular": "singular" in op.traits,
        "traits": sorted(op.traits),
        "derivatives": derivatives(op),
        "points": [_point(point) for point in op.points],
        "domain": {name: list(bounds) for name, bounds in op.domain.items()},
        "expression": op.expr,
        "flops": op.flops.text if isinstance(op.flops, Formula) else op.flops,
        **{key: value for key, value in op.facts.items() if key in ("notes", "source")},
    }


def signature(op: Op) -> str:
    """Return how a call of `op` is written, as its declaration says it."""
    operands = [f"*{each.name}" if each.is_list else each.name for each in op.arguments]
    attributes = [
        name if default is REQUIRED else f"{name}={default!r}"
        for name, default in op.attributes.items()
    ]
    has_list = any(each.is_list for each in op.arguments)
    star = ["*"] if attributes and not has_list else []
    results = [f"*{name}" if op.returns_list else name for name in op.results]
    many = op.returns_list or len(results) > 1
    returns = (
        f"({', '.join(results)}{',' if len(results) == 1 else ''})" if many else results[0]
    )
    return f"{op.kind}({', '.join([*operands, *star, *attributes])}) -> {returns}"


def dtypes(op: Op) -> list[str] | None:
    """Return the dtypes that operands may have; None where only a call would tell."""
    if op.kind not in OPS or op.is_registered:
        return None
    return [code for code, dtype in CODES.items() if samples(op.kind, dtype)]


def modes(op: Op) -> list[str]:
    """Return the modes that `op` is differentiated in."""
    if op.is_differentiable:
        return ["reverse", "forward"]
    rules = {argument.rule for argument in op.arguments}
    return ["zero"] if rules == {"zero"} else []


def derivatives(op: Op) -> dict[str, str]:
    """Return the formulas and rules by the keys of the declarations."""
    found = {}
    for argument in op.arguments:
        key, formula = f"partial.{argument.name}", op.partials.get(argument.name)
        if formula is None:
            key, formula = f"vjp.{argument.name}", op.vjps.get(argument.name)
        found[key] = argument.rule if formula is None else formula.text
    if op.jvp is not None:
        found["jvp"] = op.jvp.text if isinstance(op.jvp, Formula) else op.jvp
    return found


def page(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a page about ops, by family."""
    lines = [
        "# Ops",
        "",
        "Printed by `stagedad ops --markdown` from the declarations. `orders` is how often an",
        "op can be differentiated; a formula names operands, attributes, `result`, the",
        "cotangent `g` and tangents `NAME_t`.",
    ]
    families: dict[str, list[Mapping[str, Any]]] = {}
    for each in records:
        families.setdefault(each["family"], []).append(each)
    for family, members in families.items():
        lines += ["", f"## {family}"]
        for each in members:
            lines += ["", f"### {each['op']}", "", f"    {each['signature']}", ""]
            lines += [f"- {key}: {_code(key, value)}" for key, value in _facts(each)]
            lines += [f"- `{key} = {value}`" for key, value in each["derivatives"].items()]
    return lines


def _code(key: str, value: str) -> str:
    return f"`{value}`" if key in ("function", "expression", "flops") else value


def _function(op: Op) -> str | None:
    if op.numpy is not None:
        return f"numpy.{op.numpy}"
    return f"{_SPECIAL}.{op.scipy}" if op.scipy and op.kind in scipy_ops() else None


def _point(point: Mapping[str, Any]) -> str:
    parts = [f"at {_pairs(point['at'])}"]
    if point.get("attributes"):
        parts.append(f"with {_pairs(point['attributes'])}")
    if "cotangent" in point:
        parts.append(f"for cotangent {point['cotangent']!r}")
    return f"{' '.join(parts)}: gradient {_pairs(point['gradient'])}"


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _orders(each: Mapping[str, Any]) -> str:
    return "every" if each["orders"] is None else str(each["orders"])


def _facts(each: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what there is to say of an op besides its signature and formulas."""
    known = each["dtypes"]
    facts = {
        "function": each["function"],
        "aliases": " ".join(each["aliases"]),
        "dtypes": "what its function takes" if known is None else " ".join(known),
        "modes": ", ".join(each["modes"]) or "no derivative",
        "orders": _orders(each),
        "complex": "the derivative holds for complex operands" if each["complex"] else "",
        "singular": "the partial can be infinite" if each["singular"] else "",
        "traits": " ".join(each["traits"]),
        "expression": each["expression"],
        "flops": "" if each["flops"] is None else str(each["flops"]),
        "notes": each.get("notes"),
    }
    return [
        *((key, value) for key, value in facts.items() if value),
        *(("point", point) for point in each["points"]),
    ]


def _table(records: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [[*_COLUMNS]] + [_row(each) for each in records]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return [click.style(lines[0], bold=True), *lines[1:]]


def _row(each: Mapping[str, Any]) -> list[str]:
    known = each["dtypes"]
    codes = "?" if known is None else "".join(dict.fromkeys(code[0] for code in known))
    return [
        each["op"],
        each["family"],
        codes,
        ",".join(each["modes"]) or "none",
        _orders(each),
        str(len(each["points"])),
        each["function"] or "-",
        each["signature"],
    ]


def _whole(each: Mapping[str, Any]) -> list[str]:
    facts = _facts(each)
    lines = [click.style(each["signature"], bold=True), ""]
    width = max(len(key) for key, _ in (*facts, *each["derivatives"].items()))
    lines += [f"{key.ljust(width)}  {value}" for key, value in facts]
    return [*lines, "", *(f"{k.ljust(width)}  {v}" for k, v in each["derivatives"].items())]
