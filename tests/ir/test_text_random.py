"""Tests of ir/text.py by random graphs, and by texts damaged at random."""

import math
import os
import pickle
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagedad.errors import ParseError, VerifyError
from stagedad.ir import Graph, parse_graph
from stagedad.types import CODES, TensorType

SOAK = bool(os.environ.get("STAGEDAD_SOAK"))

# Text that a reader might take for something else.
TRICKY = [
    "'", '"', "'\"\\", "\n", "\r\n", "\t", "{}", "}", "graph(", "graph(0)", "block0(",
    "block0() {", "return ()", "---- stage 1 ----", "\nwith graph 0 = graph() {", "# a.py:3",
    "[", "]", "%0", "é", "\u2028", "\x00", "\\n", "f[x=1](%0)", "array(ref=0)",
    "\U0001f600", "\ud800",
]  # fmt: skip
texts = (
    st.sampled_from(TRICKY)
    | st.text(max_size=8)
    | st.sampled_from(TRICKY).map(lambda text: text * 2)
)
floats = st.floats() | st.sampled_from([-0.0, np.inf, -np.inf, np.nan, 5e-324, 1e300])
shapes = st.lists(st.none() | st.integers(0, 9), max_size=3).map(tuple)
types = st.builds(
    TensorType,
    st.sampled_from([*CODES.values()]),
    st.none() | shapes,
    st.sampled_from(["cpu", "cuda:0", "cuda:3"]),
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,6}", fullmatch=True)
places = st.sampled_from(["a.py", "a b.py", "C:\\x.py", "<ipython-input-3>", "x,y.py", "é#.py"])
scopes = st.sampled_from(["s", "enc/l0", "a, b # c", "(", "100%"])


@st.composite
def arrays(draw):
    """Arrays of every dtype; 0-d, empty, strided, and too large to be written out."""
    dtype = draw(st.sampled_from([*CODES.values()]))
    shape = draw(
        st.sampled_from([(), (0,), (2, 0, 3), (1,), (3,), (2, 3), (16,), (17,), (4, 5)])
    )
    seed = draw(st.integers(0, 99))
    array = np.array(np.random.default_rng(seed).integers(0, 9, shape)).astype(dtype)
    if array.size and dtype.kind in "fc":
        array.flat[0] = draw(st.sampled_from([0.1, -0.0, np.inf, -np.inf, np.nan, -np.nan]))
    if array.size and dtype.kind == "c":
        array.imag.flat[-1] = draw(st.sampled_from([-1, -0.0, np.inf, np.nan, -np.nan]))
    if array.size and dtype.kind in "fc" and draw(st.integers(0, 4)) == 0:  # NaNs with bits
        array.reshape(-1).view("u1")[:] = draw(st.sampled_from([0x7F, 0xFF]))
    return draw(st.sampled_from([array, array.T, array[::-1] if shape else array]))


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), floats, st.complex_numbers(), texts,
    st.binary(max_size=4), st.sampled_from([*CODES.values()]), types, arrays(),
)  # fmt: skip


def values(held):
    """Attribute values; `held` are graphs that may be held, time and again."""
    leaves = scalars | st.sampled_from(held) if held else scalars
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@st.composite
def graphs(draw, depth=2):
    """A graph of known and unknown kinds, with whatever nodes may have."""
    held = [draw(graphs(depth=depth - 1)) for _ in range(draw(st.integers(0, depth)))]
    graph = Graph()
    pool = [graph.add_input(draw(st.none() | types)) for _ in range(draw(st.integers(0, 3)))]
    fill(draw, graph, graph, pool, held, draw(st.integers(0, 6)), depth)
    returned = draw(st.lists(st.sampled_from(pool), max_size=3)) if pool else []
    for value in sorted(returned, key=lambda value: value.stage):
        graph.register_output(value)
    graph.assumes_real = draw(st.booleans())
    return graph


def fill(draw, graph, around, pool, held, count, depth):
    """Insert nodes into `around`, the graph or a block; they are added to `pool`."""
    for _ in range(count):
        what = draw(
            st.sampled_from(["f", "g", "block0", "returned", "add", "constant", "stage"])
        )
        if what == "constant":
            number = floats | st.complex_numbers() | st.booleans() | arrays()
            value = graph.constant(draw(number))
            type_, unknown_dims = value.type, (None,) * value.type.ndim
            less = [None, type_.with_shape(None), type_.with_shape(unknown_dims)]
            value.type = draw(st.sampled_from([type_, *less]))
            new = (value,)
        elif what == "add":
            a = graph.constant(draw(st.floats()))
            new = (a, graph.insert("add", a, a, alpha=draw(st.sampled_from([1, 2, 2.5]))))
        elif what == "stage":
            if around is graph:
                graph.advance_stage()
            continue
        else:
            node = unknown(draw, graph, what, pool, held, depth)
            new = node.outputs
        for value in new:
            if draw(st.booleans()):
                value.name = draw(names)
        pool.extend(new)


def unknown(draw, graph, kind, pool, held, depth):
    operands = draw(st.lists(st.sampled_from(pool), max_size=3)) if pool else []
    attribute_names = st.sampled_from(["axis", "shape", "x", "y2", "_z", "outputs", "kind"])
    attributes = draw(st.dictionaries(attribute_names, values(held), max_size=3))
    outputs = [draw(st.none() | types) for _ in range(draw(st.integers(0, 3)))]
    node = graph.insert_typed(kind, operands, attributes, outputs)
    node.location = draw(st.none() | st.tuples(places, st.integers(0, 999)))
    node.scope = draw(st.none() | scopes)
    node.origin = draw(st.none() | st.integers(0, 2**31 - 1))
    for _ in range(draw(st.integers(0, depth))):
        block, inside = node.add_block(), [*pool]
        for _ in range(draw(st.integers(0, 2))):
            inside.append(
                block.add_input(draw(st.none() | types), name=draw(st.none() | names))
            )
        with graph.inside(block):
            fill(draw, graph, block, inside, held, draw(st.integers(0, 2)), depth - 1)
        for value in draw(st.lists(st.sampled_from(inside), max_size=2)) if inside else []:
            block.register_output(value)
    return node


def everything(graph):
    """What equality leaves out besides ids: names, places, and attributes as they print."""
    yield [value.name for value in graph.inputs], graph.assumes_real
    for node in graph.nodes(nested=True):
        yield node.kind, node.stage, node.location, node.scope, node.origin
        yield [v.name for v in node.outputs], [v.type for v in node.outputs]
        yield [(name, bits(value)) for name, value in node.attributes.items()]
        yield [[(v.name, v.type) for v in block.inputs] for block in node.blocks]


def bits(value):
    """What tells an attribute from every other, but for the payloads of NaNs that are scalars.

    Those Python keeps where it likes.
    """
    if isinstance(value, tuple):
        return [bits(item) for item in value]
    if isinstance(value, Graph):
        return list(everything(value))
    if isinstance(value, np.ndarray):
        native = value.astype(value.dtype.newbyteorder("="))
        return str(native.dtype), native.shape, native.tobytes()
    if isinstance(value, (float, complex)):
        parts = [value.real, value.imag]
        return type(value).__name__, repr(value), [math.copysign(1, part) for part in parts]
    return type(value).__name__, repr(value)


def few(count):
    return settings(
        max_examples=1000 if SOAK else count,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@few(50)
@given(graphs())
def test_random_graphs_survive(graph):
    graph.verify()
    text = graph.text(locations=True)
    parsed = parse_graph(text, constants=graph.constants)
    assert parsed == graph == graph.copy()
    assert parsed.fingerprint() == graph.fingerprint() == graph.copy().fingerprint()
    assert list(everything(parsed)) == list(everything(graph))
    # The ids may be counted anew, but from then on the text is a fixed point.
    again = parsed.text(locations=True)
    twin = parse_graph(again, constants=parsed.constants)
    assert twin.text(locations=True) == again
    assert len(parsed.constants) == len(graph.constants)
    loaded = pickle.loads(pickle.dumps(graph))
    assert loaded == graph
    assert list(everything(loaded)) == list(everything(graph))


@few(15)
@given(graphs(), st.integers(0, 2**32))
def test_random_graphs_damaged_at_random_are_read_or_refused(graph, seed):
    text, rng = graph.text(locations=True), random.Random(seed)
    for _ in range(20):
        check(damaged(text, rng), graph.constants)


@given(st.text(max_size=40))
def test_random_text_never_crashes(text):
    with pytest.raises(ParseError):
        parse_graph("graph" + text)


def check(text, constants):
    """Assert that a text gives a sound graph or one of two errors; return whether a graph."""
    try:
        graph = parse_graph(text, constants)
    except (ParseError, VerifyError):
        return False
    graph.verify()
    assert parse_graph(str(graph), graph.constants) == graph
    return True


def rich():
    """A graph with something of everything that the text form has."""
    inner, middle, graph = Graph(), Graph(), Graph()
    graph.assumes_real = True
    inner.register_output(inner.insert("neg", inner.add_input("f64[3]", name="q")))
    inner = middle.insert("h", one=inner).node.attributes["one"]
    middle.insert("h", two=(inner, 1))
    p, x = graph.add_input("b1[]", name="p"), graph.add_input("f64[2, ?]", name="x.y")
    y = graph.insert("sum", x, axis=0, keepdims=True, location=("a.py", 3), scope="s/t")
    node = graph.insert_typed("cond", [p], {}, [y.type])
    for block in node.add_block(), node.add_block():
        block.register_output(block.insert("neg", block.insert("exp", y)))
    loop = graph.insert_typed("while_loop", [y], {}, [y.type])
    condition, body = loop.add_block(), loop.add_block()
    carried = [block.add_input(y.type, name="c") for block in (condition, body)]
    condition.insert("less", carried[0], y)
    condition.register_output(p)
    body.register_output(carried[1])
    graph.constant(np.arange(20.0))
    graph.constant(np.array([1, 2], "i4"))
    graph.constant(-2.5)
    graph.advance_stage()
    graph.insert_typed(
        "f",
        [y, y, p],
        {
            "a": (1, -2.5, 'it\'s "x"\n[%1](', None, True),
            "b": np.arange(3, dtype="f4"),
            "c": (np.zeros((2, 0)), np.arange(40)),
            "d": middle,
            "e": TensorType("int8", (2, None)),
            "g": np.dtype("f4"),
            "h": complex(np.nan, -np.inf),
            "i": (inner, [middle]),
            "j": b"\x00",
        },
        [None, TensorType("float32")],
    )
    graph.register_output(node.output)
    graph.register_output(loop.output)
    graph.verify()
    return graph


TOKENS = [
    *"()[]{},:=%'\"#\\\n -019é?", "graph", "graph(", "graph(0)", "graph(1)", "block0",
    "block0(", "block0() {", "block1() {", "return", "return ()", "with graph 0 = graph(",
    "with graph 1 = graph(", "---- stage 1 ----", "%0", "%p", "%c", " : f64[]", " : f64[*]",
    "@cuda:0", "array(", "ref=0", "inf", "nan", "None", "complex(", "type(", "dtype(", "cond(",
    "while_loop(", "f(", "mul(", "  # a.py:3, scope s", " for reals", "-nan", "array([], f64",
    ", from %12", "array([1.5], f32)",
]  # fmt: skip


def damaged(text, rng):
    """The text with one to three things wrong."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        lines = text.split("\n")
        i, j = rng.randrange(len(text) + 1), rng.randrange(len(lines))
        k, n = rng.randrange(len(lines)), rng.choice([1, 1, 2, 5, 30])
        match rng.randrange(8):
            case 0:
                text = text[:i] + text[i + n :]
            case 1:
                text = text[:i] + rng.choice(TOKENS) + text[i:]
            case 2:
                text = text[:i] + rng.choice(TOKENS) + text[i + n :]
            case 3:
                text = text[:i]
            case 4:
                lines[j], lines[k] = lines[k], lines[j]
                text = "\n".join(lines)
            case 5:
                text = "\n".join([*lines[:j], *lines[j + n :]])
            case 6:
                text = "\n".join([*lines[:j], *lines[k : k + n], *lines[j:]])
            case 7:
                text = (
                    text[:i]
                    + chr(rng.choice([0, 9, 10, 13, 32, 39, 92, 233, 0x2028]))
                    + text[i:]
                )
    return text


@pytest.mark.parametrize("seed", range(40 if SOAK else 4))
def test_texts_damaged_at_random_are_read_or_refused(seed):
    graph, rng = rich(), random.Random(seed)
    text, constants = graph.text(locations=True), graph.constants
    assert parse_graph(text, constants) == graph
    read = [check(damaged(text, rng), constants) for _ in range(1000)]
    assert 20 < sum(read) < 500
