"""From declarations (TOML) to checked entries, as plain literals.

Runs when the package is built and when a user adds an op.  Whatever is wrong
raises DeclarationError with file, entry, key, line and column: a declaration
that loads has names that resolve, calls of the right arity, and one rule for
every tensor argument.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from stagedad.errors import DeclarationError, suggestion
from stagedad.ops import (  # noqa: F401 (register macros)
    fft_macros,
    linalg_macros,
    macros,
    sequence_macros,
)
from stagedad.ops.expression import (
    ARRAY,
    BINARY,
    ExpressionError,
    Scope,
    Signature,
    gives,
    parse,
    read,
)
from stagedad.ops.literals import check_c, check_numpy, is_array, problem_of_literal
from stagedad.ops.op import Formula
from stagedad.ops.places import Places
from stagedad.ops.rules import RULES as TYPE_RULES
from stagedad.ops.toml import read_toml, texts_of

Entry: TypeAlias = "dict[str, Any]"

RULES = ("zero", "non_differentiable", "not_implemented")
TRAITS = (
    "commutative", "comparison", "elementwise", "linear", "multilinear", "random",
    "reduction", "singular", "stepwise", "view",
)  # fmt: skip
VARIANTS = ("functional", "inplace", "out")
OUTPUTS = ("differentiable", "integral", "boolean", "aux", "detached")
FLAGS = {"singular": bool, "complex": bool, "may_fail": bool, "random": bool}
FACTS = {"batch": str, "effect": str, "forwards": str, "source": str, "notes": str}
KEYS: dict[str, type | tuple[type, ...]] = {
    "signature": str, "type": str, "numpy": str, "aliases": list, "expr": str,
    "flops": (int, str), "traits": list, "variants": list, "view_of": str, "points": list,
    "partial": dict, "vjp": (dict, str), "jvp": str, "domain": dict, "outputs": dict,
    **FLAGS, **FACTS,
}  # fmt: skip


def load(paths: Iterable[Path]) -> dict[str, Entry]:
    """Return the entries of the files at `paths`, by kind, checked against each other.

    Raises: DeclarationError at the first thing that is wrong.
    """
    return load_texts(texts_of(paths))


def load_texts(texts: Mapping[str, str]) -> dict[str, Entry]:
    """Return the entries of `texts` (file name -> TOML), as `load` does."""
    drafts: dict[str, _Draft] = {}
    for file, text in texts.items():
        for kind, raw in read_toml(file, text).items():
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
                # An auxiliary result has no derivative, so that what reads it has none more.
                order = min(order, 1.0 if _reads_aux(entries[kind]) else inf)
            if order < orders[kind]:
                orders[kind], changed = order, True
    return {
        kind: None if order == float("inf") else int(order) for kind, order in orders.items()
    }


def _uses(entry: Entry) -> set[str]:
    return {use for _, _, _, uses in _formulas(entry) for use in uses}


def _reads_aux(entry: Entry) -> bool:
    kinds = entry["facts"].get("outputs", {})
    reads = {name for _, _, reads, _ in _formulas(entry) for name in reads}
    return any(kinds.get(name) == "aux" for name in reads)


def _formulas(entry: Entry) -> list[tuple[Any, ...]]:
    formulas = [*entry["partials"].values(), *entry["vjps"].values()]
    return [*formulas, entry["jvp"]] if isinstance(entry["jvp"], tuple) else formulas


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
        path = (self.kind, *key.split(".", 1)) if key else (self.kind,)
        line, column = Places(self.text).find(path, offset)
        names = [self.kind, key] if key else [self.kind]
        where = ": ".join(name if name.isprintable() else ascii(name) for name in names)
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
        if self.kind in MACROS:
            self.fail(None, "is the name of a macro, which formulas mean by it")
        for key, known in (("traits", TRAITS), ("variants", VARIANTS)):
            names = self.raw.get(key, ())
            for name in names:
                if name not in known:
                    self.fail(key, f"unknown: {name!r}", suggestion(str(name), known))
                if names.count(name) > 1:
                    self.fail(key, f"{name!r} twice")
        for alias in self.raw.get("aliases", ()):
            if not isinstance(alias, str) or not alias.isidentifier():
                self.fail("aliases", f"not a name: {alias!r}")
        if "numpy" in self.raw:
            self.checked("numpy", check_numpy, self.raw["numpy"])
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
        hint = "as 'name(self, *, axis=None) -> result'"
        try:
            (definition,) = vars(read(text, "exec", "def ", ": pass"))["body"]
            (body,) = definition.body
        except ExpressionError as error:
            self.fail("signature", f"not a signature: {error.problem}", hint, error.offset)
        except ValueError:  # there is more than a signature
            self.fail("signature", "not a signature", hint)
        if not isinstance(body, ast.Pass) or getattr(definition, "type_params", None):
            self.fail("signature", "not a signature", hint)
        if definition.name != self.kind:
            self.fail("signature", f"is not of '{self.kind}'")
        spec = definition.args
        for argument in (*spec.args, *spec.kwonlyargs, *filter(None, [spec.vararg])):
            if argument.annotation:
                self.fail("signature", f"'{argument.arg}' has an annotation", hint)
        if spec.posonlyargs or spec.kwarg or spec.defaults:
            self.fail("signature", "operands have no defaults; attributes stand after *")
        self.operands = [(argument.arg, False) for argument in spec.args]
        if spec.vararg:
            self.operands.append((spec.vararg.arg, True))
        self.attributes: list[tuple[str, tuple[Any, ...]]] = []
        for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            try:
                value = () if default is None else (ast.literal_eval(default),)
                hash(value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                self.fail("signature", f"default of '{argument.arg}' is not a literal")
            problem = problem_of_literal(value)
            if problem:
                self.fail("signature", f"default of '{argument.arg}' is {problem}")
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
        what = "list" if self.returns_list or len(self.results) > 1 else "array"
        most = None if has_list else count
        return Signature((count, most), names, required, gives=what)

    def entry(self, ops: Mapping[str, Signature]) -> Entry:
        """Return the checked entry: the fields of `Op` as literals."""
        raw = self.raw
        self.kinds = self._outputs()
        partials, vjps, rules = self._derivatives(ops)
        jvp = self._jvp(ops, partials, rules)
        traits = set(raw.get("traits", ()))
        traits |= {key for key in ("singular", "random", "effect") if raw.get(key)}
        if self.type_rule in ("elementwise", "scaled_sum"):
            traits.add("elementwise")
        if "elementwise" in traits and not {"expr", "flops"} <= raw.keys():
            self.fail(None, "an elementwise op needs expr and flops")
        self._check_policy(traits, partials, rules)
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
            "facts": {key: raw[key] for key in (*FACTS, "may_fail", "outputs") if key in raw},
        }

    def checked(self, key: str, check: Callable[..., None], *arguments: Any) -> None:
        """Call `check`, whose error becomes one about `key`."""
        try:
            check(*arguments)
        except ExpressionError as error:
            self.fail(key, error.problem, error.hint, error.offset)

    def _outputs(self) -> dict[str, str]:
        """Return the kind of each result; differentiable where the entry says nothing."""
        given: dict[str, str] = self.raw.get("outputs", {})
        for name, kind in given.items():
            if name not in self.results:
                hint = suggestion(name, self.results)
                self.fail(f"outputs.{name}", f"no result '{name}'", hint)
            if kind not in OUTPUTS:
                hint = suggestion(str(kind), OUTPUTS)
                self.fail(f"outputs.{name}", f"unknown: {kind!r}", hint)
        return dict.fromkeys(self.results, OUTPUTS[0]) | given

    def _differentiable(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == OUTPUTS[0]]

    def _check_policy(
        self, traits: set[str], partials: Mapping[str, Formula], rules: Mapping[str, str]
    ) -> None:
        """Check that what the entry says of the op goes together."""
        raw, operands, is_single = self.raw, dict(self.operands), len(self.results) == 1
        is_single = is_single and not self.returns_list
        if "singular" in traits and not partials:
            key = "singular" if raw.get("singular") else "traits"
            self.fail(key, "means partials, and there are none")
        if partials and not ("elementwise" in traits and is_single):
            self.fail("partial", "of an op that is not elementwise with one result")
        for trait in ("comparison", "stepwise"):
            if trait in traits and "formula" in rules.values():
                self.fail("traits", f"{trait}: the result is locally constant, but has a rule")
        if "commutative" in traits and list(operands.values()) != [False, False]:
            self.fail("traits", "commutative: takes two operands")
        viewed = raw.get("view_of")
        if viewed is not None and viewed not in operands:
            self.fail("view_of", f"no argument '{viewed}'", suggestion(viewed, operands))
        if viewed is not None and operands[viewed]:
            self.fail("view_of", f"'{viewed}' is a list")
        if ("view" in traits) != (viewed is not None):
            key = "traits" if viewed is None else "view_of"
            self.fail(key, "the trait view and view_of go together")
        variants = raw.get("variants", VARIANTS[:1])
        if VARIANTS[0] not in variants:
            self.fail("variants", "without functional")
        if len(variants) > 1 and not (is_single and operands and viewed is None):
            self.fail("variants", "inplace and out are of ops with operands and one new result")
        for name in raw.get("forwards", "").split():
            if name not in dict(self.attributes):
                hint = suggestion(name, dict(self.attributes))
                self.fail("forwards", f"no attribute '{name}'", hint)
        if "expr" in raw:
            self.checked("expr", check_c, raw["expr"], len(operands))

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
        active = self._differentiable()
        if not active:
            self.fail(key, "of an op without a differentiable result")
        if section == "vjp":
            many = len(self.results) > 1
            cotangents = {f"g_{name}" for name in active} if many else {"g"}
        lists = cotangents if self.returns_list else set()
        formula, mentioned, found = self._formula(key, text, cotangents, ops, lists)
        is_list = dict(self.operands)[key.partition(".")[2]]
        wanted = ("a list", "a tuple", None) if is_list else (ARRAY, None)
        if found not in wanted:
            hint = "one cotangent for each, as a list" if is_list else None
            self.fail(key, f"gives {found}", hint)
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
        if "aux" in self.kinds.values():  # it would move, and nothing tells how
            if text is not None:
                self.fail("jvp", "an op with an auxiliary result refuses forward mode")
            return None
        if text is None:
            if active and not partials:
                self.fail(None, "no jvp", 'a formula, or "linear"')
            return None
        if partials or not active:
            self.fail("jvp", "follows from the partials" if partials else "without a vjp")
        moving = self._differentiable()
        if text == "linear":
            if "linear" not in self.raw.get("traits", ()):
                self.fail("jvp", "of an op without the trait linear")
            if len(moving) < len(self.results):
                self.fail("jvp", "linear, but not every result is differentiable")
            return "linear"
        tangents = {f"{name}_t" for name in active}
        lists = {f"{name}_t" for name, is_list in self.operands if is_list}
        formula, mentioned, found = self._formula("jvp", text, tangents, ops, lists)
        is_single = len(self.results) == 1 and not self.returns_list
        if found not in ((ARRAY, None) if is_single else ("a list", "a tuple", None)):
            hint = None if is_single else "a tuple of one tangent for each result"
            self.fail("jvp", f"gives {found}", hint)
        parts = formula.tree[1] if formula.tree[0] == "tuple" else moving
        if len(parts) != len(moving) and not self.returns_list:
            problem = f"gives {len(parts)} tangents for {len(moving)} results"
            self.fail("jvp", problem, f"of {', '.join(moving)}")
        for name in sorted(tangents - mentioned):
            self.fail("jvp", f"never uses '{name}'")
        return formula

    def _formula(
        self,
        key: str,
        text: str,
        gradients: set[str],
        ops: Mapping[str, Signature],
        lists: set[str],
    ) -> tuple[Formula, frozenset[str], str | None]:
        """Return the formula, the names that it mentions, and what it gives."""
        several = {name for name, is_list in self.operands if is_list}
        several |= set(self.results) if self.returns_list else set()
        scope = Scope(
            frozenset(name for name, _ in self.operands) | frozenset(self.results),
            frozenset(name for name, _ in self.attributes),
            frozenset(gradients),
            ops,
            MACROS,
            frozenset(several | lists),
        )
        try:
            formula, mentioned = parse(text, scope)
        except ExpressionError as error:
            hint = suggestion(text, RULES) if key != "jvp" else suggestion(text, ["linear"])
            self.fail(key, error.problem, hint or error.hint, error.offset)
        return formula, mentioned, gives(formula.tree, scope)

    def _flops(self) -> int | tuple[Any, ...] | None:
        """Return the number of operations an element, or the formula for those of a node."""
        given: int | str | None = self.raw.get("flops")
        if not isinstance(given, str):
            if given is not None and given < 0:
                self.fail("flops", f"negative: {given}")
            self._check_literal("flops", given)
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
        if gives(formula.tree, scope) not in (ARRAY, None):
            self.fail("flops", f"gives {gives(formula.tree, scope)}")
        return _literal(formula)

    def _check_literal(self, key: str, value: Any, finite: bool = True) -> None:
        problem = problem_of_literal(value, finite=finite)
        if problem:
            self.fail(key, problem)

    def _points(self) -> tuple[dict[str, Any], ...]:
        names = {name for name, _ in self.operands}
        for point in self.raw.get("points", ()):
            if not isinstance(point, dict) or not {"at", "gradient"} <= point.keys():
                self.fail("points", "a point has at and gradient")
            unknown = point.keys() - {"at", "gradient", "attributes", "cotangent"}
            if unknown:
                self.fail("points", f"unknown: {', '.join(sorted(unknown))}")
            self._check_literal("points", point, finite=False)
            tables = [point[key] for key in ("at", "gradient", "attributes") if key in point]
            if not all(isinstance(table, dict) for table in tables):
                self.fail("points", "at, gradient and attributes are tables")
            if set(point["at"]) != names or not set(point["gradient"]) <= names:
                self.fail("points", f"is not about {', '.join(sorted(names))}")
            numbers = [*point["at"].values(), *point["gradient"].values()]
            for value in (*numbers, point.get("cotangent", 1)):
                if not is_array(value):
                    self.fail("points", f"not an array: {value!r}")
            for name in point.get("attributes", ()):
                if name not in dict(self.attributes):
                    hint = suggestion(name, dict(self.attributes))
                    self.fail("points", f"no attribute '{name}'", hint)
        points: tuple[dict[str, Any], ...] = _finite(tuple(self.raw.get("points", ())))
        return points

    def _domain(self) -> dict[str, tuple[float, float]]:
        names = [name for name, _ in self.operands]
        for name, bounds in self.raw.get("domain", {}).items():
            if name not in names:
                self.fail(f"domain.{name}", f"no argument '{name}'", suggestion(name, names))
            if not isinstance(bounds, list) or len(bounds) != 2:
                self.fail(f"domain.{name}", "is not [low, high]")
            self._check_literal(f"domain.{name}", bounds)
            numbers = [bound for bound in bounds if type(bound) in (int, float)]
            if len(numbers) < 2 or numbers[0] > numbers[1]:
                self.fail(f"domain.{name}", f"is not [low, high]: {bounds}")
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


def _macros() -> dict[str, Signature]:
    """Return how the macros are called, from their Python signatures."""
    result = {}
    for name, macro in macros.MACROS.items():
        count = len(inspect.signature(macro.function).parameters) - macro.implicit
        what = None if macro.implicit else "metadata"
        result[name] = Signature((count, count), uses=frozenset(macro.uses), gives=what)
    return result


MACROS = _macros()
METADATA_MACROS = {
    name: signature for name, signature in MACROS.items() if macros.MACROS[name].implicit == 0
}
