"""One declaration while it is checked: its keys, its signature, its formulas."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from stagedad.errors import DeclarationError, suggestion
from stagedad.ops.called_rules import CALLED
from stagedad.ops.calls import MACROS, Entry, call_signature
from stagedad.ops.derivatives import derivatives, flops, jvp_of, literal
from stagedad.ops.expression import Signature
from stagedad.ops.literals import check_numpy, check_scipy, problem_of_literal
from stagedad.ops.op import Formula
from stagedad.ops.policy import VARIANTS, check_policy, domain, points
from stagedad.ops.reading import ExpressionError, read
from stagedad.ops.rules import RULES as TYPE_RULES

Place: TypeAlias = "Callable[[str | None, int | None], tuple[int, int]]"

TRAITS = (
    "commutative", "comparison", "elementwise", "linear", "multilinear", "random",
    "reduction", "singular", "stepwise", "view",
)  # fmt: skip
ELEMENTWISE = ("elementwise", "scaled_sum", "any_ufunc", "called")
"""Type rules of ops that work element by element."""
OUTPUTS = ("differentiable", "integral", "boolean", "aux", "detached")
FLAGS = {"singular": bool, "complex": bool, "may_fail": bool, "random": bool}
FACTS = {"batch": str, "effect": str, "forwards": str, "source": str, "notes": str}
KEYS: dict[str, type | tuple[type, ...]] = {
    "signature": str, "type": str, "numpy": str, "scipy": str, "aliases": list, "expr": str,
    "flops": (int, str), "traits": list, "variants": list, "view_of": str, "points": list,
    "partial": dict, "vjp": (dict, str), "jvp": str, "domain": dict, "outputs": dict,
    **FLAGS, **FACTS,
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
        if "scipy" in self.raw:
            self.checked("scipy", check_scipy, self.raw["scipy"])
        self.type_rule = self.raw.get("type", self.kind)
        rules = TYPE_RULES.keys() - (() if self.is_call else CALLED)
        if self.type_rule not in rules:
            key = "type" if "type" in self.raw else "signature"
            hint = suggestion(self.type_rule, rules)
            self.fail(key, f"no type rule '{self.type_rule}'", hint)

    def read_signature(self) -> None:
        """Read operands, attributes and results from `kind(self, *, axis=None) -> result`."""
        text = self.raw.get("signature")
        if text is None:
            self.fail(None, "missing signature")
        if not isinstance(text, str):  # of a call, whose keys are not checked yet
            self.fail("signature", f"wrong type: {type(text).__name__}")
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
        return call_signature(
            {
                "arguments": [(name, is_list, "") for name, is_list in self.operands],
                "attributes": self.attributes,
                "results": self.results,
                "returns_list": self.returns_list,
            }
        )

    def entry(self, ops: Mapping[str, Signature]) -> Entry:
        """Return the checked entry: the fields of `Op` as literals."""
        raw = self.raw
        self.kinds = self._outputs()
        partials, vjps, rules = derivatives(self, ops)
        jvp = jvp_of(self, ops, partials, rules)
        traits = set(raw.get("traits", ()))
        traits |= {key for key in ("singular", "random", "effect") if raw.get(key)}
        if self.type_rule in ELEMENTWISE:
            traits.add("elementwise")
        has_c = "scipy" not in raw and not self.is_call
        if "elementwise" in traits and has_c and not {"expr", "flops"} <= raw.keys():
            self.fail(None, "an elementwise op needs expr and flops")
        check_policy(self, traits, partials, rules)
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
            "partials": {name: literal(formula) for name, formula in partials.items()},
            "vjps": {name: literal(formula) for name, formula in vjps.items()},
            "jvp": literal(jvp) if isinstance(jvp, Formula) else jvp,
            "is_complex": raw.get("complex", False),
            "flops": flops(self),
            "points": points(self),
            "domain": domain(self),
            "aliases": tuple(raw.get("aliases", ())),
            "variants": tuple(raw.get("variants", VARIANTS[:1])),
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

    def differentiable(self) -> list[str]:
        """Return the results that formulas are about."""
        return [name for name, kind in self.kinds.items() if kind == OUTPUTS[0]]

    def check_literal(self, key: str, value: Any, finite: bool = True) -> None:
        """Check that the generated table can hold `value`."""
        problem = problem_of_literal(value, finite=finite)
        if problem:
            self.fail(key, problem)
