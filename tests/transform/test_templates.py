"""Tests of transform/templates.py: rules as they are recorded."""

import importlib

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph
from stagedad.transform import differentiate
from stagedad.transform.templates import Recorder, Slot, specialise
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


def test_one_template_does_for_all_slices(monkeypatch):
    """What only a slice's bounds tell apart is differentiated by one rule, each by its own."""
    module = importlib.import_module("stagedad.transform.differentiate")
    calls = []

    def counted(kind, *args, **kwargs):
        calls.append(kind)
        return specialise(kind, *args, **kwargs)

    monkeypatch.setattr(module, "specialise", counted)
    for table in module._templates.values():
        table.clear()
    x = np.arange(1.0, 13.0)
    graph = sd.trace(lambda x: sum((i + 1) * x[i : 12 : i + 1][:1] ** 2 for i in range(12)), x)
    gradient = sd.differentiate(graph, [True])
    second = sd.differentiate(gradient.df, [True] * len(gradient.df.inputs))
    (found,) = sd.compile(gradient).joint(x, np.ones(1))[1:]
    np.testing.assert_array_equal(found, 2 * x * np.arange(1, 13))
    assert calls.count("slice") <= 14  # lengths differ at first, never the bounds alone
    assert calls.count("unslice") <= 14
    assert len(second.df_output_vjps) == len(gradient.df.inputs)
