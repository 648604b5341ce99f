import re

from stagedad.ops import OPS as OPS

KIND: re.Pattern[str]
PLAIN: frozenset[type]

INFERRED_LIMIT: int

def inferred_count() -> int: ...
def clear_inferred() -> None: ...
