"""The same rows in other libraries, each called as its own users would call it.

Every module here has `make(row, size) -> step`, where `step()` computes value and gradient
anew and gives `(value, *gradients)`. Preparation, compilation too, happens in `make` or in the
first call of the step. Where a library has arrays of its own, the inputs are converted in
`make` and the results stay as they are: the conversion is not counted against the peer.

Modules of libraries with graphs have a `TRANSFORMING` too: what it costs to get there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from bench.rows import Array, Row

Step = Callable[[], tuple[Any, ...]]
Make = Callable[[Row, int], Step]

PEERS = {
    "numpy f": "numpy_hand:make_value",  # the value alone: what no gradient can beat
    "numpy": "numpy_hand:make",
    "stagedad": "stagedad_peer:make",
    "stagedad joint": "stagedad_peer:make_joint",
    "stagedad buffers": "stagedad_peer:make_buffers",
    "autograd": "autograd_peer:make",
    "jax": "jax_peer:make",
    "casadi": "casadi_peer:make",
    "casadi buffers": "casadi_peer:make_buffers",
    "mygrad": "mygrad_peer:make",
    "torch": "torch_peer:make",
    "torch.compile": "torch_peer:make_compiled",
}


class Transforming(NamedTuple):
    """What a library does with graphs: of `graphs.chain`, n nodes over 16 numbers each.

    Steps prepare outside of what is timed: a call of what they give is the work.
    """

    differentiate: Callable[[int], Callable[[], Any]]
    """A chain of n nodes that is there already; the work gives it with its gradient."""
    results: Callable[..., tuple[Any, ...]]
    """`results(differentiated, a, b, g)`: what that computes, value and gradients."""
    first: Callable[[int, Array], Callable[[], tuple[Any, ...]]]
    """A function of n operations (`graphs.operations`) that nobody has seen; the work gives
    value and gradient at an array."""
    ready: Callable[[Any], Callable[[], Any]] | None = None
    """What `differentiate` gave; the work makes it run."""
    create: Callable[[int], object] | None = None
    """Makes and gives a chain of n nodes, node by node."""


TRANSFORMERS = {
    "stagedad": "stagedad_peer",
    "TorchScript": "torchscript_peer",
    "JAX": "jax_peer",
    "CasADi": "casadi_peer",
}
"""The libraries of table C, by the module that has their `TRANSFORMING`."""


def transforming(name: str) -> Transforming:
    """Give what a library does with graphs.

    Raises: Missing if it cannot be imported; KeyError for a name not in TRANSFORMERS.
    """
    try:
        module = import_module(f"bench.peers.{TRANSFORMERS[name]}")
    except ImportError as error:
        raise Missing(f"{name}: cannot be imported: {error}") from error
    found: Transforming = module.TRANSFORMING
    return found


class Missing(ImportError):  # noqa: N818, it is an answer rather than an error
    """A peer that cannot take part; the message says why."""


def load(name: str) -> Make:
    """Give the `make` of a peer.

    Raises: Missing if its library cannot be imported; KeyError for a name not in PEERS.
    """
    module, _, make = PEERS[name].partition(":")
    try:
        found: Make = getattr(import_module(f"bench.peers.{module}"), make)
    except ImportError as error:
        raise Missing(f"{name}: cannot be imported: {error}") from error
    return found
