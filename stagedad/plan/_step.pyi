from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from stagedad.plan._view import View
from stagedad.plan.kernels import Kernel

@final
class Origin:
    def __init__(self, op: str, node: int, location: tuple[str, int] | None) -> None: ...
    @property
    def op(self) -> str: ...
    @property
    def node(self) -> int: ...
    @property
    def location(self) -> tuple[str, int] | None: ...

@final
class Step:
    kind: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    slots: tuple[int, ...]
    donates: bool
    function: Callable[[Sequence[Any]], Sequence[Any]] | None
    problem: Callable[[Sequence[Any]], Exception] | None
    count: int
    moving: tuple[tuple[int, int], ...]
    def __init__(
        self,
        kind: int,
        origin: Origin,
        kernel: Kernel | None,
        operands: tuple[View, ...],
        inputs: int,
        dims: tuple[int, ...] = (),
        strides: tuple[int, ...] = (),
        outer: tuple[int, ...] = (),
    ) -> None: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def kernel(self) -> Kernel | None: ...
    @property
    def operands(self) -> tuple[View, ...]: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outer(self) -> tuple[int, ...]: ...
    @property
    def calls(self) -> int: ...
    def described(self) -> list[tuple[int, np.dtype[Any], list[int], list[int]]]: ...
    def nanoseconds(self) -> float: ...
    def explain(self, arrays: Sequence[Any]) -> Exception: ...
    def annotate(self, error: BaseException) -> None: ...

def estimate(steps: list[Step]) -> float: ...
def longest_call(steps: list[Step]) -> int: ...
