"""Random graphs: a program gives what evaluating its nodes one by one gives."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stagedad.ir import Graph
from stagedad.ops import evaluate, infer
from stagedad.run import compile
from stagedad.types import TensorType

SHAPES = [
    (),
    (1,),
    (3,),
    (2, 3),
    (3, 1),
    (1, 3),
    (2, 1, 3),
    (0,),
    (2, 0),
    (4, 3),
    (2100,),
    (3, 700),
]
DTYPES = ["f8", "f8", "f4", "i8", "i4", "b1", "c16", "f2"]
UNARY = [
    "neg",
    "abs",
    "square",
    "sin",
    "tanh",
    "conj",
    "real",
    "imag",
    "logical_not",
    "isnan",
    "copy",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "less",
    "equal",
    "mul0",
    "logical_and",
]
ANY_AXIS = st.sampled_from([None, 0, -1, 1, (0, 1), (-1, 0), ()])


def attempts(draw, values):
    """One node as (kind, operands, attributes), maybe one that does not fit."""
    pick = st.integers(0, len(values) - 1)
    x = draw(pick)
    shape = values[x].shape
    sort = draw(st.integers(0, 15))
    if sort <= 1:
        return draw(st.sampled_from(UNARY)), [x], {}
    if sort <= 4:
        attributes = {"alpha": 2} if draw(st.integers(0, 9)) == 0 else {}
        kind = draw(st.sampled_from(BINARY))
        return kind, [x, draw(pick)], attributes if kind in ("add", "sub") else {}
    if sort == 5:
        return "where", [draw(pick), x, draw(pick)], {}
    if sort == 6:
        kind = draw(st.sampled_from(["sum", "mean", "max"]))
        return kind, [x], {"axis": draw(ANY_AXIS), "keepdims": draw(st.booleans())}
    if sort == 7:
        axes = draw(st.permutations(range(len(shape))))
        return "transpose", [x], {"axes": tuple(axes)}
    if sort == 8:
        whole = draw(st.sampled_from([(-1,), shape[::-1], (*shape, 1), (1, *shape)]))
        return "reshape", [x], {"shape": whole}
    if sort == 9:
        steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in shape]
        ends = {1: (0, None), 2: (1, None), -1: (None, None), -2: (-1, None)}
        start, stop = (tuple(ends[step][i] for step in steps) for i in (0, 1))
        attributes = {"start": start, "stop": stop, "step": tuple(steps)}
        if draw(st.booleans()):
            return "slice", [x], attributes
        wide = tuple(2 * dim + 1 for dim in shape)
        stop = tuple(2 * dim for dim in shape)
        start, step = (0,) * len(shape), (2,) * len(shape)
        return "unslice", [x], {"shape": wide, "start": start, "stop": stop, "step": step}
    if sort in (11, 12):
        # Often at one place, after the other or over each other.
        start = tuple(draw(st.integers(0, 2)) for _ in shape)
        stop = tuple(draw(st.sampled_from([None, first + 1])) for first in start)
        slices = {"start": start, "stop": stop, "step": (1,) * len(shape)}
        return draw(st.sampled_from(["slice_set", "slice_add"])), [x, draw(pick)], slices
    if sort == 13:
        start = tuple(draw(st.integers(0, 2)) for _ in shape)
        stop = tuple(first + 1 for first in start)
        return "slice", [x], {"start": start, "stop": stop, "step": (1,) * len(shape)}
    if sort == 14:
        kinds = ["take", "take_last", "index_set", "index_add"]
        kind = draw(st.sampled_from(kinds))
        operands = [x, draw(pick)] if kind.startswith("take") else [x, draw(pick), draw(pick)]
        return kind, operands, {"axis": draw(st.integers(-1, 0))}
    if sort == 10:
        return "concatenate", [x, draw(pick), x], {"axis": draw(st.integers(-1, 0))}
    return draw(
        st.sampled_from([("matmul", [x, draw(pick)], {}), ("astype", [x], {"dtype": "f8"})])
    )


@st.composite
def programs(draw):
    """A graph, its arguments, and the values of its outputs by the reference."""
    graph = Graph()
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays, values, handles = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(SHAPES))
        array = np.asarray(rng.integers(-3, 4, shape)).astype(draw(st.sampled_from(DTYPES)))
        if draw(st.booleans()):
            array = array.T
        arrays.append(array)
        values.append(array)
        handles.append(graph.add_input())
    for _ in range(draw(st.integers(1, 25))):
        kind, operands, attributes = attempts(draw, values)
        try:
            infer(kind, [TensorType.of(values[i]) for i in operands], attributes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (value,) = evaluate(kind, [values[i] for i in operands], attributes)
            if value.size > 20000:
                continue
            handle = graph.insert(kind, *[handles[i] for i in operands], **attributes)
        except (ValueError, TypeError, IndexError):
            continue
        values.append(value)
        handles.append(handle)
    chosen = draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=4))
    chosen.append(len(values) - 1)
    for i in chosen:
        graph.register_output(handles[i])
    return graph, arrays, [values[i] for i in chosen]


@given(programs())
def test_agrees_node_by_node(case):
    graph, arrays, wanted = case
    before = [array.copy() for array in arrays]
    program = compile(graph)
    results = program(*arrays)
    for result, want in zip(results, wanted, strict=True):
        assert result.dtype == want.dtype
        assert result.shape == want.shape
        if result.dtype.kind in "fc":
            eps = float(np.finfo(result.dtype).eps)
            finite = np.abs(want[np.isfinite(want)])
            scale = float(np.max(finite, initial=1))
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    result, want, rtol=2000 * eps, atol=2000 * eps * scale
                )
        else:
            agree = np.mean(result == want) if want.size else 1.0
            assert agree > 0.9
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    again = [np.full_like(result, 77) for result in results]
    program.run(arrays, again)
    for result, second in zip(results, again, strict=True):
        np.testing.assert_array_equal(result, second)
