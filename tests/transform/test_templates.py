"""Tests of transform/templates.py: rules as they are recorded."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.transform import differentiate
from stagedad.transform.templates import Recorder, Slot
from stagedad.types import parse_type

F = parse_type("f64[3]")


@pytest.fixture
def recorder():
    """Two operands are there already."""
    return Recorder(2)


def kinds(recorder):
    return [kind for kind, *_ in recorder.steps]


def test_what_was_recorded_is_used_again(recorder):
    a, b = Slot(0, F), Slot(1, F)
    first = recorder.emit("sub", (a, b), {})
    assert recorder.emit("sub", (a, b), {}) is first
    assert recorder.emit("sub", (a, b), {"alpha": 1}) is first  # the default, written out
    assert recorder.emit("sub", (b, a), {}) is not first
    assert recorder.emit("sub", (a, b), {"alpha": 2}) is not first
    parts = recorder.emit("split", (a,), {"indices_or_sections": 3, "axis": 0})
    assert recorder.emit("split", (a,), {"indices_or_sections": 3, "axis": 0}) is parts
    assert kinds(recorder) == ["sub", "sub", "sub", "split"]
    assert len({slot.index for slot in (first, *parts)}) == 4


def test_numbers_that_only_compare_equal_are_kept_apart(recorder):
    values = [0, 0.0, -0.0, False, 1, 1.0, True, 0j]
    made = [recorder.emit("constant", (), {"value": value}) for value in values]
    again = [recorder.emit("constant", (), {"value": value}) for value in values]
    assert len({slot.index for slot in made}) == len(values)
    assert made == again


def test_long_arrays_are_kept_apart(recorder):
    one = np.zeros(5000)
    other = one.copy()
    other[2500] = 1
    first, second = (recorder.emit("constant", (), {"value": held}) for held in (one, other))
    assert first is not second
    assert recorder.emit("constant", (), {"value": one}) is first


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_both_partials_of_a_maximum_come_from_one_comparison(kind):
    graph = Graph()
    graph.register_output(graph.insert(kind, graph.add_input(F), graph.add_input(F)))
    emitted = [node.kind for node in differentiate(graph, [True, True]).df.nodes()]
    for step in ("equal", "sub", "heaviside", "where"):
        assert emitted.count(step) == (2 if step == "sub" else 1)
    one = [node.kind for node in differentiate(graph, [False, True]).df.nodes()]
    assert one.count("heaviside") == 1
