import re

from stagedad.ops import OPS as OPS

KIND: re.Pattern[str]
PLAIN: frozenset[type]
