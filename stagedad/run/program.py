"""compile: a graph becomes a Program, a staged pair a Pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from stagedad.ir import Graph
from stagedad.run._program import Program
from stagedad.run.pair import Pair
from stagedad.run.specialise import Specialisations
from stagedad.transform import Gradient

if TYPE_CHECKING:
    from typing import Literal

BACKENDS = ("numpy",)


@overload
def compile(graph: Graph, backend: Literal["numpy"] = "numpy") -> Program: ...
@overload
def compile(graph: Gradient, backend: Literal["numpy"] = "numpy") -> Pair: ...
def compile(graph: Any, backend: str = "numpy") -> Any:
    """Return `graph` as a Program, or a Gradient as a Pair.

    The program works on a copy: later edits of the graph do not reach it.

    Raises: KernelError if a node is no op of the table; ValueError for a backend
            that is not built.
    """
    if backend not in BACKENDS:
        raise ValueError(
            f"compile: unknown backend: {backend!r}\nhint: built: {', '.join(BACKENDS)}"
        )
    if isinstance(graph, Gradient):
        return Pair(graph)
    if not isinstance(graph, Graph):
        raise TypeError(f"compile: not a Graph or Gradient: {type(graph).__name__}")
    return Program(Specialisations(graph))


def adopt(graph: Graph) -> Program:
    """Return the Program of a graph that the caller will not edit again: no copy is made."""
    return Program(Specialisations(graph, owned=True))
