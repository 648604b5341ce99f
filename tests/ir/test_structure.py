"""Tests of ir/structure.py: equality, fingerprints, copies and clones."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from stagedad.errors import ForeignValue
from stagedad.ir import Graph, parse_graph
from stagedad.transform import differentiate


def build(
    kind="mul", type="f64[3]", name=None, swap=False, number=2.0, stage=0, returned=1, dead=0
):
    """A graph of y = kind(a, b) + number, each part of which can be varied."""
    graph = Graph()
    a, b = graph.add_input(type, name=name), graph.add_input(type)
    for _ in range(dead):
        graph.insert("f").node.destroy()  # uses up ids
    if stage:
        graph.advance_stage()
    c = graph.insert(kind, *((b, a) if swap else (a, b)))
    d = graph.insert("add", c, graph.constant(number))
    for _ in range(returned):
        graph.register_output(d)
    return graph


def test_equal_graphs_are_equal():
    one, two = build(), build()
    assert one == two
    assert one == one
    assert one.fingerprint() == two.fingerprint()


def test_ids_do_not_matter():
    one, two = build(), build(dead=7)
    assert str(one) != str(two)
    assert one == two
    assert one.fingerprint() == two.fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "sub"}, {"type": "f32[3]"}, {"type": "f64[2]"}, {"type": None}, {"swap": True},
        {"number": 3.0}, {"number": -2.0}, {"stage": 1}, {"returned": 2}, {"returned": 0},
    ],
    ids=str,
)  # fmt: skip
def test_different_graphs_are_different(change):
    one, two = build(), build(**change)
    assert one != two
    assert one.fingerprint() != two.fingerprint()


def test_the_order_of_outputs_matters():
    graphs = []
    for order in (0, 1), (1, 0):
        graph = Graph()
        pair = graph.add_input(), graph.add_input()
        for i in order:
            graph.register_output(pair[i])
        graphs.append(graph)
    assert graphs[0] != graphs[1]
    assert graphs[0].fingerprint() != graphs[1].fingerprint()


def test_unused_inputs_matter():
    one, two = build(), build()
    two.add_input("f64[3]")
    assert one != two
    assert one.fingerprint() != two.fingerprint()


def test_constants_compare_by_content():
    def constant(array):
        graph = Graph()
        graph.register_output(graph.constant(array))
        return graph

    array = np.arange(20.0)
    other = array.copy()
    other[7] = -1
    assert constant(array) == constant(array.copy())
    assert constant(array).fingerprint() == constant(array.copy()).fingerprint()
    assert constant(array) != constant(other)
    assert constant(array).fingerprint() != constant(other).fingerprint()
    assert constant(array) != constant(array.astype("f4"))
    assert constant(array) != constant(array.reshape(4, 5))
    with_nan = np.full(20, np.nan)
    assert constant(with_nan) == constant(with_nan.copy())


def test_a_fingerprint_is_the_same_in_another_process():
    code = (
        "from stagedad.ir import parse_graph; import sys;"
        "print(parse_graph(sys.stdin.read()).fingerprint())"
    )
    graph = build(name="x")
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=str(graph),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert prints == {str(graph.fingerprint())}


def test_a_graph_is_no_other_thing():
    assert build() != "graph"
    assert build() is not None
    assert (build() == 3) is False


def test_a_copy_is_equal_and_independent():
    graph = build(name="x")
    before = str(graph)
    twin = graph.copy()
    assert twin == graph
    assert twin.inputs[0].name == "x"
    assert not set(twin.inputs) & set(graph.inputs)
    twin.register_output(twin.inputs[0])
    twin.insert("neg", twin.inputs[0])
    assert twin != graph
    assert str(graph) == before
    twin.verify()
    graph.verify()


def test_a_copy_shares_constant_arrays():
    graph = Graph()
    array = np.arange(30.0)
    graph.register_output(graph.constant(array))
    assert graph.copy().constants[0] is array
    assert graph.copy().outputs[0].node.attributes["value"] is array


def test_a_copy_keeps_everything():
    graph = Graph()
    a = graph.add_input("f64[3]", name="a")
    node = graph.insert("neg", a, location=("m.py", 4), scope="s").node
    graph.advance_stage()
    late = graph.insert("exp", node.output)
    late.name = "late"
    graph.register_output(late)
    twin = graph.copy()
    first, second = twin.nodes()
    assert first.location == ("m.py", 4)
    assert first.scope == "s"
    assert second.stage == second.output.stage == 1
    assert second.output.name == "late"
    assert twin.stage == graph.stage == 1
    assert str(twin.inputs[0].type) == "f64[3]"


@pytest.mark.parametrize(
    "twin_of",
    [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_pythons_copies_are_equal(twin_of):
    graph = Graph()
    a = graph.add_input("f64[3]", name="a")
    b = graph.insert("mul", a, graph.constant(np.arange(3.0)), location=("m.py", 4))
    c = graph.insert("mul", b, graph.constant(np.arange(40.0)[:3]))
    d = graph.insert("f", c, graph.constant(np.arange(60.0)), graph.constant(1, "float32"))
    graph.advance_stage()
    graph.register_output(graph.insert("f", d, x=float("nan"), y=np.dtype("f4"), z=(1, "a")))
    twin = twin_of(graph)
    assert twin is not graph
    assert twin == graph
    assert twin.fingerprint() == graph.fingerprint()
    assert twin.inputs[0].name == "a"
    assert twin.stage == 1
    assert next(node for node in twin.nodes() if node.kind == "mul").location == ("m.py", 4)
    twin.verify()
    twin.insert("neg", twin.inputs[0])
    assert twin != graph


def test_inlines_another_graph():
    inner = build()
    before = str(inner)
    graph = Graph()
    x = graph.add_input("f64[3]")
    y = graph.insert("exp", x)
    (result,) = graph.inline(inner, [y, x])
    graph.register_output(result)
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == ["exp", "mul", "constant", "add"]
    product = next(node for node in graph.nodes() if node.kind == "mul")
    assert product.inputs == (y, x)
    assert str(result.type) == "f64[3]"
    assert str(inner) == before
    graph.verify()


def test_inlines_what_only_passes_through():
    inner = Graph()
    a, b = inner.add_input(), inner.add_input()
    for value in (b, a, a):
        inner.register_output(value)
    graph = Graph()
    x, y = graph.add_input(), graph.add_input()
    assert tuple(graph.inline(inner, (x, y))) == (y, x, x)
    assert len(graph) == 0


def test_inlines_a_graph_twice():
    inner = build(name="a")
    graph = Graph()
    x = graph.add_input("f64[3]", name="a")
    (once,) = graph.inline(inner, [x, x])
    (twice,) = graph.inline(inner, [once, x])
    graph.register_output(twice)
    assert len(graph) == 6
    names = [v.name for node in graph.nodes() for v in node.outputs if v.name]
    assert len(names) == len(set(names))
    graph.verify()


def test_inlines_a_copy_of_itself():
    graph = build()
    (result,) = graph.inline(graph.copy(), graph.inputs)
    assert len(graph) == 6
    graph.register_output(result)
    graph.verify()


def test_inlined_nodes_get_the_stage_of_the_graph():
    graph = Graph()
    x = graph.add_input("f64[3]")
    graph.advance_stage()
    (result,) = graph.inline(build(), [x, x])
    assert result.stage == 1
    graph.verify()


def test_inlined_constants_are_shared():
    array = np.arange(30.0)
    inner = Graph()
    inner.register_output(inner.constant(array))
    graph = Graph()
    (result,) = graph.inline(inner, [])
    assert result.node.attributes["value"] is array
    assert graph.constants[0] is array


@pytest.mark.parametrize("count", [0, 1, 3])
def test_inlining_wants_one_value_an_input(count):
    graph = Graph()
    x = graph.add_input("f64[3]")
    with pytest.raises((ValueError, TypeError)):
        graph.inline(build(), [x] * count)
    assert len(graph) == 0


def test_inlining_refuses_foreign_values():
    inner, graph = build(), Graph()
    x = graph.add_input("f64[3]")
    with pytest.raises(ForeignValue):
        graph.inline(inner, [x, inner.inputs[1]])
    assert len(graph) == 0
    graph.verify()


def test_clones_a_node_into_another_graph():
    graph = Graph()
    a, b = graph.add_input("f64[3]"), graph.add_input("f64[3]")
    node = graph.insert("add", a, b, alpha=3, location=("m.py", 1)).node
    node.output.name = "total"
    other = Graph()
    x, y = other.add_input("f64[3]"), other.add_input("f64[3]")
    clone = node.clone_into(other, {a: x, b: y})
    assert clone.kind == "add"
    assert clone.inputs == (x, y)
    assert clone.graph is other
    assert dict(clone.attributes) == {"alpha": 3}
    assert clone.location == ("m.py", 1)
    assert str(clone.output.type) == "f64[3]"
    assert node.inputs == (a, b)
    if len(other) == 0:
        other.append(clone)
    assert len(other) == 1
    other.verify()


def test_a_clone_never_takes_the_stage_along():
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.advance_stage()
    node = graph.insert("neg", a).node
    other = Graph()
    clone = node.clone_into(other, {a: other.add_input("f64[]")})
    assert clone.stage == clone.output.stage == 0


def test_cloning_wants_every_operand():
    graph = Graph()
    a, b = graph.add_input("f64[3]"), graph.add_input("f64[3]")
    node = graph.insert("add", a, b).node
    other = Graph()
    x = other.add_input("f64[3]")
    with pytest.raises((KeyError, ValueError)):
        node.clone_into(other, {a: x})
    assert len(other) == 0
    assert x.uses == ()


def test_clones_within_a_graph():
    graph = Graph()
    a = graph.add_input("f64[3]")
    node = graph.insert("neg", a).node
    node.output.name = "n"
    clone = node.clone_into(graph, {a: a})
    assert clone != node
    assert clone.output.name != "n"
    assert len(a.uses) == 2


def test_a_clone_may_fill_the_map_for_the_next():
    graph = Graph()
    a = graph.add_input()
    b = graph.insert("f", a)
    c = graph.insert("g", b, b)
    other = Graph()
    values = {a: other.add_input()}
    for node in graph.nodes():
        clone = node.clone_into(other, values)
        for old, new in zip(node.outputs, clone.outputs, strict=True):
            values[old] = new
        if clone not in set(other.nodes()):
            other.append(clone)
    graph.register_output(c)
    other.register_output(values[c])
    assert other == graph


def test_a_parsed_graph_equals_one_built_by_hand():
    text = """graph(%x : f64[3], %y : f64[3]) {
      %p : f64[3] = mul(%x, %y)
      %two : f64[] = constant[value=2.0]()
      %s : f64[3] = add(%p, %two)
      return (%s)
    }"""
    parsed, built = parse_graph(text), build()
    kinds = [node.kind for node in parsed.nodes()]
    assert kinds == [node.kind for node in built.nodes()]
    assert [v.name for v in parsed.inputs] == ["x", "y"]


@pytest.mark.parametrize(
    "twin_of",
    [copy.copy, lambda graph: pickle.loads(pickle.dumps(graph))],
    ids=["copy", "pickle"],
)
def test_copies_know_what_a_derivative_assumed(twin_of):
    graph = Graph()
    a = graph.add_input()
    graph.register_output(graph.insert("mul", a, a))
    df = differentiate(graph, [True]).df
    assert df.assumes_real
    assert twin_of(df).assumes_real
