"""Staged automatic differentiation for NumPy code.

A function becomes a graph, `differentiate` splits the graph into an explicit pair of programs
f and df, and an interpreter runs them on NumPy's own inner loops.

>>> import numpy as np
>>> import stagedad as sd
>>> sd.grad(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
array([2., 4.])
"""

from stagedad import errors, ops
from stagedad.front import (
    cache_info,
    clear_caches,
    explain,
    grad,
    jit,
    register_op,
    register_ufunc,
    stop_gradient,
    trace,
    value_and_grad,
    vjp,
)
from stagedad.ir import Graph, Node, SymbolicValue, Use, Value, parse_graph
from stagedad.run import Pair, Program, compile
from stagedad.transform import (
    Capture,
    Gradient,
    cse,
    dce,
    differentiate,
    fold,
    is_differentiable,
    optimize,
    simplify,
)
from stagedad.types import TensorType

__version__ = "0.1.0"

__all__ = [
    "Capture",
    "Gradient",
    "Graph",
    "Node",
    "Pair",
    "Program",
    "SymbolicValue",
    "TensorType",
    "Use",
    "Value",
    "cache_info",
    "clear_caches",
    "compile",
    "cse",
    "dce",
    "differentiate",
    "errors",
    "explain",
    "fold",
    "grad",
    "is_differentiable",
    "jit",
    "ops",
    "optimize",
    "parse_graph",
    "register_op",
    "register_ufunc",
    "simplify",
    "stop_gradient",
    "trace",
    "value_and_grad",
    "vjp",
]
