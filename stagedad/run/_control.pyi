from collections.abc import Sequence
from typing import Any

from stagedad.plan.control import SubProgram

class Control:
    def __init__(self, described: SubProgram) -> None: ...
    def __call__(self, arrays: list[Any]) -> Sequence[Any]: ...
