"""T3 of the reference: one op each on random arrays, against derivatives written here."""

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.run import compile
from stagedad.transform import Capture, differentiate
from stagedad.types import TensorType

CUBE = (2, 3, 4, 5)
WIDE = (10, 12, 15)


def logistic(x):
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def split(cuts, axis):
    """The row of a split at `cuts`: df puts the cotangents where their parts were."""

    def back(x, *parts):
        result, start = np.zeros_like(x), 0
        for part in parts:
            at = [slice(None)] * x.ndim
            at[axis] = slice(start, start + part.shape[axis])
            result[tuple(at)] = part
            start += part.shape[axis]
        return [result]

    bounds = list(zip([0, *cuts], [*cuts, WIDE[axis]], strict=True))
    lead = (slice(None),) * axis
    return lambda x: [x[(*lead, slice(start, stop))] for start, stop in bounds], back


# Name, op, attributes, shapes, f and df: df takes the operands, then the cotangents.
ROWS = [
    ("add", "add", {}, [CUBE, CUBE], lambda a, b: [a + b], lambda _a, _b, g: [g, g]),
    ("sub", "sub", {}, [CUBE, CUBE], lambda a, b: [a - b], lambda _a, _b, g: [g, -g]),
    ("mul", "mul", {}, [CUBE, CUBE], lambda a, b: [a * b], lambda a, b, g: [g * b, g * a]),
    (
        "sigmoid", "sigmoid", {}, [CUBE], lambda a: [logistic(a)],
        lambda a, g: [g * logistic(a) * logistic(-a)],
    ),
    (
        "tanh", "tanh", {}, [CUBE], lambda a: [np.tanh(a)],
        lambda a, g: [g / np.cosh(a) ** 2],
    ),
    ("t", "transpose", {}, [(10, 12)], lambda a: [a.T], lambda _, g: [g.T]),
    (
        "mm", "matmul", {}, [(10, 12), (12, 15)],
        lambda a, b: [np.einsum("ij,jk->ik", a, b)],
        lambda a, b, g: [np.einsum("ik,jk->ij", g, b), np.einsum("ij,ik->jk", a, g)],
    ),
    (
        "chunk", "split", {"indices_or_sections": 4, "axis": 1}, [WIDE],
        *split((3, 6, 9), 1),
    ),
    (
        "split", "split", {"indices_or_sections": (3, 6, 9, 12), "axis": 2}, [WIDE],
        *split((3, 6, 9, 12), 2),
    ),
    (
        "view", "reshape", {"shape": (3, 2)}, [(2, 3)],
        lambda a: [a.reshape(3, 2)], lambda _, g: [g.reshape(2, 3)],
    ),
    (
        "expand", "broadcast_to", {"shape": (2, 3)}, [(2, 1)],
        lambda a: [a + np.zeros((2, 3))], lambda _, g: [g.sum(1, keepdims=True)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_f_and_df_are_those_of_the_formulas(row, dtype):
    _, kind, attributes, shapes, forward, backward = row
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    if kind == "tanh":
        arrays = [array.clip(-3, 3) for array in arrays]
    graph = Graph()
    operands = [graph.add_input(TensorType.of(array)) for array in arrays]
    made = graph.insert(kind, *operands, **attributes)
    for value in made if isinstance(made, tuple) else (made,):
        graph.register_output(value)
    gradient = differentiate(graph, [True] * len(arrays))
    pair = compile(gradient)
    outputs = pair.f(*arrays)
    real = outputs[: gradient.f_real_outputs]
    cotangents = [random.standard_normal(output.shape).astype(dtype) for output in real]
    saved = [
        (arrays if source is Capture.INPUT else outputs)[offset]
        for source, offset in gradient.df_input_captures
    ]
    assert gradient.df_input_vjps == list(range(len(real)))
    found = pair.df(*saved, *cotangents)
    tolerance = 1e-5 if dtype == "f4" else 1e-12
    for results, wanted in ((real, forward(*arrays)), (found, backward(*arrays, *cotangents))):
        for one, other in zip(results, wanted, strict=True):
            assert one.dtype == np.dtype(dtype)
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
