import re

KIND: re.Pattern[str]
PLAIN: frozenset[type]
