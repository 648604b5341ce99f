"""What every pass shares: the contract, and the check after it under `STAGEDAD_CHECK=1`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps

from stagedad.errors import VerifyError
from stagedad.ir import Graph
from stagedad.ir.verify import check_order

__all__ = ["graph_pass"]


def graph_pass(run: Callable[[Graph], bool]) -> Callable[[Graph], bool]:
    """Make `run` a pass: it edits the graph in place and returns whether it changed anything.

    Raises: VerifyError, before anything is changed, if an operand is not computed earlier.
    Under `STAGEDAD_CHECK=1` the whole graph is verified afterwards.
    """

    @wraps(run)
    def checked(graph: Graph) -> bool:
        check_order(graph)
        changed = run(graph)
        if os.environ.get("STAGEDAD_CHECK") == "1":
            try:
                graph.verify()
            except VerifyError as error:
                error.add_note(f"after pass `{run.__name__}`")
                raise
        return changed

    return checked
