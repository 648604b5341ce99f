"""The Given/Do/Gives examples in the docstrings of the IR's mutators, executed.

Given and Gives are lines `%3 = f(%1, %2)`, or a list of inputs; Do is Python in which `%1` is a
value, `node` the last node given, `node_of_1` the node that computes %1, `graph` the graph.
"""

import re

import pytest

from stagedad.ir import Graph, Node, Value

EXAMPLE = re.compile(
    r"Given:  (.*?)\n\s*Do:     (.*?)\n\s*Gives:  (.*?)(?:\n\s*\n|\Z)", re.DOTALL
)
LINE = re.compile(r"%(\w+) = (\w+)\(([^)]*)\)")

EXAMPLES = {
    f"{owner.__name__}.{name}": EXAMPLE.search(method.__doc__).groups()
    for owner in (Graph, Node, Value)
    for name, method in vars(owner).items()
    if "Given:" in (getattr(method, "__doc__", None) or "")
}


def test_every_kind_of_edit_has_an_example():
    assert set(EXAMPLES) >= {
        "Graph.insert",
        "Node.add_input",
        "Node.move_before",
        "Node.remove_input",
        "Node.replace_input",
        "Node.replace_input_with",
        "Value.replace_all_uses_with",
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_what_the_method_does(name):
    given, do, gives = EXAMPLES[name]
    graph, values = Graph(), {}
    made = LINE.findall(given)
    outputs = {output for output, _, _ in made}
    for label in re.findall(r"%(\w+)", given + do):
        if label not in outputs and label not in values:
            values[label] = graph.add_input("f64[]")
    node = None
    for output, kind, operands in made:
        node = graph.insert(kind, *[values[o] for o in re.findall(r"%(\w+)", operands)]).node
        values[output] = node.output
    names = {f"v_{label}": value for label, value in values.items()}
    names |= {f"node_of_{label}": value.node for label, value in values.items()}
    eval(re.sub(r"%(\w+)", r"v_\1", do), {"graph": graph, "node": node, **names})
    graph.verify()
    labels = {value: label for label, value in values.items()}
    lines = LINE.findall(gives)
    found = list(graph.nodes())
    assert len(found) == len(lines)
    for node, (output, kind, operands) in zip(found, lines, strict=True):
        labels.setdefault(node.output, output)
        assert node.kind == kind
        assert labels[node.output] == output
        assert [labels[value] for value in node.inputs] == re.findall(r"%(\w+)", operands)
