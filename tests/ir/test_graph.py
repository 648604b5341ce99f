"""Tests of ir/_graph: building a graph, its nodes and its values."""

import itertools

import numpy as np
import pytest

from stagedad.errors import DTypeError, ShapeError
from stagedad.ir import Graph
from stagedad.types import TensorType


@pytest.fixture
def product():
    """A graph that returns c = a * b."""
    graph = Graph()
    a, b = graph.add_input("f32[2, 3, 4]"), graph.add_input("f32[2, 3, 4]")
    c = graph.insert("mul", a, b)
    graph.register_output(c)
    return graph, a, b, c


def test_a_new_graph_is_empty():
    graph = Graph()
    assert graph.inputs == () == graph.outputs
    assert list(graph.nodes()) == []
    assert len(graph) == 0
    assert graph.stage == 0
    assert tuple(graph.constants) == ()
    graph.verify()


def test_counts_nodes(product):
    graph, a, _, c = product
    assert len(graph) == 1
    graph.insert("neg", c)
    graph.insert("neg", a)
    assert len(graph) == 3


def test_an_empty_graph_may_be_printed():
    assert str(Graph()).splitlines() == ["graph() {", "  return ()", "}"]


def test_inserts_at_the_end(product):
    graph, a, _, c = product
    d = graph.insert("neg", c)
    e = graph.insert("exp", a)
    assert [node.kind for node in graph.nodes()] == ["mul", "neg", "exp"]
    assert [node.output for node in graph.nodes()] == [c, d, e]
    assert [node.kind for node in reversed(graph)] == ["exp", "neg", "mul"]


def test_values_know_their_node(product):
    graph, a, b, c = product
    node = c.node
    assert node.kind == "mul"
    assert node.inputs == (a, b)
    assert node.outputs == (c,)
    assert node.output == c
    assert node.graph is graph
    assert c.offset == 0
    assert graph.inputs == (a, b)
    assert graph.outputs == (c,)
    assert [v.offset for v in graph.inputs] == [0, 1]


def test_snapshots_do_not_change(product):
    graph, a, b, c = product
    inputs, outputs, uses = c.node.inputs, graph.outputs, a.uses
    assert type(inputs) is type(outputs) is type(uses) is type(c.node.outputs) is tuple
    c.node.replace_input(0, b)
    graph.register_output(a)
    assert inputs == (a, b)
    assert outputs == (c,)
    assert len(uses) == 1


def test_a_value_may_be_returned_often(product):
    graph, a, _, c = product
    graph.register_output(c)
    graph.register_output(a)
    assert graph.outputs == (c, c, a)
    graph.verify()


def test_registering_tells_the_position(product):
    graph, a, *_ = product
    assert graph.register_output(a) == 1
    assert graph.register_output(a) == 2


def test_infers_types():
    graph = Graph()
    a, b = graph.add_input("f32[2, 3]"), graph.add_input("f64[3]")
    assert str(graph.insert("mul", a, b).type) == "f64[2, 3]"
    assert str(graph.insert("sum", a, axis=1).type) == "f32[2]"
    assert str(graph.insert("less", a, b).type) == "b1[2, 3]"
    assert graph.insert("mul", a, b).type is TensorType("float64", (2, 3))


def test_unknown_types_give_unknown_types():
    graph = Graph()
    a, b = graph.add_input(), graph.add_input("f64[2]")
    assert a.type is None
    assert graph.insert("mul", a, b).type is None


def test_unknown_dims_stay_unknown():
    graph = Graph()
    a = graph.add_input("f64[?, 3]")
    assert str(graph.insert("exp", a).type) == "f64[?, 3]"
    assert str(graph.insert("exp", graph.add_input("f64[*]")).type) == "f64[*]"


def test_a_type_may_be_an_object_or_a_text():
    graph = Graph()
    given = TensorType("float32", (2, None))
    assert graph.add_input(given).type is given
    assert graph.add_input("f32[2, ?]").type is given
    value = graph.add_input()
    value.type = "f32[2, ?]"
    assert value.type is given
    value.type = None
    assert value.type is None


@pytest.mark.parametrize(
    ("alias", "kind"),
    [
        ("multiply", "mul"),
        ("subtract", "sub"),
        ("divide", "div"),
        ("true_divide", "div"),
        ("power", "pow"),
    ],
)
def test_aliases_are_normalised_on_entry(alias, kind):
    graph = Graph()
    a, b = graph.add_input("f64[]"), graph.add_input("f64[]")
    assert graph.insert(alias, a, b).node.kind == kind
    assert graph.create(alias, a, b).kind == kind


@pytest.mark.parametrize(("alias", "kind"), [("negative", "neg"), ("absolute", "abs")])
def test_unary_aliases_are_normalised_on_entry(alias, kind):
    graph = Graph()
    assert graph.insert(alias, graph.add_input("f64[]")).node.kind == kind


def test_unknown_kinds_are_kept_as_they_are():
    graph = Graph()
    a = graph.add_input("f64[]")
    one, two, three = graph.insert("frobnicate", a, outputs=3)
    assert one.node.kind == "frobnicate"
    assert [v.offset for v in (one, two, three)] == [0, 1, 2]
    assert one.node == two.node == three.node
    assert one.node.outputs == (one, two, three)
    assert one.type is two.type is None
    graph.verify()


def test_a_node_may_have_no_outputs():
    graph = Graph()
    node = graph.create("print", graph.add_input(), outputs=0)
    graph.append(node)
    assert node.outputs == ()
    assert not node.has_uses()
    assert graph.insert("print", outputs=0) == ()


def test_output_wants_exactly_one():
    graph = Graph()
    none, two = graph.create("f", outputs=0), graph.create("f", outputs=2)
    for node in (none, two):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            _ = node.output


def test_wrong_shapes_are_errors_and_leave_nothing(product):
    graph, a, *_ = product
    other = graph.add_input("f32[5]")
    before = str(graph)
    with pytest.raises(ShapeError, match="mul"):
        graph.insert("mul", a, other)
    assert str(graph) == before
    assert other.uses == ()
    graph.verify()


def test_wrong_operand_counts_are_errors(product):
    graph, a, b, _ = product
    for inputs in ((), (a,), (a, b, a)):
        with pytest.raises(TypeError, match="mul"):
            graph.insert("mul", *inputs)
    assert len(graph) == 1


def test_unknown_attributes_are_errors_with_a_hint(product):
    graph, a, *_ = product
    with pytest.raises(TypeError, match="keepdim") as caught:
        graph.insert("sum", a, keepdim=True)
    assert "keepdims" in str(caught.value)


def test_wrong_output_counts_are_errors(product):
    graph, a, b, _ = product
    with pytest.raises(ValueError, match="mul"):
        graph.create("mul", a, b, outputs=2)


def test_stage_is_what_new_things_get():
    graph = Graph()
    a = graph.add_input()
    b = graph.insert("f", a)
    graph.advance_stage()
    assert graph.stage == 1
    c = graph.add_input()
    d = graph.insert("f", b)
    assert [v.stage for v in (a, b, c, d)] == [0, 0, 1, 1]
    assert [v.node.stage for v in (b, d)] == [0, 1]
    with graph.set_stage_temporarily(3):
        assert graph.stage == 3
        e = graph.insert("f", d)
    assert graph.stage == 1
    assert e.stage == e.node.stage == 3


def test_temporary_settings_may_end_in_any_order():
    """As those of several threads do; by pairs of what is set, so that a block can go too."""
    for order in itertools.permutations(range(3)):
        graph = Graph()
        owner = graph.append(graph.create("f"))
        blocks = [owner.add_block() for _ in range(3)]
        begun = [
            (graph.set_stage_temporarily(i + 1), graph.set_scope_temporarily(f"s{i}"), inside)
            for i, inside in enumerate(map(graph.inside, blocks))
        ]
        for settings in begun:
            for setting in settings:
                setting.__enter__()
        left = [0, 1, 2]
        for i in order:
            for setting in begun[i]:
                setting.__exit__(None, None, None)
            left.remove(i)
            wanted = (left[-1] + 1, f"s{left[-1]}") if left else (0, None)
            assert (graph.stage, graph.scope) == wanted
        owner.destroy()
        assert graph.insert("f").node.scope is None
        graph.verify()


def test_a_temporary_stage_ends_with_an_error():
    graph = Graph()
    with pytest.raises(ZeroDivisionError), graph.set_stage_temporarily(2):
        raise ZeroDivisionError
    assert graph.stage == 0


def test_location_and_scope_ride_on_nodes():
    graph = Graph()
    a = graph.add_input("f64[]")
    node = graph.insert("neg", a, location=("model.py", 12), scope="a/b").node
    assert node.location == ("model.py", 12)
    assert node.scope == "a/b"
    plain = graph.insert("neg", a).node
    assert plain.location is None
    assert not plain.scope
    assert plain.blocks == ()


def test_names_are_made_unique():
    graph = Graph()
    a, b, c = (graph.add_input(name="x") for _ in range(3))
    assert a.name == "x"
    assert {b.name, c.name} == {"x.1", "x.2"}
    d = graph.insert("f", a)
    d.name = "x.1"
    assert d.name not in {"x", "x.1", "x.2"}
    assert len({v.name for v in (a, b, c, d)}) == 4


def test_setting_a_value_to_its_own_name_changes_nothing():
    graph = Graph()
    a = graph.add_input(name="x")
    a.name = "x"
    assert a.name == "x"


def test_the_name_of_a_destroyed_value_is_free_again():
    graph = Graph()
    value = graph.insert("f")
    value.name = "x"
    value.node.destroy()
    other = graph.insert("f")
    other.name = "x"
    assert other.name == "x"


@pytest.mark.parametrize("name", ["12", "1a", "a b", "a-b", "%a", "", ".a", "a\n", "ü"])
def test_names_follow_the_grammar(name):
    graph = Graph()
    value = graph.add_input()
    with pytest.raises(ValueError, match="name"):
        value.name = name
    with pytest.raises(ValueError, match="name"):
        graph.add_input(name=name)
    assert len(graph.inputs) == 1


@pytest.mark.parametrize("name", ["x", "_", "params.w", "params.0.w", "A1_", "x."])
def test_names_may_be_paths(name):
    graph = Graph()
    assert graph.add_input(name=name).name == name


def test_ids_are_unique_and_never_used_again():
    graph = Graph()
    seen = {graph.add_input().id}
    for _ in range(50):
        value = graph.insert("f")
        assert value.id not in seen
        seen.add(value.id)
        value.node.destroy()


def test_constants_take_numbers_and_arrays():
    graph = Graph()
    array = np.arange(20.0)
    big = graph.constant(array)
    assert str(big.type) == "f64[20]"
    assert any(held is array for held in graph.constants)
    assert str(graph.constant(2.0).type) == "f64[]"
    assert str(graph.constant(1, "float32").type) == "f32[]"
    assert big.node.kind == "constant"
    assert big.node.inputs == ()
    graph.verify()


@pytest.mark.parametrize(
    ("number", "type"),
    [(True, "b1[]"), (2, "i64[]"), (2.5, "f64[]"), (1j, "c128[]"), (np.float32(2), "f32[]")],
)
def test_a_constant_has_the_type_of_its_number(number, type):
    assert str(Graph().constant(number).type) == type


def test_a_constant_of_an_unknown_dtype_is_an_error():
    graph = Graph()
    with pytest.raises(DTypeError):
        graph.constant(np.array(["a"]))
    with pytest.raises((DTypeError, TypeError)):
        graph.constant(np.array([object()]))
    assert len(graph) == 0


def test_create_leaves_the_node_unattached(product):
    graph, a, b, _ = product
    node = graph.create("mul", a, b)
    assert len(graph) == 1
    assert node.graph is graph
    assert len(a.uses) == 2  # an unattached node is a user all the same
    assert graph.append(node) in (None, node)
    assert len(graph) == 2
    graph.verify()


def test_attaching_twice_is_an_error(product):
    graph, *_, c = product
    for attach in (
        graph.append,
        lambda node: node.insert_before(node),
        lambda node: node.insert_after(c.node),
    ):
        with pytest.raises(ValueError, match="mul"):
            attach(c.node)
    assert len(graph) == 1
    graph.verify()


def test_inserting_at_an_unattached_node_is_an_error(product):
    graph, a, *_ = product
    one, two = graph.create("neg", a), graph.create("neg", a)
    with pytest.raises(ValueError, match="neg"):
        one.insert_before(two)
    with pytest.raises(ValueError, match="neg"):
        one.insert_after(two)
    assert len(graph) == 1


def test_destroying_what_is_used_is_an_error(product):
    graph, *_, c = product
    with pytest.raises(ValueError, match="used"):
        c.node.destroy()
    assert c.node.kind == "mul"
    graph.verify()


def test_destroying_releases_the_operands(product):
    graph, a, _, _ = product
    node = graph.insert("mul", a, a).node
    assert len(a.uses) == 3
    node.destroy()
    assert len(a.uses) == 1
    assert len(graph) == 1
    graph.verify()


def test_an_unattached_node_may_be_destroyed(product):
    graph, a, *_ = product
    node = graph.create("neg", a)
    node.destroy()
    assert len(a.uses) == 1
    graph.verify()


def test_inputs_cannot_be_destroyed(product):
    _, a, *_ = product
    with pytest.raises((ValueError, TypeError, AttributeError)):
        a.node.destroy()
    assert a.type is not None


def test_the_current_node_may_be_destroyed_while_iterating():
    graph = Graph()
    a = graph.add_input()
    keep = graph.insert("keep", a)
    for _ in range(5):
        graph.insert("dead", a)
    graph.insert("keep", keep)
    seen = []
    for node in graph.nodes():
        seen.append(node.kind)
        if node.kind == "dead":
            node.destroy()
    assert seen == ["keep", *["dead"] * 5, "keep"]
    assert [node.kind for node in graph.nodes()] == ["keep", "keep"]
    graph.verify()


def test_the_current_node_may_be_destroyed_while_iterating_backwards():
    graph = Graph()
    value = graph.add_input()
    for _ in range(6):
        value = graph.insert("chain", value)
    for node in reversed(graph):
        node.destroy()
    assert len(graph) == 0
    graph.verify()


def test_handles_are_not_made_by_hand():
    from stagedad.ir import Node, Value

    with pytest.raises(TypeError):
        Node()
    with pytest.raises(TypeError):
        Value()


@pytest.mark.parametrize("location", [3, "model.py:3", ("model.py",), (3, "model.py"), [1, 2]])
def test_a_location_is_a_file_and_a_line(location):
    graph = Graph()
    a = graph.add_input("f64[]")
    with pytest.raises((TypeError, ValueError)):
        graph.insert("neg", a, location=location)
    assert len(graph) == 0


def test_a_node_has_no_negative_number_of_outputs():
    graph = Graph()
    with pytest.raises(ValueError, match="outputs"):
        graph.create("f", outputs=-1)
