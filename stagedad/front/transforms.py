"""The transforms: trace, jit, grad, value_and_grad."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

from stagedad.errors import TraceError
from stagedad.front._call import direct
from stagedad.front.capture import Captured, capture
from stagedad.front.lowering import Lowered, Options, lower_call, lower_gradient, wanted
from stagedad.front.signature import Signature, positional, signature
from stagedad.front.staged import Staged
from stagedad.ir import Graph
from stagedad.transform.differentiate import NAN_POLICIES

MAX_SIGNATURES = 64


def trace(f: Callable[..., Any], *example_args: Any, **example_kwargs: Any) -> Graph:
    """Return the graph that `f` computes on arguments like these.

    Inputs are named after the parameters and the paths in them (`%params.w`,
    `%x.0`); outputs are the leaves of the result.  Arguments that are not numeric
    are passed on as they are.

    Raises: TraceError if a traced value meets code that cannot carry it, or if `f`
            reads values of a function that is being traced around this call.

    >>> print(trace(lambda x: x * x, 3.0))
    graph(%x : f64[]) {
      %1 : f64[] = mul(%x, %x)
      return (%1)
    }
    """
    key, leaves = signature(example_args, example_kwargs)
    captured = capture(f, key, leaves)
    if captured.outer:
        raise TraceError(
            "trace: the function reads values that are traced outside of it",
            hint="pass them as arguments",
        )
    return captured.graph


def jit(f: Callable[..., Any] | None = None, *, max_signatures: int = MAX_SIGNATURES) -> Any:
    """Return `f` as a staged call: traced once a signature, then run as a program.

    A signature is the structure of the arguments with shapes and dtypes; up to
    `max_signatures` are kept, the least recently used dropped.  What `f` closes
    over may change: it is traced again; README, "Sharp edges", says how far that reaches.
    """
    if f is None:
        return partial(jit, max_signatures=max_signatures)
    rebuild = (_rebuilt, (jit, f, (), {"max_signatures": max_signatures}))
    return Staged(_callable(f, "jit"), _lower_jit, rebuild, max_signatures)


def grad(
    f: Callable[..., Any] | None = None,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    nan_policy: str = "masked",
    max_signatures: int = MAX_SIGNATURES,
) -> Any:
    """Return a function that gives the gradient of the scalar `f` at its arguments.

    The gradient has the structure, shapes and dtypes of the argument at `argnums`; a
    tuple of argnums gives a tuple.  With `has_aux`, `f` returns `(value, aux)` and the
    function `(gradient, aux)`.  Complex arguments: d/dx + i d/dy of a real value, or
    f'(z) with `holomorphic`.  `nan_policy="masked"`: a cotangent of exactly 0 stays 0
    through a singular point; `"strict"` is IEEE arithmetic.

    Raises, when called: TypeError for an integer argument, naming it; NotScalar (a
            ShapeError and TypeError) if the value is no scalar.

    >>> grad(lambda x: x * x)(3.0)
    np.float64(6.0)
    """
    options = _options("grad", argnums, has_aux, holomorphic, nan_policy)
    return _gradient(grad, f, options, max_signatures)


def value_and_grad(
    f: Callable[..., Any] | None = None,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    nan_policy: str = "masked",
    max_signatures: int = MAX_SIGNATURES,
) -> Any:
    """Return a function that gives `(value, gradient)`, or `((value, aux), gradient)`.

    Fits `scipy.optimize.minimize(..., jac=True)`.  See `grad`.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    options = _options("value_and_grad", argnums, has_aux, holomorphic, nan_policy)
    return _gradient(value_and_grad, f, options, max_signatures)


@direct
class _StagedGradient(Staged):
    _options: Options

    def _positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return positional(self._function, args, kwargs, self._options.positions)

    def _check(self, key: Signature) -> None:
        wanted(key, key.input_names(self._function), self._options)


class _LowerGradient:
    """Lowering for one gradient, with the names of its function's parameters."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.function, self.options = function, options

    def __call__(self, captured: Captured, key: Signature) -> Lowered:
        return lower_gradient(captured, key, key.input_names(self.function), self.options)


def _gradient(
    transform: Callable[..., Any], f: Any, options: Options, max_signatures: int
) -> Any:
    settings = {**options._asdict(), "max_signatures": max_signatures}
    del settings["transform"]
    if f is None:
        return partial(transform, **settings)
    rebuild = (_rebuilt, (transform, f, (), settings))
    function = _callable(f, options.transform)
    staged = _StagedGradient(
        function, _LowerGradient(function, options), rebuild, max_signatures
    )
    staged._options = options
    return staged


def _options(
    transform: str, argnums: Any, has_aux: bool, holomorphic: bool, nan_policy: str
) -> Options:
    if nan_policy not in NAN_POLICIES:
        raise ValueError(f"{transform}: nan_policy={nan_policy!r}\nhint: one of {NAN_POLICIES}")
    is_tuple = isinstance(argnums, (tuple, list))
    try:
        positions = tuple([index(i) for i in argnums]) if is_tuple else index(argnums)
    except TypeError:
        raise TypeError(
            f"{transform}: argnums is not a position or a tuple of them: {argnums!r}\n"
            "hint: positions are integers: argnums=0, argnums=(0, 2)"
        ) from None
    return Options(transform, positions, bool(has_aux), bool(holomorphic), nan_policy)


def _callable(f: Any, transform: str) -> Callable[..., Any]:
    if not callable(f):
        raise TypeError(
            f"{transform}: a function is wanted: {type(f).__name__}\n"
            f"hint: {transform}(f)(x), not {transform}(f(x))"
        )
    return f  # type: ignore[no-any-return]


def _lower_jit(captured: Captured, key: Signature) -> Lowered:
    del key
    return lower_call(captured)


def _rebuilt(
    transform: Callable[..., Any], f: Any, args: tuple[Any, ...], settings: dict[str, Any]
) -> Any:
    """Make a transformed function again, where it was pickled."""
    return transform(f, *args, **settings)
