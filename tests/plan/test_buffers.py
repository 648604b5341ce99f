"""Tests of plan/_buffers: values that live at the same time never share memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagedad.plan._buffers import Arena, measure, number_slots, place, poison, prune
from stagedad.plan._step import Origin, Step
from stagedad.plan._view import fresh
from stagedad.plan.step import ARENA, CALL, INPUT, OUTPUT, POISON

F8 = np.dtype("f8")
ORIGIN = Origin("test", 0, None)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 500)), max_size=60), st.booleans())
def test_pieces_in_use_are_apart(actions, reuse):
    arena = Arena(reuse)
    used = []
    for is_take, number in actions:
        if is_take or not used:
            start = arena.take(number)
            assert start % 64 == 0
            for other, size in used:
                assert start + number <= other or other + size <= start
            used.append((start, number))
            assert start + number <= arena.size
        else:
            arena.give(*used.pop(number % len(used)))


def test_what_was_freed_is_joined():
    arena = Arena(True)
    pieces = [arena.take(64) for _ in range(4)]
    for start in pieces:
        arena.give(start, 64)
    assert arena.take(256) == 0
    assert arena.size == 256


@st.composite
def random_steps(draw):
    """Steps that read earlier values of some sizes and write new ones."""
    values = [fresh(F8, (draw(st.integers(1, 3)) * 8,)) for _ in range(2)]
    steps = [Step(CALL, ORIGIN, None, (value,), 0) for value in values]
    for _ in range(draw(st.integers(1, 30))):
        reads = [values[draw(st.integers(0, len(values) - 1))] for _ in range(2)]
        write = fresh(
            F8, reads[0].shape if draw(st.booleans()) else (draw(st.integers(1, 40)),)
        )
        step = Step(CALL, ORIGIN, None, (*reads, write), 2)
        step.donates = draw(st.booleans())
        steps.append(step)
        values.append(write)
    values[-1].buffer.space = OUTPUT
    return steps


@given(random_steps(), st.booleans())
def test_every_read_finds_what_was_written(steps, reuse):
    steps = prune(steps)
    measure(steps)
    size = place(steps, reuse=reuse)
    marked = poison(steps)
    owner = {}

    def pieces(buffer):
        return range(buffer.place, buffer.place + buffer.nbytes, 64)

    for step in marked:
        if step.kind == POISON:
            (view,) = step.operands
            for byte in pieces(view.buffer):
                assert owner.get(byte) is view.buffer
                owner[byte] = None
            continue
        for view in step.operands[: step.inputs]:
            if view.buffer.space == ARENA:
                assert all(owner[byte] is view.buffer for byte in pieces(view.buffer))
        for view in step.operands[step.inputs :]:
            if view.buffer.space == ARENA:
                assert view.buffer.place + view.buffer.nbytes <= size
                for byte in pieces(view.buffer):
                    owner[byte] = view.buffer


@given(random_steps())
def test_reuse_takes_no_more_memory(steps):
    steps = prune(steps)
    measure(steps)
    apart = sum(
        -(-buffer.nbytes // 64) * 64
        for buffer in {view.buffer for step in steps for view in step.operands}
        if buffer.space == ARENA
    )
    assert place(steps, reuse=True) <= apart


def test_one_address_is_one_slot():
    a, b = fresh(F8, (4,)), fresh(F8, (4,))
    steps = [Step(CALL, ORIGIN, None, (a, a, b), 2)]
    measure(steps)
    place(steps, reuse=True)
    slots = number_slots(steps)
    assert len(slots) == 2
    assert steps[0].slots == (0, 0, 1)


def test_slots_are_told_apart_however_many_there_are():
    views = [fresh(F8, (1,), INPUT, i) for i in range(500)]
    steps = [Step(CALL, ORIGIN, None, tuple(views), 500)]
    measure(steps)
    slots = number_slots([*steps, *steps])
    assert slots == tuple((INPUT, i, 0) for i in range(500))
    assert steps[0].slots == tuple(range(500))


@pytest.mark.parametrize("donates", [True, False])
def test_an_operand_that_dies_gives_its_place_away(donates):
    a, b = fresh(F8, (4,)), fresh(F8, (4,))
    steps = [Step(CALL, ORIGIN, None, (a,), 0), Step(CALL, ORIGIN, None, (a, b), 1)]
    steps[1].donates = donates
    measure(steps)
    place(steps, reuse=True)
    assert (a.buffer.place == b.buffer.place) == donates
