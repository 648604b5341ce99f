import re

NAME: re.Pattern[str]

class Slabs: ...

def live_graph_count() -> int: ...
