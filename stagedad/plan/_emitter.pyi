from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stagedad.plan._step import Origin, Step
from stagedad.plan._view import View
from stagedad.plan.kernels import Kernel
from stagedad.types import TensorType

class Emitter:
    steps: list[Step]
    origin: Origin
    @property
    def pool(self) -> bytearray: ...
    @property
    def scattered(self) -> dict[View, Callable[[View], None]]: ...
    def call(self, kernel: Kernel, reads: Sequence[View], write: View) -> View: ...
    def check(
        self, kernel: Kernel, view: View, problem: Callable[[Sequence[Any]], Exception]
    ) -> None: ...
    def zero(self, write: View) -> View: ...
    def strided(
        self,
        kernel: Kernel,
        operands: tuple[View, ...],
        inputs: int,
        dims: tuple[int, ...],
        strides: tuple[int, ...],
        outer: tuple[int, ...] = (),
        problem: Callable[[Sequence[Any]], Exception] | None = None,
        kind: int | None = None,
    ) -> None: ...
    def object_call(
        self,
        kind: str,
        reads: Sequence[View],
        attributes: dict[str, Any],
        results: Sequence[TensorType],
    ) -> tuple[View, ...]: ...
    def sub_program(
        self,
        function: Callable[..., Any],
        reads: Sequence[View],
        results: Sequence[TensorType],
    ) -> tuple[View, ...]: ...
    def elementwise(
        self, ufunc: np.ufunc, reads: Sequence[View], result: TensorType
    ) -> View: ...
    def cast(self, view: View, dtype: np.dtype[Any]) -> View: ...
    def dense(self, view: View) -> View: ...
    def copy(self, view: View, write: View) -> View: ...
    def number(self, value: object, dtype: np.dtype[Any]) -> View: ...
    def table(self, array: np.ndarray[Any, Any]) -> View: ...
    def zeros(self, result: TensorType) -> View: ...
