from collections.abc import Callable, Sequence
from typing import Any, final

from stagedad.errors import NotDifferentiable
from stagedad.ir import Graph, Node, Value
from stagedad.transform._template import Template

TEMPLATES_LIMIT: int

@final
class Sweep:
    captured: list[int]
    temporaries: list[int]
    input_vjps: list[int]
    output_vjps: list[int]
    def __init__(
        self,
        graph: Graph,
        rule_of: Callable[[str], tuple[bytes, bool, bool, tuple[str, ...]]],
        specialise: Callable[..., Template],
        templates: dict[Any, Any],
        whole: bool = False,
    ) -> None: ...
    def activity(self, requires_grad: Sequence[bool]) -> None: ...
    def captures(self, requires_grad: Sequence[bool]) -> None: ...
    def emit(self, requires_grad: Sequence[bool]) -> int: ...
    def take_results(self) -> tuple[Value, ...]: ...
    def split(self, outputs: int) -> tuple[Graph, Graph, list[tuple[bool, int]]]: ...

def located(error: NotDifferentiable, node: Node) -> NotDifferentiable: ...
