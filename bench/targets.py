"""The targets for the rows, with the peers' figures that they were set against.

The figures were measured on two cores of an x86-64 server, one thread, NumPy 2.4. A target
counts as a ratio to a peer measured in the same run, so its limit on another machine, or on a
busy one, is scaled by what the same peer takes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REFERENCES = ("numpy f", "numpy", "autograd")
"""The peers that a target is scaled by. JAX is none: it waits for threads of its own, and on a
busy machine that took 13 times as long as where the targets were set."""


@dataclass(frozen=True)
class Target:
    """What one row and size may take, in microseconds, and what the peers took."""

    row: str
    size: int
    limit: float
    stated: Mapping[str, float]

    def scaled(self, measured: Mapping[str, float]) -> tuple[float, str]:
        """Give the limit on the machine of `measured`, and the peer that scaled it.

        That is the peer which slowed down least, so that a new release of one that became
        slower excuses nothing; and never below the target as it stands, since a peer may have
        become faster.
        """
        ratios = {
            name: measured[name] / self.stated[name]
            for name in REFERENCES
            if name in measured and name in self.stated
        }
        least = min(ratios, key=lambda name: ratios[name], default=None)
        if least is None or ratios[least] <= 1:
            return self.limit, "none"
        return self.limit * ratios[least], least


def _target(row: str, size: int, limit: float, **stated: float) -> Target:
    return Target(row, size, limit, {k.replace("_", " "): v for k, v in stated.items()})


CHAIN = (
    _target("chain", 1, 4, numpy=106, autograd=1860, torch=650, jax=12.4, casadi_buffers=0.5),
    _target("chain", 16, 6, numpy=115, autograd=1840, torch=665, jax=42, casadi_buffers=6),
    _target(
        "chain", 1_000, 60, numpy=405, autograd=2020, torch=965, jax=126, casadi_buffers=434
    ),
    _target("chain", 100_000, 5e3, numpy=50e3, autograd=35e3, torch=53e3, jax=8e3),
    _target("chain", 1_000_000, 55e3, numpy=430e3, autograd=337e3, torch=563e3, jax=84e3),
)
MODELS = (
    _target(
        "rosenbrock", 10, 2, numpy_f=6.0, numpy=7.9, autograd=207, jax=12.2, casadi_buffers=0.43
    ),
    _target("rosenbrock", 1_000, 10, numpy_f=9.0, autograd=245, jax=43, casadi_buffers=34.6),
    _target("logistic", 50, 5, numpy_f=6.3, autograd=201, jax=59),
    _target("mlp", 1, 8, numpy=38.9, autograd=445, jax=62.8, casadi_buffers=7.1, torch=165),
    _target("mlp", 32, 20, numpy=35.2, autograd=438, jax=73, casadi_buffers=108, torch=164),
    _target("mlp", 1_024, 400, jax=445, torch=485),
)
DIFFERENTIATE = 3.0  # microseconds a forward node
DIFFERENTIATED = {"TorchScript": 32.0, "JAX": 290.0, "CasADi": 5.6}  # the same, of 10^4
CREATE = 0.4  # microseconds a node
BYTES = 200  # a node
FREE = 0.1  # microseconds a node
FIRST_RESULT = 15.0  # milliseconds
FIRST_RESULTS = {"JAX": 6_800.0, "CasADi": 30.0}
SCALES = ("CasADi",)  # the peer of table C that limits are scaled by
GROWTH = 6.0  # times, for four times the elements; quadratic is 16
