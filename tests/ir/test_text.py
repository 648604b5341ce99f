"""Tests of ir/text.py: printing and parsing."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagedad.errors import ParseError, StagedadError, VerifyError
from stagedad.ir import Graph, parse_graph
from stagedad.types import TensorType


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
    np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">f8"),
]  # fmt: skip


@pytest.mark.parametrize("value", SMALL, ids=lambda v: re.sub(r"\s+", " ", repr(v)))
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


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=8),
)
values = st.one_of(scalars, st.tuples(scalars), st.tuples(scalars, scalars))
attribute_names = st.sampled_from(["axis", "shape", "x", "y2", "_z"])
shapes = st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3).map(tuple)
types = st.one_of(
    st.none(),
    st.builds(
        TensorType,
        st.sampled_from(["bool", "int8", "uint64", "float16", "float64", "complex64"]),
        shapes,
        st.sampled_from(["cpu", "cuda:0", "cuda:3"]),
    ),
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,6}", fullmatch=True)
arrays = st.builds(
    lambda n, dtype, seed: np.random.default_rng(seed).integers(0, 2, n).astype(dtype),
    st.integers(0, 20),
    st.sampled_from(["f8", "f4", "i2", "?", "c8"]),
    st.integers(0, 99),
)


@st.composite
def graphs(draw):
    """A graph of known and unknown kinds, types, names, stages and constants."""
    graph = Graph()
    pool = [graph.add_input(draw(types)) for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 10))):
        what = draw(
            st.sampled_from(["f", "g", "h", "constant", "array", "elementwise", "stage"])
        )
        if what == "constant":
            number = draw(st.one_of(st.floats(), st.complex_numbers(), st.booleans()))
            new = (graph.constant(number),)
        elif what == "array":
            new = (graph.constant(draw(arrays)),)
        elif what == "elementwise":
            a = graph.constant(draw(st.floats()))
            new = (a, graph.insert("add", a, a, alpha=draw(st.sampled_from([1, 2, 2.5]))))
        elif what == "stage":
            graph.advance_stage()
            new = ()
        else:
            operands = draw(st.lists(st.sampled_from(pool), max_size=3)) if pool else []
            attributes = draw(st.dictionaries(attribute_names, values, max_size=3))
            node = graph.create(what, *operands, outputs=draw(st.integers(0, 3)), **attributes)
            graph.append(node)
            new = node.outputs
            for value in new:
                value.type = draw(types)
        for value in new:
            if draw(st.booleans()):
                value.name = draw(names)
        pool.extend(new)
    returned = draw(st.lists(st.sampled_from(pool), max_size=3)) if pool else []
    for value in sorted(returned, key=lambda value: value.stage):
        graph.register_output(value)
    return graph


@given(graphs())
def test_random_graphs_survive(graph):
    parsed = round_trip(graph)
    assert [v.name for v in parsed.inputs] == [v.name for v in graph.inputs]
    for old, new in zip(graph.nodes(), parsed.nodes(), strict=True):
        assert new.kind == old.kind
        assert new.stage == old.stage
        assert [v.name for v in new.outputs] == [v.name for v in old.outputs]
        assert [v.type for v in new.outputs] == [v.type for v in old.outputs]
        assert list(new.attributes) == list(old.attributes)
    assert graph.copy() == graph


@given(st.text(max_size=40))
def test_random_text_never_crashes(text):
    with pytest.raises(ParseError):
        parse_graph("graph" + text)


@given(graphs(), st.data())
def test_damaged_text_is_read_or_refused(graph, data):
    text = str(graph)
    at = data.draw(st.integers(0, len(text) - 1))
    damage = data.draw(st.sampled_from(["", "(", ")", "%", "]", "[", ",", "\n", "'", "0", "x"]))
    try:
        parsed = parse_graph(text[:at] + damage + text[at + 1 :], constants=graph.constants)
    except (ParseError, VerifyError):
        return
    parsed.verify()
