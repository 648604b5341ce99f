"""The Given/Do/Gives examples in the docstrings of the IR's mutators, executed.

Given and Gives are the text of a graph, of which the `graph(...)` line, the `return (...)` line
and the types may be left out; values that nothing computes are inputs. Do is Python in which
`%1` is a value, `node_of_1` the node that computes %1, `node` the last node given, `block` the
last block, `graph` the graph.
"""

import re

import pytest

from stagedad.ir import Block, Graph, Node, Value, parse_graph

EXAMPLE = re.compile(
    r"Given:  (.*?)\n\s*Do:     (.*?)\n\s*Gives:  (.*?)(?:\n\s*\n|\Z)", re.DOTALL
)
LABEL = re.compile(r"%(\w+)")

# What does not change a graph, or only what later nodes get.
OTHERS = {
    Graph: "inputs outputs nodes constants text verify fingerprint memory copy inside "
    "stage advance_stage set_stage_temporarily assumes_real "
    "scope push_scope pop_scope set_scope_temporarily",
    Node: "graph kind inputs outputs output attributes blocks block closed_over attached next "
    "prev has_uses is_before is_after stage location scope origin",
    Value: "graph id node offset uses has_uses stage",
    Block: "graph node inputs outputs nodes",
}
MUTATORS = {
    f"{owner.__name__}.{name}": getattr(owner, name).__doc__ or ""
    for owner, others in OTHERS.items()
    for name in dir(owner)
    if not name.startswith("_") and name not in others.split()
}
EXAMPLES = {
    name: EXAMPLE.search(doc).groups() for name, doc in MUTATORS.items() if EXAMPLE.search(doc)
}


def test_every_mutator_has_an_example():
    assert MUTATORS.keys() == EXAMPLES.keys()
    assert len(MUTATORS) > 35


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


def defined(text):
    """The labels that a text defines, in order."""
    found = []
    for line in lines(text):
        left, equals, _ = line.partition(" = ")
        if equals or line.startswith(("graph(", "block")):
            found += LABEL.findall(left if equals else line)
    return found


def whole(given, do):
    """The text of the graph that Given stands for."""
    rest = lines(given)
    if all(line.startswith("%") and " = " not in line for line in rest):
        rest = []  # a list of inputs alone
    if not rest or not rest[0].startswith("graph("):
        inputs = dict.fromkeys(LABEL.findall(given + do))
        known = set(defined(given))
        named = ", ".join(f"%{label}" for label in inputs if label not in known)
        rest.insert(0, f"graph({named})")
    rest[0] += " {"
    if not rest[-1].startswith("return"):
        rest.append("return ()")
    return "\n".join([*rest, "}"])


def ids(graph):
    """The ids of all values, by their text, in the order of the text."""
    places = [*graph.inputs]
    for node in graph.nodes(nested=True):
        places.extend(node.outputs)
        for block in node.blocks:
            places.extend(block.inputs)
    return {f"%{value.name or value.id}": value.id for value in places}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_what_the_method_does(name):
    given, do, gives = EXAMPLES[name]
    graph = parse_graph(whole(given, do))
    graph.verify()
    labels = dict(zip(sorted(ids(graph).values()), defined(whole(given, do)), strict=True))
    space = {"graph": graph}
    for node in graph.nodes(nested=True):
        blocks = node.blocks
        space |= {"node": node, "block": blocks[-1] if blocks else space.get("block")}
        space |= {f"v_{labels[value.id]}": value for value in node.outputs}
        space |= {f"node_of_{labels[value.id]}": node for value in node.outputs}
    space |= {f"v_{labels[value.id]}": value for value in graph.inputs}
    before = str(graph)
    exec(LABEL.sub(r"v_\1", do), space)
    graph = space["graph"]
    graph.verify()
    new = [label for label in defined(gives) if label not in labels.values()]
    for text, i in ids(graph).items():
        if text[1:] in new and not text[1:].isdigit():  # a name that Do gave
            labels[i] = text[1:]
            new.remove(text[1:])
    labels |= zip([i for i in ids(graph).values() if i not in labels], new, strict=True)
    found, wanted = lines(str(graph)), lines(gives)
    assert found.pop() == "}"
    if wanted[0].startswith("graph("):
        wanted[0] += " {"
    else:
        del found[0]
    if not wanted[-1].startswith("return"):
        found.pop()
    texts = {text: f"%{labels[i]}" for text, i in ids(graph).items()}
    assert [LABEL.sub(lambda each: texts[each[0]], line) for line in found] == wanted
    assert str(graph) != before or name == "Graph.take_over"
