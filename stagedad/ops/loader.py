"""From declarations (TOML) to checked entries, as plain literals.

Runs when the package is built and when a user adds an op.  Whatever is wrong
raises DeclarationError with file, entry, key, line and column: a declaration
that loads has names that resolve, calls of the right arity, and one rule for
every tensor argument.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from stagedad.errors import DeclarationError, suggestion
from stagedad.ops import (  # noqa: F401 (register macros)
    fft_macros,
    linalg_macros,
    macros,
    sequence_macros,
)
from stagedad.ops.expression import BINARY, ExpressionError, Scope, Signature, parse
from stagedad.ops.op import Formula
from stagedad.ops.rules import RULES as TYPE_RULES

Entry: TypeAlias = "dict[str, Any]"

RULES = ("zero", "non_differentiable", "not_implemented")
TRAITS = (
    "commutative", "comparison", "elementwise", "linear", "multilinear", "random",
    "reduction", "singular", "stepwise", "view",
)  # fmt: skip
VARIANTS = ("functional", "inplace", "out")
FLAGS = {"singular": bool, "complex": bool, "may_fail": bool, "random": bool}
FACTS = {"batch": str, "effect": str, "forwards": str, "source": str, "notes": str}
KEYS: dict[str, type | tuple[type, ...]] = {
    "signature": str, "type": str, "numpy": str, "aliases": list, "expr": str,
    "flops": (int, str), "traits": list, "variants": list, "view_of": str, "points": list,
    "partial": dict, "vjp": (dict, str), "jvp": str, "domain": dict, **FLAGS, **FACTS,
}  # fmt: skip


def load(paths: Iterable[Path]) -> dict[str, Entry]:
    """Return the entries of the files at `paths`, by kind, checked against each other.

    Raises: DeclarationError at the first thing that is wrong.
    """
    return load_texts({path.name: path.read_text(encoding="utf-8") for path in paths})


def load_texts(texts: Mapping[str, str]) -> dict[str, Entry]:
    """Return the entries of `texts` (file name -> TOML), as `load` does."""
    drafts: dict[str, _Draft] = {}
    for file, text in texts.items():
        for kind, raw in _read(file, text).items():
            draft = _Draft(file, text, kind, raw)
            if kind in drafts:
                draft.fail("signature", f"declared in {drafts[kind].file} already")
            drafts[kind] = draft
    for draft in drafts.values():
        draft.check_keys()
        draft.read_signature()
    _check_aliases(drafts)
    ops = {kind: draft.call_signature() for kind, draft in drafts.items()}
    entries = {kind: draft.entry(ops) for kind, draft in drafts.items()}
    for kind, order in _orders(entries).items():
        entries[kind]["max_order"] = order
    return entries


def _read(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = map(int, place.groups()) if place else (None, None)
        where = f"{file}:{line}:{column}" if place else file
        problem = f"{where}: not TOML: {str(error).split(' (at')[0]}"
        raise DeclarationError(problem, file=file, line=line, column=column) from None


def _check_aliases(drafts: Mapping[str, _Draft]) -> None:
    owner: dict[str, str] = {}
    for kind, draft in drafts.items():
        for alias in draft.raw.get("aliases", ()):
            if alias in drafts or alias in owner:
                draft.fail("aliases", f"'{alias}' names {owner.get(alias, alias)} already")
            owner[alias] = kind


def _orders(entries: Mapping[str, Entry]) -> dict[str, int | None]:
    """Return how often each op can be differentiated; None: without end.

    An op has one order more than the least of those that its formulas emit.  The
    greatest fixed point is wanted (exp emits itself), so all start without end.
    """
    orders: dict[str, float] = dict.fromkeys(entries, float("inf"))
    rules = {
        kind: [rule for _, _, rule in entry["arguments"]] for kind, entry in entries.items()
    }
    uses = {kind: _uses(entry) for kind, entry in entries.items()}
    changed = True
    while changed:
        changed = False
        for kind in entries:
            if "not_implemented" in rules[kind]:
                order = 0.0
            else:
                order = 1 + min((orders[use] for use in uses[kind]), default=float("inf"))
            if order < orders[kind]:
                orders[kind], changed = order, True
    return {
        kind: None if order == float("inf") else int(order) for kind, order in orders.items()
    }


def _uses(entry: Entry) -> set[str]:
    formulas = [*entry["partials"].values(), *entry["vjps"].values()]
    if isinstance(entry["jvp"], tuple):
        formulas.append(entry["jvp"])
    return {use for _, _, _, uses in formulas for use in uses}


class _Draft:
    """One entry while it is checked."""

    def __init__(self, file: str, text: str, kind: str, raw: Any) -> None:
        self.file, self.text, self.kind, self.raw = file, text, kind, raw
        if not isinstance(raw, dict):
            self.fail(None, "not an entry: keys stand below a [name]")

    def fail(
        self, key: str | None, problem: str, hint: str | None = None, offset: int | None = None
    ) -> NoReturn:
        """Raise the error, pointing at `offset` of the value of `key`."""
        line, column = _place(self.text, self.kind, key, offset)
        where = f"{self.kind}: {key}" if key else self.kind
        raise DeclarationError(
            f"{self.file}:{line}:{column}: {where}: {problem}",
            op=self.kind, hint=hint, file=self.file, entry=self.kind, key=key,
            line=line, column=column,
        )  # fmt: skip

    def check_keys(self) -> None:
        """Check that every key is known and of its type, and names known things."""
        for key, value in self.raw.items():
            if key not in KEYS:
                self.fail(key, "unknown key", suggestion(key, KEYS))
            expected = KEYS[key]
            if not isinstance(value, expected) or (isinstance(value, bool) and key == "flops"):
                self.fail(key, f"wrong type: {type(value).__name__}")
        if not self.kind.isidentifier():
            self.fail(None, "not a name")
        for key, known in (("traits", TRAITS), ("variants", VARIANTS)):
            for name in self.raw.get(key, ()):
                if name not in known:
                    self.fail(key, f"unknown: {name!r}", suggestion(str(name), known))
        for alias in self.raw.get("aliases", ()):
            if not isinstance(alias, str):
                self.fail("aliases", f"not a name: {alias!r}")
        self.type_rule = self.raw.get("type", self.kind)
        if self.type_rule not in TYPE_RULES:
            key = "type" if "type" in self.raw else "signature"
            self.fail(
                key,
                f"no type rule '{self.type_rule}'",
                suggestion(self.type_rule, TYPE_RULES),
            )

    def read_signature(self) -> None:
        """Read operands, attributes and results from `kind(self, *, axis=None) -> result`."""
        text = self.raw.get("signature")
        if text is None:
            self.fail(None, "missing signature")
        try:
            definition = ast.parse(f"def {text}: pass").body[0]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            offset = max((getattr(error, "offset", None) or 5) - 5, 0)
            self.fail(
                "signature",
                "not a signature",
                "as 'name(self, *, axis=None) -> result'",
                offset,
            )
        if not isinstance(definition, ast.FunctionDef) or definition.name != self.kind:
            self.fail("signature", f"is not of '{self.kind}'")
        spec = definition.args
        if spec.posonlyargs or spec.kwarg or spec.defaults:
            self.fail("signature", "operands have no defaults; attributes stand after *")
        self.operands = [(argument.arg, False) for argument in spec.args]
        if spec.vararg:
            self.operands.append((spec.vararg.arg, True))
        self.attributes: list[tuple[str, tuple[Any, ...]]] = []
        for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            try:
                value = () if default is None else (ast.literal_eval(default),)
            except (ValueError, RecursionError, MemoryError):
                self.fail("signature", f"default of '{argument.arg}' is not a literal")
            self.attributes.append((argument.arg, value))
        self.results = self._read_results(definition.returns)
        names = [name for name, _ in (*self.operands, *self.attributes)] + self.results
        for name in names:
            if names.count(name) > 1:
                self.fail("signature", f"'{name}' twice")
            if name == "g" or name.startswith("g_") or name.endswith("_t"):
                self.fail("signature", f"'{name}' means a cotangent or tangent")

    def _read_results(self, returns: ast.expr | None) -> list[str]:
        parts = returns.elts if isinstance(returns, ast.Tuple) else [returns]
        self.returns_list = len(parts) == 1 and isinstance(parts[0], ast.Starred)
        named = [part.value if isinstance(part, ast.Starred) else part for part in parts]
        names = [part.id for part in named if isinstance(part, ast.Name)]
        stars = sum(isinstance(part, ast.Starred) for part in parts)
        if len(names) < len(parts) or not names or stars > self.returns_list:
            self.fail("signature", "results are named: -> result, -> (q, r) or -> (*parts,)")
        return names

    def call_signature(self) -> Signature:
        """Return how formulas call this op."""
        count = len(self.operands)
        has_list = any(is_list for _, is_list in self.operands)
        required = frozenset(name for name, default in self.attributes if not default)
        names = tuple(name for name, _ in self.attributes)
        return Signature((count, None if has_list else count), names, required)

    def entry(self, ops: Mapping[str, Signature]) -> Entry:
        """Return the checked entry: the fields of `Op` as literals."""
        raw = self.raw
        partials, vjps, rules = self._derivatives(ops)
        jvp = self._jvp(ops, partials, rules)
        traits = set(raw.get("traits", ()))
        traits |= {key for key in ("singular", "random", "effect") if raw.get(key)}
        if self.type_rule in ("elementwise", "scaled_sum"):
            traits.add("elementwise")
        if "elementwise" in traits and not {"expr", "flops"} <= raw.keys():
            self.fail(None, "an elementwise op needs expr and flops")
        if raw.get("singular") and not partials:
            self.fail("singular", "means partials, and there are none")
        if "view_of" in raw and raw["view_of"] not in dict(self.operands):
            self.fail("view_of", f"no argument '{raw['view_of']}'")
        return {
            "kind": self.kind,
            "family": self.file.removesuffix(".toml"),
            "arguments": tuple(
                (name, is_list, rules.get(name, "zero")) for name, is_list in self.operands
            ),
            "attributes": tuple(self.attributes),
            "results": tuple(self.results),
            "returns_list": self.returns_list,
            "type_rule": self.type_rule,
            "numpy": raw.get("numpy"),
            "expr": raw.get("expr"),
            "traits": tuple(sorted(traits)),
            "partials": {name: _literal(formula) for name, formula in partials.items()},
            "vjps": {name: _literal(formula) for name, formula in vjps.items()},
            "jvp": _literal(jvp) if isinstance(jvp, Formula) else jvp,
            "is_complex": raw.get("complex", False),
            "flops": self._flops(),
            "points": self._points(),
            "domain": self._domain(),
            "aliases": tuple(raw.get("aliases", ())),
            "variants": tuple(raw.get("variants", ("functional",))),
            "view_of": raw.get("view_of"),
            "facts": {key: raw[key] for key in (*FACTS, "may_fail") if key in raw},
        }

    def _derivatives(
        self, ops: Mapping[str, Signature]
    ) -> tuple[dict[str, Formula], dict[str, Formula], dict[str, str]]:
        """Return partials, vjps and the rule of each tensor argument."""
        given = self.raw.get("vjp", {})
        if isinstance(given, str):
            if given not in RULES:
                self.fail("vjp", "is for all arguments one of " + ", ".join(RULES))
            given = {name: given for name, _ in self.operands}
        parts = {"partial": self.raw.get("partial", {}), "vjp": given}
        names = [name for name, _ in self.operands]
        found: dict[str, dict[str, Formula]] = {"partial": {}, "vjp": {}}
        rules: dict[str, str] = {}
        for section, formulas in parts.items():
            for name, text in formulas.items():
                key = f"{section}.{name}"
                if name not in names:
                    self.fail(key, f"no tensor argument '{name}'", suggestion(name, names))
                if name in rules:
                    self.fail(key, f"'{name}' has a rule already")
                if not isinstance(text, str):
                    self.fail(key, f"wrong type: {type(text).__name__}")
                if text in RULES:
                    rules[name] = text
                else:
                    rules[name] = "formula"
                    found[section][name] = self._cotangent(key, text, section, ops)
        for name in names:
            if name not in rules:
                hint = "one of partial, vjp, zero, non_differentiable, not_implemented"
                self.fail(None, f"no rule for argument '{name}'", hint)
        if found["partial"] and found["vjp"]:
            self.fail("vjp", "formulas beside partials")
        if found["partial"] and any(is_list for _, is_list in self.operands):
            self.fail("partial", "of an op that takes a list")
        return found["partial"], found["vjp"], rules

    def _cotangent(
        self, key: str, text: str, section: str, ops: Mapping[str, Signature]
    ) -> Formula:
        cotangents: set[str] = set()
        if section == "vjp":
            many = len(self.results) > 1
            cotangents = {f"g_{name}" for name in self.results} if many else {"g"}
        formula, mentioned = self._formula(key, text, cotangents, ops)
        for name in sorted(cotangents - mentioned):
            self.fail(key, f"never uses '{name}'", "the gradient of that result would be lost")
        return formula

    def _jvp(
        self,
        ops: Mapping[str, Signature],
        partials: Mapping[str, Formula],
        rules: Mapping[str, str],
    ) -> Formula | str | None:
        text = self.raw.get("jvp")
        active = [name for name, rule in rules.items() if rule == "formula"]
        if text is None:
            if active and not partials:
                self.fail(None, "no jvp", 'a formula, or "linear"')
            return None
        if partials or not active:
            self.fail("jvp", "follows from the partials" if partials else "without a vjp")
        if text == "linear":
            if "linear" not in self.raw.get("traits", ()):
                self.fail("jvp", "of an op without the trait linear")
            return "linear"
        tangents = {f"{name}_t" for name in active}
        formula, mentioned = self._formula("jvp", text, tangents, ops)
        for name in sorted(tangents - mentioned):
            self.fail("jvp", f"never uses '{name}'")
        return formula

    def _formula(
        self, key: str, text: str, gradients: set[str], ops: Mapping[str, Signature]
    ) -> tuple[Formula, frozenset[str]]:
        scope = Scope(
            frozenset(name for name, _ in self.operands) | frozenset(self.results),
            frozenset(name for name, _ in self.attributes),
            frozenset(gradients),
            ops,
            MACROS,
        )
        try:
            return parse(text, scope)
        except ExpressionError as error:
            self.fail(key, error.problem, error.hint, error.offset)

    def _flops(self) -> int | tuple[Any, ...] | None:
        """Return the number of operations an element, or the formula for those of a node."""
        given: int | str | None = self.raw.get("flops")
        if not isinstance(given, str):
            if given is not None and given < 0:
                self.fail("flops", f"negative: {given}")
            return given
        tensors = frozenset(name for name, _ in self.operands) | frozenset(self.results)
        others = frozenset(name for name, _ in self.attributes)
        arithmetic = {kind: Signature((2, 2)) for kind in BINARY.values()}
        scope = Scope(tensors, others, frozenset(), arithmetic, METADATA_MACROS)
        try:
            formula, _ = parse(given, scope)
        except ExpressionError as error:
            self.fail("flops", error.problem, error.hint, error.offset)
        for name in sorted(formula.reads):
            self.fail("flops", f"reads the value of '{name}'", "sizes and shapes only")
        return _literal(formula)

    def _points(self) -> tuple[dict[str, Any], ...]:
        names = {name for name, _ in self.operands}
        for point in self.raw.get("points", ()):
            if not isinstance(point, dict) or not {"at", "gradient"} <= point.keys():
                self.fail("points", "a point has at and gradient")
            unknown = point.keys() - {"at", "gradient", "attributes", "cotangent"}
            if unknown:
                self.fail("points", f"unknown: {', '.join(sorted(unknown))}")
            if set(point["at"]) != names or not set(point["gradient"]) <= names:
                self.fail("points", f"is not about {', '.join(sorted(names))}")
        points: tuple[dict[str, Any], ...] = _finite(tuple(self.raw.get("points", ())))
        return points

    def _domain(self) -> dict[str, tuple[float, float]]:
        names = [name for name, _ in self.operands]
        for name, bounds in self.raw.get("domain", {}).items():
            if name not in names:
                self.fail(f"domain.{name}", f"no argument '{name}'", suggestion(name, names))
            if not isinstance(bounds, list) or len(bounds) != 2:
                self.fail(f"domain.{name}", "is not [low, high]")
        return {name: tuple(bounds) for name, bounds in self.raw.get("domain", {}).items()}


def _finite(value: Any) -> Any:
    """Return nested literals with inf and nan, which are none, as text."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_finite, value))
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def _literal(formula: Formula) -> tuple[Any, ...]:
    """Return `formula` as the table holds it."""
    reads, uses = tuple(sorted(formula.reads)), tuple(sorted(formula.uses))
    return (formula.text, formula.tree, reads, uses)


def _place(text: str, kind: str, key: str | None, offset: int | None) -> tuple[int, int]:
    """Return line and column, from 1, of a key or of `offset` in its value.

    tomllib keeps no places, so the text is searched: for the header, then the key.
    """
    lines = text.splitlines()
    header = re.compile(rf"\s*\[\s*[\"']?{re.escape(kind)}[\"']?\s*(\.\s*([\w.]+)\s*)?\]")
    number, section = 0, ""
    found: tuple[int, int] | None = None
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("["):
            match = header.match(line)
            section = (f"{match[2]}." if match and match[2] else "") if match else "?"
            if match and found is None:
                found = (number, 1)
        elif key is not None and section != "?" and found:
            match = re.match(r"\s*([\w.\"']+)\s*=\s*([\"']{0,3})", line)
            if match and section + re.sub(r"[\"' ]", "", match[1]) == key:
                start = match.start(1) if offset is None else match.end() + offset
                return number, start + 1
    return found or (1, 1)


def _macros() -> dict[str, Signature]:
    """Return how the macros are called, from their Python signatures."""
    result = {}
    for name, macro in macros.MACROS.items():
        count = len(inspect.signature(macro.function).parameters) - macro.implicit
        result[name] = Signature((count, count), uses=frozenset(macro.uses))
    return result


MACROS = _macros()
METADATA_MACROS = {
    name: signature for name, signature in MACROS.items() if macros.MACROS[name].implicit == 0
}
