"""One declaration while it is checked: its keys, its signature, its formulas."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NoReturn, TypeAlias

from stagedad.errors import DeclarationError, suggestion
from stagedad.ops.calls import MACROS, METADATA_MACROS, Entry, call_signature
from stagedad.ops.expression import (
    BINARY,
    PARSING,
    ExpressionError,
    Scope,
    Signature,
    parse,
)
from stagedad.ops.op import Formula
from stagedad.ops.rules import RULES as TYPE_RULES

Place: TypeAlias = "Callable[[str | None, int | None], tuple[int, int]]"

RULES = ("zero", "non_differentiable", "not_implemented")
TRAITS = (
    "commutative", "comparison", "elementwise", "linear", "multilinear", "random",
    "reduction", "singular", "stepwise", "view",
)  # fmt: skip
ELEMENTWISE = ("elementwise", "scaled_sum", "any_ufunc", "called")
"""Type rules of ops that work element by element."""
VARIANTS = ("functional", "inplace", "out")
FLAGS = {"singular": bool, "complex": bool, "may_fail": bool, "random": bool}
FACTS = {"batch": str, "effect": str, "forwards": str, "source": str, "notes": str}
KEYS: dict[str, type | tuple[type, ...]] = {
    "signature": str, "type": str, "numpy": str, "scipy": str, "aliases": list, "expr": str,
    "flops": (int, str), "traits": list, "variants": list, "view_of": str, "points": list,
    "partial": dict, "vjp": (dict, str), "jvp": str, "domain": dict, **FLAGS, **FACTS,
}  # fmt: skip


class Draft:
    """One entry while it is checked.

    `place` gives line and column of a key, or of an offset in its value; `is_call` is
    whether the entry is of a call in Python, which has no C expression.
    """

    def __init__(
        self, file: str, kind: str, raw: Any, place: Place, *, is_call: bool = False
    ) -> None:
        self.file, self.kind, self.raw = file, kind, raw
        self.place, self.is_call = place, is_call
        if not isinstance(raw, dict):
            self.fail(None, "not an entry: keys stand below a [name]")

    def fail(
        self, key: str | None, problem: str, hint: str | None = None, offset: int | None = None
    ) -> NoReturn:
        """Raise the error, pointing at `offset` of the value of `key`."""
        line, column = self.place(key, offset)
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
            with PARSING:
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
        arguments = [(name, is_list, "") for name, is_list in self.operands]
        return call_signature({"arguments": arguments, "attributes": self.attributes})

    def entry(self, ops: Mapping[str, Signature]) -> Entry:
        """Return the checked entry: the fields of `Op` as literals."""
        raw = self.raw
        partials, vjps, rules = self._derivatives(ops)
        jvp = self._jvp(ops, partials, rules)
        traits = set(raw.get("traits", ()))
        traits |= {key for key in ("singular", "random", "effect") if raw.get(key)}
        if self.type_rule in ELEMENTWISE:
            traits.add("elementwise")
        has_c = "scipy" not in raw and not self.is_call
        if "elementwise" in traits and has_c and not {"expr", "flops"} <= raw.keys():
            self.fail(None, "an elementwise op needs expr and flops")
        if partials and "elementwise" not in traits:
            self.fail("partial", "of an op that is not elementwise", "vjp and jvp")
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
            "scipy": raw.get("scipy"),
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
        if found["partial"] and (self.returns_list or len(self.results) > 1):
            self.fail("partial", "of an op with several results", "vjp and jvp")
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
        count = len(self.results)
        is_tuple = formula.tree[0] == "tuple" and len(formula.tree[1]) == count
        if count > 1 and not is_tuple and formula.tree[0] != "macro":  # which gives a tuple
            self.fail("jvp", f"no tuple of {count} tangents, one a result")
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
            found = error
        self.fail(key, found.problem, found.hint, found.offset)

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
