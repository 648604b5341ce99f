"""Graph to graph: differentiate, joint programs, passes."""

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
    "Gradient",
    "add_gradients",
    "cse",
    "dce",
    "differentiate",
    "fold",
    "is_differentiable",
    "joint",
    "optimize",
    "simplify",
    "tangent",
]
