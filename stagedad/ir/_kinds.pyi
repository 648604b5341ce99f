import re

from stagedad.ops import OPS as OPS
from stagedad.ops.registry import LISTENERS as LISTENERS

KIND: re.Pattern[str]
PLAIN: frozenset[type]

INFERRED_LIMIT: int

def inferred_count() -> int: ...
def clear_inferred() -> None: ...
def note_op(kind: str) -> None: ...
