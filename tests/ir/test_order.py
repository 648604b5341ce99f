"""Tests of ir/_graph: the order of nodes, and moving them."""

import random
from itertools import pairwise

import pytest

from stagedad.ir import Graph

# Node -> what it reads, in order: the graph of the table below.
READS = {
    "a": "", "b": "a", "c": "", "d": "ab", "e": "cb", "f": "e", "g": "e", "h": "g", "i": "g",
    "j": "i", "k": "i", "l": "a", "m": "l", "n": "m", "o": "n", "p": "", "q": "", "r": "q",
    "s": "q",
}  # fmt: skip


def graph_of(reads):
    """Return the graph whose nodes read each other as told, and the nodes by name."""
    graph, nodes = Graph(), {}
    for name, read in reads.items():
        nodes[name] = graph.create("f", *(nodes[other].output for other in read))
        graph.append(nodes[name])
        nodes[name].output.name = name
    return graph, nodes


def order(graph):
    return "".join(node.output.name for node in graph.nodes())


def test_follows_insertions_and_a_deletion():
    graph = Graph()
    one, two, three, four = (graph.create("f") for _ in range(4))
    graph.append(four)
    one.insert_before(four)
    two.insert_after(one)
    three.insert_before(four)
    numbered = [one, two, three, four]
    assert list(graph.nodes()) == numbered
    for i, left in enumerate(numbered):
        for j, right in enumerate(numbered):
            assert left.is_before(right) == (i < j)
    two.destroy()
    new = graph.create("f")
    new.insert_after(one)
    assert list(graph.nodes()) == [one, new, three, four]
    assert one.is_before(new)
    assert new.is_before(three)
    assert not three.is_before(new)


@pytest.mark.parametrize("count", [100, 3000])
def test_many_insertions_after_one_node_come_in_reverse(count):
    graph = Graph()
    anchor, end = graph.create("f"), graph.create("f")
    graph.append(anchor)
    graph.append(end)
    inserted = [graph.create("f") for _ in range(count)]
    for node in inserted:
        node.insert_after(anchor)
    expected = [anchor, *reversed(inserted), end]
    assert list(graph.nodes()) == expected
    assert list(reversed(graph)) == expected[::-1]
    for left, right in pairwise(expected):
        assert left.is_before(right)
        assert not right.is_before(left)
    assert anchor.is_before(end)
    graph.verify()


def test_many_insertions_before_one_node_come_in_order():
    graph = Graph()
    anchor = graph.create("f")
    graph.append(anchor)
    inserted = [graph.create("f") for _ in range(500)]
    for node in inserted:
        node.insert_before(anchor)
    expected = [*inserted, anchor]
    assert list(graph.nodes()) == expected
    assert all(a.is_before(b) for a, b in pairwise(expected))


def test_many_insertions_before_the_first_node():
    graph = Graph()
    first = graph.create("f")
    graph.append(first)
    expected = [first]
    for _ in range(500):
        node = graph.create("f")
        node.insert_before(expected[0])
        expected.insert(0, node)
    assert list(graph.nodes()) == expected
    assert all(a.is_before(b) for a, b in pairwise(expected))


def test_nodes_inserted_at_random_are_ordered_as_the_list():
    graph, rng = Graph(), random.Random(7)
    first = graph.create("f")
    graph.append(first)
    expected = [first]
    for _ in range(600):
        node, at = graph.create("f"), rng.randrange(len(expected))
        if rng.random() < 0.5:
            node.insert_before(expected[at])
            expected.insert(at, node)
        else:
            node.insert_after(expected[at])
            expected.insert(at + 1, node)
    assert list(graph.nodes()) == expected
    for _ in range(2000):
        i, j = rng.randrange(len(expected)), rng.randrange(len(expected))
        assert expected[i].is_before(expected[j]) == (i < j)


def test_a_node_is_not_before_itself():
    _, nodes = graph_of(READS)
    assert not nodes["a"].is_before(nodes["a"])


def test_the_order_of_unattached_nodes_is_an_error():
    graph, nodes = graph_of(READS)
    loose = graph.create("f")
    with pytest.raises(ValueError, match="f"):
        loose.is_before(nodes["a"])
    with pytest.raises(ValueError, match="f"):
        nodes["a"].is_before(loose)


def test_moving_an_unattached_node_is_an_error():
    graph, nodes = graph_of(READS)
    loose = graph.create("f")
    before = order(graph)
    for check in (False, True):
        with pytest.raises(ValueError, match="f"):
            loose.move_before(nodes["a"], check=check)
        with pytest.raises(ValueError, match="f"):
            nodes["a"].move_after(loose, check=check)
    assert order(graph) == before


def test_moves_without_a_check_as_told():
    graph, nodes = graph_of(READS)
    nodes["b"].move_before(nodes["a"])
    assert order(graph) == "bacdefghijklmnopqrs"
    nodes["s"].move_after(nodes["c"])
    assert order(graph) == "bacsdefghijklmnopqr"
    assert nodes["s"].is_before(nodes["d"])
    assert not nodes["a"].is_before(nodes["b"])


@pytest.mark.parametrize("check", [False, True])
def test_moving_a_node_to_itself_changes_nothing(check):
    graph, nodes = graph_of(READS)
    before = order(graph)
    nodes["c"].move_before(nodes["c"], check=check)
    nodes["c"].move_after(nodes["c"], check=check)
    assert order(graph) == before
    graph.verify()


def test_moving_a_node_to_where_it_is_changes_nothing():
    graph, nodes = graph_of(READS)
    before = order(graph)
    assert nodes["c"].move_before(nodes["d"], check=True)
    assert nodes["c"].move_after(nodes["b"], check=True)
    nodes["c"].move_before(nodes["d"])
    nodes["c"].move_after(nodes["b"])
    assert order(graph) == before


def moved(name, side, other, reads=READS):
    """Move with a check in a fresh graph; return the answer, the order before and after."""
    graph, nodes = graph_of(reads)
    before = order(graph)
    answer = getattr(nodes[name], f"move_{side}")(nodes[other], check=True)
    graph.verify()
    return answer, before, order(graph)


@pytest.mark.parametrize(
    ("name", "side", "other"),
    [
        ("q", "before", "s"), ("c", "after", "a"), ("f", "after", "e"), ("e", "after", "c"),
        ("k", "after", "f"), ("c", "after", "d"), ("f", "after", "l"), ("b", "before", "d"),
        ("c", "before", "a"), ("a", "before", "b"), ("f", "before", "m"), ("l", "before", "f"),
        ("o", "before", "p"),
    ],
)  # fmt: skip
def test_a_checked_move_takes_along_what_must_come(name, side, other):
    answer, before, after = moved(name, side, other)
    assert answer is True
    assert sorted(after) == sorted(before)
    assert (name + other if side == "before" else other + name) in after


@pytest.mark.parametrize(
    ("name", "side", "other"),
    [
        ("d", "after", "a"), ("l", "after", "m"), ("m", "before", "l"), ("n", "after", "l"),
        ("l", "before", "n"), ("n", "after", "o"),
    ],
)  # fmt: skip
def test_a_checked_move_that_cannot_be_changes_nothing(name, side, other):
    answer, before, after = moved(name, side, other)
    assert answer is False
    assert after == before


def can_move(reads, name, side, other):
    """Whether some order that respects `reads` has the two side by side."""
    reach = {}
    for node, read in reads.items():
        reach[node] = set(read).union(*(reach[r] for r in read))
    left, right = (name, other) if side == "before" else (other, name)
    if right in reach[left]:
        return False
    return not any(left in reach[z] and z in reach[right] for z in reads)


@pytest.mark.parametrize("seed", range(40))
def test_a_checked_move_is_made_where_it_can_be(seed):
    rng, names = random.Random(seed), "abcdefghijkl"
    reads = {
        name: "".join(rng.sample(names[:i], min(i, rng.randrange(3))))
        for i, name in enumerate(names)
    }
    for _ in range(20):
        name, other = rng.sample(names, 2)
        side = rng.choice(["before", "after"])
        answer, before, after = moved(name, side, other, reads)
        assert answer == can_move(reads, name, side, other)
        if answer:
            assert (name + other if side == "before" else other + name) in after
        else:
            assert after == before


def test_a_checked_move_does_not_cross_a_stage():
    graph = Graph()
    first = graph.insert("f").node
    graph.advance_stage()
    second = graph.insert("f").node
    before = list(graph.nodes())
    assert not first.move_after(second, check=True)
    assert not second.move_before(first, check=True)
    assert list(graph.nodes()) == before
    graph.verify()
