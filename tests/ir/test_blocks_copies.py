"""Tests of ir/_blocks: copies and text of nodes with blocks; deep nesting, and many of them."""

import copy
import os
import pickle

import pytest

from stagedad.errors import ForeignValue, StaleHandle, VerifyError
from stagedad.ir import Graph, Value, parse_graph
from stagedad.transform import dce

pytestmark = pytest.mark.usefixtures("shallow_stack")


def kinds(nodes):
    return [node.kind for node in nodes]


def shape(node):
    return node.kind, [[shape(inside) for inside in block] for block in node.blocks]


COPIES = {
    "copy": lambda graph: graph.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "text": lambda graph: parse_graph(str(graph)),
    "pickle": lambda graph: pickle.loads(pickle.dumps(graph)),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_have_the_blocks(branch, way):
    inner = branch.other.insert("If", branch.p).node
    inner.add_block().add_input("f64[2]", name="q")
    inner.add_block().register_output(branch.b)
    branch.x.name = "named"
    twin = COPIES[way](branch.graph)
    assert twin == branch.graph
    assert twin.fingerprint() == branch.graph.fingerprint()
    assert [*map(shape, twin)] == [*map(shape, branch.graph)]
    owner = next(iter(twin))
    assert owner.blocks[0].node == owner
    assert next(iter(owner.blocks[0])).output.name == "named"
    assert next(iter(owner.blocks[1])).blocks[0].inputs[0].name == "q"
    owner.blocks[0].insert("more")
    assert len(branch.then) == 2
    assert twin != branch.graph
    assert twin.fingerprint() != branch.graph.fingerprint()
    twin.verify()


def test_what_is_in_blocks_tells_graphs_apart(new_branch):
    texts = set()
    for edit in (
        lambda _: None,
        lambda b: b.then.add_input(),
        lambda b: b.then.add_input("f64[]"),
        lambda b: b.then.register_output(b.x),
        lambda b: b.then.erase_output(0),
        lambda b: b.y.node.replace_input(1, b.a),
        lambda b: b.owner.add_block(),
        lambda b: b.last.add_block(),
        lambda b: b.other.insert("f"),
        lambda b: b.then.insert("f"),
        lambda b: b.graph.insert("f"),
        lambda b: b.x.node.attributes.update(k=1),
        lambda b: setattr(b.x, "type", "f64[]"),
    ):
        branch = new_branch()
        edit(branch)
        assert branch.graph == branch.graph.copy()
        texts.add(branch.graph.fingerprint())
        if len(texts) > 1:
            assert branch.graph != new_branch().graph
    assert len(texts) == 13


def test_clones_across_graphs(branch):
    other = Graph()
    names = {each: other.add_input(each.type) for each in (branch.p, branch.a, branch.b)}
    clone = branch.owner.clone_into(other, names)
    other.register_output(names[branch.owner.output])
    assert shape(clone) == shape(branch.owner)
    assert clone.closed_over == (names[branch.a], names[branch.b])
    assert clone.inputs == (names[branch.p],)
    assert set(names) == {branch.p, branch.a, branch.b, branch.owner.output}
    other.verify()
    branch.graph.verify()


@pytest.mark.parametrize("missing", ["p", "a", "b"])
def test_clones_want_what_the_blocks_read(branch, missing):
    other = Graph()
    names = {getattr(branch, each): other.add_input() for each in "pab"}
    del names[getattr(branch, missing)]
    with pytest.raises(KeyError, match=missing):
        branch.owner.clone_into(other, names)
    assert len(other) == 0
    assert all(value.uses == () for value in other.inputs)
    names[getattr(branch, missing)] = branch.a
    with pytest.raises(ForeignValue):
        branch.owner.clone_into(other, names)
    assert len(other) == 0
    other.verify()


@pytest.mark.parametrize("how", ["clone_into", "inline"])
def test_a_broken_node_leaves_nothing_where_it_cannot_be_cloned(branch, how):
    branch.x.node.move_after(branch.y.node)
    other = Graph()
    names = {v: other.add_input(v.type) for v in branch.graph.inputs}
    call = {
        "clone_into": lambda: branch.owner.clone_into(other, names),
        "inline": lambda: other.inline(branch.graph, names.values()),
    }[how]
    with pytest.raises(VerifyError, match="reads %"):
        call()
    assert len(other) == 0
    assert all(value.uses == () for value in other.inputs)


def test_clones_within_a_graph_and_into_a_block(branch):
    same = {each: each for each in (branch.p, branch.a, branch.b)}
    with branch.graph.inside(branch.other):
        branch.last.clone_into(branch.graph, {branch.owner.output: branch.a})
    clone = branch.owner.clone_into(branch.graph, same)
    with branch.graph.inside(branch.then):
        again = clone.clone_into(branch.graph, same)
    assert again.block == branch.then
    assert shape(again) == shape(clone) == ("If", [[("f", []), ("g", [])], [("h", [])]])
    branch.graph.verify()


def test_inlines_blocks(branch):
    graph = Graph()
    p, x = graph.add_input("b1[]"), graph.add_input("f64[3]")
    owner = graph.insert("If", p, outputs=0)
    assert owner == ()
    block = next(iter(graph)).add_block()
    with graph.inside(block):
        (inner,) = graph.inline(branch.graph, [p, x, x])
    block.register_output(inner)
    (outer,) = graph.inline(branch.graph, [p, x, x])
    graph.register_output(outer)
    assert kinds(graph.nodes(nested=True)) == ["If", *["If", "f", "g", "h"] * 2]
    assert block.outputs == (inner,)
    graph.verify()


def test_blocks_are_of_the_stage_of_the_copy(branch):
    graph = Graph()
    values = [graph.add_input(v.type) for v in branch.graph.inputs]
    graph.advance_stage()
    graph.inline(branch.graph, values)
    assert {node.stage for node in graph.nodes(nested=True)} == {1}
    graph.verify()
    assert {node.stage for node in graph.copy().nodes(nested=True)} == {1}
    assert graph.copy() == graph


def nested(depth):
    """A graph of `depth` nodes, each in a block of the one before."""
    graph = Graph()
    p, value = graph.add_input("b1[]", name="p"), graph.add_input("f64[]", name="x")
    node = graph.append(graph.create("If", p))
    graph.register_output(node.output)
    for _ in range(depth - 1):
        block = node.add_block()
        value = block.insert("f", value)
        node = block.append(graph.create("If", p))
        block.register_output(node.output)
    node.add_block().register_output(value)
    return graph


DEPTH = 5_000


@pytest.fixture(scope="module")
def deep():
    return nested(DEPTH)


def test_deep_nesting_copies_and_verifies(deep):
    deep.verify()
    twin = deep.copy()
    assert twin == deep
    assert twin.fingerprint() == deep.fingerprint()
    assert sum(1 for _ in twin.nodes(nested=True)) == 2 * DEPTH - 1
    (node,) = deep.nodes()
    assert node.closed_over == (deep.inputs[1], deep.inputs[0])
    other = Graph()
    names = {value: other.add_input(value.type) for value in deep.inputs}
    node.clone_into(other, names)
    other.register_output(names[node.output])
    assert other == deep
    graph = Graph()
    graph.register_output(*graph.inline(deep, [graph.add_input(v.type) for v in deep.inputs]))
    assert graph == deep


def test_deep_nesting_prints_and_parses(deep):
    text = str(deep)
    assert len(text.splitlines()) == 3 + 5 * DEPTH - 1
    assert max(map(len, text.splitlines())) < 150
    assert parse_graph(text) == deep


def test_deep_nesting_is_ordered_and_destroyed():
    graph = nested(DEPTH)
    *_, last = graph.nodes(nested=True)
    graph.verify()
    first = graph.create("f").insert_before(next(iter(graph)))
    assert first.is_before(last)
    assert not last.is_before(first)
    (output,) = graph.outputs
    owner = output.node
    output.replace_all_uses_with(graph.inputs[1])
    with pytest.raises(ValueError, match="block"):
        owner.move_after(last)
    owner.destroy()
    with pytest.raises(StaleHandle):
        _ = last.kind
    assert [node.kind for node in graph.nodes(nested=True)] == ["f"]
    graph.verify()


def test_deep_nesting_is_swept():
    graph = nested(DEPTH)
    assert not dce(graph)
    graph.outputs[0].replace_all_uses_with(graph.inputs[1])
    assert dce(graph)
    assert len(graph) == 0
    graph.verify()


WIDE = 100_000 if os.environ.get("STAGEDAD_SOAK") else 20_000


def test_many_nodes_with_blocks():
    graph = Graph()
    p, x = graph.add_input("b1[]"), graph.add_input("f64[]")
    for _ in range(WIDE):
        node = graph.append(graph.create("cond", p, outputs=1))
        node.add_block().register_output(x)
        node.add_block().register_output(x)
        x = node.output
    graph.register_output(x)
    assert isinstance(x, Value)
    assert len(graph) == WIDE
    graph.verify()
    # A node, its output, an operand; two blocks of two ends and an output.
    assert graph.memory() <= WIDE * (200 + 2 * 300)
    twin = graph.copy()
    assert twin == graph
    text = str(twin)
    assert len(text.splitlines()) == 3 + 7 * WIDE
    assert len(parse_graph(text)) == WIDE
    x.replace_all_uses_with(p)
    for node in reversed(graph):
        node.destroy()
    assert len(graph) == 0
    assert p.uses[0].user.kind == "return"
