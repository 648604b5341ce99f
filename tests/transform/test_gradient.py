"""Tests of transform/gradient.py."""

import copy
import pickle

import pytest

from stagedad.ir import Graph
from stagedad.transform import Capture, differentiate


@pytest.fixture
def gradient():
    """The pair of y = tanh(a) * b."""
    graph = Graph()
    a, b = graph.add_input("f64[3]", name="a"), graph.add_input("f64[3]", name="b")
    t = graph.insert("tanh", a, location=("model.py", 7))
    t.name = "t"
    graph.register_output(graph.insert("mul", t, b, location=("model.py", 8)))
    return differentiate(graph, [True, True])


def test_fields_are_lists(gradient):
    assert gradient.f_real_outputs == 1
    for field in ("df_input_captures", "df_input_vjps", "df_output_vjps"):
        assert type(getattr(gradient, field)) is list
    assert gradient.df_input_vjps == [0, 1]
    assert gradient.df_output_vjps == [0, 1]


def test_captures_say_where_they_come_from(gradient):
    first, second = gradient.df_input_captures
    assert (first.kind, first.offset) == (Capture.INPUT, 1)
    assert (second.kind, second.offset) == (Capture.OUTPUT, 1)
    assert Capture.INPUT != Capture.OUTPUT
    assert first == Capture(Capture.INPUT, 1)
    assert first != second
    assert len({first, second, Capture(Capture.OUTPUT, 1)}) == 2


def test_captures_are_described_for_people(gradient):
    first, second = gradient.captures
    assert "b" in first.name
    assert "t" in second.name
    assert (first.bytes, second.bytes) == (24, 24)
    assert str(first.type) == str(second.type) == "f64[3]"
    assert first.producer is None
    assert second.producer == "tanh"
    assert second.location == ("model.py", 7)
    assert "mul" in second.consumers


def test_copies_are_equal(gradient):
    for twin in (copy.deepcopy(gradient), pickle.loads(pickle.dumps(gradient))):
        assert twin.f == gradient.f
        assert twin.df == gradient.df
        assert twin.f_real_outputs == 1
        assert twin.df_input_captures == gradient.df_input_captures
        assert twin.df_input_vjps == gradient.df_input_vjps
        assert twin.df_output_vjps == gradient.df_output_vjps
