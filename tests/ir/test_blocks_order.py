"""Tests of ir/_blocks: the order across blocks, moving, and iterating."""

from itertools import pairwise

import pytest

from stagedad.errors import VerifyError
from stagedad.ir import Graph


def kinds(nodes):
    return [node.kind for node in nodes]


def test_t13_the_order_across_blocks():
    graph = Graph()
    one, two, three, four = (graph.append(graph.create("f")) for _ in range(4))
    a = three.add_block().append(graph.create("A"))
    b = three.blocks[0].append(graph.create("B"))
    c = b.add_block().append(graph.create("C"))
    for left, right in ((one, a), (a, b), (a, c), (one, c), (two, a), (a, four), (c, four)):
        assert left.is_before(right)
        assert right.is_after(left)
        assert not right.is_before(left)
        assert not left.is_after(right)
    two.destroy()
    new = graph.create("f").insert_after(one)
    assert new.is_before(c)
    assert one.is_before(new)
    inserted = [graph.create("f").insert_after(a) for _ in range(100)]
    assert list(three.blocks[0]) == [a, *inserted[::-1], b]
    assert all(one.is_before(node) and node.is_before(c) for node in inserted)
    assert all(late.is_before(early) for early, late in pairwise(inserted))
    graph.verify()


def test_neither_a_node_nor_what_it_holds_is_first(branch):
    inside = branch.x.node
    assert not branch.owner.is_before(inside)
    assert not inside.is_before(branch.owner)
    across = branch.other.insert("f").node
    assert not across.is_before(inside)
    assert not inside.is_before(across)


def test_the_order_in_an_unattached_node(branch):
    loose = branch.graph.create("If")
    one, two = (loose.add_block().insert("f").node for _ in range(2))
    late = loose.blocks[0].insert("f").node
    assert one.is_before(late)
    assert not one.is_before(two)
    for node in (one, two):
        with pytest.raises(ValueError, match="unattached"):
            node.is_before(branch.x.node)
        with pytest.raises(ValueError, match="unattached"):
            branch.last.is_before(node)


def test_there_is_no_order_between_unattached_nodes():
    graph = Graph()
    one, two = (graph.create("If").add_block().insert("f").node for _ in range(2))
    with pytest.raises(ValueError, match="unattached"):
        one.is_before(two)


# -- moving


def test_moves_into_out_of_and_between_blocks(branch):
    graph, node = branch.graph, branch.graph.insert("n").node
    for place, move in (
        (branch.then, lambda: node.move_before(branch.x.node)),
        (branch.other, lambda: node.move_before(branch.b.uses[-1].user)),
        (None, lambda: node.move_after(branch.owner)),
        (branch.then, lambda: node.move_after(branch.y.node)),
        (None, lambda: node.move_before(branch.owner)),
        (branch.then, lambda: node.move_before(branch.y.uses[0].user)),
    ):
        assert move() is True
        assert node.block == place
        everything = list(graph.nodes(nested=True))
        assert len(everything) == len(set(everything)) == 5
        assert len(graph) + len(branch.then) + len(branch.other) == 5
        graph.verify()
    assert list(branch.then)[-1] == node


def test_a_node_with_blocks_moves_with_them(branch):
    inner = branch.graph.append(branch.graph.create("If"))
    deep = inner.add_block().insert("f", branch.a)
    inner.move_before(branch.x.node)
    assert inner.block == branch.then
    assert deep.node.block.node == inner
    assert kinds(branch.graph.nodes(nested=True)) == ["If", "If", "f", "f", "g", "h"]
    branch.graph.verify()


def test_what_a_block_computes_is_read_there_alone(branch):
    for user in (branch.last, branch.other.insert("f").node):
        user.add_input(branch.x)
        with pytest.raises(VerifyError, match=r"\[order\].*block"):
            branch.graph.verify()
        user.remove_input(len(user.inputs) - 1)
    branch.graph.verify()


def test_a_checked_move_stays_in_its_block(branch):
    before = str(branch.graph)
    for node, other in (
        (branch.x.node, branch.last),
        (branch.last, branch.x.node),
        (branch.owner, branch.x.node),
    ):
        for move in (node.move_before, node.move_after):
            with pytest.raises(ValueError, match="block"):
                move(other, check=True)
    assert str(branch.graph) == before
    assert not branch.y.node.move_before(branch.x.node, check=True)
    free = branch.then.insert("n").node
    assert free.move_before(branch.x.node, check=True)
    assert kinds(branch.then) == ["n", "f", "g"]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("attached", [True, False])
def test_no_node_goes_into_its_own_block(depth, attached):
    graph = Graph()
    owner = graph.create("If", outputs=0)
    if attached:
        graph.append(owner)
    inside, blocks = owner, []
    for _ in range(depth):
        blocks.append(inside.add_block())
        inside = blocks[-1].append(graph.create("If", outputs=0))
    block = blocks[-1]
    end = block.add_input().node
    back = graph.create("f", outputs=0).insert_before(inside)
    before = str(graph), [list(each) for each in blocks]
    for node in (each.node for each in blocks):
        for call, *arguments in (
            (block.append, node),
            (block.prepend, node),
            (graph.append, node),
            (node.insert_before, inside),
            (node.insert_after, inside),
            (node.insert_after, end),
            (node.move_before, inside),
            (node.move_after, inside),
            (node.move_after, end),
            (node.move_before, back, True),
            (node.clone_into, graph, {}),
        ):
            with graph.inside(block), pytest.raises(ValueError, match=r"block|graph"):
                call(*arguments)
    assert (str(graph), [list(each) for each in blocks]) == before
    graph.verify()


def test_a_node_may_go_where_its_own_blocks_are_not(branch):
    loose = branch.graph.create("If", outputs=0)
    loose.add_block().insert("f")
    branch.other.append(loose)
    assert loose.block == branch.other
    branch.graph.verify()


# -- iterating


def test_the_current_node_may_be_destroyed_while_iterating(branch):
    for _ in range(3):
        branch.then.insert("dead")
    seen = []
    for node in branch.then:
        seen.append(node.kind)
        if node.kind == "dead":
            node.destroy()
    assert seen == ["f", "g", "dead", "dead", "dead"]
    for node in reversed(branch.then):
        node.remove_all_inputs()
        if not node.has_uses():
            node.destroy()
    assert kinds(branch.then) == ["g"]
    branch.graph.verify()


@pytest.mark.parametrize("end", ["erase_block", "destroy"])
def test_a_block_may_be_destroyed_while_iterating(branch, end):
    branch.owner.output.replace_all_uses_with(branch.a)
    seen = []
    for node in branch.then:
        seen.append(node.kind)
        branch.owner.erase_block(0) if end == "erase_block" else branch.owner.destroy()
    assert seen == ["f"]
    branch.graph.verify()


def test_a_walk_survives_edits(branch, new_branch):
    branch.owner.output.replace_all_uses_with(branch.a)
    seen = []
    for node in branch.graph.nodes(nested=True):
        seen.append(node.kind)
        if node.kind == "f":
            branch.owner.destroy()
    assert seen == ["If", "f", "h"]
    fresh = new_branch()
    seen = []
    for node in fresh.graph.nodes(nested=True):
        seen.append(node.kind)
        if node.kind == "If":
            fresh.other.insert("late")
        if node.kind == "f":
            node.next.move_after(fresh.owner)
    assert seen == ["If", "f", "late", "g", "h"]


def test_a_walk_destroys_the_owner_that_it_stands_on(branch):
    branch.owner.output.replace_all_uses_with(branch.a)
    seen = []
    for node in branch.graph.nodes(nested=True):
        seen.append(node.kind)
        if node.kind == "If":
            node.destroy()
    assert seen == ["If", "h"]


def test_the_current_node_may_move_to_another_block(branch):
    for _ in range(2):
        branch.then.insert("n")
    seen = []
    for node in branch.then:
        seen.append(node.kind)
        if node.kind == "n":
            node.move_before(branch.other.outputs[0].uses[-1].user)
    assert seen == ["f", "g", "n", "n"]
    assert kinds(branch.other) == ["n", "n"]


@pytest.mark.parametrize("where", ["front", "end"])
def test_each_node_is_met_once_though_it_moves(where):
    graph, seen = Graph(), []
    for kind in "abc":
        graph.insert(kind)
    for node in graph:
        seen.append(node.kind)
        if where == "front":
            node.move_before(next(iter(graph)))
        else:
            node.move_after(next(reversed(graph)))
        if len(seen) > 10:
            break
    assert seen == ["a", "b", "c"]
