from collections.abc import Sequence

from stagedad.ir import Graph
from stagedad.plan._step import Step
from stagedad.plan._view import View
from stagedad.plan.control import PlanBlock
from stagedad.plan.step import Layout
from stagedad.types import TensorType

class Lowered:
    def __init__(
        self,
        steps: list[Step],
        pool: bytes,
        outputs: tuple[View, ...],
        types: tuple[TensorType, ...],
    ) -> None: ...
    @property
    def steps(self) -> list[Step]: ...
    @property
    def pool(self) -> bytes: ...
    @property
    def outputs(self) -> tuple[View, ...]: ...
    @property
    def types(self) -> tuple[TensorType, ...]: ...

def lower(graph: Graph, layouts: Sequence[Layout], plan_block: PlanBlock) -> Lowered: ...

class Patterns: ...
