"""What the tests of ir/ share."""

import sys

import pytest

from stagedad.ir import Graph


@pytest.fixture
def shallow_stack():
    """Leave little room to recurse, so that a recursion is an error, not a matter of luck."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 150)
    yield
    sys.setrecursionlimit(limit)


class Branch:
    """`%r = If(%p) { %x = f(%a); %y = g(%x, %b); return (%y) } { return (%b) }`, returned."""

    def __init__(self):
        self.graph = graph = Graph()
        self.p = graph.add_input("b1[]", name="p")
        self.a, self.b = (graph.add_input("f64[3]", name=name) for name in "ab")
        self.owner = graph.append(graph.create("If", self.p))
        self.then, self.other = self.owner.add_block(), self.owner.add_block()
        self.x = self.then.insert("f", self.a)
        self.y = self.then.insert("g", self.x, self.b)
        self.then.register_output(self.y)
        self.other.register_output(self.b)
        self.last = graph.insert("h", self.owner.output).node
        graph.register_output(self.last.output)
        graph.verify()


@pytest.fixture
def new_branch():
    """Return what makes a `Branch`."""
    return Branch


@pytest.fixture
def branch():
    """Return a graph with a node of two blocks, and its parts."""
    return Branch()
