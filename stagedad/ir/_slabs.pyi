import re

NAME: re.Pattern[str]

class Slabs:
    assumes_real: bool

def live_graph_count() -> int: ...
