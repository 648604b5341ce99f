"""Graph to graph: differentiate, joint programs, passes."""

from stagedad.transform._split import split_stage
from stagedad.transform.cost import Cost, flops
from stagedad.transform.cse import cse
from stagedad.transform.dce import dce
from stagedad.transform.differentiate import differentiate, is_differentiable
from stagedad.transform.fold import fold
from stagedad.transform.gradient import Capture, CaptureInfo, Gradient
from stagedad.transform.joint import add_gradients, joint
from stagedad.transform.optimize import optimize
from stagedad.transform.simplify import simplify
from stagedad.transform.tangent import tangent

__all__ = [
    "Capture",
    "CaptureInfo",
    "Cost",
    "Gradient",
    "add_gradients",
    "cse",
    "dce",
    "differentiate",
    "flops",
    "fold",
    "is_differentiable",
    "joint",
    "optimize",
    "simplify",
    "split_stage",
    "tangent",
]
