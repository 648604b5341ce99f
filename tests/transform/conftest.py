"""What the tests of transforms share."""

import numpy as np
import pytest

from stagedad.ops import evaluate


@pytest.fixture(scope="session")
def run():
    """`run(graph, arrays)`: the outputs, node by node with NumPy, no planner involved."""

    def run(graph, arrays):
        values = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.nodes():
            operands = [values[value] for value in node.inputs]
            results = evaluate(node.kind, operands, dict(node.attributes))
            values.update(zip(node.outputs, results, strict=True))
        return [np.asarray(values[value]) for value in graph.outputs]

    return run
