from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_CallerT = TypeVar("_CallerT", bound=type[Caller])

class Shortcut:
    @property
    def key(self) -> Any: ...
    @property
    def entry(self) -> Any: ...
    @property
    def given(self) -> tuple[int, tuple[str, ...]]: ...
    @property
    def used(self) -> int: ...
    def __init__(
        self,
        key: Any,
        entry: Any,
        given: tuple[int, tuple[str, ...]],
        leaves: Sequence[tuple[Any, Any, Any]],
        arguments: Sequence[Any],
        result: Any,
        finish: Callable[[tuple[Any, ...]], Any],
    ) -> None: ...

class Caller:
    _shortcuts: tuple[Shortcut, ...]
    _hits: int
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

def direct(cls: _CallerT) -> _CallerT: ...
