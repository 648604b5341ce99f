"""`SymbolicValue`: NumPy's operators and functions on graph values, for graphs by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stagedad.errors import ForeignValue, TraceError
from stagedad.ir._graph import Graph
from stagedad.ir._handles import Value
from stagedad.ops import OPS, Op, kind_of
from stagedad.types import TensorType, canonical_dtype

__all__ = ["SymbolicValue"]

_NUMBERS = (bool, int, float, complex, np.generic)


class SymbolicValue:
    """A graph value on which NumPy's operators and functions insert nodes at the graph's end.

    Numbers become constants and are weak, as in NumPy: they take the dtype of the other
    operand.  Nothing is evaluated; what needs numbers (`if x > 0`) raises TraceError.

    >>> graph = Graph()
    >>> x = SymbolicValue(graph.add_input("f64[3]", name="x"))
    >>> y = np.sum(np.tanh(x) * 2)
    >>> graph.register_output(y.value)
    0
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        if not isinstance(value, Value):
            raise TypeError(f"SymbolicValue: a Value is wanted: {type(value).__name__}")
        self.value = value

    @property
    def graph(self) -> Graph:
        """The graph that nodes are inserted into."""
        return self.value.graph

    @property
    def type(self) -> TensorType | None:
        """The type of the value, or None for unknown."""
        return self.value.type

    @property
    def T(self) -> SymbolicValue:  # noqa: N802  (NumPy's name)
        """The value with its axes reversed."""
        return _insert("transpose", self)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> SymbolicValue:
        """Insert `sum`."""
        return _insert("sum", self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> SymbolicValue:
        """Insert `mean`."""
        return _insert("mean", self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> SymbolicValue:
        """Insert `max`."""
        return _insert("max", self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape: Any) -> SymbolicValue:
        """Insert `reshape`; the shape as a tuple or as several numbers."""
        return _insert("reshape", self, shape=shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> SymbolicValue:
        """Insert `transpose`; the axes as a tuple or as several numbers."""
        given = axes[0] if len(axes) == 1 else (axes or None)
        return _insert("transpose", self, axes=given)

    def astype(self, dtype: Any) -> SymbolicValue:
        """Insert `astype`."""
        return _insert("astype", self, dtype=np.dtype(dtype))

    def __neg__(self) -> SymbolicValue:
        return _insert("neg", self)

    def __abs__(self) -> SymbolicValue:
        return _insert("abs", self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **others: Any) -> Any:
        kind = _kinds().get(ufunc) or kind_of(ufunc)
        if kind is None or method != "__call__" or others:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise TraceError(
                f"SymbolicValue: {name}{' with keywords' if others else ''}: no op for it"
                "\nhint: sd.ops lists the ops; graph.insert makes a node of any kind"
            )
        return _insert(kind, *inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Any
    ) -> Any:
        kind = _kinds().get(function)
        if kind is None:
            raise TraceError(
                f"SymbolicValue: numpy.{function.__name__}: no op stands for it\n"
                "hint: sd.ops lists the ops; graph.insert makes a node of any kind"
            )
        return _insert(
            kind, *_operands(OPS[kind], args), **_attributes(OPS[kind], args, kwargs)
        )

    def _is_no_number(self, *_: object) -> Any:
        raise TraceError(
            "SymbolicValue: a graph value has no number yet\n"
            "hint: np.where chooses in the graph; sd.trace runs a function with numbers"
        )

    __bool__ = __float__ = __int__ = __index__ = __complex__ = _is_no_number
    __len__ = __iter__ = __array__ = __getitem__ = _is_no_number
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SymbolicValue({self.value!r})"


def _binary(kind: str, swapped: bool = False) -> Any:
    def operator(self: SymbolicValue, other: Any) -> Any:
        if not isinstance(other, (SymbolicValue, Value, np.ndarray, *_NUMBERS)):
            return NotImplemented
        return _insert(kind, other, self) if swapped else _insert(kind, self, other)

    return operator


for _name, _kind in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow",
    "matmul": "matmul", "floordiv": "floor_divide", "mod": "remainder",
}.items():  # fmt: skip
    setattr(SymbolicValue, f"__{_name}__", _binary(_kind))
    setattr(SymbolicValue, f"__r{_name}__", _binary(_kind, swapped=True))
for _name, _kind in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}.items():  # fmt: skip
    setattr(SymbolicValue, f"__{_name}__", _binary(_kind))


@lru_cache(maxsize=1)
def _kinds() -> dict[Any, str]:
    """NumPy's functions -> the kinds that stand for them."""
    found: dict[Any, str] = {}
    for kind, op in OPS.items():
        function = getattr(np, op.numpy, None) if op.numpy else None
        if function is not None:
            found[op.ufunc or function] = kind
    return found


def _insert(kind: str, *operands: Any, **attributes: Any) -> SymbolicValue:
    """Insert a node into the graph of the symbolic operands, numbers made constants."""
    values = [each.value if isinstance(each, SymbolicValue) else each for each in operands]
    symbolic = [value for value in values if isinstance(value, Value)]
    graph = symbolic[0].graph
    if any(value.graph is not graph for value in symbolic):
        raise ForeignValue(f"{kind}: operands of different graphs")
    nodes = [
        value if isinstance(value, Value) else _constant(graph, value, symbolic)
        for value in values
    ]
    return SymbolicValue(graph.insert(kind, *nodes, **attributes))


def _constant(graph: Graph, value: Any, others: Sequence[Value]) -> Value:
    if isinstance(value, np.ndarray):
        return graph.constant(value)
    if isinstance(value, np.generic):
        return graph.constant(value.item(), dtype=value.dtype)
    if not isinstance(value, _NUMBERS):
        raise TypeError(f"SymbolicValue: no operand: {type(value).__name__}")
    known = [other.type.dtype for other in others if other.type is not None]
    if not known:
        made: Value = graph.insert("constant_like", others[0], value=value)
        return made
    return graph.constant(value, dtype=canonical_dtype(np.result_type(*known, value)))


def _operands(op: Op, args: Sequence[Any]) -> list[Any]:
    """The tensor arguments of a call of NumPy's function for `op`."""
    count = len(op.arguments)
    if len(args) < count:
        raise TraceError(f"SymbolicValue: {op.numpy}: pass arrays by position")
    if op.arguments and op.arguments[-1].is_list:
        return [*args[: count - 1], *args[count - 1]]
    return list(args[:count])


def _attributes(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The other arguments, by the names that the op has for them."""
    rest = args[len(op.arguments) :]
    if len(rest) > len(op.attributes) or set(kwargs) - set(op.attributes):
        raise TraceError(
            f"SymbolicValue: {op.numpy}: takes {', '.join(op.attributes) or 'no keywords'} here"
        )
    return {**dict(zip(op.attributes, rest, strict=False)), **kwargs}
