"""Running: programs on NumPy's loops, one interpreter for all."""

from stagedad.run._interpreter import idle_memory, limit_idle_memory, live_counts
from stagedad.run._program import Program, clear_programs
from stagedad.run.explaining import Finding, findings
from stagedad.run.listing import Instruction
from stagedad.run.pair import Pair
from stagedad.run.profiling import Profile, Spent
from stagedad.run.program import adopt, compile
from stagedad.run.specialise import CacheInfo

__all__ = [
    "CacheInfo",
    "Finding",
    "Instruction",
    "Pair",
    "Profile",
    "Program",
    "Spent",
    "adopt",
    "clear_programs",
    "compile",
    "findings",
    "idle_memory",
    "limit_idle_memory",
    "live_counts",
]
