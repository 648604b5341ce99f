from collections.abc import Sequence
from typing import Any, final

from stagedad.types import TensorType

@final
class Template:
    def __init__(
        self,
        first_slot: int,
        steps: Sequence[
            tuple[str, Sequence[int], dict[str, Any] | None, Sequence[TensorType | None]]
        ],
        results: Sequence[int],
        reads: Sequence[int],
    ) -> None: ...
    @property
    def slot_count(self) -> int: ...
    forwards: tuple[str, ...]
    @property
    def attributes(self) -> tuple[dict[str, Any] | None, ...]: ...
    @property
    def types(self) -> tuple[TensorType | None, ...]: ...
    @property
    def results(self) -> tuple[int, ...]: ...
    @property
    def reads(self) -> tuple[int, ...]: ...
