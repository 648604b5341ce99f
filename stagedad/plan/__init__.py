"""The planner: graph and argument layouts -> a plan, which is data."""

from stagedad.plan._step import Origin, Step
from stagedad.plan.graphs import check_kinds, held_arrays
from stagedad.plan.plan import Plan, make_plan, out_of_memory
from stagedad.plan.step import Layout

__all__ = [
    "Layout",
    "Origin",
    "Plan",
    "Step",
    "check_kinds",
    "held_arrays",
    "make_plan",
    "out_of_memory",
]
