from collections.abc import Sequence
from typing import Any

from stagedad.front._reach import Reach

class Shortcut:
    def __init__(
        self,
        leaves: Sequence[tuple[Any, Any]],
        arguments: Sequence[Any],
        program: Any,
        result: Any,
        is_scalar: Sequence[bool],
        reach: Reach,
    ) -> None: ...

class Caller:
    _shortcut: Shortcut | None
    _hits: int
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...
