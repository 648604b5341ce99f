"""What a graph costs to run: operations, counted from the declarations and the types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagedad.errors import KernelError, ShapeError
from stagedad.ir import Graph, Node, Value
from stagedad.ops import OPS
from stagedad.ops.formula import bind, evaluate
from stagedad.ops.op import Formula
from stagedad.ops.registry import advice

if TYPE_CHECKING:
    from stagedad.transform.gradient import Gradient

__all__ = ["Cost", "cost", "flops", "flops_by_kind"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What the two programs of a Gradient cost, in units of one addition of one element.

    Counted from the graphs as they are, before a planner leaves anything out, so that the
    figures of two pairs can be compared.
    """

    f: int
    """Operations of f."""
    df: int
    """Operations of df: those of one pullback."""
    captured_bytes: int
    """Size of the arrays that df keeps from f."""
    f_by_kind: Mapping[str, int] = field(hash=False)
    """Operations of f by the kind of its nodes, the costliest first."""
    df_by_kind: Mapping[str, int] = field(hash=False)
    """The same of df."""

    @property
    def ratio(self) -> float:
        """How many times f the pullback costs; infinite where only df computes."""
        if self.f:
            return self.df / self.f
        return float("inf") if self.df else 0.0

    def __str__(self) -> str:
        return (
            f"f {self.f:,} flops, df {self.df:,} flops ({self.ratio:.2f} times f), "
            f"{self.captured_bytes:,} bytes captured"
        )


def cost(gradient: Gradient) -> Cost:
    """Return what `gradient` costs.

    Raises: ShapeError, KernelError as `flops`.
    """
    f, df = flops_by_kind(gradient.f), flops_by_kind(gradient.df)
    count = len(gradient.df_input_captures)
    captured = 0
    for value in gradient.df.inputs[:count]:
        size = _size(value, "a capture", "df")
        captured += size * value.type.dtype.itemsize  # type: ignore[union-attr]
    return Cost(
        f=sum(f.values()),
        df=sum(df.values()),
        captured_bytes=captured,
        f_by_kind=f,
        df_by_kind=df,
    )


def flops(graph: Graph) -> int:
    """Return how many operations `graph` costs, in units of one addition of one element.

    As the ops declare it: a comparison or a choice counts as one, a function as much as it
    takes beside an addition, a matmul 2 m k n, a reduction one an element that it reads; moving
    elements, converting and viewing them is free.  An element counts once whatever its dtype.

    Raises: ShapeError, naming the value, where an op that computes has operands of unknown
            size; KernelError for a node that is no op of the table, or whose op declares
            no flops.

    >>> import numpy as np
    >>> import stagedad as sd
    >>> flops(sd.trace(lambda x: np.sum(np.exp(x)), np.zeros((2, 3))))
    126
    """
    return sum(flops_by_kind(graph).values())


def flops_by_kind(graph: Graph) -> dict[str, int]:
    """Return the operations of `graph` by the kind of its nodes, the costliest first.

    Kinds that compute nothing are left out.  Raises as `flops`.
    """
    found: Counter[str] = Counter()
    for node in graph.nodes():
        found[node.kind] += _node_flops(node)
    return {kind: count for kind, count in found.most_common() if count}


def _node_flops(node: Node) -> int:
    op = OPS.get(node.kind)
    if op is None or op.flops is None:
        problem = "is not an op of the table" if op is None else "declares no flops"
        raise KernelError(
            f"flops: {node.kind}: {problem}: {_place(node)}",
            op=node.kind,
            hint=advice(node.kind) if op is None else "flops= in its registration",
        )
    outputs = node.outputs
    if not isinstance(op.flops, Formula):
        return op.flops and op.flops * sum(_sizes(outputs, node))
    inputs = node.inputs
    _sizes((*inputs, *outputs), node)
    environment = bind(op, inputs, node.attributes.explicit(), outputs)
    count: float = evaluate(op.flops, environment, _NOTHING)
    return round(count)


class _Nothing:
    """The emitter of formulas over sizes, which emit nothing."""

    def emit(self, kind: str, *_: object) -> object:
        raise AssertionError(f"flops: a formula emits {kind}")


_NOTHING = _Nothing()


def _sizes(values: Iterable[Value], node: Node) -> list[int]:
    """Return the number of elements of the operands or results of `node`."""
    return [_size(value, node.kind, _place(node)) for value in values]


def _size(value: Value, what: str, place: str) -> int:
    type_ = value.type
    size = None if type_ is None else type_.size
    if size is None:
        raise ShapeError(
            f"flops: {what}: the size of %{value.name or value.id} is not known: "
            f"{type_ or 'no type'}: {place}",
            op=what,
            hint="give the inputs of the graph types with all dims, as 'f64[2, 3]', before "
            "it is differentiated; sd.trace does",
        )
    return size


def _place(node: Node) -> str:
    if node.location is not None:
        return f"{node.location[0]}:{node.location[1]}"
    names = [f"%{value.name or value.id}" for value in node.outputs]
    return ", ".join(names) or "no outputs"
