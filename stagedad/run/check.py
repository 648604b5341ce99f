"""STAGEDAD_CHECK=1: a plan must give the same with and without reuse of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagedad.errors import VerifyError
from stagedad.plan import Plan
from stagedad.run.listing import listing

Arrays = tuple[np.ndarray[Any, Any], ...]


def compare(plan: Plan, results: Arrays, others: Arrays) -> None:
    """Raise VerifyError if outputs differ in a bit that is no nan's payload."""
    for index, (result, other) in enumerate(zip(results, others, strict=True)):
        inexact = result.dtype.kind in "fc"
        if not np.array_equal(result, other, equal_nan=inexact):
            error = VerifyError(f"plan: reuse of memory changes output {index}")
            error.add_note("\n".join(map(str, listing(plan))))
            raise error
