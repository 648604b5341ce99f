from collections.abc import Sequence
from typing import Any

def plain_keys(key: Any, ndim: int) -> list[Any] | None: ...
def basic(
    keys: Sequence[Any], shape: tuple[int, ...]
) -> tuple[dict[str, Any] | None, tuple[int, ...], tuple[int, ...]]: ...
