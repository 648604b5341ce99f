from typing import Any

from stagedad.run._interpreter import Code

def time_runs(
    code: Code, arrays: tuple[Any, ...], targets: tuple[Any, ...], runs: int
) -> tuple[float, tuple[float, ...]]: ...
