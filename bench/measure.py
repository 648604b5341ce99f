"""Timing side by side: interleaved repeats, medians, one thread a library."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from itertools import repeat
from statistics import median
from time import perf_counter, process_time

Work = Callable[[], object]


def one_thread() -> None:
    """Give every library one thread, and BLAS its own choice of kernels.

    Raises: RuntimeError if NumPy is loaded already: its BLAS has read the variables then.
    """
    if "numpy" in sys.modules:
        raise RuntimeError("one_thread: call it before numpy is imported")
    for name in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    eigen = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {eigen}".strip()


def interleaved(
    works: Mapping[str, Work], *, seconds: float = 2.0, shortest: float = 1e-3
) -> dict[str, float]:
    """Time every work in turn, round after round. Returns the median seconds of a call.

    A repeat calls one work until `shortest` seconds have passed or once; rounds go on for
    about `seconds` a work, between 5 and 200 of them. Every round starts with another work,
    so that none always follows the same neighbour through the caches.
    """
    counts = {name: _calls(work, shortest) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    start = perf_counter()
    for turn in range(200):
        if turn >= 5 and perf_counter() - start > seconds * len(names):
            break
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(_repeat(works[name], counts[name]) / counts[name])
    return {name: median(samples) for name, samples in times.items()}


def once(work: Callable[[], object]) -> float:
    """CPU seconds of one call, the only one.

    For work of one thread that lasts longer than the system lets a process run: the clock on
    the wall would count what others on the machine did meanwhile.
    """
    start = process_time()
    work()
    return process_time() - start


def in_turn(works: Mapping[str, Work], *, seconds: float = 2.0) -> dict[str, float]:
    """Time each work in turn, round after round. Returns the median CPU seconds of a call.

    For work that is too long to repeat much: each takes part in three rounds, or in 25 while
    its calls took less than `seconds` together, but in one if that took five times as long.
    Garbage of one is collected before the next.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(25):
        for name, work in works.items():
            spent = sum(times[name])
            if turn and spent > (seconds if turn >= 3 else 5 * seconds):
                continue
            gc.collect()
            times[name].append(once(work))
    return {name: median(samples) for name, samples in times.items()}


def _calls(work: Work, shortest: float) -> int:
    count = 1
    while (taken := _repeat(work, count)) < shortest:
        count = max(count + 1, int(count * min(10, 1.2 * shortest / max(taken, 1e-9))))
    return count


def _repeat(work: Work, count: int) -> float:
    start = perf_counter()
    for _ in repeat(None, count):
        work()
    return perf_counter() - start
