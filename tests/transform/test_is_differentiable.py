"""What can be differentiated, what is refused, and that a refusal changes nothing."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import NotDifferentiable
from stagedad.ops import OPS
from stagedad.ops.samples import samples
from stagedad.transform.tangent import tangent
from stagedad.types import CODES, TensorType

CUT = {"start": (0,), "stop": (2,), "step": (1,)}

# Kind, types of the operands, attributes, whether a cotangent can pass.
NODES = [
    ("add", "f64[3] f64[3]", {}, True),
    ("add", "f64[3] f64[]", {"alpha": 2}, True),
    ("add", "f64[3] i64[3]", {}, True),
    ("add", "i64[3] i64[3]", {}, False),
    ("add", "b1[3] i64[3]", {}, False),
    ("mul", "f64[3] ?", {}, True),
    ("mul", "? ?", {}, True),
    ("mul", "c128[3] f64[3]", {}, True),
    ("mul", "f16[] f32[0]", {}, True),
    ("tanh", "f64[3]", {}, True),
    ("tanh", "c64[3]", {}, True),
    ("tanh", "i64[3]", {}, False),  # its result is a float, but nothing carries a cotangent
    ("sum", "i64[3]", {}, False),
    ("floor", "f64[3]", {}, True),  # its derivative is known: 0
    ("sign", "f64[3]", {}, True),
    ("stop_gradient", "c128[3]", {}, False),
    ("floor", "?", {}, True),
    ("heaviside", "f64[3] f64[]", {}, True),
    ("less", "f64[3] f64[3]", {}, False),
    ("isnan", "f64[3]", {}, False),
    ("logical_not", "?", {}, False),
    ("astype", "f64[3]", {"dtype": "f4"}, True),
    ("astype", "f64[3]", {"dtype": "i8"}, False),
    ("astype", "f64[3]", {"dtype": "?"}, False),
    ("astype", "i64[3]", {"dtype": "f8"}, False),
    ("where", "b1[3] f64[3] f64[]", {}, True),
    ("where", "b1[3] i64[3] i64[]", {}, False),
    ("maximum", "f64[3] f64[3]", {}, True),
    ("maximum", "c128[3] c128[3]", {}, False),  # no complex derivative was checked
    ("maximum", "f64[3] c128[3]", {}, False),
    ("abs", "c128[3]", {}, True),
    ("max", "c128[3]", {}, False),
    ("copysign", "f64[3] f64[3]", {}, True),
    ("take", "f64[3] i64[2]", {}, True),
    ("take", "i64[3] i64[2]", {}, False),
    ("take", "? i64[2]", {}, False),  # its derivative needs a shape
    ("slice", "f64[3]", CUT, True),
    ("slice", "?", CUT, False),
    ("concatenate", "f64[3] i64[3] f64[2]", {}, True),
    ("concatenate", "i64[3] i64[3]", {}, False),
    ("concatenate", "f64[3] ?", {}, False),
    ("matmul", "f64[2, 3] f64[3]", {}, True),
    ("matmul", "f64[2, 3] i64[3]", {}, True),
    ("matmul", "? f64[3]", {}, False),
    ("split", "f64[6]", {"indices_or_sections": 3}, True),
    ("split", "i64[6]", {"indices_or_sections": 3}, False),
    ("frobnicate", "f64[3]", {}, False),
    ("frobnicate", "", {}, False),
    ("constant", "", {"value": 1.0}, False),
]


def single(kind, types, attributes):
    """A graph of one node that returns its first result."""
    graph = sd.Graph()
    inputs = [graph.add_input(None if type == "?" else type) for type in types]
    count = attributes.get("indices_or_sections", 1)
    node = graph.create(kind, *inputs, outputs=count, location=("model.py", 7), **attributes)
    graph.append(node)
    graph.register_output(node.outputs[0])
    return graph, node


def words(text):
    """The types in `text`, whose shapes may have blanks in them."""
    return [word.strip() for word in text.replace("] ", "]|").replace("? ", "?|").split("|")]


@pytest.mark.parametrize(("kind", "types", "attributes", "wanted"), NODES)
def test_by_signature_and_operand_types(kind, types, attributes, wanted):
    graph, node = single(kind, words(types) if types else [], attributes)
    before = str(graph)
    assert sd.is_differentiable(node) is wanted
    assert str(graph) == before


def carrying(graph):
    return [value.type is None or value.type.is_inexact for value in graph.inputs]


@pytest.mark.parametrize("kind", OPS)
def test_agrees_with_differentiate(kind):
    """True: there is a gradient.  False: there is nothing to carry it, or it is refused."""
    answers = set()
    for dtype in map(CODES.__getitem__, ("f64", "c128", "i64", "b1")):
        for case in samples(kind, dtype):
            arrays, attributes = case.arrays, case.attributes
            graph = sd.Graph()
            inputs = [graph.add_input(TensorType.of(array)) for array in arrays]
            made = graph.insert(kind, *inputs, **attributes)
            made = made if isinstance(made, tuple) else (made,)
            for value in made:
                graph.register_output(value)
            flags = carrying(graph)
            if not made:
                continue
            try:
                gradient = sd.differentiate(graph, flags)
            except NotDifferentiable:
                passes = False
            else:
                passes = any(flags) and gradient.df_input_vjps != []
            assert sd.is_differentiable(made[0].node) is passes, str(graph)
            answers.add(passes)
    assert answers or kind == "random_key"  # which has no samples


def drop_operand(node):
    node.remove_input(len(node.inputs) - 1)


EDITS = {
    "an operand too few": ("mul", "f64[3] f64[3]", {}, drop_operand),
    "none left": ("tanh", "f64[3]", {}, lambda node: node.remove_all_inputs()),
    "an operand too many": (
        "mul", "f64[3] f64[3]", {}, lambda node: node.add_input(node.inputs[0]),
    ),
    "a branch too few": ("where", "b1[3] f64[3] f64[3]", {}, drop_operand),
    "no indices": ("take", "f64[3] i64[2]", {}, drop_operand),
    "a result too many": ("mul", "f64[3] f64[3]", {}, lambda node: node.add_output()),
    "a step with two results": ("floor", "f64[3]", {}, lambda node: node.add_output()),
    "a part too few": (
        "split", "f64[6]", {"indices_or_sections": 3}, lambda node: node.erase_output(1),
    ),
    "nothing to join": ("concatenate", "f64[3]", {}, lambda node: node.remove_all_inputs()),
}  # fmt: skip


@pytest.fixture
def unverified(monkeypatch):
    """As users run: passes do not verify the graph."""
    monkeypatch.delenv("STAGEDAD_CHECK", raising=False)


@pytest.mark.usefixtures("unverified")
@pytest.mark.parametrize("edit", EDITS)
def test_a_node_with_a_wrong_number_of_operands_or_results(edit):
    kind, types, attributes, change = EDITS[edit]
    graph, node = single(kind, words(types), attributes)
    sound = sd.Graph()
    inputs = [sound.add_input(value.type) for value in graph.inputs]
    sound.insert(kind, *inputs, **attributes)
    sd.differentiate(sound, carrying(sound))  # its rule is known, and must not be found
    change(node)
    assert sd.is_differentiable(node) is False
    if not node.inputs or kind == "floor":
        return  # no cotangent passes it anyway
    before = str(graph)
    flags = carrying(graph)
    for refuse in (sd.differentiate, tangent):
        with pytest.raises(NotDifferentiable, match=rf"{kind}: .*model\.py:7") as caught:
            refuse(graph, flags)
        assert caught.value.op == kind
        assert str(graph) == before


# Errors: what they say


def refused(graph, flags, **options):
    with pytest.raises(NotDifferentiable) as caught:
        sd.differentiate(graph, flags, **options)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "types", "attributes", "flags", "argument", "words_in_it"),
    [
        ("frobnicate", "f64[3]", {}, [1], None, "not an op of the table"),
        ("maximum", "c128[3] c128[3]", {}, [1, 1], "self", "complex"),
        ("maximum", "c128[3] c128[3]", {}, [0, 1], "other", "complex"),
        ("maximum", "c128[3] f64[3]", {}, [0, 1], "other", "complex"),
        ("max", "c64[3]", {}, [1], "self", "real(z)"),
        ("take", "? i64[2]", {}, [1, 0], "self", "shape"),
        ("slice", "?", CUT, [1], "self", "shape"),
        ("concatenate", "f64[3] ?", {}, [1, 0], "arrays", "shape"),
        ("matmul", "? f64[3]", {}, [1, 0], "self", "shape"),
        ("matmul", "? f64[3]", {}, [0, 1], "other", "shape"),
    ],
)
def test_a_refusal_names_op_argument_and_place(
    kind, types, attributes, flags, argument, words_in_it
):
    graph, _ = single(kind, words(types), attributes)
    error = refused(graph, flags)
    first, _, advice = str(error).partition("\n")
    assert first.startswith(f"{kind}: ")
    assert words_in_it in str(error)
    assert "model.py:7" in first
    assert (error.op, error.argument) == (kind, argument)
    assert error.location == ("model.py", 7)
    assert error.hint is not None
    assert advice == f"hint: {error.hint}"


# Where no cotangent comes, nothing is asked of a node

# Graph, z : c128[3], x : f64[3] and the maximum of z with itself, which has no derivative.
HARMLESS = {
    "dead": (lambda g, z, x, _: g.insert("mul", z, x), [1, 1]),
    "inactive": (lambda g, _, x, bad: g.insert("mul", g.insert("real", bad), x), [0, 1]),
    "behind a step": (
        lambda g, _, x, bad: g.insert("mul", x, g.insert("floor", g.insert("real", bad))),
        [1, 1],
    ),
    "stopped": (
        lambda g, z, _, bad: g.insert("mul", z, g.insert("stop_gradient", bad)),
        [1, 1],
    ),
    "compared": (
        lambda g, z, x, bad: g.insert(
            "where", g.insert("equal", bad, z), x, g.insert("neg", x)
        ),
        [1, 1],
    ),
    "made whole": (
        lambda g, _, x, bad: g.insert(
            "mul", g.insert("astype", g.insert("real", bad), dtype="i8"), x
        ),
        [1, 1],
    ),
    "multiplied by 0 of the table": (
        lambda g, z, _, bad: g.insert("mul", g.insert("zeros_like", bad), z),
        [1, 1],
    ),
}


@pytest.mark.parametrize("way", HARMLESS)
def test_where_no_cotangent_comes_a_missing_rule_is_harmless(way, run):
    make, flags = HARMLESS[way]
    graph = sd.Graph()
    z, x = graph.add_input("c128[3]"), graph.add_input("f64[3]")
    bad = graph.insert("maximum", z, z)
    assert not sd.is_differentiable(bad.node)
    graph.register_output(make(graph, z, x, bad))
    gradient = sd.differentiate(graph, flags)
    assert gradient.df_output_vjps == [i for i in (0, 1) if flags[i]]
    gradient.df.verify()
    arrays = [np.array([1 + 2j, 3, -1j]), np.array([1.0, 2.5, -3])]
    (y,) = run(graph, arrays)
    assert run(gradient.f, arrays)[0].tolist() == y.tolist()
    graph.register_output(bad)
    assert refused(graph, [1, 0]).op == "maximum"


def test_what_df_reads_is_asked_for_a_rule_too():
    """copysign passes nothing to its second operand, but df reads that: it has a slot."""
    graph = sd.Graph()
    x, y = graph.add_input("f64[3]"), graph.add_input("f64[3]")
    graph.register_output(graph.insert("copysign", x, graph.insert("frobnicate", y)))
    assert refused(graph, [True, True]).op == "frobnicate"
    assert sd.differentiate(graph, [False, True]).df_input_captures == []
    assert sd.differentiate(graph, [True, False]).df_input_vjps == [0]


# A refusal changes nothing


def plain():
    return single("mul", ["f64[3]", "f64[3]"], {})[0]


def second_stage():
    graph = plain()
    graph.advance_stage()
    graph.register_output(graph.insert("neg", graph.inputs[0]))
    return graph


def edited():
    graph, node = single("mul", ["f64[3]", "f64[3]"], {})
    node.add_input(graph.inputs[0])
    return graph


def unattached():
    graph = plain()
    graph.register_output(graph.create("neg", graph.inputs[0]).output)
    return graph


ERRORS = {
    "no flags": (plain, {"requires_grad": []}, ValueError),
    "a flag too few": (plain, {"requires_grad": [True]}, ValueError),
    "a flag too many": (plain, {"requires_grad": [True] * 3}, ValueError),
    "one flag for all": (plain, {"requires_grad": True}, TypeError),
    "flags that are none": (plain, {"requires_grad": [None, True]}, TypeError),
    "flags in words": (plain, {"requires_grad": ["True", "False"]}, TypeError),
    "flags as fractions": (plain, {"requires_grad": [0.5, 1.0]}, TypeError),
    "a later stage": (second_stage, {}, ValueError),
    "an integer": (lambda: single("mul", ["f64[3]", "i64[3]"], {})[0], {}, TypeError),
    "a boolean": (lambda: single("mul", ["f64[3]", "b1[3]"], {})[0], {}, TypeError),
    "no rule": (lambda: single("frobnicate", ["f64[3]"] * 2, {})[0], {}, NotDifferentiable),
    "complex": (lambda: single("maximum", ["c128[3]"] * 2, {})[0], {}, NotDifferentiable),
    "no shape": (lambda: single("matmul", ["?"] * 2, {})[0], {}, NotDifferentiable),
    "an operand too many": (edited, {}, NotDifferentiable),
    "a value of no node": (unattached, {}, AssertionError),
    "a way to save": (plain, {"save": "most"}, ValueError),
    "a policy": (plain, {"nan_policy": "none"}, ValueError),
}


@pytest.mark.usefixtures("unverified")
@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("case", ERRORS)
def test_after_an_error_the_graph_is_as_it_was(case, consume):
    make, options, error = ERRORS[case]
    graph = make()
    before, inputs, outputs = str(graph), graph.inputs, graph.outputs
    nodes = [(node, node.inputs, node.stage, node.location) for node in graph.nodes()]
    with pytest.raises(error):
        sd.differentiate(graph, **{"requires_grad": [True, True], **options}, consume=consume)
    assert str(graph) == before
    assert (graph.inputs, graph.outputs) == (inputs, outputs)
    assert nodes == [(node, node.inputs, node.stage, node.location) for node in graph.nodes()]
    graph.insert("neg", graph.inputs[0])  # and it is not taken away
    assert str(graph) != before


@pytest.mark.parametrize("graph", [None, "graph() {}", 3, np.ones(3)])
def test_only_graphs_are_differentiated(graph):
    with pytest.raises(TypeError, match=r"differentiate: a Graph is wanted: \w+"):
        sd.differentiate(graph, [True])
