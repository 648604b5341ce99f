"""One formula, any interpretation: expansion of declared derivatives by an emitter.

`vjp` and `jvp` are the whole rule of an op: what differentiate, the tape and
forward mode call, each with an emitter of its own (see ops/builder.py).
"""

# ruff: noqa: ARG005  (every closure takes env and builder)
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from stagedad.errors import ForwardModeUnsupported, NotDifferentiable
from stagedad.ops import (  # noqa: F401 (register macros)
    fft_macros,
    linalg_macros,
    sequence_macros,
)
from stagedad.ops.builder import NUMBER, ZERO, Builder, Emitter, ShapeOf
from stagedad.ops.expression import ARITHMETIC
from stagedad.ops.macros import MACROS
from stagedad.ops.op import Formula, Op, Tree
from stagedad.ops.table import complete

__all__ = [
    "ZERO", "Builder", "Emitter", "ShapeOf", "bind", "evaluate", "jvp", "named_cotangents",
    "vjp",
]  # fmt: skip

Environment: TypeAlias = "Mapping[str, Any]"
Code: TypeAlias = "Callable[[Environment, Builder], Any]"


def bind(
    op: Op,
    operands: Sequence[Any],
    attributes: Mapping[str, Any],
    results: Sequence[Any] = (),
    **others: Any,
) -> dict[str, Any]:
    """Return the environment of the formulas of `op`: its names with their values.

    A list argument is bound to the tuple of operands that are left for it, a list of results
    to the tuple of them.
    """
    env: dict[str, Any] = complete(op, attributes)
    for number, argument in enumerate(op.arguments):
        env[argument.name] = tuple(operands[number:]) if argument.is_list else operands[number]
    if op.returns_list:
        env[op.results[0]] = tuple(results)
    else:
        env.update(zip(op.results, results, strict=False))
    env.update(others)
    return env


def evaluate(formula: Formula, env: Environment, emitter: Emitter) -> Any:
    """Expand `formula`; return an operand, a number, ZERO, or a tuple for a list.

    `env` gives operands, ZEROs and metadata by name, as `bind` makes it.
    """
    return compiled(formula)(env, Builder(emitter))


def vjp(
    op: Op,
    argument: str,
    env: Environment,
    emitter: Emitter,
    masked: bool = True,
    wanted: Sequence[bool] | None = None,
) -> Any:
    """Return the cotangent of `argument`, given those of the results; or ZERO.

    `env` is `bind`'s, with the cotangents that `named_cotangents` gives.
    The cotangent has the shape and dtype of the argument.  A list argument gives
    a tuple, of which only the `wanted` parts are made.  `masked` is whether a zero
    cotangent stays zero through an infinite partial.

    Raises: NotDifferentiable if the argument has no derivative, is complex where
            the rule was not checked for it, or is of unknown shape where the rule
            needs it.
    """
    declared = op.argument(argument)
    _check_aux(op, env)
    if _no_cotangent(op, env):
        return (ZERO,) * len(env[argument]) if declared.is_list else ZERO
    _check_rule(op, argument, env)
    builder = Builder(emitter, wanted)
    if declared.is_list:
        if declared.rule == "zero":
            return (ZERO,) * len(env[argument])
        parts = compiled(op.vjps[argument])(env, builder)
        if op.is_registered:
            pairs = zip(parts, env[argument], strict=True)
            parts = [_fitted(op, f"vjp.{argument}", *pair, builder) for pair in pairs]
        pairs = zip(parts, env[argument], strict=True)
        return tuple(builder.astype(part, _dtype(operand)) for part, operand in pairs)
    operand = env[argument]
    if declared.rule != "formula" or not _carries(operand):
        return ZERO
    partial = op.partials.get(argument)
    if partial is None:
        cotangent = compiled(op.vjps[argument])(env, builder)
        if op.is_registered:
            cotangent = _fitted(op, f"vjp.{argument}", cotangent, operand, builder)
    else:
        value = compiled(partial)(_widened(op, partial, env, builder), builder)
        cotangent = _pull(op, value, env, builder, operand, masked)
    return builder.astype(cotangent, _dtype(operand))


def named_cotangents(op: Op, cotangents: Sequence[Any]) -> dict[str, Any]:
    """Return the cotangents of the results by the names that they have in formulas.

    `g`; `g_NAME` where there are several names; a tuple as `g` for a list of results.
    """
    if op.returns_list:
        return {"g": tuple(cotangents)}
    return dict(zip(_gradients(op), cotangents, strict=True))


def jvp(op: Op, env: Environment, emitter: Emitter, masked: bool = True) -> Any:
    """Return the tangent of the result, given those of the arguments; or ZERO.

    `env` is `bind`'s, with the tangent of each argument as `NAME_t` (absent: ZERO;
    a tuple for a list).  The tangent has the shape and dtype of the result.  An op of several
    results, or of a list of them, has a tuple of tangents.

    Raises: NotDifferentiable as `vjp`, for any argument that has a tangent;
            ForwardModeUnsupported if a result is auxiliary.
    """
    moving = [arg.name for arg in op.arguments if not _is_still(env.get(f"{arg.name}_t", ZERO))]
    if not moving:
        return ZERO
    result = env[op.results[0]]
    results = result if op.returns_list else tuple([env[name] for name in op.results])
    if not any(map(_carries, results)):
        return ZERO
    for name in moving:
        _check_rule(op, name, env)
    for name, kind in _outputs(op).items():
        if kind == "aux":
            problem = f"{op.kind}: no tangent of the auxiliary result '{name}'"
            raise ForwardModeUnsupported(problem, op=op.kind)
    builder = Builder(emitter)
    if op.partials:
        tangent = _push(op, moving, env, builder, masked)
    elif op.jvp == "linear":
        tangent = _linear(op, env, builder)
    elif isinstance(op.jvp, Formula):
        tangents = {f"{arg.name}_t": ZERO for arg in op.arguments}
        tangent = compiled(op.jvp)({**tangents, **env}, builder)
    else:
        return ZERO
    if not op.has_one_result:
        if tangent is ZERO:
            return ZERO
        parts = tangent if isinstance(tangent, tuple) else (tangent,)
        if _outputs(op):
            given = iter(parts)
            active = [_is_active(op, name) for name in op.results]
            parts = tuple([next(given) if is_active else ZERO for is_active in active])
        if op.is_registered:
            pairs = zip(parts, results, strict=True)
            parts = tuple([_fitted(op, "jvp", part, each, builder) for part, each in pairs])
        pairs = zip(parts, results, strict=True)
        return tuple([builder.astype(part, _dtype(each)) for part, each in pairs])
    if tangent is not ZERO and "elementwise" in op.traits and len(op.arguments) > 1:
        tangent = builder.broadcast_to(tangent, builder.shape(result))
    if op.is_registered:
        tangent = _fitted(op, "jvp", tangent, result, builder)
    return builder.astype(tangent, _dtype(result))


@cache
def compiled(formula: Formula) -> Code:
    """Return `formula` as nested closures."""
    return _compile(formula.tree)


def _pull(
    op: Op, partial: Any, env: Environment, builder: Builder, operand: Any, masked: bool
) -> Any:
    """Return sum_to(g * conj(partial)); a number multiplies after the sum, on less data."""
    g = env[_gradients(op)[0]]
    shape = builder.shape(operand) if _may_stretch(op, operand, env) else None
    partial = builder.conj(partial)
    if isinstance(partial, NUMBER):
        if partial == 0:
            return ZERO
        return builder.product(g if shape is None else builder.sum_to(g, shape), partial)
    product = builder.product(g, partial, masked=masked and "singular" in op.traits)
    return product if shape is None else builder.sum_to(product, shape)


def _fitted(op: Op, key: str, value: Any, like: Any, builder: Builder) -> Any:
    """Return a cotangent or tangent of a user's formula in the shape that it must have.

    Raises: NotDifferentiable if it has another.
    """
    if value is ZERO:
        return ZERO
    if isinstance(value, NUMBER):
        value = builder.number(value, like)
    if "elementwise" in op.traits:
        fit = builder.broadcast_to if key == "jvp" else builder.sum_to
        value = fit(value, builder.shape(like))
    for known in (value.type, like.type):
        if known is None or not known.is_static:
            return value
    if value.type.shape != like.type.shape:
        problem = f"{op.kind}: its {key} gives {value.type} for what is {like.type}"
        raise NotDifferentiable(problem, op=op.kind)
    return value


def _may_stretch(op: Op, operand: Any, env: Environment) -> bool:
    """Whether the result may be larger than `operand`: not beside scalars only."""
    for argument in op.arguments:
        other = env[argument.name]
        if other is not operand and (other.type is None or other.type.shape != ()):
            return True
    return False


def _widened(op: Op, partial: Formula, env: Environment, builder: Builder) -> Environment:
    """Return `env` with the operands that `partial` reads in the dtype of the result.

    The op computes in that dtype; a narrower operand alone would be computed with in its own.
    """
    dtype = _dtype(env[op.results[0]])
    narrow = {
        argument.name: env[argument.name]
        for argument in op.arguments
        if argument.rule == "formula" and argument.name in partial.reads
    }
    changed = {
        name: builder.astype(operand, dtype)
        for name, operand in narrow.items()
        if dtype is not None and _dtype(operand) not in (None, dtype)
    }
    return {**env, **changed} if changed else env


def _push(
    op: Op, moving: Sequence[str], env: Environment, builder: Builder, masked: bool
) -> Any:
    """Return the sum of tangent * partial over the arguments that have a tangent."""
    masked = masked and "singular" in op.traits
    total: Any = ZERO
    for name in moving:
        if name in op.partials:
            formula = op.partials[name]
            partial = compiled(formula)(_widened(op, formula, env, builder), builder)
            term = builder.product(env[f"{name}_t"], partial, masked=masked)
            total = term if total is ZERO else builder.call("add", (total, term))
    return total


def _linear(op: Op, env: Environment, builder: Builder) -> Any:
    """Return the op of the tangents; a missing one among others becomes zeros."""
    operands: list[Any] = []
    for argument in op.arguments:
        value = env[argument.name]
        if argument.rule != "formula":
            operands.append(value)
            continue
        values = value if argument.is_list else (value,)
        tangents = env.get(f"{argument.name}_t", ZERO)
        if not argument.is_list:
            tangents = (tangents,)
        elif tangents is ZERO:
            tangents = (ZERO,) * len(values)
        for primal, tangent in zip(values, tangents, strict=True):
            if tangent is ZERO:
                tangent = builder.emit("zeros_like", (primal,), {})
            operands.append(tangent)
    attributes = {name: env[name] for name in op.attributes}
    return builder.emitter.emit(op.kind, tuple(operands), attributes)


def _gradients(op: Op) -> tuple[str, ...]:
    return ("g",) if len(op.results) == 1 else tuple(f"g_{name}" for name in op.results)


def _outputs(op: Op) -> Mapping[str, str]:
    """Return the declared kinds of results; those not in it are differentiable."""
    found: Mapping[str, str] = op.facts.get("outputs", {})
    return found


def _is_active(op: Op, result: str) -> bool:
    """Whether the formulas of `op` are about the derivative of that result."""
    return _outputs(op).get(result, "differentiable") == "differentiable"


def _check_aux(op: Op, env: Environment) -> None:
    """Refuse the cotangent of a result that depends on operands, but has no rule."""
    for name, kind in _outputs(op).items():
        cotangent = f"g_{name}" if len(op.results) > 1 else "g"
        if kind == "aux" and not _is_still(env.get(cotangent, ZERO)):
            problem = f"{op.kind}: no derivative of the auxiliary result '{name}'"
            raise NotDifferentiable(problem, op=op.kind, argument=name)


def _no_cotangent(op: Op, env: Environment) -> bool:
    pairs = zip(op.results, _gradients(op), strict=True)
    return all(_is_still(env.get(g, ZERO)) for name, g in pairs if _is_active(op, name))


def _is_still(given: Any) -> bool:
    """Whether a cotangent or tangent is zero, for a list all of them."""
    if isinstance(given, tuple):
        return all(part is ZERO for part in given)
    return given is ZERO


def _carries(operand: Any) -> bool:
    """Whether a value can have a cotangent: it is inexact, or its type is unknown."""
    return operand.type is None or operand.type.is_inexact


def _dtype(operand: Any) -> Any:
    return None if operand.type is None else operand.type.dtype


def _check_rule(op: Op, name: str, env: Environment) -> None:
    rule = op.argument(name).rule
    value = env[name]
    if rule == "not_implemented":
        problem = f"{op.kind}: no derivative with respect to '{name}'"
        raise NotDifferentiable(problem, op=op.kind, argument=name)
    if rule == "non_differentiable" and value.type is not None and value.type.is_inexact:
        problem = f"{op.kind}: '{name}' is not differentiable: {value.type}"
        raise NotDifferentiable(problem, op=op.kind, argument=name)
    if not op.is_complex and rule != "non_differentiable":
        for operand in (env[argument.name] for argument in op.arguments):
            for part in operand if isinstance(operand, tuple) else (operand,):
                if part.type is not None and part.type.dtype.kind == "c":
                    problem = f"{op.kind}: no derivative at complex operands: {part.type}"
                    hint = "write it with real(z) and imag(z)"
                    raise NotDifferentiable(problem, op=op.kind, argument=name, hint=hint)


# Compilation: one function a node of the tree, each returning a closure.


def _compile(tree: Tree) -> Code:
    code: Code = _COMPILE[tree[0]](*tree[1:])
    return code


def _number(value: Any) -> Code:
    return lambda env, builder: value


def _name(name: str) -> Code:
    return lambda env, builder: env[name]


def _meta(name: str, what: str) -> Code:
    read = _METADATA[what]

    def meta(env: Environment, builder: Builder) -> Any:
        value = env[name]
        if isinstance(value, tuple):
            return tuple(read(builder, part) for part in value)
        return read(builder, value)

    return meta


def _binary(kind: str, left: Tree, right: Tree) -> Code:
    compute, first, second = ARITHMETIC[kind], _compile(left), _compile(right)

    def binary(env: Environment, builder: Builder) -> Any:
        a, b = first(env, builder), second(env, builder)
        if isinstance(a, NUMBER) and isinstance(b, NUMBER):
            return compute(a, b)
        return builder.call(kind, (a, b))

    return binary


def _negative(inner: Tree) -> Code:
    value = _compile(inner)

    def negative(env: Environment, builder: Builder) -> Any:
        found = value(env, builder)
        return -found if isinstance(found, NUMBER) else builder.call("neg", (found,))

    return negative


def _call(kind: str, operands: Sequence[Tree], attributes: Sequence[tuple[str, Tree]]) -> Code:
    values = [_compile(operand) for operand in operands]
    named = [(name, _compile(value)) for name, value in attributes]

    def call(env: Environment, builder: Builder) -> Any:
        given = {name: value(env, builder) for name, value in named}
        return builder.call(kind, tuple([value(env, builder) for value in values]), given)

    return call


def _macro(name: str, arguments: Sequence[Tree]) -> Code:
    macro = MACROS[name]
    values = [_compile(argument) for argument in arguments]

    def expand(env: Environment, builder: Builder) -> Any:
        found = [value(env, builder) for value in values]
        return macro.function(*(builder,) * macro.implicit, *found)

    return expand


def _if(test: Tree, yes: Tree, no: Tree) -> Code:
    decide, first, second = _compile(test), _compile(yes), _compile(no)
    return lambda env, builder: (first if decide(env, builder) else second)(env, builder)


def _compare(symbol: str, left: Tree, right: Tree) -> Code:
    compute, first, second = _COMPARE[symbol], _compile(left), _compile(right)
    return lambda env, builder: compute(first(env, builder), second(env, builder))


def _and(parts: Sequence[Tree]) -> Code:
    values = [_compile(part) for part in parts]
    return lambda env, builder: all(value(env, builder) for value in values)


def _or(parts: Sequence[Tree]) -> Code:
    values = [_compile(part) for part in parts]
    return lambda env, builder: any(value(env, builder) for value in values)


def _not(inner: Tree) -> Code:
    value = _compile(inner)
    return lambda env, builder: not value(env, builder)


def _tuple(parts: Sequence[Tree]) -> Code:
    values = [_compile(part) for part in parts]
    return lambda env, builder: tuple([value(env, builder) for value in values])


_METADATA: dict[str, Callable[[Builder, Any], Any]] = {
    "shape": Builder.shape,
    "dtype": lambda builder, operand: _dtype(operand),
    "ndim": lambda builder, operand: None if operand.type is None else operand.type.ndim,
    "size": lambda builder, operand: None if operand.type is None else operand.type.size,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
}
_COMPILE: dict[str, Callable[..., Code]] = {
    "number": _number,
    "literal": _number,
    "name": _name,
    "meta": _meta,
    "binary": _binary,
    "negative": _negative,
    "call": _call,
    "macro": _macro,
    "if": _if,
    "compare": _compare,
    "and": _and,
    "or": _or,
    "not": _not,
    "tuple": _tuple,
}
