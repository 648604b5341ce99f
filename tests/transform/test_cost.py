"""Tests of transform/cost.py."""

import dataclasses

import pytest

from stagedad.errors import KernelError, ShapeError
from stagedad.ir import Graph, parse_graph
from stagedad.ops import OPS
from stagedad.transform import Cost, differentiate, flops


def one(kind, *types, **attributes):
    """The graph of one node."""
    graph = Graph()
    result = graph.insert(kind, *map(graph.add_input, types), **attributes)
    result.name = "y"
    graph.register_output(result)
    return graph


@pytest.mark.parametrize(
    ("count", "kind", "types", "attributes"),
    [
        (6, "add", ["f64[2, 3]", "f64[2, 3]"], {}),
        (6, "mul", ["f64[2, 1]", "f64[3]"], {}),
        (24, "div", ["f32[2, 3]", "f32[]"], {}),
        (0, "div", ["f64[0, 3]", "f64[1, 3]"], {}),
        (20, "exp", ["f64[]"], {}),
        (6, "mul", ["c128[6]", "c128[6]"], {}),
        (12, "sum", ["f64[3, 4]"], {"axis": 0}),
        (12, "max", ["f64[3, 4]"], {}),
        (12 + 4 * 4, "mean", ["f64[3, 4]"], {"axis": 0}),
        (12, "sum_to", ["f64[3, 4]"], {"shape": (4,)}),
        (0, "sum_to", ["f64[3, 4]"], {"shape": (3, 4)}),
        (0, "broadcast_to", ["f64[4]"], {"shape": (3, 4)}),
        (0, "transpose", ["f64[3, 4]"], {}),
        (2 * 2 * 3 * 4, "matmul", ["f64[2, 3]", "f64[3, 4]"], {}),
        (2 * 5 * 2 * 3 * 4, "matmul", ["f64[5, 2, 3]", "f64[3, 4]"], {}),
        (2 * 3 * 4, "matmul", ["f64[3]", "f64[3, 4]"], {}),
        (2 * 3, "matmul", ["f64[3]", "f64[3]"], {}),
        (0, "matmul", ["f64[2, 0]", "f64[0, 4]"], {}),
        (0, "take", ["f64[5]", "i64[3]"], {}),
        (5 * 2 * 27, "inv", ["f64[5, 3, 3]"], {}),
        (18 + 2 * 9 * 4, "solve", ["f64[3, 3]", "f64[3, 4]"], {}),
        (43, "det", ["f64[4, 4]"], {}),
        (4 * 5 * 9 - 4 * 9, "svdvals", ["f64[5, 3]"], {}),
        (4 * 5 * 9 - 4 * 9, "svdvals", ["f64[3, 5]"], {}),
        (5 * 8 * 3 * 2, "fft", ["f64[8, 2]"], {"axis": 0}),
        (5 * 16 * 4, "fft", ["f64[9]"], {"n": 16}),
        (5 * 5 * 3, "rfft", ["f64[8]"], {}),
        (0, "det", ["f64[0, 0]"], {}),
        (3, "take_add", ["f64[3]", "i64[3]"], {"shape": (5,)}),
    ],
)
def test_counts_one_node(count, kind, types, attributes):
    assert flops(one(kind, *types, **attributes)) == count


def test_adds_up_nodes_by_kind():
    graph = parse_graph("""graph(%a : f64[3], %b : f64[3]) {
      %1 : f64[3] = mul(%a, %b)
      %2 : f64[3] = tanh(%1)
      %3 : f64[3] = mul(%2, %a)
      %4 : f64[3] = copy(%3)
      return (%4)
    }""")
    assert flops(graph) == 3 + 90 + 3
    found = differentiate(graph, [True, False]).cost()
    assert found.f == 96
    assert list(found.f_by_kind.items()) == [("tanh", 90), ("mul", 6)]
    # da = g t + (dt + g a) (1 - t t) b, where dt is the cotangent of the temporary t.
    assert found.df_by_kind == {"mul": 15, "add": 6, "sub": 3}
    assert found.df == 24
    assert found.ratio == 0.25
    assert found.captured_bytes == 3 * 24  # a, b and the hyperbolic tangent
    assert str(found) == "f 96 flops, df 24 flops (0.25 times f), 72 bytes captured"
    assert found == differentiate(graph, [True, False]).cost()
    assert hash(found) == hash(differentiate(graph, [True, False]).cost())
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.f = 0


def test_bytes_are_those_of_the_dtype():
    assert differentiate(one("sin", "f32[5]"), [True]).cost().captured_bytes == 20
    assert differentiate(one("sin", "c128[5]"), [True]).cost().captured_bytes == 80
    assert differentiate(one("neg", "f64[5]"), [True]).cost().captured_bytes == 0


def test_ratio_of_what_computes_nothing():
    assert differentiate(one("copy", "f64[5]"), [True]).cost().ratio == 0
    spread = differentiate(one("broadcast_to", "f64[5]", shape=(2, 5)), [True]).cost()
    assert (spread.f, spread.df, spread.ratio) == (0, 10, float("inf"))
    assert Cost(2, 3, 0, {}, {}).ratio == 1.5


@pytest.mark.parametrize(
    ("type_", "said"), [("f64[*]", r"f64\[\*\]"), ("f64[2, ?]", r"f64\[2, \?\]")]
)
def test_names_the_value_whose_size_is_not_known(type_, said):
    graph = one("exp", type_)
    with pytest.raises(ShapeError, match=rf"^flops: exp: the size of %y is not known: {said}"):
        flops(graph)
    with pytest.raises(ShapeError, match=r"\nhint: give the inputs of the graph types"):
        differentiate(graph, [True]).cost()


def test_says_no_type_and_the_line_of_the_user():
    graph = parse_graph("graph(%a) {\n  %1 = sum(%a)\n  return (%1)\n}")
    (node,) = graph.nodes()
    with pytest.raises(ShapeError, match="sum: the size of %a is not known: no type: %1\n"):
        flops(graph)
    node.location = ("model.py", 7)
    with pytest.raises(ShapeError, match=r"no type: model\.py:7\n"):
        flops(graph)


def test_unknown_sizes_do_not_matter_where_nothing_is_computed():
    assert flops(parse_graph("graph(%a) {\n  %1 = transpose(%a)\n  return (%1)\n}")) == 0


def test_a_capture_of_unknown_size_is_named():
    gradient = differentiate(one("sin", "f64[4]"), [True])
    kept = Graph()
    kept.add_input("f64[?]", "x")
    with pytest.raises(ShapeError, match=r"^flops: a capture: the size of %x is not known"):
        dataclasses.replace(gradient, df=kept).cost()


def test_names_a_kind_that_it_cannot_count(monkeypatch):
    graph = parse_graph("graph(%a : f64[2]) {\n  %1 = unheard_of(%a)\n  return (%1)\n}")
    with pytest.raises(KernelError, match=r"^flops: unheard_of: is not an op of the table: %1"):
        flops(graph)
    monkeypatch.setitem(OPS, "sin", dataclasses.replace(OPS["sin"], flops=None))
    with pytest.raises(KernelError, match=r"^flops: sin: declares no flops: %y"):
        flops(one("sin", "f64[2]"))
