"""The contract of strided loops: every own loop, every dtype, every layout of its operands.

Operands are fields of packed records, byte-swapped, off their alignment, read-only, of negative
and zero strides, of 0 to 64 dims, empty; results are those of plain copies.
"""

import numpy as np
import pytest

from stagedad.errors import DTypeError
from stagedad.ir import Graph
from stagedad.ops import evaluate, infer
from stagedad.plan import kernels
from stagedad.run import compile
from stagedad.run._loops import own_loop_names
from stagedad.types import CODES, TensorType

DTYPES = list(CODES.values())
RNG = np.random.default_rng(11)


def off(array):
    """At an address that is no multiple of anything."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def field(array):
    """A field of packed records, between two bytes."""
    records = np.zeros(array.shape, [("a", "u1"), ("value", array.dtype), ("b", "u1")])
    records["value"] = array
    return records["value"]


def swapped(array):
    return array.astype(array.dtype.newbyteorder("S"))


def reversed_(array):
    flip = (..., *[slice(None, None, -1)] * array.ndim)
    return np.array(array[flip], order="C")[flip]


def spaced(array):
    room = np.zeros(tuple(3 * dim for dim in array.shape), array.dtype)
    view = room[(..., *[slice(1, None, 3)] * array.ndim)]
    view[...] = array
    return view


def read_only(array):
    result = array.copy()
    result.flags.writeable = False
    return result


def stretched(array):
    """Of stride 0 along the first axis, if its rows are made equal: see `same_rows`."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim else array


def turned(array):
    return np.array(array.T, order="C").T


LAYOUTS = [
    np.array, off, field, swapped, reversed_, spaced, read_only, stretched, turned,
    lambda array: field(swapped(array)),
    lambda array: reversed_(off(array)) if array.ndim else off(array),
    lambda array: off(turned(array)) if array.ndim < 2 else off(array.T).T,
]  # fmt: skip
NAMES = [
    "plain", "off", "field", "swapped", "reversed", "spaced", "read-only", "stretched",
    "turned", "swapped field", "reversed off", "turned off",
]  # fmt: skip
SHAPES = [(), (1,), (5,), (3, 4), (2, 1, 3), (0, 3), (40, 3), (3, 40)]


def numbers(shape, dtype, name):
    """Small whole numbers, of both signs where the dtype has them; rows alike if stretched."""
    low = -4 if dtype.kind in "ifc" else 0
    array = np.asarray(RNG.integers(low, 5, shape))
    if dtype.kind == "c":
        array = array + 1j * RNG.integers(-3, 4, shape)
    array = np.asarray(array).astype(dtype)
    return np.array(stretched(array)) if name == "stretched" else array


# Ops that between them use every loop of stagedad's own; how many operands; attributes.
OPS = [
    ("where", 3, {}),
    ("mul0", 2, {}),
    ("add", 2, {}),
    ("sub", 2, {}),
    ("mul", 2, {}),
    ("div", 2, {}),
    ("neg", 1, {}),
    ("square", 1, {}),
    ("sum", 1, {}),
    ("sum", 1, {"axis": 0}),
    ("sum", 1, {"axis": -1, "keepdims": True}),
    ("sum_to", 1, {"shape": ()}),
    ("sum_to", 1, {"shape": (1, 3)}),
    ("sum_to", 1, {"shape": (1, 4)}),
    ("sum_to", 1, {"shape": (3, 1)}),
    ("max", 1, {}),
    ("max", 1, {"axis": 0}),
    ("reshape", 1, {"shape": (-1,)}),
    ("concatenate", 2, {"axis": 0}),
    ("matmul", 2, {}),
    *(("astype", 1, {"dtype": dtype}) for dtype in DTYPES),
]


def compared(kind, arrays, attributes, made):
    """Compare a program on `made` with the reference on `arrays`; return its kernels.

    None of them, if the op does not take such operands.
    """
    try:
        infer(kind, [TensorType.of(array) for array in arrays], attributes)
    except (ValueError, DTypeError):
        return set()
    graph = Graph()
    graph.register_output(
        graph.insert(kind, *[graph.add_input() for _ in arrays], **attributes)
    )
    program = compile(graph)
    wanted = evaluate(kind, arrays, attributes)[0]
    for given in made:
        before = [array.copy() for array in given]
        (result,) = program(*given)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(result, wanted)
        for array, old in zip(given, before, strict=True):
            np.testing.assert_array_equal(array, old)
    return {record.kernel for record in program.instructions}


def layouts_of(arrays):
    """The arrays in each layout, and each layout beside plain ones."""
    for layout in LAYOUTS:
        yield [layout(array) for array in arrays]
    for layout in LAYOUTS[1:] if len(arrays) > 1 else ():
        yield [layout(arrays[0]), *arrays[1:]]
        yield [*arrays[:-1], layout(arrays[-1])]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layout_gives_what_a_plain_copy_gives(shape, dtype):
    used = 0
    for kind, count, attributes in OPS:
        for name in ("stretched", "plain"):
            arrays = [numbers(shape, dtype, name) for _ in range(count)]
            if kind == "where":
                arrays[0] = np.asarray(arrays[0] != 0)
            made = list(layouts_of(arrays))
            if name == "plain":  # whose rows differ
                made = [
                    given
                    for given in made
                    if all(
                        np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
                        for a, b in zip(given, arrays, strict=True)
                    )
                ]
            used += len(made) if compared(kind, arrays, attributes, made) else 0
    assert used >= 90


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("indices", ["i1", "u1", "i4", "i8", ">i8", "u4"])
def test_indices_and_what_they_select_are_of_any_layout(dtype, indices):
    x, v = numbers((4, 5), dtype, "plain"), numbers((4, 3), dtype, "plain")
    i = np.array([4, 0, 4], indices)
    rows = numbers((3, 5), dtype, "plain")
    for kind, arrays, axis in (
        ("take", (x, i), 1),
        ("take_last", (x, i), 1),
        ("index_set", (x, i, v), 1),
        ("index_add", (x, i, v), 1),
        ("take", (x[:, ::-1].T.copy(), i), 0),
        ("index_set", (np.zeros((5, 5), dtype), i, rows), 0),
        ("index_add", (np.zeros((5, 5), dtype), i, rows), 0),
    ):
        compared(
            kind,
            [np.array(array) for array in arrays],
            {"axis": axis},
            [
                [layout(array) if layout is not stretched else array for array in arrays]
                for layout in LAYOUTS
            ],
        )


def test_every_own_loop_is_among_them():
    used = set()
    for dtype in DTYPES:
        for kind, count, attributes in OPS:
            for shape in ((), (3, 4), (40, 3), (3, 40)):
                arrays = [numbers(shape, dtype, "plain") for _ in range(count)]
                used |= compared(
                    kind, arrays, attributes, [[turned(a) for a in arrays], arrays]
                )
        x, i = numbers((4,), dtype, "plain"), np.array([0, 3])
        for kind in ("take", "take_last", "index_set", "index_add"):
            arrays = [x, i, x[:2]][: 3 if kind.startswith("index") else 2]
            used |= compared(kind, arrays, {}, [arrays])
    for kind, arrays in (
        ("take", [np.zeros((3, 0)), np.zeros(2, int)]),
        ("pow", [np.arange(3), np.arange(3)]),
    ):
        used |= compared(kind, arrays, {}, [arrays])
    idle = {f"cast_{code}_{code}" for code in CODES}
    if not kernels.loops_enabled():
        idle |= {name for name in own_loop_names() if name.startswith("short_")}
    assert set(own_loop_names()) - used == idle


def test_arrays_of_all_dims():
    for ndim in range(65):
        shape = ((2, 1) * 9 + (1,) * 64)[:ndim]
        x = RNG.normal(size=shape)
        graph = Graph()
        y = graph.add_input()
        graph.register_output(graph.insert("add", y, graph.insert("transpose", y)))
        graph.register_output(graph.insert("sum", y, axis=tuple(range(0, ndim, 3))))
        program = compile(graph)
        for layout in (np.array, reversed_, off, turned, field):
            given = layout(x)
            if given.shape != given.T.shape:
                graph = Graph()
                turn = graph.insert("transpose", graph.add_input())
                graph.register_output(graph.insert("neg", turn))
                np.testing.assert_array_equal(compile(graph)(given)[0], -x.T)
                continue
            both, total = program(given)
            np.testing.assert_array_equal(both, x + x.T)
            np.testing.assert_allclose(total, x.sum(tuple(range(0, ndim, 3))))


@pytest.mark.parametrize("layout", LAYOUTS[1:], ids=NAMES[1:])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i4", "?"])
def test_outputs_may_be_of_any_layout_but_read_only_and_swapped(layout, dtype):
    graph = Graph()
    x = graph.add_input()
    graph.register_output(graph.insert("copy", x))
    graph.register_output(graph.insert("transpose", x))
    program = compile(graph)
    array = numbers((3, 4), np.dtype(dtype), "plain")
    first, second = layout(np.zeros((3, 4), dtype)), np.zeros((4, 3), dtype)
    refused = not first.flags.writeable or not first.dtype.isnative
    if refused:
        with pytest.raises((ValueError, DTypeError)):
            program.run([array], [first, second])
        assert not second.any()
        return
    program.run([array], [first, second])
    np.testing.assert_array_equal(first, array)
    np.testing.assert_array_equal(second, array.T)
