"""What each name of `stagedad.numpy` is: an op, a composite, a constant, or refused and why."""

from __future__ import annotations

import numpy

from stagedad.front.protocol import standing


def support() -> dict[str, tuple[str, str]]:
    """Return the names of NumPy with what they are for traced values, and how.

    The second is the kind of an op, the function of a composite, the advice of a refusal, and
    the type of a constant.
    """
    found = {}
    for name in sorted(numpy.__all__):
        value = getattr(numpy, name, None)
        if isinstance(value, type) or not callable(value):
            found[name] = ("constant", type(value).__name__)
        else:
            found[name] = standing(value)
    return found
