"""`register_ufunc` and `register_op`: ops that users add, by the formulas of the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stagedad.front.elementwise import UFUNCS, has_traced
from stagedad.front.late import record_call
from stagedad.front.location import user_location
from stagedad.ops import Op, kind_of
from stagedad.ops.registry import declare

if TYPE_CHECKING:
    from stagedad.ops.draft import Draft

Formulas: TypeAlias = "Sequence[str] | Mapping[str, str] | None"

_RESERVED = frozenset({"param", "return", "constant"})
_LETTERS = ("x", "y", "z")
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def register_ufunc(
    ufunc: Any,
    partials: Formulas = None,
    *,
    name: str | None = None,
    signature: str | None = None,
    vjp: Formulas = None,
    jvp: str | None = None,
    singular: bool = False,
    complex: bool = False,
    flops: int | str | None = None,
    domain: Mapping[str, Sequence[float]] | None = None,
    points: Sequence[Mapping[str, Any]] = (),
    notes: str | None = None,
) -> Any:
    """Make a ufunc an op of the table, and return it.

    Traced calls of it are recorded from then on, programs run its inner loops, and its
    derivatives of every order follow from `partials`: d result / d operand as formulas of the
    op declarations, or one of "zero", "non_differentiable", "not_implemented".  A list has
    them in the order of the operands, called x, y, z or self, other; a mapping and a
    `signature` such as "name(a, b) -> result" say what they are called.

    Of a ufunc with several results `signature` names them, and `vjp` and `jvp` stand for
    `partials`.  The other arguments are the keys of the declarations.  numba's ufuncs compile
    loops for the types that they meet.  The same registration may be repeated.

    >>> import numpy as np
    >>> import stagedad as sd
    >>> # sd.register_ufunc(dawsn, ["1 - 2 * x * result"])

    Raises: TypeError if it is no ufunc, or one on Python objects; DeclarationError, with file
            and line of the call, for names that are taken and formulas that are none.
    """
    inner = _inner(ufunc)
    kind = name or ufunc.__name__
    many = inner.nout > 1
    if signature is None:
        names = _names(inner.nin, partials if partials is not None else vjp)
        results = [f"result{number}" for number in range(inner.nout)]
        signature = f"{kind}({', '.join(names)}) -> {_results(results if many else ['result'])}"
    raw = {
        "signature": signature, "type": "any_ufunc", "partial": partials, "vjp": vjp,
        "jvp": jvp, "singular": singular, "complex": complex, "flops": flops,
        "domain": domain, "points": points, "notes": notes,
    }  # fmt: skip
    draft = _draft(kind, raw)
    if many and partials is not None:
        draft.fail("partial", f"of a ufunc with {inner.nout} results", "vjp= and jvp=")
    if ufunc in UFUNCS and kind_of(ufunc) is None:
        draft.fail(None, "traced calls of this ufunc are recorded already")
    _check_arity(draft, inner)
    _name_formulas(draft, partials, vjp)
    declare(draft, ufunc=inner, function=None if inner is ufunc else ufunc)
    return ufunc


def register_op(
    function: Callable[..., Any] | None = None,
    partials: Formulas = None,
    *,
    name: str | None = None,
    signature: str | None = None,
    type: Callable[..., Any] | None = None,
    vjp: Formulas = None,
    jvp: str | None = None,
    singular: bool = False,
    complex: bool = False,
    flops: int | str | None = None,
    domain: Mapping[str, Sequence[float]] | None = None,
    points: Sequence[Mapping[str, Any]] = (),
    notes: str | None = None,
) -> Any:
    """Make a function of arrays an op of the table; also a decorator.

    Returns the function, which records one node where it is called on traced values.  Its
    positional parameters are the operands and its keyword parameters, with literals as
    defaults, the attributes of the op; `signature` says so instead, or names the result.
    Programs call it on arrays of its own.  It must be a function of its arguments alone, and
    what it does is not looked into: derivatives are by the formulas.

    An op is elementwise, with `partials` as in `register_ufunc` or `vjp` and `jvp`, unless
    `type` gives the types of results, from those of operands and the attributes; then it has
    `vjp`, by name or in the order of the operands, and `jvp`.

    A plain function of NumPy's operations needs no registration to be differentiated.

    >>> import numpy as np
    >>> import stagedad as sd
    >>> @sd.register_op(partials=["result * (1 - result)"])
    ... def logistic(x):
    ...     return 0.5 * np.tanh(0.5 * x) + 0.5
    >>> float(sd.grad(logistic)(0.0))
    0.25

    Raises: DeclarationError as `register_ufunc`.
    """
    if function is None:
        given = {key: value for key, value in locals().items() if key != "function"}
        return lambda function: register_op(function, **given)
    if isinstance(function, np.ufunc) or isinstance(getattr(function, "ufunc", None), np.ufunc):
        raise TypeError(f"register_op: a ufunc: {function!r}\nhint: sd.register_ufunc")
    if not callable(function):
        raise TypeError(f"register_op: not a function: {function!r}")
    kind = str(name or getattr(function, "__name__", ""))
    raw = {
        "signature": signature or _signature(kind, function),
        "type": "called" if type is None else "told", "partial": partials, "vjp": vjp,
        "jvp": jvp, "singular": singular, "complex": complex, "flops": flops,
        "domain": domain, "points": points, "notes": notes,
    }  # fmt: skip
    if jvp == "linear":
        raw["traits"] = ["linear"]
    draft = _draft(kind, raw)
    draft.read_signature()
    _name_formulas(draft, partials, vjp)
    op = declare(draft, function=function, typing=type)
    call = op.function or function
    binding = _binding(op)

    @wraps(call)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if not has_traced([args, kwargs]):
            return call(*args, **kwargs)
        known = binding.bind_partial(*args, **kwargs)
        return record_call(op.kind, known.args, known.kwargs)

    return recorded


def _binding(op: Op) -> inspect.Signature:
    """Return how calls of `op` are written in Python."""
    parameter = inspect.Parameter
    names = [
        parameter(each.name, parameter.VAR_POSITIONAL if each.is_list else _POSITIONAL)
        for each in op.arguments
    ]
    names += [parameter(name, parameter.KEYWORD_ONLY) for name in op.attributes]
    return inspect.Signature(names)


def _inner(ufunc: Any) -> np.ufunc:
    """Return the ufunc itself, or that of numba's wrapper.

    Raises: TypeError if there is none, or one that no op can be made of.
    """
    inner = ufunc if isinstance(ufunc, np.ufunc) else getattr(ufunc, "ufunc", None)
    if not isinstance(inner, np.ufunc):
        raise TypeError(
            f"register_ufunc: not a ufunc: {ufunc!r}\n"
            "hint: sd.register_op takes a Python function, numba.vectorize makes a ufunc of one"
        )
    if inner.signature is not None:
        raise TypeError(
            f"register_ufunc: a generalised ufunc: {inner.__name__}{inner.signature}\n"
            "hint: sd.register_op with type=, vjp= and jvp="
        )
    if inner.types and all(set(loop) <= set("O->") for loop in inner.types):
        raise TypeError(
            f"register_ufunc: has loops of Python objects only: {inner.__name__}\n"
            "hint: sd.register_op takes the Python function, numba.vectorize makes loops of it"
        )
    return inner


def _check_arity(draft: Draft, ufunc: np.ufunc) -> None:
    draft.read_signature()
    if draft.attributes:
        draft.fail("signature", "a ufunc has no attributes")
    for what, found, wanted in (
        ("operands", len(draft.operands), ufunc.nin),
        ("results", len(draft.results), ufunc.nout),
    ):
        if found != wanted:
            draft.fail("signature", f"{found} {what}, and the ufunc has {wanted}")


def _draft(kind: str, raw: Mapping[str, Any]) -> Draft:
    """Return the declaration of a call; places in it are columns of its formulas."""
    # Nobody who registers nothing pays for the checks.
    from stagedad.ops.draft import Draft

    file, line = user_location()
    given = {
        key: list(map(dict, value)) if key == "points" else value
        for key, value in raw.items()
        if value is not None and value is not False and value != ()
    }
    draft = Draft(file, kind, given, lambda _, offset: (line, 1 + (offset or 0)), is_call=True)
    if not (kind.isidentifier() and kind.isascii()) or iskeyword(kind) or kind in _RESERVED:
        draft.fail(None, f"not a name for an op: {kind!r}", "give another: name=")
    return draft


def _name_formulas(draft: Draft, *given: Formulas) -> None:
    """Replace lists of formulas by the formulas of the operands by name."""
    names = [name for name, _ in draft.operands]
    for key, formulas in zip(("partial", "vjp"), given, strict=True):
        if isinstance(formulas, Mapping):
            draft.raw[key] = dict(formulas)
        elif formulas is not None and not isinstance(formulas, str):
            if len(formulas) != len(names):
                problem = f"{len(formulas)} formulas for {len(names)} operands"
                draft.fail(key, problem, f"one each of {', '.join(names)}")
            draft.raw[key] = dict(zip(names, formulas, strict=True))
        elif key == "partial" and formulas is not None:
            draft.fail(key, f"not a list of formulas: {formulas!r}")
    if "domain" in draft.raw:
        draft.raw["domain"] = {k: list(v) for k, v in draft.raw["domain"].items()}


def _names(count: int, formulas: Formulas) -> list[str]:
    """Return what the operands are called where no signature says it."""
    if isinstance(formulas, Mapping):
        return list(formulas)
    text = " ".join(map(str, formulas or ()))
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
    if count <= 2 and words & {"self", "other"}:
        return ["self", "other"][:count]
    return list(_LETTERS[:count]) if count <= 3 else [f"x{i}" for i in range(count)]


def _results(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return the signature of an op as its function has it."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise TypeError(
            f"register_op: {name}: its parameters are unknown\n"
            f"hint: signature='{name}(x, *, alpha=1) -> result'"
        ) from None
    plain = []
    for each in known.values():
        kind = _POSITIONAL if each.kind is each.POSITIONAL_ONLY else each.kind
        plain.append(each.replace(annotation=each.empty, kind=kind))
    return f"{name}{inspect.Signature(plain)} -> result"
