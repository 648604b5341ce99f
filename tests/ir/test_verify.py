"""Tests of ir/verify.py: each invariant, broken on purpose."""

import pytest

from stagedad.errors import StagedadError, VerifyError
from stagedad.ir import Graph


@pytest.fixture
def chain():
    """Two nodes: c = a * b; d = -c; d is returned."""
    graph = Graph()
    a, b = graph.add_input("f64[3]", name="a"), graph.add_input("f64[3]", name="b")
    c = graph.insert("mul", a, b)
    d = graph.insert("neg", c)
    graph.register_output(d)
    graph.verify()
    return graph, a, b, c, d


def test_a_sound_graph_passes(chain):
    assert chain[0].verify() is None


def test_an_operand_must_be_computed_before(chain):
    graph, *_, c, d = chain
    c.node.move_after(d.node)
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()
    d.node.move_after(c.node)
    graph.verify()


def test_a_node_must_not_read_itself(chain):
    graph, *_, d = chain
    d.node.replace_input(0, d)
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()


def test_an_operand_must_be_attached(chain):
    graph, a, b, _, d = chain
    loose = graph.create("mul", a, b)
    d.node.replace_input(0, loose.output)
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()
    loose.insert_before(d.node)
    graph.verify()


def test_an_output_must_be_attached(chain):
    graph, a, *_ = chain
    loose = graph.create("neg", a)
    graph.register_output(loose.output)
    with pytest.raises(VerifyError):
        graph.verify()
    graph.append(loose)
    graph.verify()


def test_an_unattached_node_that_nobody_reads_is_sound(chain):
    graph, a, *_ = chain
    graph.create("neg", a)
    graph.verify()


def test_a_node_must_not_read_a_later_stage(chain):
    graph, *_, d = chain
    graph.advance_stage()
    late = graph.insert("neg", d)
    d.node.replace_input(0, late)
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()


def test_nodes_must_be_sorted_by_stage(chain):
    graph, a, *_ = chain
    graph.advance_stage()
    graph.insert("exp", a)
    with graph.set_stage_temporarily(0):
        graph.insert("sin", a)
    with pytest.raises(VerifyError, match="sin"):
        graph.verify()


def test_a_node_may_read_an_earlier_stage(chain):
    graph, a, *_, d = chain
    graph.advance_stage()
    graph.register_output(graph.insert("mul", a, d))
    graph.verify()


def test_inputs_must_be_sorted_by_stage():
    graph = Graph()
    graph.advance_stage()
    graph.add_input("f64[]")
    with graph.set_stage_temporarily(0):
        graph.add_input("f64[]")
    with pytest.raises(VerifyError):
        graph.verify()


@pytest.mark.parametrize("type", ["f64[4]", "f32[3]", "f64[]", "f64[3, 1]", "i64[3]"])
def test_a_type_must_be_what_the_op_gives(chain, type):
    graph, *_, c, _ = chain
    c.type = type
    with pytest.raises(VerifyError, match="mul"):
        graph.verify()


def test_operands_must_fit_the_op(chain):
    graph, a, *_ = chain
    a.type = "f64[7]"
    with pytest.raises(VerifyError, match="mul"):
        graph.verify()


@pytest.mark.parametrize("type", [None, "f64[?]", "f64[*]"])
def test_less_may_be_known_than_the_op_gives(chain, type):
    graph, *_, d = chain
    d.type = type
    graph.verify()


@pytest.mark.parametrize("type", [None, "f64[?]", "f64[*]"])
def test_more_may_be_known_than_the_op_gives(chain, type):
    graph, a, b, c, d = chain
    for value in (a, b):
        value.type = type
    assert str(c.type) == str(d.type) == "f64[3]"
    graph.verify()


def test_a_node_must_have_the_operands_of_its_op(chain):
    graph, a, _, c, _ = chain
    c.node.remove_input(1)
    with pytest.raises(VerifyError, match="mul"):
        graph.verify()
    c.node.add_input(a)
    graph.verify()
    c.node.add_input(a)
    with pytest.raises(VerifyError, match="mul"):
        graph.verify()


def test_a_node_must_have_the_outputs_of_its_op(chain):
    graph, *_, d = chain
    d.node.add_output()
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()


def test_a_node_whose_output_was_erased_is_refused(chain):
    graph, a, *_ = chain
    graph.insert("neg", a).node.erase_output(0)
    with pytest.raises(VerifyError, match="neg"):
        graph.verify()


def test_attributes_must_fit_the_op(chain):
    graph, a, *_ = chain
    total = graph.insert("sum", a, axis=0)
    try:
        total.node.attributes["axis"] = 5
    except (StagedadError, ValueError):
        return
    with pytest.raises(VerifyError, match="sum"):
        graph.verify()


def test_the_graph_travels_as_a_note(chain):
    graph, *_, c, d = chain
    c.node.move_after(d.node)
    with pytest.raises(VerifyError) as caught:
        graph.verify()
    assert "graph(" not in str(caught.value)
    assert any("graph(" in note for note in caught.value.__notes__)


def test_a_broken_graph_can_still_be_printed(chain):
    graph, a, _, c, d = chain
    c.node.move_after(d.node)
    loose = graph.create("neg", a)
    d.node.replace_input(0, loose.output)
    assert "neg" in str(graph)
    assert repr(graph)


def test_a_violation_is_an_assertion_error(chain):
    graph, *_, c, _ = chain
    c.type = "f64[4]"
    with pytest.raises(AssertionError):
        graph.verify()


def test_verifying_changes_nothing(chain):
    graph, *_, c, _ = chain
    before = graph.fingerprint()
    graph.verify()
    assert graph.fingerprint() == before
    c.type = "f64[4]"
    before = graph.fingerprint()
    with pytest.raises(VerifyError):
        graph.verify()
    assert graph.fingerprint() == before
