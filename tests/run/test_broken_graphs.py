"""What edited graphs, failing steps and odd buffers do to programs: raise, and nothing else."""

import subprocess
import sys

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import DTypeError, KernelError, VerifyError

SCATTER = """graph(%x : f64[5], %g : f64[2], %i : i64[2]) {
  %1 : f64[5] = sin(%x)
  %2 : f64[5] = take_add[axis=0, shape=(5,)](%g, %i)
  %3 : f64[5] = add(%1, %2)
  return (%3)
}"""


def test_an_operation_that_lost_its_operands_is_refused():
    graph = sd.parse_graph(SCATTER)
    graph.outputs[0].node.remove_all_inputs()
    with pytest.raises((TypeError, VerifyError, KernelError)):
        sd.compile(graph)(np.ones(5), np.ones(2), np.array([0, 1]))


@pytest.mark.parametrize("run", [sd.dce, sd.cse, sd.fold, sd.simplify, sd.optimize])
def test_passes_refuse_a_value_that_reads_itself(run):
    graph = sd.Graph()
    x = graph.add_input("f64[3]")
    y = graph.insert("neg", graph.insert("neg", x))
    graph.register_output(y)
    y.node.inputs[0].node.replace_input(0, y)
    with pytest.raises(VerifyError, match="order"):
        run(graph)
    with pytest.raises(VerifyError):
        sd.differentiate(graph, [True])
    with pytest.raises(VerifyError):
        sd.compile(graph)


def test_simplify_leaves_wrong_operand_counts_to_verify(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "0")
    graph = sd.Graph()
    x, one = graph.add_input("f64[3]"), graph.constant(1.0)
    product = graph.insert("mul", x, one)
    graph.register_output(product)
    product.node.add_input(x)
    assert not sd.simplify(graph)
    with pytest.raises(VerifyError):
        graph.verify()


@pytest.mark.parametrize("stage", [-5, 2**40, "one"])
def test_a_stage_is_a_number_of_stages(stage):
    graph = sd.Graph()
    x = graph.add_input("f64[3]")
    node = graph.insert("neg", x).node
    for thing in (x, node, graph):
        with pytest.raises(ValueError, match="stage"):
            thing.stage = stage


def test_editing_the_graph_of_a_program_does_not_change_it():
    graph = sd.Graph()
    x = graph.add_input("f64[?]")
    graph.register_output(graph.insert("sin", x))
    program = sd.compile(graph)
    (before,) = program(np.ones(2))
    inner = program.graph
    inner.outputs[0].replace_all_uses_with(inner.inputs[0])
    assert program(np.ones(2))[0].tolist() == before.tolist()
    assert program(np.ones(3))[0].tolist() == [np.sin(1.0)] * 3


def test_a_pullback_takes_numbers_in_the_declared_dtype():
    graph = sd.Graph()
    x, a = graph.add_input("f32[2]"), graph.add_input("f32[]")
    graph.register_output(graph.insert("mul", x, a))
    pair = sd.compile(sd.differentiate(graph, [True, True]))
    (out,), pull = pair(np.ones(2, "f4"), 2.0)
    dx, da = pull(np.ones(2, "f4"))
    assert out.tolist() == dx.tolist() == [2, 2]
    assert da == 2
    with pytest.raises(DTypeError):
        pair(np.ones(2), 2.0)


def test_an_output_that_overlaps_itself_is_refused():
    graph = sd.Graph()
    x = graph.add_input("f64[2, 3]")
    graph.register_output(graph.insert("neg", x))
    program = sd.compile(graph)
    memory = np.zeros(8)
    overlapping = np.lib.stride_tricks.as_strided(memory, (2, 3), (8, 8))
    with pytest.raises(ValueError, match="overlaps itself"):
        program.run([np.ones((2, 3))], [overlapping])
    assert not memory.any()
    for target in (np.zeros((3, 2)).T, np.zeros((4, 6))[::2, ::-2], np.zeros((2, 3))[::-1]):
        program.run([np.ones((2, 3))], [target])
        assert (target == -1).all()


def test_an_exception_in_a_step_called_as_an_object_is_the_one_raised():
    # A rule that is missing makes its op such a step; in a process of its own.
    script = """
import numpy as np, stagedad as sd
from stagedad.plan import rule
del rule.RULES["take"]
graph = sd.Graph()
x, i = graph.add_input("f64[3]"), graph.add_input("i64[1]")
graph.register_output(graph.insert("take", graph.insert("sin", x), i))
program = sd.compile(graph)
assert program(np.ones(3), np.array([1]))[0] == np.sin(1.0)
try:
    program(np.ones(3), np.array([7]))
except IndexError:
    print("raised")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout == "raised\n", found.stderr
    assert found.stderr == ""
