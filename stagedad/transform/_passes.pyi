from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, final

from stagedad.ir import Graph, Node
from stagedad.types import TensorType

def remove_dead(graph: Graph, effects: Set[str]) -> int: ...
def merge_equal(graph: Graph, pure: Set[str], commutative: Set[str]) -> int: ...
def attributes_key(attributes: dict[str, Any]) -> tuple[Any, ...]: ...
def drop_zeros(graph: Graph, linear: Set[str], products: Set[str]) -> int: ...
def zero_attributes(type: TensorType) -> dict[str, Any]: ...

ANY: str
NUMBERS: str
ZERO: str
UNIT: str
SAME_TYPE: str
TWINS: str

@final
class Triggers:
    def __init__(self, wanted: Mapping[str, Iterable[str | tuple[str, ...]]]) -> None: ...

def hits(graph: Graph, triggers: Triggers) -> Iterator[Node]: ...

@final
class Merger: ...
