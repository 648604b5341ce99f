"""`vjp`: a function's value, and the function that pulls cotangents back through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.front.capture import Output, capture
from stagedad.front.elementwise import astype, operand
from stagedad.front.location import place
from stagedad.front.lowering import Options, stopped, wanted
from stagedad.front.signature import Signature, signature
from stagedad.front.tracing import Traced, known_type, owner
from stagedad.front.tree import Tree, flatten, tuple_tree, unflatten
from stagedad.ir import Graph
from stagedad.run import Program
from stagedad.run import compile as compile_program
from stagedad.transform import Capture, Gradient, differentiate, joint
from stagedad.types import TensorType


def vjp(
    f: Callable[..., Any], *primals: Any, has_aux: bool = False, nan_policy: str = "masked"
) -> Any:
    """Return `(f(*primals), pull)`; `pull(cotangent)` gives a tuple, a cotangent each primal.

    `pull` takes what has the structure and shapes of the value, None for zeros; it may
    be called often, and keeps no array that the caller can change.  With `has_aux`, `f`
    returns `(value, aux)` and this `(value, pull, aux)`.

    Raises: TypeError for an integer primal, naming it; ShapeError if a cotangent has
            another shape than the value.
    """
    key, leaves = signature(primals, {})
    options = Options("vjp", tuple(range(len(primals))), has_aux, False, nan_policy)
    flags = wanted(key, key.input_names(f), options)
    captured = capture(f, key, leaves)
    value_tree, aux_tree = captured.tree, None
    graph = captured.graph
    if has_aux:
        if value_tree.kind is not tuple or len(value_tree.children) != 2:
            raise TypeError("vjp: with has_aux=True the function returns a pair (value, aux)")
        value_tree, aux_tree = value_tree.children
        graph = stopped(graph, _numeric(captured.outputs[: value_tree.count]))
    flags += [False] * len(captured.outer)
    gradient = differentiate(graph, flags, nan_policy=nan_policy)
    operands = [v for v, leaf in zip(leaves, key.leaves, strict=True) if leaf.type is not None]
    operands += captured.outer
    pull: _Pull
    if any(isinstance(each, Traced) for each in operands):
        trace = owner(operands)
        dtypes = [known_type(v).dtype for v in graph.inputs]
        outputs: Sequence[Any] = trace.inline(graph, operands, dtypes)
        pull = _Pull(gradient, key, captured.outputs, value_tree, operands)
    else:
        arrays = [
            np.array(
                each, dtype=known_type(value).dtype
            )  # a copy: the caller may change its own
            for each, value in zip(operands, graph.inputs, strict=True)
        ]
        _freeze(gradient.df)
        everything = compile_program(gradient.f)(*arrays)
        pull = _Pull(gradient, key, captured.outputs, value_tree, arrays)
        pull.keep(everything)
        real = [each for each in captured.outputs if each.type is not None]
        outputs = [
            array[()] if output.is_scalar else array
            for array, output in zip(everything[: gradient.f_real_outputs], real, strict=True)
        ]
    following = iter(outputs)
    results = [next(following) if o.type is not None else o.static for o in captured.outputs]
    value = unflatten(value_tree, results[: value_tree.count])
    if aux_tree is None:
        return value, pull
    return value, pull, unflatten(aux_tree, results[value_tree.count :])


class _Pull:
    """The function from cotangents of the value to cotangents of the primals."""

    def __init__(
        self, gradient: Gradient, key: Signature, outputs: list[Output], tree: Tree,
        operands: list[Any],
    ) -> None:  # fmt: skip
        self._gradient = gradient
        self._outputs = outputs[: tree.count]
        self._tree = tree
        self._operands = operands
        self._key = key
        self._primals_tree = tuple_tree(*key.tree.children[0].children)
        self._captures: list[Any] | None = None
        self._program: Program | None = None
        self._joint: Graph | None = None

    def keep(self, outputs: tuple[Any, ...]) -> None:
        """Keep what df reads, of a run of f: copies of what the caller also has."""
        self._captures = []
        for kind, offset in self._gradient.df_input_captures:
            if kind is Capture.INPUT:
                self._captures.append(self._operands[offset])
            elif offset < self._gradient.f_real_outputs:
                self._captures.append(outputs[offset].copy())
            else:
                self._captures.append(outputs[offset])

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Return the cotangents of the primals, a tuple."""
        seeds = self._seeds(cotangent)
        operands = [*self._operands, *seeds]
        if self._captures is None or any(isinstance(seed, Traced) for seed in seeds):
            trace = owner(operands)
            if self._joint is None:
                self._joint = joint(self._gradient)
            dtypes = [known_type(v).dtype for v in self._joint.inputs]
            results: Sequence[Any] = trace.inline(self._joint, operands, dtypes)
            results = results[self._gradient.f_real_outputs :]
        else:
            results = self._run(seeds)
        return unflatten(self._primals_tree, list(results))  # type: ignore[no-any-return]

    def _run(self, seeds: list[Any]) -> list[Any]:
        assert self._captures is not None
        if self._program is None:
            self._program = compile_program(self._gradient.df)
        # Who differentiates df has cotangents for temporaries; here they are zero.
        inputs = self._gradient.df.inputs[len(self._captures) + len(seeds) :]
        zeros = [_zeros(known_type(value)) for value in inputs]
        results = self._program(*self._captures, *seeds, *zeros)
        return [
            array if leaf.kind == "array" else array[()]
            for array, leaf in zip(results, self._key.leaves, strict=True)
        ]

    def _seeds(self, cotangent: Any) -> list[Any]:
        """Return the cotangents that df asks for, in the dtypes of the outputs."""
        leaves: list[Any] = []
        tree = flatten(_without_none(cotangent, self._tree), leaves)
        if tree != self._tree:
            raise TypeError(f"vjp: the cotangent is {tree!r}, the value {self._tree!r}")
        wanted = set(self._gradient.df_input_vjps)
        seeds = []
        offset = -1
        for output, leaf in zip(self._outputs, leaves, strict=True):
            offset += output.type is not None
            if output.type is None or offset not in wanted:
                continue
            if leaf is _ZEROS:
                seeds.append(_zeros(output.type))
                continue
            seed = operand(leaf, "vjp")
            shape = seed.shape if isinstance(seed, Traced) else np.shape(seed)
            if shape != output.type.shape:
                raise ShapeError("vjp", "cotangent and value differ", shape, output.type.shape)
            dtype = seed.dtype if isinstance(seed, Traced) else np.asarray(seed).dtype
            if not np.can_cast(dtype, output.type.dtype, "same_kind"):
                raise DTypeError(
                    f"vjp: a cotangent is {dtype}, the value {output.type.dtype}: {place()}"
                )
            seeds.append(astype(seed, output.type.dtype))
        return seeds


_ZEROS: Final = object()


def _without_none(cotangent: Any, tree: Tree) -> Any:
    """Return `cotangent` with `_ZEROS` where it has None and `tree` leaves."""
    if cotangent is None:
        return unflatten(tree, [_ZEROS] * tree.count)
    if isinstance(cotangent, (list, tuple)) and len(cotangent) == len(tree.children):
        parts = [_without_none(*each) for each in zip(cotangent, tree.children, strict=True)]
        is_named = hasattr(cotangent, "_fields")
        return type(cotangent)(*parts) if is_named else type(cotangent)(parts)
    if isinstance(cotangent, dict) and set(cotangent) == set(tree.keys):
        pairs = zip(tree.keys, tree.children, strict=True)
        parts = [_without_none(cotangent[key], child) for key, child in pairs]
        return type(cotangent)(zip(tree.keys, parts, strict=True))
    return cotangent


def _zeros(type_: TensorType) -> np.ndarray[Any, Any]:
    shape: Any = type_.shape  # known, as in every traced graph
    return np.zeros(shape, type_.dtype)


def _freeze(graph: Graph) -> None:
    """Copy the arrays that the graph holds, so that it computes with what they are now."""
    for node in list(graph.nodes()):
        held = node.attributes["value"] if node.kind == "constant" else None
        if isinstance(held, np.ndarray):
            frozen = graph.create("constant", value=held.copy(), location=node.location)
            frozen.insert_before(node)
            node.output.replace_all_uses_with(frozen.output)
            node.destroy()


def _numeric(outputs: Sequence[Output]) -> int:
    return sum(output.type is not None for output in outputs)
