from collections.abc import Sequence
from typing import Any

import numpy as np

from stagedad.front.tracing import Trace
from stagedad.ir import Graph, Value
from stagedad.types import TensorType

class Traced:
    _value: Value
    _weak: bool
    _shared: bool
    def __init__(self, trace: Trace, value: Value, weak: bool = False) -> None: ...
    @property
    def _trace(self) -> Trace: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...

def set_tracer_class(cls: type[Traced]) -> None: ...
def new_tracer(trace: Trace, value: Value, weak: bool = False) -> Traced: ...
def emit(
    trace: Trace,
    graph: Graph,
    kind: str,
    values: Sequence[Value],
    attributes: dict[str, Any] | None = None,
) -> Traced: ...
def emit_all(
    trace: Trace,
    graph: Graph,
    kind: str,
    values: Sequence[Value],
    attributes: dict[str, Any] | None = None,
) -> list[Traced]: ...
def quick_two(kind: str, left: Any, right: Any) -> Traced | None: ...
def quick(kind: str, operands: tuple[Any, ...]) -> Traced | None: ...
