"""The first seed's tests of sub-blocks and of moves that keep the order legal: T10, T14.

The names are those of the reference that the cases come from; T13 is in tests/ir.
"""

import pytest

from stagedad.errors import StaleHandle
from stagedad.ir import Graph, parse_graph


def branch():
    """Return the graph of T10 and the node `If`, a kind without rules of its own."""
    graph = Graph()
    a, b = graph.add_input(name="a"), graph.add_input(name="b")
    total = graph.insert("add", a, b)
    node = graph.append(graph.create("If", graph.add_input(name="c")))
    with graph.inside(node.add_block()):
        node.blocks[0].register_output(graph.insert("add", total, total))
    with graph.inside(node.add_block()):
        inner = graph.insert("add", graph.insert("add", b, total), total)
        node.blocks[1].register_output(inner)
    graph.register_output(graph.insert("add", node.output, total))
    return graph, node


def test_t10_blocks():
    graph, node = branch()
    graph.verify()
    assert str(graph).splitlines() == [
        "graph(%a, %b, %c) {",
        "  %2 = add(%a, %b)",
        "  %4 = If(%c)",
        "    block0() {",
        "      %5 = add(%2, %2)",
        "      return (%5)",
        "    }",
        "    block1() {",
        "      %6 = add(%b, %2)",
        "      %7 = add(%6, %2)",
        "      return (%7)",
        "    }",
        "  %8 = add(%4, %2)",
        "  return (%8)",
        "}",
    ]
    first = node.blocks[0]
    node.erase_block(0)
    graph.verify()
    assert len(node.blocks) == 1
    with pytest.raises(StaleHandle):
        len(first)
    assert str(graph.copy()).splitlines() == [
        "graph(%a, %b, %c) {",
        "  %3 = add(%a, %b)",
        "  %4 = If(%c)",
        "    block0() {",
        "      %5 = add(%b, %3)",
        "      %6 = add(%5, %3)",
        "      return (%6)",
        "    }",
        "  %7 = add(%4, %3)",
        "  return (%7)",
        "}",
    ]
    assert graph.copy() == graph == parse_graph(str(graph))
    assert graph != branch()[0]


# Node -> what it reads; m reads l within its block.
READS = {
    "a": "", "b": "a", "c": "", "d": "ab", "e": "cb", "f": "e", "g": "e", "h": "g", "i": "g",
    "j": "i", "k": "i", "l": "a", "m": "", "n": "m", "o": "n", "p": "", "q": "", "r": "q",
    "s": "q",
}  # fmt: skip

MOVES = """
 q before s  true
 c after a   true
 f after e   true
 e after c   true
 k after f   true
 c after d   true
 f after l   true
 b before d  true
 c before a  true
 a before b  true
 f before m  true
 l before f  true
 o before p  true
 d after a   false
 l after m   false
 m before l  false
 n after l   false
 l before n  false
 n after o   false
"""
MOVES = [line.split() for line in MOVES.strip().splitlines()]


@pytest.mark.parametrize(("name", "side", "other", "answer"), MOVES, ids=" ".join)
def test_t14_topological_moves(name, side, other, answer):
    graph, nodes = Graph(), {}
    for each, reads in READS.items():
        nodes[each] = graph.append(graph.create("f", *(nodes[r].output for r in reads)))
        nodes[each].output.name = each
    inside = nodes["m"].add_block().insert("f", nodes["l"].output).node
    graph.verify()
    before = list(graph)
    move = getattr(nodes[name], f"move_{side}")
    assert move(nodes[other], check=True) is (answer == "true")
    graph.verify()
    assert list(nodes["m"].blocks[0]) == [inside]
    if answer == "true":
        left, right = (name, other) if side == "before" else (other, name)
        assert nodes[left].next == nodes[right]
        assert sorted(before, key=repr) == sorted(graph, key=repr)
    else:
        assert list(graph) == before
