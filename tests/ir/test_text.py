"""Tests of ir/text.py: printing and parsing."""

import pickle
import re

import numpy as np
import pytest

from stagedad.errors import ParseError, StagedadError, VerifyError
from stagedad.ir import Graph, parse_graph


def round_trip(graph):
    """Assert that the text of `graph` parses back to it, and return what was parsed."""
    graph.verify()
    text = str(graph)
    parsed = parse_graph(text, constants=graph.constants)
    parsed.verify()
    assert parsed == graph
    assert parsed.fingerprint() == graph.fingerprint()
    # The ids may be counted anew, but from then on the text is a fixed point.
    again = str(parsed)
    assert str(parse_graph(again, constants=parsed.constants)) == again
    return parsed


def test_prints_as_documented():
    graph = Graph()
    a, b = graph.add_input("f64[2, 3]", name="a"), graph.add_input("f64[2, 3]", name="b")
    c = graph.insert("mul", a, b)
    graph.register_output(c)
    assert str(graph).splitlines() == [
        "graph(%a : f64[2, 3], %b : f64[2, 3]) {",
        "  %2 : f64[2, 3] = mul(%a, %b)",
        "  return (%2)",
        "}",
    ]
    round_trip(graph)


def test_prints_an_unknown_type_as_nothing():
    graph = Graph()
    a = graph.add_input(name="a")
    graph.register_output(graph.insert("neg", a))
    assert str(graph).splitlines()[:2] == ["graph(%a) {", "  %1 = neg(%a)"]
    round_trip(graph)


def test_text_is_str():
    graph = Graph()
    graph.register_output(graph.insert("neg", graph.add_input("f64[]")))
    assert graph.text() == str(graph)


CODES = "b1 i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128"


@pytest.mark.parametrize("code", CODES.split())
def test_every_type_survives(code):
    graph = Graph()
    for shape in ("", "3", "2, 3", "?", "?, 4", "*", "0", "1, 0, ?, 7"):
        for device in ("", "@cuda:0", "@cuda:11"):
            a = graph.add_input(f"{code}[{shape}]{device}")
            b = graph.insert("f", a)
            b.type = a.type
            graph.register_output(b)
            assert f": {code}[{shape}]{device} = f(" in str(graph)
    parsed = round_trip(graph)
    for old, new in zip(graph.inputs, parsed.inputs, strict=True):
        assert new.type is old.type
    for old, new in zip(graph.outputs, parsed.outputs, strict=True):
        assert new.type is old.type


@pytest.mark.parametrize(
    "name", ["x", "_", "params.w", "params.0.w", "stage", "graph", "constant", "f64", "A_1."]
)
def test_names_survive(name):
    graph = Graph()
    a = graph.add_input("f64[]", name=name)
    b = graph.insert("neg", a)
    b.name = "result." + name
    graph.register_output(b)
    parsed = round_trip(graph)
    assert parsed.inputs[0].name == name
    assert parsed.outputs[0].name == "result." + name


@pytest.mark.parametrize(
    "kind", ["returned", "graph", "stage", "f", "constant_of", "_x", "a.b"]
)
def test_unknown_kinds_survive(kind):
    graph = Graph()
    graph.register_output(graph.insert(kind, graph.add_input()))
    assert round_trip(graph).outputs[0].node.kind == kind


@pytest.mark.parametrize("kind", ["return", "1f", "a b", "", "f(", "param"])
def test_kinds_that_could_not_be_read_back_are_refused(kind):
    graph = Graph()
    with pytest.raises(ValueError, match="create"):
        graph.insert(kind, graph.add_input())
    assert len(graph) == 0


def test_several_and_no_outputs_survive():
    graph = Graph()
    a = graph.add_input("f64[2]")
    one, two = graph.insert("f", a, outputs=2)
    two.type = "i64[?]"
    graph.insert("print", one, outputs=0)
    graph.register_output(two)
    parsed = round_trip(graph)
    assert [len(node.outputs) for node in parsed.nodes()] == [2, 0]
    assert str(parsed.outputs[0].type) == "i64[?]"


def test_stages_survive():
    graph = Graph()
    a = graph.add_input("f64[]", name="a")
    b = graph.insert("neg", a)
    graph.advance_stage()
    c = graph.insert("neg", b)
    graph.advance_stage()
    graph.advance_stage()
    d = graph.insert("neg", c)
    graph.register_output(d)
    lines = str(graph).splitlines()
    assert lines[2].strip() == "---- stage 1 ----"
    assert lines[4].strip() == "---- stage 3 ----"
    parsed = round_trip(graph)
    assert [node.stage for node in parsed.nodes()] == [0, 1, 3]
    assert parsed.outputs[0].stage == 3


def test_a_graph_at_another_stage_from_the_first_node_on_survives():
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.advance_stage()
    graph.register_output(graph.insert("neg", a))
    parsed = round_trip(graph)
    assert [v.stage for v in (*parsed.inputs, *parsed.outputs)] == [0, 1]


def test_inputs_of_a_later_stage_survive():
    graph = Graph()
    a = graph.add_input("f64[]", name="a")
    b = graph.insert("neg", a)
    graph.register_output(b)
    graph.advance_stage()
    g = graph.add_input("f64[]", name="g")
    graph.register_output(graph.insert("mul", b, g))
    parsed = round_trip(graph)
    assert [v.stage for v in parsed.inputs] == [0, 1]


def test_an_input_of_stage_1_without_nodes_survives():
    graph = Graph()
    graph.register_output(graph.add_input("f64[]"))
    graph.advance_stage()
    graph.register_output(graph.add_input("f64[]"))
    assert [v.stage for v in round_trip(graph).inputs] == [0, 1]


SMALL = [
    True, 0, -7, 2**62, 1.5, -0.0, 1e-310, 0.1, float("inf"), -float("inf"), float("nan"),
    1j, complex(-0.0, -0.0), complex(float("nan"), -float("inf")), np.float32(0.1),
    np.array(0.1), np.array([1.0, np.inf, -np.inf, np.nan, -0.0]),
    np.array([[1, 2], [3, -4]], dtype="i1"), np.array([[True], [False]]),
    np.array([0.1, 2.5], dtype="f2"), np.array([0.1], dtype="f4"),
    np.array([1 + 2j, complex(np.nan, np.inf), complex(-0.0, 1)]),
    np.array([0.1 + 0.2j], dtype="c8"), np.array([2**64 - 1], dtype="u8"),
    np.zeros((0,)), np.zeros((2, 0, 3), dtype="i4"), np.zeros((1, 1, 1)), np.arange(16.0),
    np.arange(16.0).reshape(2, 8), np.arange(32.0)[::2], np.arange(4.0)[::-1],
    np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">f8"), complex(0.0, -np.inf),
]  # fmt: skip


# The literal -1j has a real part of -0.0; NaNs that arithmetic makes have a sign.
SIGNED = [
    complex(0.0, -1), np.array([complex(0.0, -1)]), complex(-0.0, -1), complex(0.0, 1),
    complex(-0.0, 1), complex(-1, 0.0), complex(1, -0.0), np.array([complex(-0.0, 5)], "c8"),
    np.array([np.nan, -np.nan]), np.array([complex(-np.nan, 0)]), np.array(-np.nan, "f4"),
    np.array([np.nan, -np.nan], "f2"), np.array([complex(1, -np.nan)], "c8"), -np.nan,
    complex(np.nan, -np.nan), np.array([-np.nan, 1], ">f8"),
]  # fmt: skip


@pytest.mark.parametrize("value", [*SMALL, *SIGNED], ids=lambda v: re.sub(r"\s+", " ", repr(v)))
def test_small_constants_are_inline(value):
    graph = Graph()
    c = graph.constant(value)
    graph.register_output(c)
    text = str(graph)
    assert "ref=" not in text
    parsed = parse_graph(text)
    assert parsed == graph
    assert parsed.fingerprint() == graph.fingerprint()
    assert parsed.outputs[0].type is c.type
    back = np.asarray(parsed.outputs[0].node.attributes["value"], dtype=c.type.dtype)
    expected = np.asarray(value).astype(c.type.dtype)
    assert back.shape == expected.shape
    assert np.ascontiguousarray(back).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c16", "f2"])
@pytest.mark.parametrize("value", [2, 0.5, -0.0])
def test_constants_of_a_dtype_survive(dtype, value):
    graph = Graph()
    if np.dtype(dtype).kind == "i":
        value = int(value)
    graph.register_output(graph.constant(value, dtype))
    assert round_trip(graph).outputs[0].type.dtype == np.dtype(dtype)


def test_large_constants_are_held_by_reference():
    graph = Graph()
    one, two = np.arange(17.0), np.arange(40, dtype="i4").reshape(4, 10)
    for array in (one, two, one):
        graph.register_output(graph.constant(array))
    text = str(graph)
    assert text.count("ref=") == 3
    parsed = round_trip(graph)
    held = [v.node.attributes["value"] for v in parsed.outputs]
    assert held[0] is one
    assert held[1] is two
    assert held[2] is one
    with pytest.raises(StagedadError):
        parse_graph(text)


@pytest.mark.parametrize("type", [None, "f32[*]", "f32[?]"])
@pytest.mark.parametrize(
    "array", [np.array([1, 2.5], "f4"), np.zeros(0, "f4"), np.array(0.1, "f4")], ids=repr
)
def test_an_array_survives_a_type_that_says_less(type, array):
    graph = Graph()
    graph.register_output(graph.constant(array))
    graph.outputs[0].type = type if array.ndim else type and "f32[*]"
    parsed = round_trip(graph)
    assert str(parsed) == str(graph)
    assert parsed.constants[0].dtype == np.float32
    assert parsed.constants[0].tobytes() == array.tobytes()


def test_an_array_survives_a_dtype_that_is_another():
    graph = Graph()
    for value in (np.array([0.1, 2]), np.array(0.1), np.arange(20.0)):
        graph.register_output(graph.constant(value, "float32"))
        graph.insert("constant", value=value, dtype="float32")
    graph.insert("constant", value=np.array(0.5), shape=(2, 3))
    parsed = round_trip(graph)
    assert {array.dtype for array in parsed.constants} == {np.dtype("float64")}
    assert str(parsed) == str(graph)


def test_an_array_of_many_empty_rows_is_a_short_text():
    graph = Graph()
    graph.insert("f", x=np.zeros((10**7, 0)), y=(np.zeros((0, 10**7), "i4"),))
    graph.constant(np.zeros((10**7, 0)))
    assert len(str(graph)) < 300
    parsed = round_trip(graph)
    assert [array.shape for array in parsed.constants] == [(10**7, 0), (0, 10**7), (10**7, 0)]


def test_a_text_of_an_array_of_many_empty_rows_is_read_and_written():
    text = holding(attribute="array([], f64, (1000000000000, 0))")
    graph = parse_graph(text)
    assert graph.constants[0].shape == (10**12, 0)
    assert "array([], f64, (1000000000000, 0))" in str(graph)


@pytest.mark.parametrize("text", ["array([[], []], f64)", "array([[1, 2]], f32, (1, 2))"])
def test_arrays_that_list_more_than_they_need_are_read(text):
    shape = parse_graph(holding(attribute=text)).constants[0].shape
    assert shape == ((1, 2) if "1" in text else (2, 0))


@pytest.mark.parametrize(
    ("array", "bits"),
    [
        (np.zeros(2), 0x7FF8000000000001), (np.zeros(2), -1), (np.zeros(2), 0x7FF0000000000001),
        (np.zeros((), "f4"), 0x7FC00001), (np.zeros(3, "f2"), 0x7E01),
        (np.zeros(1, "c16"), 0x7FF8000000000001), (np.zeros(1, "c8"), 0x7FC00001),
    ],
    ids=lambda v: "" if isinstance(v, int) else str(v.dtype),
)  # fmt: skip
def test_nans_that_no_text_has_are_held_by_reference(array, bits):
    array = array.copy()
    size = array.real.dtype.itemsize
    array.reshape(-1).view(f"i{size}")[-1] = bits
    graph = Graph()
    graph.register_output(graph.constant(array))
    graph.insert("f", x=array)
    assert str(graph).count("ref=") == 2
    round_trip(graph)
    loaded = pickle.loads(pickle.dumps(graph))
    assert loaded == graph
    assert [held.tobytes() for held in loaded.constants] == [array.tobytes()] * 2


def test_the_sign_of_a_nan_as_an_attribute_survives():
    graph = Graph()
    graph.insert("f", x=-np.nan, y=(np.nan, complex(-np.nan, np.nan)), z=np.array([-np.nan]))
    attributes = next(iter(round_trip(graph))).attributes
    one, two, three = attributes["x"], *attributes["y"]
    assert np.signbit([one, two, three.real, three.imag]).tolist() == [True, False, True, False]
    assert np.signbit(attributes["z"]).all()


def test_what_a_derivative_assumed_survives():
    inner = Graph()
    inner.add_input(name="a")
    inner.assumes_real = True
    graph = Graph()
    graph.add_input()
    graph.advance_stage()
    graph.add_input()
    graph.insert("f", x=inner, y=Graph())
    for assumed in (False, True):
        graph.assumes_real = assumed
        assert str(graph).count(" for reals {") == 1 + assumed
        for parsed in (round_trip(graph), pickle.loads(pickle.dumps(graph))):
            assert parsed.assumes_real is assumed
            assert str(parsed) == str(graph)
            held = next(iter(parsed)).attributes
            assert held["x"].assumes_real
            assert not held["y"].assumes_real


def test_small_and_large_constants_mix():
    graph = Graph()
    for array in (np.arange(3.0), np.arange(30.0), np.arange(5.0), np.arange(31.0)):
        graph.register_output(graph.constant(array))
    round_trip(graph)


def test_locations_are_printed_when_asked():
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.register_output(graph.insert("neg", a, location=("model.py", 12), scope="enc/l0"))
    assert "model.py" not in str(graph)
    text = graph.text(locations=True)
    assert "model.py:12" in text
    assert "enc/l0" in text
    parsed = parse_graph(text)
    assert parsed == graph
    node = parsed.outputs[0].node
    assert node.location == ("model.py", 12)
    assert node.scope == "enc/l0"


@pytest.mark.parametrize("file", ["a b.py", "C:\\x.py", "<ipython-input-3>", "x,y.py", "é#.py"])
def test_odd_locations_survive(file):
    graph = Graph()
    a = graph.add_input("f64[]")
    graph.register_output(graph.insert("neg", a, location=(file, 3)))
    graph.register_output(graph.insert("exp", a, scope="a, b # c"))
    parsed = parse_graph(graph.text(locations=True))
    assert parsed == graph
    assert parsed.outputs[0].node.location == (file, 3)
    assert parsed.outputs[1].node.scope == "a, b # c"


@pytest.mark.parametrize("scope", ["layer:5", "a.py:3", "from %3", "a, scope b", "'x':1", "%"])
def test_scopes_that_look_like_locations_survive(scope):
    graph = Graph()
    for location in (None, ("a.py", 3)):
        graph.insert("f", location=location, scope=scope)
    again = parse_graph(graph.text(locations=True))
    assert [(n.location, n.scope) for n in again] == [(None, scope), (("a.py", 3), scope)]


@pytest.mark.parametrize(
    "file", ["a:3", "a.py:3, scope b", "from %3", "scope a", "'", '"', "a\\", "x.py:", "%0"]
)
def test_files_that_look_like_something_else_survive(file):
    graph = Graph()
    graph.insert("f", location=(file, 7), scope="s")
    (node,) = parse_graph(graph.text(locations=True))
    assert (node.location, node.scope, node.origin) == ((file, 7), "s", None)


@pytest.mark.parametrize("origin", [0, 12, 999_999_999])
def test_origins_survive(origin):
    graph = Graph()
    for location, scope in ((None, None), (("a.py", 3), None), (None, "s"), (("a.py", 3), "s")):
        node = graph.insert("f", location=location, scope=scope).node
        node.origin = origin
    again = parse_graph(graph.text(locations=True))
    assert [(n.location, n.origin, n.scope) for n in again] == [
        (n.location, n.origin, n.scope) for n in graph
    ]
    assert {n.origin for n in again} == {origin}


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("origin", 2**31 - 1),
        ("scope", "a "),
        ("location", ("a.py", -3)),
        ("location", ("a.py", True)),
    ],
)
def test_places_that_have_no_text_are_refused(what, given):
    graph = Graph()
    node = graph.insert("f").node
    try:
        setattr(node, what, given)
    except ValueError:
        return
    (again,) = parse_graph(graph.text(locations=True))
    assert getattr(again, what) == given


def test_white_space_and_comments_do_not_matter():
    text = """
    # a product
    graph( %a:f64[ 2 ,3 ] ,%b : f64[2, 3] )
    {
      %c : f64[2,3]=mul( %a,%b )   # of the two
      return(%c)
    }
    """
    parsed = parse_graph(text)
    assert [node.kind for node in parsed.nodes()] == ["mul"]
    assert [v.name for v in parsed.inputs] == ["a", "b"]


def test_types_that_are_left_out_are_inferred():
    parsed = parse_graph("graph(%a : f64[2]) {\n  %b = neg(%a)\n  return (%b)\n}")
    assert str(parsed.outputs[0].type) in ("f64[2]", "None")
    parsed.verify()


def test_aliases_are_read():
    parsed = parse_graph("graph(%a, %b) {\n  %c = multiply(%a, %b)\n  return (%c)\n}")
    assert parsed.outputs[0].node.kind == "mul"


def graph_text(*body, inputs="%a : f64[2], %b : f64[3]", end="}"):
    return "\n".join([f"graph({inputs}) {{", *(f"  {line}" for line in body), end])


# Text, the line and the columns at which a reader would look for the fault.
MALFORMED = {
    "empty": ("", 1, (1, 1)),
    "no graph": ("module() {\n}", 1, (1, 1)),
    "no parameters": ("graph {\n}", 1, (6, 7)),
    "parameters do not end": ("graph(%a : f64[2]", 1, (17, 18)),
    "no percent": ("graph(a) {\n  return ()\n}", 1, (7, 7)),
    "unknown dtype": (graph_text("return ()", inputs="%a : f99[2]"), 1, (7, 12)),
    "bad dim": (graph_text("return ()", inputs="%a : f64[x]"), 1, (7, 16)),
    "bad device": (graph_text("return ()", inputs="%a : f64[]@tpu:0"), 1, (7, 18)),
    "bad name": (graph_text("return ()", inputs="%1x : f64[]"), 1, (7, 9)),
    "input twice": (graph_text("return ()", inputs="%a, %a"), 1, (11, 11)),
    "undefined": (graph_text("%c = neg(%x)", "return (%c)"), 2, (12, 12)),
    "used too early": (
        graph_text("%c = neg(%d)", "%d = neg(%a)", "return (%c)"),
        2,
        (12, 12),
    ),
    "defined twice": (graph_text("%a = neg(%b)", "return (%a)"), 2, (3, 3)),
    "undefined result": (graph_text("%c = neg(%a)", "return (%d)"), 3, (11, 11)),
    "no operands": (graph_text("%c = neg", "return (%c)"), 2, (11, 11)),
    "no kind": (graph_text("%c = (%a)", "return (%c)"), 2, (8, 8)),
    "no equals": (graph_text("%c neg(%a)", "return (%c)"), 2, (6, 6)),
    "two operands without a comma": (graph_text("%c = f(%a %b)", "return (%c)"), 2, (13, 13)),
    "empty attribute": (graph_text("%c = f[x=](%a)", "return (%c)"), 2, (9, 12)),
    "attribute without a name": (graph_text("%c = f[3](%a)", "return (%c)"), 2, (9, 11)),
    "attribute that is a call": (graph_text("%c = f[x=g(1)](%a)", "return ()"), 2, (9, 15)),
    "attribute that is a name": (graph_text("%c = f[x=y](%a)", "return ()"), 2, (9, 13)),
    "attribute twice": (graph_text("%c = f[x=1, x=2](%a)", "return ()"), 2, (9, 18)),
    "attributes do not end": (graph_text("%c = f[x=1(%a)", "return ()"), 2, (9, 17)),
    "text does not end": (graph_text("%c = f[x='1](%a)", "return ()"), 2, (9, 20)),
    "unknown dtype of an attribute": (graph_text("%c = f[x=dtype(f99)](%a)"), 2, (9, 23)),
    "no constants": (graph_text("%c = constant[ref=0]()", "return (%c)"), 2, (3, 25)),
    "no return": (graph_text("%c = neg(%a)"), 3, (1, 1)),
    "two returns": (graph_text("return (%a)", "return (%a)"), 3, (3, 3)),
    "a node after the return": (graph_text("return (%a)", "%c = neg(%a)"), 3, (3, 3)),
    "no end": (graph_text("return (%a)", end=""), 2, (14, 14)),
    "something after the end": (graph_text("return (%a)", end="} x"), 3, (3, 3)),
    "bad stage": (graph_text("---- stage one ----", "return ()"), 2, (3, 14)),
    "negative stage": (graph_text("---- stage -1 ----", "return ()"), 2, (3, 14)),
    "a strange character": (graph_text("%c = neg(%a) $", "return (%c)"), 2, (16, 16)),
}


def block_text(*body, after=(), sections=()):
    """A graph of one node, with lines of blocks behind it."""
    return "\n".join([graph_text("%c = f(%a)", *body, *after, "return (%c)"), *sections])


def holding(*sections, attribute="graph(0)"):
    text = graph_text(f"%c = f[x={attribute}](%a)", "return (%c)")
    return "\n".join([text, *sections])


EMPTY = "graph() {\n  return ()\n}"
LONG = "1" * 5000

MALFORMED |= {
    "block 1 first": (block_text("block1() {", "return ()", "}"), 3, (3, 3)),
    "block 00": (block_text("block00() {", "return ()", "}"), 3, (3, 3)),
    "block 0 twice": (
        block_text("block0() {", "return ()", "}", "block0() {", "return ()", "}"), 6, (3, 3)
    ),
    "block 2 after block 0": (
        block_text("block0() {", "return ()", "}", "block2() {", "return ()", "}"), 6, (3, 3)
    ),
    "a block without a node": (
        graph_text("block0() {", "return ()", "}", "return ()"), 2, (3, 3)
    ),
    "a block in a block without a node": (
        block_text("block0() {", "block0() {", "return ()", "}"), 4, (3, 3)
    ),
    "a block after a return": (block_text("block0() {", "return ()", "block0() {"), 5, (3, 3)),
    "a block after the graph": (graph_text("return ()", end="} block0() {\n}"), 3, (3, 3)),
    "a block without a return": (block_text("block0() {", "}"), 4, (3, 3)),
    "a block that does not end": (block_text("block0() {", "return ()"), 5, (3, 3)),
    "a block that does not end at the end": (block_text("block0() {", "%d = f(%a)"), 6, (2, 2)),
    "a block without parameters": (block_text("block0 {"), 3, (3, 10)),
    "a block of a negative number": (block_text("block-1() {"), 3, (3, 8)),
    "two returns in a block": (
        block_text("block0() {", "return (%a)", "return (%a)", "}"), 5, (3, 3)
    ),
    "bad parameter of a block": (block_text("block0(a) {", "return ()", "}"), 3, (10, 10)),
    "bad type of a block's parameter": (
        block_text("block0(%d : f99[]) {", "return ()", "}"), 3, (10, 15)
    ),
    "a block's parameter twice": (block_text("block0(%d, %d) {", "return ()"), 3, (14, 14)),
    "a block's parameter that is taken": (block_text("block0(%a) {", "return ()"), 3, (10, 10)),
    "undefined in a block": (block_text("block0() {", "%d = f(%x)"), 4, (10, 10)),
    "an undefined result of a block": (block_text("block0() {", "return (%x)"), 4, (11, 11)),
    "a stage in a block": (
        block_text("block0() {", "---- stage 1 ----", "return ()", "}"), 4, (3, 3)
    ),
    "an unknown graph": (holding(), 2, (10, 12)),
    "a graph that is not there": (
        holding(f"with graph 0 = {EMPTY}", attribute="graph(1)"), 2, (10, 12)
    ),
    "a graph of a negative number": (holding(attribute="graph(-1)"), 2, (10, 12)),
    "a graph by another thing": (holding(attribute="graph('0')"), 2, (10, 12)),
    "graph 1 first": (holding(f"with graph 1 = {EMPTY}"), 5, (12, 12)),
    "graph 0 twice": (holding(*[f"with graph 0 = {EMPTY}"] * 2), 8, (12, 12)),
    "graph 2 after graph 0": (
        holding(f"with graph 0 = {EMPTY}", f"with graph 2 = {EMPTY}"), 8, (12, 12)
    ),
    "a graph that nobody holds": (
        graph_text("return ()") + f"\nwith graph 0 = {EMPTY}", 4, (12, 12)
    ),
    "one more graph": (
        holding(f"with graph 0 = {EMPTY}", f"with graph 1 = {EMPTY}"), 8, (12, 12)
    ),
    "a graph that holds itself": (
        holding("with graph 0 = graph() {", "  f[x=graph(0)]()", "  return ()", "}"), 6, (5, 7)
    ),
    "graphs that hold each other": (
        holding(
            "with graph 0 = graph() {", "  f[x=graph(1)]()", "  return ()", "}",
            "with graph 1 = graph() {", "  f[x=graph(0)]()", "  return ()", "}",
        ), 10, (5, 7),
    ),
    "a fault in a held graph": (
        holding("with graph 0 = graph() {", "  return (%x)", "}"), 6, (11, 11)
    ),
    "a held graph that does not end": (
        holding("with graph 0 = graph() {", "  return ()"), 6, (12, 13)
    ),
    "something before a held graph": (holding("x", f"with graph 0 = {EMPTY}"), 5, (1, 1)),
    "something after a held graph": (holding(f"with graph 0 = {EMPTY}", "x"), 8, (1, 1)),
    "an empty array": (holding(attribute="array()"), 2, (10, 12)),
    "an array of another shape": (holding(attribute="array([1], f64, (2,))"), 2, (10, 30)),
    "an array of an unknown dtype": (holding(attribute="array([1], f99)"), 2, (10, 30)),
    "an array of text": (holding(attribute="array(['a'], f64)"), 2, (8, 30)),
    "an array of unequal rows": (holding(attribute="array([[1], 2], f64)"), 2, (10, 30)),
    "no array": (holding(attribute="array(ref=0)"), 2, (10, 30)),
    "a negative array": (holding(attribute="array(ref=-1)"), 2, (10, 30)),
    "no type": (holding(attribute="type('f99[]')"), 2, (10, 30)),
    "a type that is no text": (holding(attribute="type(f64)"), 2, (10, 30)),
}  # fmt: skip

MALFORMED |= {
    "a graph of too many digits": (holding(f"with graph {LONG} = {EMPTY}"), 5, (12, 12)),
    "a line of too many digits": (graph_text(f"%c = f(%a)  # a.py:{LONG}"), 2, (1, 60)),
    "an integer out of range": (holding(attribute="array([300], i8)"), 2, (10, 30)),
    "a number out of range": (holding(attribute=f"complex(1{'0' * 400}, 0)"), 2, (10, 30)),
    "a bad escape in a location": (graph_text(r"%c = f(%a)  # '\x':3"), 2, (1, 60)),
    "an origin of too many digits": (graph_text(f"%c = f(%a)  # from %{LONG}"), 2, (1, 60)),
    "an origin out of range": (graph_text(f"%c = f(%a)  # from %{2**31}"), 2, (1, 60)),
    "a location that is not printable": (graph_text(r"%c = f(%a)  # '\n':3"), 2, (1, 60)),
    "an overflow": (holding(attribute="array([1e300], f32)"), 2, (10, 30)),
    "an integer too large for any dtype": (
        holding(attribute=f"array([1{'0' * 400}])"), 2, (10, 30)
    ),
    "attributes of two calls": (holding(attribute="1)(y=2"), 2, (8, 30)),
    "attributes from a dict": (graph_text("%c = f[**1](%a)", "return (%c)"), 2, (9, 12)),
    "attributes behind a comment": (holding(attribute="1)\n#"), 2, (8, 30)),
    "numbers that the dtype does not hold": (
        holding(attribute="array([1.5], i8)"), 2, (10, 30)
    ),
    "complex numbers for real ones": (holding(attribute="array([1j], f64)"), 2, (10, 30)),
    "a number for a boolean": (holding(attribute="array([2], b1)"), 2, (10, 30)),
    "arrays in an array": (holding(attribute="array([array(1)], i8)"), 2, (10, 30)),
    "an array of a shape to be found": (
        holding(attribute="array([1], i8, (-1,))"), 2, (10, 30)
    ),
    "an array of two shapes": (
        holding(attribute="array([1], i8, (1,), (1,))"), 2, (10, 30)
    ),
    "a complex part of a complex number": (holding(attribute="complex(1j, 0)"), 2, (10, 30)),
    "the negative of an array": (holding(attribute="-array([1], i8)"), 2, (10, 30)),
    "a number of an array that is true": (holding(attribute="array(ref=True)"), 2, (10, 30)),
    "a value and a reference": (
        graph_text("%c = constant[value=1, ref=0]()", "return (%c)"), 2, (3, 30)
    ),
    "a constant of another dtype": (
        graph_text("%c : i8[1] = constant[value=[1.5]]()", "return (%c)"), 2, (3, 30)
    ),
    "no reals": (graph_text("return ()", inputs="").replace("{", "for real {"), 1, (9, 9)),
    "reals twice": (
        graph_text("return ()", inputs="").replace("{", "for reals for reals {"), 1, (9, 19)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_text_says_where(name):
    text, line, (first, last) = MALFORMED[name]
    with pytest.raises(ParseError) as caught:
        parse_graph(text)
    error = caught.value
    if name != "no end":  # the end of the text may be told in more than one way
        assert error.lineno == line, error
        assert first <= error.offset <= last, error
    message = str(error).splitlines()[0]
    assert str(error.lineno) in message
    assert " at 0x" not in message
    assert "<unknown>" not in message


# Text that is well formed and says what cannot be.
IMPOSSIBLE = {
    "shapes": (graph_text("%c = add(%a, %b)", "return (%c)"), 2),
    "another type than the op gives": (graph_text("%c : f64[9] = neg(%a)", "return (%c)"), 2),
    "too few operands": (graph_text("%c = add(%a)", "return (%c)"), 2),
    "too many operands": (graph_text("%c = neg(%a, %a)", "return (%c)"), 2),
    "too many outputs": (graph_text("%c, %d = neg(%a)", "return (%c)"), 2),
    "unknown attribute": (graph_text("%c = neg[x=1](%a)", "return (%c)"), 2),
    "two devices": (
        graph_text("%c = add(%a, %b)", "return ()", inputs="%a : f64[]@cuda:0, %b : f64[]"),
        2,
    ),
    "falling stage": (
        graph_text("---- stage 2 ----", "%c = f(%a)", "---- stage 1 ----", "%d = f(%a)"),
        4,
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_text_is_refused(name):
    text, _ = IMPOSSIBLE[name]
    with pytest.raises((ParseError, VerifyError)):
        parse_graph(text)


def test_constants_are_arrays():
    graph = Graph()
    graph.register_output(graph.constant(np.arange(20.0)))
    for constants in (np.arange(20.0), np.zeros((1, 20)), [[1.0, 2.0]], [3], 3):
        with pytest.raises(TypeError):
            parse_graph(str(graph), constants=constants)


def test_too_many_graphs_in_graphs_are_told():
    sections = [
        f"with graph {k} = graph() {{\n  f[x=graph({k + 1})]()\n  return ()\n}}"
        for k in range(150)
    ]
    text = holding(*sections, f"with graph 150 = {EMPTY}")
    with pytest.raises(ParseError, match="100 deep"):
        parse_graph(text)


@pytest.mark.parametrize("text", [None, 3, b"graph() {\n  return ()\n}"])
def test_what_is_no_text_is_an_error(text):
    with pytest.raises(TypeError):
        parse_graph(text)


def test_parsing_never_runs_code():
    for value in (
        "__import__('os').getcwd()",
        "[i for i in (1,)]",
        "(lambda: 0)()",
        "1 if 1 else 2",
    ):
        with pytest.raises(ParseError):
            parse_graph(graph_text(f"%c = f[x={value}](%a)", "return (%c)"))


def test_deeply_nested_attributes_do_not_crash():
    text = graph_text("%c = f[x=" + "(" * 10**5 + "](%a)", "return (%c)")
    with pytest.raises(ParseError):
        parse_graph(text)
