"""Tests of ir/_blocks: blocks of a node, their handles, and their end."""

import pytest

from stagedad.errors import ForeignValue, StaleHandle
from stagedad.ir import Block, Graph


def kinds(nodes):
    return [node.kind for node in nodes]


# -- building


def test_a_node_has_no_blocks_at_first(branch):
    assert branch.last.blocks == ()
    assert branch.last.closed_over == ()
    assert branch.last.block is None


def test_a_block_knows_where_it_is(branch):
    assert branch.owner.blocks == (branch.then, branch.other)
    assert type(branch.owner.blocks) is tuple
    assert branch.then.node == branch.other.node == branch.owner
    assert branch.then.graph is branch.graph
    assert branch.x.node.block == branch.then
    assert branch.owner.block is None
    assert (len(branch.then), len(branch.other), len(branch.graph)) == (2, 0, 2)
    assert branch.then  # though `other` is as true, and empty
    assert branch.other


def test_nodes_go_in_order(branch):
    assert list(branch.then) == list(branch.then.nodes()) == [branch.x.node, branch.y.node]
    assert list(reversed(branch.then)) == [branch.y.node, branch.x.node]
    assert kinds(branch.graph.nodes()) == ["If", "h"]
    assert kinds(reversed(branch.graph)) == ["h", "If"]
    assert kinds(branch.graph.nodes(nested=True)) == ["If", "f", "g", "h"]
    assert branch.x.node.next == branch.y.node
    assert branch.y.node.prev == branch.x.node
    assert branch.y.node.next is branch.x.node.prev is None


def test_outputs_of_a_block_are_uses(branch):
    (use,) = branch.y.uses
    assert use.user.kind == "return"
    assert use.user.block == branch.then
    assert use.offset == 0
    assert use.user != branch.last.output.uses[0].user


def test_a_block_has_inputs(branch):
    value = branch.then.add_input("f64[2]", name="carried")
    other = branch.then.add_input()
    assert branch.then.inputs == (value, other)
    assert (value.name, str(value.type), value.offset) == ("carried", "f64[2]", 0)
    assert value.node.kind == "param"
    assert value.node.block == branch.then
    assert branch.graph.inputs == (branch.p, branch.a, branch.b)
    branch.then.insert("f", other)
    branch.graph.verify()
    with pytest.raises(ValueError, match="used"):
        branch.then.erase_input(1)
    branch.then.erase_input(0)
    assert branch.then.inputs == (other,)
    assert other.offset == 0


def test_a_block_has_outputs(branch):
    assert branch.then.register_output(branch.x) == 1
    assert branch.then.outputs == (branch.y, branch.x)
    branch.then.erase_output(0)
    assert branch.then.outputs == (branch.x,)
    with pytest.raises(IndexError):
        branch.then.erase_output(1)
    branch.graph.verify()


def test_new_nodes_go_inside(branch):
    graph = branch.graph
    with graph.inside(branch.other):
        one = graph.insert("one", branch.a)
        two = graph.constant(2.0)
        node = graph.append(graph.create("three"))
        with graph.inside(branch.then):
            there = graph.insert("four")
        five = graph.insert("five")
    assert graph.insert("after").node.block is None
    assert list(branch.other) == [one.node, two.node, node, five.node]
    assert there.node == list(branch.then)[-1]
    graph.verify()


def test_the_place_ends_with_an_error(branch):
    with pytest.raises(ZeroDivisionError), branch.graph.inside(branch.then):
        raise ZeroDivisionError
    assert branch.graph.insert("f").node.block is None


def test_what_blocks_read_from_outside(branch):
    assert branch.owner.closed_over == (branch.a, branch.b)
    inner = branch.other.insert("If", branch.p).node
    inside = inner.add_block().insert("f", branch.a, branch.p, branch.p)
    assert inner.closed_over == (branch.a, branch.p)
    assert branch.owner.closed_over == (branch.a, branch.b, branch.p)
    inner.blocks[0].insert("f", inside)
    branch.then.insert("f", branch.x)
    assert inner.closed_over == (branch.a, branch.p)
    loose = branch.graph.create("If")
    loose.add_block().insert("f", branch.last.output)
    assert loose.closed_over == (branch.last.output,)


def test_the_ends_of_a_graph_own_no_blocks(branch):
    for end in (branch.a.node, branch.last.output.uses[0].user, branch.y.uses[0].user):
        with pytest.raises(ValueError, match="add_block"):
            end.add_block()
        assert end.blocks == ()


def test_ends_of_a_block_stay(branch):
    carried = branch.then.add_input()
    for end in (carried.node, branch.y.uses[0].user):
        for call in (
            end.destroy,
            lambda end=end: end.move_before(branch.last),
            lambda end=end: branch.graph.append(end),
            lambda end=end: setattr(end, "stage", 1),
            lambda end=end: end.clone_into(Graph(), {}),
        ):
            with pytest.raises(ValueError, match=r"param|return"):
                call()
    branch.graph.verify()


def test_names_are_unique_across_blocks(branch):
    branch.x.name = "a"
    assert branch.x.name == "a.1"
    assert branch.other.add_input(name="a").name == "a.2"


def test_blocks_are_not_made_by_hand():
    with pytest.raises(TypeError):
        Block()
    with pytest.raises(StaleHandle):
        Block.__new__(Block).add_input()
    assert "stale" in repr(Block.__new__(Block))


def test_blocks_compare_and_hash_by_what_they_name(branch):
    assert branch.owner.blocks[0] == branch.then != branch.other
    assert {branch.then: 1}[branch.owner.blocks[0]] == 1
    assert branch.then != branch.owner
    assert branch.owner != branch.then
    assert "2 nodes" in repr(branch.then)


def test_blocks_keep_their_graph(new_branch):
    block = new_branch().then
    assert kinds(block) == ["f", "g"]


# -- destroying


HANDLES = {
    "node": lambda block: block.node,
    "inputs": lambda block: block.inputs,
    "outputs": lambda block: block.outputs,
    "nodes": lambda block: block.nodes(),
    "iter": iter,
    "reversed": reversed,
    "len": len,
    "add_input": lambda block: block.add_input(),
    "erase_input": lambda block: block.erase_input(0),
    "register_output": lambda block: block.register_output(block.graph.inputs[0]),
    "erase_output": lambda block: block.erase_output(0),
    "append": lambda block: block.append(block.graph.create("f")),
    "prepend": lambda block: block.prepend(block.graph.create("f")),
    "insert": lambda block: block.insert("f"),
    "inside": lambda block: block.graph.inside(block),
}


def test_every_method_of_a_block_is_tried():
    public = {name for name in vars(Block) if not name.startswith("_")} - {"graph"}
    assert public <= set(HANDLES)


@pytest.mark.parametrize("name", HANDLES)
def test_a_stale_block_raises(branch, name):
    before = len(branch.graph)
    branch.owner.erase_block(0)
    branch.last.add_block()  # takes its place
    with pytest.raises(StaleHandle):
        HANDLES[name](branch.then)
    assert "stale" in repr(branch.then)
    assert branch.then == branch.then
    assert len(branch.graph) == before
    branch.graph.verify()


def test_erasing_a_block_destroys_what_is_in_it(branch):
    inner = branch.then.insert("If").node
    deep = inner.add_block()
    value = deep.insert("f", branch.x)
    gone = [branch.x, branch.y, branch.x.node, branch.y.node, inner, value, value.node]
    branch.owner.erase_block(0)
    assert branch.owner.blocks == (branch.other,)
    for handle in gone:
        with pytest.raises(StaleHandle):
            _ = handle.stage
    for block in (branch.then, deep):
        with pytest.raises(StaleHandle):
            len(block)
    assert [use.user.kind for use in branch.b.uses] == ["return"]
    assert branch.a.uses == ()
    branch.graph.verify()


@pytest.mark.parametrize("order", [(0, 0, 0), (2, 1, 0), (1, 1, 0), (1, 0, 0), (0, 1, 0)])
def test_blocks_are_erased_in_any_order(order):
    graph = Graph()
    node = graph.insert("f").node
    blocks = [node.add_block() for _ in range(3)]
    for i in order:
        node.erase_block(i)
        del blocks[i]
        assert node.blocks == tuple(blocks)
        graph.verify()
    assert len(node.add_block()) == 0
    graph.verify()


@pytest.mark.parametrize("i", [2, -1, 10**6])
def test_there_is_no_such_block(branch, i):
    with pytest.raises(IndexError, match="block"):
        branch.owner.erase_block(i)
    with pytest.raises(IndexError, match="block"):
        branch.last.erase_block(0)
    branch.graph.verify()


@pytest.mark.parametrize("reader", ["graph", "block", "owner", "loose", "output"])
def test_a_block_that_something_outside_reads_stays(branch, reader):
    {
        "graph": lambda: branch.last.add_input(branch.x),
        "block": lambda: branch.other.insert("f", branch.x),
        "owner": lambda: branch.owner.add_input(branch.x),
        "loose": lambda: branch.graph.create("f", branch.x),
        "output": lambda: branch.other.register_output(branch.x),
    }[reader]()
    with pytest.raises(ValueError, match="used"):
        branch.owner.erase_block(0)
    assert len(branch.then) == 2
    branch.owner.output.replace_all_uses_with(branch.a)
    with pytest.raises(ValueError, match="used"):
        branch.owner.destroy()
    assert len(branch.then) == 2
    assert branch.owner.blocks == (branch.then, branch.other)


def test_destroying_the_owner_destroys_the_blocks(branch):
    with pytest.raises(ValueError, match="used"):
        branch.owner.destroy()
    branch.owner.output.replace_all_uses_with(branch.a)
    branch.x.name = "once"
    gone = [branch.owner, branch.x, branch.y.node, branch.owner.output]
    branch.owner.destroy()
    for handle in gone:
        with pytest.raises(StaleHandle):
            _ = handle.stage
    with pytest.raises(StaleHandle):
        _ = branch.other.node
    assert branch.p.uses == branch.b.uses == ()
    assert [use.user for use in branch.a.uses] == [branch.last]
    branch.last.output.name = "once"
    assert branch.last.output.name == "once"
    branch.graph.verify()


def test_unattached_nodes_die_with_their_blocks(branch):
    loose = branch.graph.create("If")
    value = loose.add_block().insert("f", branch.a)
    loose.destroy()
    with pytest.raises(StaleHandle):
        _ = value.node
    branch.graph.verify()


def test_places_are_used_again(branch):
    branch.owner.output.replace_all_uses_with(branch.a)

    def once():
        node = branch.graph.insert("If").node
        inner = node.add_block().insert("If", branch.a).node
        inner.add_block().insert("f", branch.b)
        node.add_block().add_input()
        node.destroy()

    once()
    before = branch.graph.memory()
    for _ in range(1000):
        once()
    assert branch.graph.memory() == before
    branch.graph.verify()


def test_the_block_that_nodes_go_to_was_destroyed(branch):
    graph, other = branch.graph, Graph()
    value = other.insert("f")
    with graph.inside(branch.then):
        branch.owner.erase_block(0)
        for call in (
            lambda: graph.insert("f"),
            lambda: graph.insert_typed("f", [], {}, [None]),
            lambda: graph.constant(1.0),
            lambda: graph.append(graph.create("f")),
            lambda: value.node.clone_into(graph, {}),
            lambda: graph.inline(other, []),
        ):
            with pytest.raises(StaleHandle, match="insert"):
                call()
        assert len(graph.copy()) == 2
        branch.last.add_block()  # the place of the dead block
        with pytest.raises(StaleHandle):
            graph.insert("f")
    assert graph.insert("f").node.block is None
    graph.verify()


def test_blocks_of_another_graph_are_refused(branch, new_branch):
    there = new_branch()
    calls = (
        lambda: branch.graph.inside(there.then),
        lambda: branch.then.append(there.graph.create("f")),
        lambda: branch.then.prepend(there.graph.create("f")),
        lambda: branch.then.register_output(there.x),
        lambda: branch.then.insert("f", there.x),
        lambda: branch.x.node.move_before(there.x.node),
        lambda: branch.x.node.is_before(there.x.node),
        lambda: branch.graph.create("f").insert_after(there.x.node),
        lambda: branch.graph.insert("f", there.then),
    )
    for call in calls:
        with pytest.raises((ForeignValue, TypeError)):
            call()
    for graph in (branch.graph, there.graph):
        graph.verify()
    assert branch.graph == there.graph
