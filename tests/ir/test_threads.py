"""Tests of handles from several threads: an error of a known class, or the edit; never a crash.

Edits of one graph by several threads are for the caller to order; that the graph stays whole
meanwhile is not.
"""

import os
import random
import sys
import threading
from collections import Counter, deque

import numpy as np
import pytest

from stagedad.errors import StagedadError, StaleHandle
from stagedad.ir import Graph, _verify, parse_graph

SOAK = bool(os.environ.get("STAGEDAD_SOAK"))
THREADS = 8
KNOWN = (StagedadError, ValueError, TypeError, IndexError, KeyError)

WHOLE = [
    _verify.check_ring,
    _verify.check_blocks,
    _verify.check_use_lists,
    _verify.check_outputs,
    _verify.check_names,
]


@pytest.fixture(autouse=True)
def switch_often():
    """Let threads take turns as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Storm:
    """A graph, and handles of all ages and of two graphs that the threads share."""

    def __init__(self):
        self.graph, self.other = Graph(), Graph()
        inputs = [
            graph.add_input("f64[3]") for graph in (self.graph, self.other) for _ in "abc"
        ]
        self.values = deque(inputs, maxlen=60)
        self.nodes, self.blocks = deque(maxlen=60), deque(maxlen=20)
        self.keep([graph.insert("f", graph.inputs[0]) for graph in (self.graph, self.other)])
        self.blocks.append(self.nodes[0].add_block())
        self.odd, self.done, self.taken = [], [], []

    def keep(self, values):
        self.values.extend(values)
        self.nodes.extend(value.node for value in values)


class Turn:
    """What an edit gets: the storm, random numbers, and some of the handles."""

    def __init__(self, storm, rng):
        self.s, self.rng = storm, rng
        self.v, self.w = self.pick(storm.values), self.pick(storm.values)
        self.n, self.m = self.pick(storm.nodes), self.pick(storm.nodes)
        self.b, self.i = self.pick(storm.blocks), rng.randrange(3)

    def pick(self, things):
        return self.rng.choice(list(things))

    def destroy_some(self):
        for node in self.s.graph.nodes(nested=True):
            if self.rng.random() < 0.1:
                node.destroy()


EDITS = {
    "insert": lambda t: t.s.keep([t.s.graph.insert("f", t.v, t.w, x=1)]),
    "create": lambda t: t.s.nodes.append(t.s.graph.create("f", t.v, t.w)),
    "append": lambda t: t.s.graph.append(t.n),
    "destroy": lambda t: t.n.destroy(),
    "destroy a user": lambda t: t.v.uses[0].user.destroy(),
    "replace uses": lambda t: t.v.replace_all_uses_with(t.w),
    "add input": lambda t: t.n.add_input(t.v),
    "replace input": lambda t: t.n.replace_input(t.i, t.v),
    "remove input": lambda t: t.n.remove_input(t.i),
    "add output": lambda t: t.s.values.append(t.n.add_output()),
    "erase output": lambda t: t.n.erase_output(t.i),
    "add block": lambda t: t.s.blocks.append(t.n.add_block()),
    "erase block": lambda t: t.n.erase_block(t.i),
    "fill block": lambda t: t.s.keep([t.b.insert("f", t.v)]),
    "inside": lambda t: inside(t.s.graph, t.b, t.v),
    "end block": lambda t: t.b.register_output(t.v),
    "move": lambda t: t.n.move_before(t.m, check=t.i == 0),
    "stage": lambda t: setattr(t.n, "stage", t.i),
    "read": lambda t: (t.v.uses, t.v.type, t.n.inputs, t.n.outputs, t.n.closed_over, repr(t.n)),
    "read block": lambda t: (len(t.b), t.b.node, t.b.inputs, list(t.b), repr(t.b)),
    "order": lambda t: t.n.is_before(t.m),
    "copy": lambda t: t.s.graph.copy(),
    "print": lambda t: str(t.s.graph),
    "compare": lambda t: t.s.graph == t.s.other,
    "verify": lambda t: t.s.graph.verify(),
    "walk": Turn.destroy_some,
    "clone": lambda t: t.n.clone_into(t.s.graph, same(t.s.values)),
}

# These run Python between the check of a handle and the edit.
TYPED = {
    "typed": lambda t: t.s.keep([t.s.graph.insert("mul", t.v, t.w)]),
    "name": lambda t: setattr(t.v, "name", ["x", "y", None][t.i]),
    "attributes": lambda t: t.s.keep(
        [t.s.graph.insert("f", t.v, x=[1, [np.float64(2)]], y=np.arange(2))]
    ),
    "set attribute": lambda t: t.n.attributes.update(x=(t.rng.random(), [2])),
    "type": lambda t: setattr(t.v, "type", new_type(t.rng)),
    "typed output": lambda t: t.s.values.append(t.n.add_output(new_type(t.rng))),
    "typed input": lambda t: t.s.values.append(t.s.graph.add_input(new_type(t.rng))),
}


def inside(graph, block, value):
    with graph.inside(block), graph.set_stage_temporarily(1), graph.set_scope_temporarily("s"):
        graph.insert("f", value)


def same(values):
    values = list(values)
    return dict(zip(values, values, strict=True))


def new_type(rng):
    return f"f64[{rng.randrange(10**6)}]"


def run(edits, seed, steps):
    storm, barrier = Storm(), threading.Barrier(THREADS)
    edits = list(edits.values())

    def work(number):
        rng = random.Random(1000 * seed + number)
        barrier.wait()
        for _ in range(steps):
            turn = Turn(storm, rng)
            try:
                rng.choice(edits)(turn)
                storm.done.append(turn)
            except KNOWN:
                pass
            except BaseException as error:
                storm.odd.append(error)
                raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return storm


def check(storm):
    """Assert that the graphs are whole, if not sound, and go on being so."""
    assert storm.odd == []
    assert len(storm.done) > 500
    assert (storm.graph.stage, storm.graph.scope) == (0, None)
    for graph in (storm.graph, storm.other):
        for each in WHOLE:
            each(graph)
        for _ in range(100):
            graph.insert("f")
        for each in WHOLE:
            each(graph)


@pytest.mark.parametrize("seed", range(100 if SOAK else 6))
def test_one_graph_is_edited_by_many_threads(seed):
    check(run(EDITS, seed, 800))


@pytest.mark.parametrize("seed", range(100 if SOAK else 6))
def test_one_graph_is_edited_by_many_threads_with_types(seed):
    check(run(EDITS | TYPED, seed, 800))


def test_a_graph_is_consumed_while_it_is_edited():
    take_over = {"take over": lambda t: t.s.taken.append(t.s.graph.take_over())}
    for seed in range(20):
        for graph in run(EDITS | TYPED | take_over, seed, 50).taken:
            for each in WHOLE:
                each(graph)


def test_every_thread_has_its_own_graph():
    found = []

    def work():
        graph = Graph()
        x = value = graph.add_input("f64[3]")
        for i in range(300):
            value = graph.insert("mul", value, x)
            block = graph.append(graph.create("If", value, k=(i, [i]))).add_block()
            block.register_output(block.insert("exp", value))
        graph.register_output(value)
        graph.verify()
        assert parse_graph(str(graph)) == graph
        found.append(graph.fingerprint())

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == THREADS
    assert len(set(found)) == 1


def test_dead_handles_raise_in_every_thread():
    graph = Graph()
    node = graph.insert("f", graph.add_input()).node
    block, value = node.add_block(), node.output
    node.destroy()
    tries = [
        node.destroy,
        node.add_block,
        lambda: node.inputs,
        lambda: (value.uses, value.type),
        lambda: graph.insert("f", value),
        lambda: block.insert("f"),
        lambda: len(block),
        lambda: setattr(value, "name", "x"),
        lambda: graph.inside(block),
    ]
    found = Counter()

    def work():
        for _ in range(50):
            for each in tries:
                try:
                    each()
                except StaleHandle:
                    found["stale"] += 1
            graph.insert("f").node.add_block()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A Counter is no atomic one: what matters is that no other error ended a thread.
    assert 0 < found["stale"] <= THREADS * 50 * len(tries)
    assert len(graph) == THREADS * 50
    for each in WHOLE:
        each(graph)


def test_an_iterator_is_shared_by_threads():
    graph = Graph()
    for _ in range(2000):
        graph.insert("f")
    nodes, seen, errors = graph.nodes(), [], []

    def work():
        try:
            for node in nodes:
                seen.append(node)
                if len(seen) % 3 == 0:
                    node.destroy()
        except (ValueError, StaleHandle) as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("already executing" in str(e) or isinstance(e, StaleHandle) for e in errors)
    assert len(set(seen)) == len(seen)
    graph.verify()
