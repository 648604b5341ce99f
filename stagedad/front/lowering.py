"""From the graph that a function wrote to the graph that a transform runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stagedad.errors import NotScalar
from stagedad.front.capture import Captured, Output
from stagedad.front.signature import Leaf, Signature
from stagedad.front.tree import LEAF, Tree, flatten, tuple_tree
from stagedad.ir import Graph, Value
from stagedad.transform import add_gradients, optimize


class Options(NamedTuple):
    """The choices of a gradient."""

    transform: str
    argnums: int | tuple[int, ...] = 0
    has_aux: bool = False
    holomorphic: bool = False
    nan_policy: str = "masked"

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the arguments to differentiate."""
        return (self.argnums,) if isinstance(self.argnums, int) else self.argnums


class Lowered(NamedTuple):
    """A graph with the inputs of what was captured, and how its outputs make the result."""

    graph: Graph
    tree: Tree
    outputs: tuple[Output, ...]
    is_scalar: tuple[bool, ...]
    """Whether an output of the graph is given as a NumPy scalar."""


def lower_call(captured: Captured) -> Lowered:
    """Lower for `jit`: the graph as it is, without what nobody needs."""
    graph = captured.graph
    optimize(graph)
    is_scalar = tuple([each.is_scalar for each in captured.outputs if each.type is not None])
    return Lowered(graph, captured.tree, tuple(captured.outputs), is_scalar)


def lower_gradient(
    captured: Captured, signature: Signature, names: Sequence[str], options: Options
) -> Lowered:
    """Lower for `grad` and `value_and_grad`: value, gradient and auxiliaries in one graph.

    The captured graph itself is extended.
    """
    value, aux_tree, aux = _split_result(captured, options)
    _check_result(value, options)
    flags = wanted(signature, names, options)
    graph = captured.graph
    if aux:
        graph = stopped(graph, 1)
    outer = [False] * (len(graph.inputs) - len(flags))
    outputs, grads = add_gradients(graph, flags + outer, nan_policy=options.nan_policy)
    if options.holomorphic:
        grads = tuple([graph.insert("conj", each) for each in grads])
    head = [_Slot(value, outputs[0], value.is_scalar)]
    rest = iter(outputs[1:])
    aux_slots = [
        _Slot(each, None if each.type is None else next(rest), each.is_scalar) for each in aux
    ]
    grad_tree, grad_slots = _gradients(signature, options, flags, grads)
    if options.transform == "grad":
        slots = grad_slots + aux_slots
        tree = tuple_tree(grad_tree, aux_tree) if options.has_aux else grad_tree
    else:
        slots = head + aux_slots + grad_slots
        tree = tuple_tree(tuple_tree(LEAF, aux_tree) if options.has_aux else LEAF, grad_tree)
    for slot in slots:
        if slot.value is not None:
            graph.register_output(slot.value)
    optimize(graph)
    is_scalar = tuple([slot.is_scalar for slot in slots if slot.value is not None])
    return Lowered(graph, tree, tuple([slot.output for slot in slots]), is_scalar)


class _Slot(NamedTuple):
    """A leaf of the result and the graph's value for it."""

    output: Output
    value: Value | None
    is_scalar: bool


def _gradients(
    signature: Signature, options: Options, flags: Sequence[bool], grads: Sequence[Value]
) -> tuple[Tree, list[_Slot]]:
    """Return the structure of the gradient, like the arguments', and its leaves."""
    numeric = [i for i, leaf in enumerate(signature.leaves) if leaf.type is not None]
    chosen = [i for i, flag in zip(numeric, flags, strict=True) if flag]
    by_leaf = dict(zip(chosen, grads, strict=True))
    children = signature.tree.children[0].children
    trees, slots = [], []
    for position in options.positions:
        at = position % len(children)
        trees.append(children[at])
        for i in signature.leaves_of(at):
            leaf = signature.leaves[i]
            slots.append(_Slot(Output(leaf.type), by_leaf[i], leaf.kind != "array"))
    return (trees[0] if isinstance(options.argnums, int) else tuple_tree(*trees)), slots


def wanted(signature: Signature, names: Sequence[str], options: Options) -> list[bool]:
    """Return which inputs to differentiate, a flag each leaf that is no static value.

    Raises: TypeError naming the argument if one cannot be differentiated.
    """
    count = len(signature.tree.children[0].children)
    chosen: set[int] = set()
    for position in options.positions:
        if not -count <= position < count:
            raise TypeError(
                f"{options.transform}: argnums={options.argnums!r} of a call with {count} "
                "positional arguments"
            )
        chosen.update(signature.leaves_of(position % count))
    for i in sorted(chosen):
        _check_argument(signature.leaves[i], names[i], options)
    return [i in chosen for i, leaf in enumerate(signature.leaves) if leaf.type is not None]


def _check_argument(leaf: Leaf, name: str, options: Options) -> None:
    if leaf.type is None:
        raise TypeError(
            f"{options.transform}: argument `{name}` is a {leaf.kind.__qualname__}, which has "
            "no gradient\nhint: choose other arguments with argnums="
        )
    if not leaf.type.is_inexact:
        number = leaf.kind == "weak"
        fix = f"float({name})" if number else f"{name}.astype(float)"
        what = "an int" if number else str(leaf.type)
        raise TypeError(
            f"{options.transform}: argument `{name}` is {what}, which carries no gradient\n"
            f"hint: pass {fix}, or choose other arguments with argnums="
        )
    if options.holomorphic and leaf.type.dtype.kind != "c":
        raise TypeError(
            f"{options.transform}: argument `{name}` is {leaf.type}: holomorphic=True is for "
            f"complex arguments\nhint: pass {name}.astype(complex)"
        )


def _split_result(captured: Captured, options: Options) -> tuple[Output, Tree, list[Output]]:
    """Return the value, and structure and leaves of the auxiliary results."""
    tree = captured.tree
    if options.has_aux:
        if tree.kind is not tuple or len(tree.children) != 2:
            raise TypeError(
                f"{options.transform}: with has_aux=True the function returns a pair "
                f"(value, aux): {tree!r}"
            )
        value_tree, aux_tree = tree.children
    else:
        value_tree, aux_tree = tree, flatten(None, [])
    if value_tree is not LEAF and value_tree != LEAF:
        raise NotScalar(
            f"{options.transform}: the function returns {value_tree!r}, not a scalar",
            hint="has_aux=True keeps further results" if value_tree.count else "return a value",
        )
    return captured.outputs[0], aux_tree, list(captured.outputs[1:])


def _check_result(value: Output, options: Options) -> None:
    if value.type is None:
        raise TypeError(f"{options.transform}: the function returns a {type(value.static)}")
    if value.type.shape != ():
        raise NotScalar(
            f"{options.transform}: the function returns {value.type}, not a scalar",
            hint="sum it, or use sd.vjp or sd.jacobian",
        )
    if value.type.dtype.kind == "c" and not options.holomorphic:
        raise TypeError(
            f"{options.transform}: the function returns {value.type}: the gradient is of a "
            "real value\nhint: return np.real(...) or np.abs(...); holomorphic=True for f'(z)"
        )
    if not value.type.is_inexact:
        raise TypeError(f"{options.transform}: the function returns {value.type}, not a float")
    if options.holomorphic and value.type.dtype.kind != "c":
        raise TypeError(
            f"{options.transform}: the function returns {value.type}: holomorphic=True is for "
            "complex results"
        )


def stopped(graph: Graph, first: int) -> Graph:
    """Return a copy in which the outputs from `first` on pass no gradient back."""
    result = Graph()
    operands = [result.add_input(v.type, name=v.name) for v in graph.inputs]
    for i, value in enumerate(result.inline(graph, operands)):
        result.register_output(value if i < first else result.insert("stop_gradient", value))
    return result
