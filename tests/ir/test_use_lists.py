"""Tests of ir/_graph: who uses a value, and rewiring."""

import pytest

from stagedad.ir import Graph


@pytest.fixture
def square():
    """Two nodes: y = f(x, x); z = f(y, x); z is returned."""
    graph = Graph()
    x = graph.add_input()
    y = graph.insert("f", x, x)
    z = graph.insert("f", y, x)
    graph.register_output(z)
    return graph, x, y, z


def uses(value):
    return sorted((use.user.kind, use.user.outputs, use.offset) for use in value.uses)


def pairs(value):
    return {(use.user, use.offset) for use in value.uses}


def test_a_node_reading_a_value_twice_is_two_uses(square):
    _, x, y, z = square
    assert len(x.uses) == 3
    assert pairs(x) == {(y.node, 0), (y.node, 1), (z.node, 1)}


def test_being_returned_is_a_use(square):
    graph, _, y, z = square
    assert len(z.uses) == 1
    assert z.uses[0].user.kind == "return"
    graph.register_output(y)
    graph.register_output(y)
    assert [use.offset for use in y.uses if use.user.kind == "return"] in ([1, 2], [2, 1])


def test_uses_compare_by_user_and_offset(square):
    _, _, y, _ = square
    first, second = square[1].uses[0], square[1].uses[0]
    assert first == second
    assert hash(first) == hash(second)
    assert len(set(square[1].uses)) == 3
    assert y.uses[0].user == square[3].node


def test_has_uses(square):
    graph, _, y, z = square
    assert y.node.has_uses()
    assert z.node.has_uses()
    dead, alive = graph.insert("f", z, outputs=2)
    assert not dead.node.has_uses()
    graph.insert("f", alive)
    assert dead.node.has_uses()


def test_replaces_all_uses(square):
    graph, x, y, z = square
    y.replace_all_uses_with(x)
    assert y.uses == ()
    assert z.node.inputs == (x, x)
    assert pairs(x) == {(y.node, 0), (y.node, 1), (z.node, 0), (z.node, 1)}
    graph.verify()


def test_replaces_what_is_returned(square):
    graph, x, _, z = square
    graph.register_output(z)
    z.replace_all_uses_with(x)
    assert graph.outputs == (x, x)
    assert z.uses == ()
    graph.verify()


def test_replacing_a_value_by_itself_changes_nothing(square):
    graph, x, y, _ = square
    before, text = pairs(x), str(graph)
    x.replace_all_uses_with(x)
    y.replace_all_uses_with(y, except_=y.node)
    assert pairs(x) == before
    assert str(graph) == text


def test_replacing_spares_one_user(square):
    graph, x, y, z = square
    total = graph.create("sum_of", x, y)
    total.insert_after(y.node)
    y.replace_all_uses_with(total.output, except_=total)
    assert total.inputs == (x, y)
    assert z.node.inputs == (total.output, x)
    assert pairs(y) == {(total, 1)}
    graph.verify()


def test_replacing_an_unused_value_changes_nothing(square):
    graph, x, _, z = square
    dead = graph.insert("f", z)
    before = pairs(x)
    dead.replace_all_uses_with(x)
    assert pairs(x) == before


def test_adds_an_operand(square):
    graph, x, y, z = square
    z.node.add_input(y)
    assert z.node.inputs == (y, x, y)
    assert pairs(y) == {(z.node, 0), (z.node, 2)}
    graph.verify()


def test_replaces_one_operand(square):
    graph, x, y, z = square
    y.node.replace_input(0, x)
    assert y.node.inputs == (x, x)
    z.node.replace_input(1, y)
    assert z.node.inputs == (y, y)
    assert pairs(y) == {(z.node, 0), (z.node, 1)}
    assert pairs(x) == {(y.node, 0), (y.node, 1)}
    graph.verify()


def test_replaces_every_occurrence_of_an_operand(square):
    graph, x, y, z = square
    w = graph.add_input()
    y.node.replace_input_with(x, w)
    assert y.node.inputs == (w, w)
    assert z.node.inputs == (y, x)
    assert pairs(w) == {(y.node, 0), (y.node, 1)}
    assert pairs(x) == {(z.node, 1)}
    y.node.replace_input_with(w, w)
    assert pairs(w) == {(y.node, 0), (y.node, 1)}
    graph.verify()


def test_removing_an_operand_moves_the_later_ones_up():
    graph = Graph()
    a, b, c = (graph.add_input() for _ in range(3))
    node = graph.insert("f", a, b, a, c).node
    node.remove_input(0)
    assert node.inputs == (b, a, c)
    assert pairs(a) == {(node, 1)}
    assert pairs(b) == {(node, 0)}
    assert pairs(c) == {(node, 2)}
    node.remove_input(2)
    assert node.inputs == (b, a)
    assert c.uses == ()
    graph.verify()


def test_removing_one_of_two_equal_operands_keeps_the_other():
    graph = Graph()
    a = graph.add_input()
    node = graph.insert("f", a, a).node
    node.remove_input(0)
    assert pairs(a) == {(node, 0)}
    node.add_input(a)
    node.remove_input(1)
    assert pairs(a) == {(node, 0)}
    graph.verify()


def test_removes_all_operands(square):
    graph, x, y, z = square
    y.node.remove_all_inputs()
    assert y.node.inputs == ()
    assert pairs(x) == {(z.node, 1)}
    y.node.remove_all_inputs()
    y.node.add_input(x)
    assert pairs(x) == {(z.node, 1), (y.node, 0)}
    graph.verify()


def test_adds_an_output(square):
    graph, _, y, _ = square
    more = y.node.add_output()
    assert y.node.outputs == (y, more)
    assert more.offset == 1
    assert more.uses == ()
    assert more.stage == y.stage
    graph.verify()


def test_erasing_an_output_moves_the_later_ones_up():
    graph = Graph()
    one, two, three = graph.insert("f", outputs=3)
    user = graph.insert("g", three)
    one.node.erase_output(0)
    assert two.node.outputs == (two, three)
    assert (two.offset, three.offset) == (0, 1)
    assert user.node.inputs == (three,)
    graph.verify()


def test_erasing_a_used_output_is_an_error(square):
    graph, _, y, z = square
    for value in (y, z):
        with pytest.raises(ValueError, match="used"):
            value.node.erase_output(0)
    graph.verify()


@pytest.mark.parametrize("index", [-1, 2, 10**6])
def test_operands_that_are_not_there_are_errors(square, index):
    graph, x, y, _ = square
    with pytest.raises(IndexError):
        y.node.replace_input(index, x)
    with pytest.raises(IndexError):
        y.node.remove_input(index)
    with pytest.raises(IndexError):
        y.node.erase_output(index)
    graph.verify()


@pytest.mark.parametrize("not_a_value", [None, 1.0, "x"])
def test_what_is_no_value_is_an_error(square, not_a_value):
    graph, x, y, _ = square
    before = str(graph)
    for call in (
        lambda: graph.insert("f", not_a_value),
        lambda: graph.create("f", x, not_a_value),
        lambda: graph.register_output(not_a_value),
        lambda: y.node.add_input(not_a_value),
        lambda: y.node.replace_input(0, not_a_value),
        lambda: x.replace_all_uses_with(not_a_value),
    ):
        with pytest.raises(TypeError):
            call()
    assert str(graph) == before
    assert len(x.uses) == 3
    graph.verify()


def test_many_uses_are_moved_in_order_of_their_number():
    graph = Graph()
    a, b = graph.add_input(), graph.add_input()
    nodes = [graph.insert("f", a).node for _ in range(1000)]
    a.replace_all_uses_with(b)
    assert a.uses == ()
    assert {use.user for use in b.uses} == set(nodes)
    for node in nodes[::2]:
        node.destroy()
    assert {use.user for use in b.uses} == set(nodes[1::2])
    graph.verify()
