"""Tests of ir/_held: arrays, types and graphs that attributes hold, and tuples of them."""

import pickle

import numpy as np
import pytest

from stagedad.errors import DTypeError, NotDifferentiable
from stagedad.ir import Block, Graph, Node, Value, live_graph_count, parse_graph
from stagedad.transform import cse, dce, differentiate, fold, optimize, simplify, tangent
from stagedad.types import TensorType


def small(kind="neg", type="f64[3]", name="x"):
    graph = Graph()
    graph.register_output(graph.insert(kind, graph.add_input(type, name=name)))
    return graph


def holder(**attributes):
    """A graph y = f(x) whose node holds `attributes`, and the node."""
    graph = Graph()
    x = graph.add_input("f64[3]", name="x")
    node = graph.insert("f", x, **attributes).node
    graph.register_output(node.output)
    return graph, node


def test_an_array_is_held_by_reference():
    array = np.arange(20.0)
    graph, node = holder(x=array, y=(1, [array]))
    assert node.attributes["x"] is array
    assert node.attributes["y"][1][0] is array
    assert graph.constants == (array, array)
    twin, before = graph.copy(), graph.fingerprint()
    array[3] = -1
    assert graph == twin
    assert graph.fingerprint() == twin.fingerprint() != before


def test_types_and_dtypes_are_held():
    given = TensorType("float32", (2, None))
    _, node = holder(x=given, y=[given, float], z=np.float32)
    assert node.attributes["x"] is given
    assert node.attributes["y"] == (given, np.dtype("float64"))
    assert node.attributes["z"] == np.dtype("float32")


@pytest.mark.parametrize("nested", [False, True])
def test_a_graph_is_held_as_a_frozen_copy(nested):
    given = small()
    graph, node = holder(x=(given,) if nested else given)
    (held,) = node.attributes["x"] if nested else (node.attributes["x"],)
    assert held is not given
    assert held == given
    before = graph.fingerprint()
    given.insert("exp", given.inputs[0])
    given.inputs[0].name = "other"
    assert len(held) == 1
    assert held.inputs[0].name == "x"
    assert graph.fingerprint() == before
    # What is frozen need not be copied again.
    assert graph.copy().outputs[0].node.attributes["x"] == node.attributes["x"]
    other, again = holder(x=held)
    assert again.attributes["x"] is held
    edited = held.copy()
    edited.insert("exp", edited.inputs[0])
    node.attributes["x"] = edited
    assert len(node.attributes["x"]) == 2
    assert len(again.attributes["x"]) == 1
    assert graph != other


def test_a_graph_may_hold_a_copy_of_itself():
    graph, node = holder()
    for count in (1, 2, 3):
        node.attributes["x"] = graph
        depth, inner = 0, graph
        while "x" in inner.outputs[0].node.attributes:
            depth, inner = depth + 1, inner.outputs[0].node.attributes["x"]
        assert depth == count
    assert parse_graph(str(graph)) == graph


READERS = {
    Graph: "inputs outputs nodes constants text verify fingerprint memory copy inside",
    Node: "graph kind inputs outputs output attributes blocks block closed_over attached next "
    "prev has_uses is_before is_after clone_into",
    Value: "graph id node offset uses has_uses",
    Block: "graph node inputs outputs nodes",
}
# Set what later nodes get; nothing of the graph is changed by them alone.
SETTINGS = {
    "Graph.stage": lambda g: setattr(g, "stage", 3),
    "Graph.scope": lambda g: setattr(g, "scope", "s"),
    "Graph.push_scope": lambda g: g.push_scope("s"),
    "Graph.pop_scope": lambda g: g.pop_scope(),
    "Graph.set_stage_temporarily": lambda g: g.set_stage_temporarily(3).__enter__(),
    "Graph.set_scope_temporarily": lambda g: g.set_scope_temporarily("s").__enter__(),
    "Graph.assumes_real": lambda g: setattr(g, "assumes_real", True),
}


def first(graph):
    return next(iter(graph))


def value(graph):
    return graph.inputs[0]


def block(graph):
    return first(graph).blocks[0]


EDITS = {
    "Graph.add_input": lambda g: g.add_input(),
    "Graph.erase_input": lambda g: g.erase_input(1),
    "Graph.erase_output": lambda g: g.erase_output(0),
    "Graph.register_output": lambda g: g.register_output(value(g)),
    "Graph.create": lambda g: g.create("f"),
    "Graph.append": lambda g: g.append(first(g)),
    "Graph.prepend": lambda g: g.prepend(first(g)),
    "Graph.insert": lambda g: g.insert("f"),
    "Graph.insert_typed": lambda g: g.insert_typed("f", [], {}, [None]),
    "Graph.constant": lambda g: g.constant(1.0),
    "Graph.inline": lambda g: g.inline(Graph(), []),
    "Graph.take_over": lambda g: g.take_over(),
    "Graph.advance_stage": lambda g: g.advance_stage(),
    "Node.stage": lambda g: setattr(first(g), "stage", 1),
    "Node.location": lambda g: setattr(first(g), "location", ("a.py", 1)),
    "Node.scope": lambda g: setattr(first(g), "scope", "s"),
    "Node.origin": lambda g: setattr(first(g), "origin", 3),
    "Node.add_input": lambda g: first(g).add_input(value(g)),
    "Node.replace_input": lambda g: first(g).replace_input(0, g.inputs[1]),
    "Node.replace_input_with": lambda g: first(g).replace_input_with(*g.inputs[:2]),
    "Node.remove_input": lambda g: first(g).remove_input(0),
    "Node.remove_all_inputs": lambda g: first(g).remove_all_inputs(),
    "Node.add_output": lambda g: first(g).add_output(),
    "Node.erase_output": lambda g: first(g).erase_output(1),
    "Node.replace_all_uses_with": lambda g: first(g).replace_all_uses_with(first(g)),
    "Node.add_block": lambda g: first(g).add_block(),
    "Node.erase_block": lambda g: first(g).erase_block(0),
    "Node.insert_before": lambda g: first(g).insert_before(first(g)),
    "Node.insert_after": lambda g: first(g).insert_after(first(g)),
    "Node.move_before": lambda g: first(g).move_before(first(g).next),
    "Node.move_after": lambda g: first(g).move_after(first(g).next, check=True),
    "Node.destroy": lambda g: first(g).next.destroy(),
    "Value.name": lambda g: setattr(value(g), "name", "n"),
    "Value.type": lambda g: setattr(value(g), "type", "f64[]"),
    "Value.stage": lambda g: setattr(value(g), "stage", 1),
    "Value.replace_all_uses_with": lambda g: value(g).replace_all_uses_with(g.inputs[1]),
    "Block.add_input": lambda g: block(g).add_input(),
    "Block.erase_input": lambda g: block(g).erase_input(0),
    "Block.register_output": lambda g: block(g).register_output(value(g)),
    "Block.erase_output": lambda g: block(g).erase_output(0),
    "Block.append": lambda g: block(g).append(first(g)),
    "Block.prepend": lambda g: block(g).prepend(first(g)),
    "Block.insert": lambda g: block(g).insert("f"),
    "set an attribute": lambda g: first(g).attributes.__setitem__("x", 2),
    "delete an attribute": lambda g: first(g).attributes.__delitem__("x"),
    "clear the attributes": lambda g: first(g).attributes.clear(),
    "update the attributes": lambda g: first(g).attributes.update(y=1),
    "assign attributes": lambda g: first(g).attributes.assign({}),
    "clone into it": lambda g: Graph().insert("f").node.clone_into(g, {}),
    "insert into its block": lambda g: g.inside(block(g)).__enter__().insert("f"),
    "dce": lambda g: dce(g),
    "cse": lambda g: cse(g),
    "fold": lambda g: fold(g),
    "simplify": lambda g: simplify(g),
    "optimize": lambda g: optimize(g),
    "consume": lambda g: differentiate(g, [False, False, False], consume=True),
}


def test_every_edit_is_tried():
    for owner, readers in READERS.items():
        public = {name for name in dir(owner) if not name.startswith("_")} - {*readers.split()}
        tried = {
            name.partition(".")[2]
            for name in (*EDITS, *SETTINGS)
            if name.startswith(f"{owner.__name__}.")
        }
        assert public == tried


def held_graph():
    inner = Graph()
    a, b = inner.add_input("f64[3]"), inner.add_input("f64[3]")
    inner.add_input("f64[3]", name="unused")
    node = inner.append(inner.create("f", a, outputs=2, x=1))
    node.add_block().add_input()
    node.blocks[0].register_output(a)
    for value in (
        inner.insert("mul", a, b),
        inner.insert("exp", inner.constant(1.0)),  # to fold
        inner.insert("neg", inner.insert("neg", a)),  # to simplify
        node.outputs[0],
    ):
        inner.register_output(value)
    return holder(x=inner)


@pytest.mark.parametrize("name", EDITS)
def test_a_held_graph_refuses_every_edit(name):
    graph, node = held_graph()
    held = node.attributes["x"]
    before = str(graph), graph.fingerprint(), held.memory(), held.stage
    with pytest.raises(ValueError, match="read-only"):
        EDITS[name](held)
    assert (str(graph), graph.fingerprint(), held.memory(), held.stage) == before
    held.verify()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_held_graph_refuses_other_settings(name):
    _, node = held_graph()
    with pytest.raises(ValueError, match="read-only"):
        SETTINGS[name](node.attributes["x"])


def test_a_held_graph_is_read_as_any_other():
    _, node = held_graph()
    held = node.attributes["x"]
    assert [each.kind for each in held.nodes(nested=True)] == [
        "f",
        "mul",
        "constant",
        "exp",
        "neg",
        "neg",
    ]
    there = Graph()
    clone = first(held).clone_into(there, {held.inputs[0]: there.add_input()})
    assert len(clone.blocks) == 1
    assert held.copy() == held
    assert parse_graph(str(held)) == held
    copy = held.copy()
    copy.insert("f")
    assert len(copy) == len(held) + 1
    other = Graph()
    assert len(other.inline(held, [other.add_input() for _ in range(3)])) == 4
    smaller = holder(x=small())[1].attributes["x"]
    assert differentiate(smaller, [True]).df_output_vjps == [0]
    assert len(tangent(smaller, [True]).outputs) == 2


def nested(depth):
    graph, _ = holder()
    for _ in range(depth):
        graph, _ = holder(x=graph)
    return graph


def test_graphs_in_graphs_have_a_limit():
    graph = nested(100)
    node = graph.outputs[0].node
    before = node.attributes["x"]
    with pytest.raises(ValueError, match="100 deep") as caught:
        holder(x=graph)
    assert "hint" in str(caught.value)
    with pytest.raises(ValueError, match="100 deep"):
        node.attributes["x"] = (1, graph)
    assert node.attributes["x"] is before
    graph.verify()
    assert parse_graph(str(graph)) == graph
    assert pickle.loads(pickle.dumps(graph)).fingerprint() == graph.fingerprint()
    assert graph == nested(100) != nested(99)


def test_graphs_in_graphs_are_freed():
    before = live_graph_count()
    graph = nested(100)
    assert live_graph_count() == before + 101
    del graph
    assert live_graph_count() == before


def test_a_graph_held_often_is_one():
    inner = small()
    graph, node = holder(x=inner)
    held = node.attributes["x"]
    for _ in range(20):  # 2 ** 20 ways down
        graph, node = holder(x=held, y=(held, held))
        held = graph.copy() and holder(z=graph)[1].attributes["z"]
    assert str(graph).count("with graph") == 20
    assert graph == parse_graph(str(graph))
    assert graph.fingerprint() == graph.copy().fingerprint()
    graph.verify()


DIFFERENT = {
    "content": (np.arange(3.0), np.arange(3.0) + 1),
    "dtype": (np.arange(3.0), np.arange(3)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "empty shape": (np.zeros((0, 3)), np.zeros((0, 2))),
    "array and number": (np.array(1.0), 1.0),
    "array and tuple": (np.array([1, 2]), (1, 2)),
    "sign of zero": (np.array([0.0]), np.array([-0.0])),
    "in a tuple": ((1, np.arange(3.0)), (1, np.arange(3.0) + 1)),
    "type": (TensorType("float64", (2,)), TensorType("float64", (3,))),
    "type and text": (TensorType("float64", (2,)), "f64[2]"),
    "type and dtype": (TensorType("float64", ()), np.dtype("float64")),
    "graph": (small(), small("exp")),
    "graph and text": (small(), str(small())),
    "graph in a tuple": ((small(),), (small(type="f32[3]"),)),
    "nesting": ((1, (2,)), (1, 2)),
    "text of a tuple": (("a, b",), ("a", "b")),
}
SAME = {
    "array": lambda: np.arange(20.0),
    "strides": lambda: np.arange(40.0)[::2],
    "nan": lambda: np.array([np.nan, 1]),
    "type": lambda: TensorType("float32", (2, None), "cuda:0"),
    "graph": small,
    "all": lambda: (small(), (np.arange(3), TensorType("bool")), [small("exp")], None),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_contents_that_differ_differ(name):
    (one, _), (two, _) = (holder(x=value) for value in DIFFERENT[name])
    assert one != two
    assert one.fingerprint() != two.fingerprint()


@pytest.mark.parametrize("name", SAME)
def test_contents_that_agree_agree(name):
    (one, _), (two, _) = (holder(x=SAME[name]()) for _ in range(2))
    assert one == two
    assert one.fingerprint() == two.fingerprint()
    back = parse_graph(str(one), constants=one.constants)
    assert back == one
    assert back.fingerprint() == one.fingerprint()
    back = pickle.loads(pickle.dumps(one))
    assert back == one


def test_names_in_a_held_graph_do_not_matter():
    (one, _), (two, _) = (holder(x=small(name=name)) for name in "ab")
    assert one == two
    assert str(one) != str(two)


def everything():
    """Attributes of every kind, and the array and the frozen graph in them."""
    array, frozen = np.arange(20.0), holder(x=small())[1].attributes["x"]
    return {
        "one": array, "two": frozen, "three": TensorType("float64", (3,)),
        "four": (array, (frozen, np.dtype("f4")), [None, "a"]),
    }, array, frozen  # fmt: skip


def check_holds(node, array, frozen):
    assert node.attributes["one"] is array
    assert node.attributes["two"] is frozen
    assert node.attributes["four"][0] is array
    assert node.attributes["four"][1][0] is frozen
    assert list(node.attributes) == ["one", "two", "three", "four"]


def test_copies_and_clones_share_what_is_held():
    attributes, array, frozen = everything()
    graph, node = holder(**attributes)
    check_holds(node, array, frozen)
    check_holds(graph.copy().outputs[0].node, array, frozen)
    other = Graph()
    x = other.add_input("f64[3]")
    check_holds(node.clone_into(other, {graph.inputs[0]: x}), array, frozen)
    (inlined,) = other.inline(graph, [x])
    check_holds(inlined.node, array, frozen)
    other.verify()


@pytest.mark.parametrize("sweep", [dce, cse, fold, simplify, optimize])
def test_passes_keep_what_is_held(sweep):
    attributes, array, frozen = everything()
    graph, node = holder(**attributes)
    dead = graph.insert("g", node.output, **attributes).node
    twin = graph.insert("f", graph.inputs[0], **attributes)
    total = graph.insert("add", node.output, twin)
    total.type = "f64[3]"
    graph.register_output(total)
    before = graph.copy()
    sweep(graph)
    graph.verify()
    check_holds(node, array, frozen)
    # Of unknown kinds nothing is known: they are merged by no one.
    assert total.node.inputs == (node.output, twin)
    check_holds(twin.node, array, frozen)
    if sweep not in (dce, optimize):
        assert graph == before
        check_holds(dead, array, frozen)
    sweep(graph)
    graph.verify()


def test_derivatives_keep_what_is_held():
    attributes, array, frozen = everything()
    graph = Graph()
    a, x = graph.add_input("f64[3]"), graph.add_input("f64[3]")
    scale = graph.insert("f", x, **attributes)
    scale.type = "f64[3]"
    graph.register_output(graph.insert("mul", a, scale))
    gradient = differentiate(graph, [True, False])
    check_holds(first(gradient.f), array, frozen)
    gradient.f.verify()
    gradient.df.verify()
    check_holds(first(tangent(graph, [True, False])), array, frozen)
    for transform in (differentiate, tangent):
        with pytest.raises(NotDifferentiable, match="f"):
            transform(graph, [True, True])


def test_constants_with_one_array_are_merged_by_identity():
    array = np.arange(20.0)
    graph = Graph()
    values = [graph.constant(each) for each in (array, array, array.copy())]
    total = graph.insert("concatenate", *values, axis=0)
    graph.register_output(total)
    cse(graph)
    assert total.node.inputs == (values[0], values[0], values[2])


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]), np.array([object()]), np.zeros(2, "M8[s]"), np.zeros(2, "f8, i4"),
        np.zeros(2, np.longdouble), np.ma.zeros(2),
        np.zeros(2).view(type("A", (np.ndarray,), {})),
    ],
    ids=lambda array: f"{type(array).__name__} {array.dtype}",
)  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (1, [x])], ids=["array", "tuple"])
def test_arrays_that_no_program_carries_are_refused(array, wrap):
    node = Graph().insert("f", one=1).node
    before = str(node.graph)
    with pytest.raises((DTypeError, TypeError), match=r"f: .*'one'"):
        node.attributes["one"] = wrap(array)
    assert str(node.graph) == before
