"""Cache blocking: runs of elementwise steps go block by block over their elements.

Values that live and die within a run never leave L1: they are a block long.  Sums
and extrema of all elements go along, piece by piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagedad.plan._step import Origin, Step, longest_call
from stagedad.plan._view import Buffer, View
from stagedad.plan.step import ARENA, BLOCK, CALL, REDUCE

FROM = 2048
"""Shortest loop, in elements, that is worth a block's administration."""

UP_TO = 1 << 40
"""Longest: an array of more is asked for and refused, not worked through for years."""

CACHE_BYTES = 32768
"""What the values within a block may take, so that they stay in L1."""

LONGEST = 1024
SHORTEST = 256
"""Bounds of a block's length in elements: below, calls cost more than misses."""

SMALL = 64
"""A step of so few elements steps aside for a run: it is done before it or after it."""


def form_blocks(steps: list[Step]) -> list[Step]:
    """Return `steps` with a BLOCK step before each run of at least two that fit together.

    Small steps between those of a run are moved before it or behind it.  Marks as
    `local` the buffers that only such a run touches.
    """
    if longest_call(steps) < FROM:
        return steps
    touches: Counter[Buffer] = Counter()
    for step in steps:
        touches.update(view.buffer for view in step.operands)
    result: list[Step] = []
    run = _Run()
    for step in steps:
        if run.takes(step):
            run.add(step)
            continue
        if run.steps and run.sets_aside(step):
            continue
        result.extend(run.closed(touches))
        run = _Run()
        if run.takes(step):
            run.add(step)
        else:
            result.append(step)
    result.extend(run.closed(touches))
    return result


def _goes_in_blocks(step: Step) -> bool:
    """Whether the step reads element i only to write element i, or into a total."""
    if step.kernel is None or not FROM <= step.dims[0] < UP_TO or step.kernel.is_object_call:
        return False
    return (step.kind == CALL and step.donates) or (step.kind == REDUCE and not step.outer)


def _is_small(step: Step) -> bool:
    return step.kind == CALL and step.donates and step.dims[0] <= SMALL


class _Run:
    """Steps over one iteration space, each reading only element i to write element i.

    Invariant [in step]: what a step of the run wrote, another reads at the same
    offset and stride; nothing is written that was touched before; and nobody reads
    a total.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.before: list[Step] = []
        self.after: list[Step] = []
        self.n = 0
        self.written: dict[Buffer, tuple[int, int]] = {}
        self.totals: set[Buffer] = set()
        """What reductions write."""
        self.touched: set[Buffer] = set()
        """Within the run."""
        self.late: set[Buffer] = set()
        """What is written after the run."""
        self.awaited: set[Buffer] = set()
        """What is read or written after the run."""

    def takes(self, step: Step) -> bool:
        if not _goes_in_blocks(step) or (self.steps and step.dims[0] != self.n):
            return False
        for view in step.operands[step.inputs :]:
            if view.buffer in self.touched or view.buffer in self.awaited:
                return False
        for view, stride in zip(step.operands[: step.inputs], step.strides, strict=False):
            if view.buffer in self.totals or view.buffer in self.late:
                return False
            written = self.written.get(view.buffer)
            if written is not None and written != (view.offset, stride):
                return False
        return True

    def add(self, step: Step) -> None:
        self.n = step.dims[0]
        self.steps.append(step)
        self.touched.update(view.buffer for view in step.operands)
        if step.kind == REDUCE:
            self.totals.update(view.buffer for view in step.operands[step.inputs :])
        else:
            write = step.operands[-1]
            self.written[write.buffer] = (write.offset, step.strides[-1])

    def sets_aside(self, step: Step) -> bool:
        """Whether `step` was put before the run or behind it, for others to join the run."""
        if not _is_small(step):
            return False
        write = step.operands[-1].buffer
        if write in self.touched or write in self.awaited:
            return False
        reads = [view.buffer for view in step.operands[: step.inputs]]
        if any(
            buffer in self.written or buffer in self.totals or buffer in self.late
            for buffer in reads
        ):
            self.after.append(step)
            self.late.add(write)
            self.awaited.update(reads, [write])
        else:
            self.before.append(step)
        return True

    def closed(self, touches: Counter[Buffer]) -> list[Step]:
        """Return the run's steps, led by a BLOCK step where there are two or more."""
        if len(self.steps) < 2:
            return [*self.before, *self.steps, *self.after]
        within: Counter[Buffer] = Counter()
        for step in self.steps:
            within.update(view.buffer for view in step.operands)
        for buffer in self.written:
            buffer.local = buffer.space == ARENA and within[buffer] == touches[buffer]
        head = Step(BLOCK, Origin("block", -1, None), None, (), 0)
        head.count = len(self.steps)
        head.dims = (self.n, _length(self.steps))
        return [*self.before, head, *self.steps, *self.after]


def _length(steps: Sequence[Step]) -> int:
    """Return a length at which the values within fit the cache."""
    live = peak = 0
    width = 1
    last = {view.buffer: index for index, step in enumerate(steps) for view in step.operands}
    seen: set[Buffer] = set()
    for index, step in enumerate(steps):
        write: View = step.operands[-1]
        if write.buffer.local:  # never so of a total
            live += 1
            width = max(width, write.dtype.itemsize)
        peak = max(peak, live)
        for view in step.operands:
            buffer = view.buffer
            if buffer.local and last[buffer] == index and buffer not in seen:
                seen.add(buffer)
                live -= 1
    length = LONGEST
    while length > SHORTEST and length * width * max(peak, 1) > CACHE_BYTES:
        length //= 2
    return length
