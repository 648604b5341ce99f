"""Graph to graph: differentiate, joint programs, passes."""

from stagedad.transform.cse import cse
from stagedad.transform.dce import dce
from stagedad.transform.differentiate import differentiate, is_differentiable
from stagedad.transform.gradient import Capture, CaptureInfo, Gradient
from stagedad.transform.joint import joint

__all__ = [
    "Capture",
    "CaptureInfo",
    "Gradient",
    "cse",
    "dce",
    "differentiate",
    "is_differentiable",
    "joint",
]
