"""Cache blocking: runs of elementwise steps go block by block over their elements.

Values that live and die within a run never leave L1: they are a block long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagedad.plan._step import Origin, Step, longest_call
from stagedad.plan._view import Buffer, View
from stagedad.plan.step import ARENA, BLOCK, CALL

FROM = 2048
"""Shortest loop, in elements, that is worth a block's administration."""

CACHE_BYTES = 32768
"""What the values within a block may take, so that they stay in L1."""

LONGEST = 1024
SHORTEST = 256
"""Bounds of a block's length in elements: below, calls cost more than misses."""


def form_blocks(steps: list[Step]) -> list[Step]:
    """Return `steps` with a BLOCK step before each run of at least two that fit together.

    Marks as `local` the buffers that only such a run touches.
    """
    if longest_call(steps) < FROM:
        return steps
    touches: Counter[Buffer] = Counter()
    for step in steps:
        touches.update(view.buffer for view in step.operands)
    result: list[Step] = []
    run = _Run()
    for step in steps:
        if not run.takes(step):
            result.extend(run.closed(touches))
            run = _Run()
            if not run.takes(step):
                result.append(step)
                continue
        run.add(step)
    result.extend(run.closed(touches))
    return result


class _Run:
    """Steps over one iteration space, each reading only element i to write element i.

    Invariant [in step]: what a step of the run wrote, another reads at the same
    offset and stride; and nothing is written that was touched before.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.n = 0
        self.written: dict[Buffer, tuple[int, int]] = {}
        self.touched: set[Buffer] = set()

    def takes(self, step: Step) -> bool:
        if step.kind != CALL or not step.donates or step.dims[0] < FROM:
            return False
        assert step.kernel is not None
        if step.kernel.is_object_call or (self.steps and step.dims[0] != self.n):
            return False
        if step.operands[-1].buffer in self.touched:
            return False
        for view, stride in zip(step.operands[:-1], step.strides, strict=False):
            written = self.written.get(view.buffer)
            if written is not None and written != (view.offset, stride):
                return False
        return True

    def add(self, step: Step) -> None:
        self.n = step.dims[0]
        self.steps.append(step)
        write = step.operands[-1]
        self.written[write.buffer] = (write.offset, step.strides[-1])
        self.touched.update(view.buffer for view in step.operands)

    def closed(self, touches: Counter[Buffer]) -> list[Step]:
        """Return the run's steps, led by a BLOCK step where there are two or more."""
        if len(self.steps) < 2:
            return self.steps
        within: Counter[Buffer] = Counter()
        for step in self.steps:
            within.update(view.buffer for view in step.operands)
        for buffer in self.written:
            buffer.local = buffer.space == ARENA and within[buffer] == touches[buffer]
        head = Step(BLOCK, Origin("block", -1, None), None, (), 0)
        head.count = len(self.steps)
        head.dims = (self.n, _length(self.steps))
        return [head, *self.steps]


def _length(steps: Sequence[Step]) -> int:
    """Return a length at which the values within fit the cache."""
    live = peak = 0
    width = 1
    last = {view.buffer: index for index, step in enumerate(steps) for view in step.operands}
    seen: set[Buffer] = set()
    for index, step in enumerate(steps):
        write: View = step.operands[-1]
        if write.buffer.local:
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
