"""Tracing of NumPy code, and the transforms of functions."""

from stagedad.front.caches import cache_info, clear_caches
from stagedad.front.checking import Checked
from stagedad.front.explain import Explanation, explain
from stagedad.front.registering import register_op, register_ufunc
from stagedad.front.stopping import stop_gradient
from stagedad.front.tracer import Tracer
from stagedad.front.transforms import grad, jit, trace, value_and_grad
from stagedad.front.tree import flatten, tree_map, unflatten
from stagedad.front.vjp import vjp

__all__ = [
    "Checked",
    "Explanation",
    "Tracer",
    "cache_info",
    "clear_caches",
    "explain",
    "flatten",
    "grad",
    "jit",
    "register_op",
    "register_ufunc",
    "stop_gradient",
    "trace",
    "tree_map",
    "unflatten",
    "value_and_grad",
    "vjp",
]
