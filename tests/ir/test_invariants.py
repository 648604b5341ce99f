"""Tests of ir/verify.py: one broken graph, or more, for each named invariant.

[ring], [blocks], [use-list], [outputs] and [names] hold by construction: no public call breaks
them. The model tests check them after every random edit, also of graphs broken otherwise.
"""

import pytest

from stagedad.errors import VerifyError
from stagedad.ir import Graph, _verify
from stagedad.ir.control import CONTROL, check_control

BY_CONSTRUCTION = {"ring", "blocks", "use-list", "outputs", "names"}
CASES = {}


def breaks(invariant, node):
    """Declare a function that builds a graph and breaks `invariant` at a node of this kind."""

    def declare(function):
        CASES[function.__name__] = invariant, node, function
        return function

    return declare


def start():
    """A sound graph: x, n = neg(x), e = exp(n), returned, and the node of an `If`."""
    graph = Graph()
    x = graph.add_input("f64[3]", name="x")
    n = graph.insert("neg", x)
    owner = graph.append(graph.create("If", n))
    block = owner.add_block()
    inside = block.insert("sin", n)
    block.register_output(inside)
    e = graph.insert("exp", n)
    graph.register_output(e)
    graph.verify()
    return graph, x, n, owner, inside, e


@breaks("order", "exp")
def an_operand_computed_later():
    graph, _, n, *_, e = start()
    e.node.move_before(n.node)
    return graph


@breaks("order", "exp")
def a_node_that_reads_itself():
    graph, *_, e = start()
    e.node.replace_input(0, e)
    return graph


@breaks("order", "exp")
def an_operand_without_a_place():
    graph, x, *_, e = start()
    e.node.replace_input(0, graph.create("neg", x).output)
    return graph


@breaks("order", "return")
def an_output_without_a_place():
    graph, x, *_ = start()
    graph.register_output(graph.create("neg", x).output)
    return graph


@breaks("order", "exp")
def a_value_of_a_block_read_outside():
    graph, *_, inside, e = start()
    e.node.replace_input(0, inside)
    return graph


@breaks("order", "return")
def a_value_of_a_block_returned_outside():
    graph, *_, inside, _ = start()
    graph.register_output(inside)
    return graph


@breaks("order", "exp")
def an_input_of_a_block_read_outside():
    graph, _, _, owner, _, e = start()
    e.node.replace_input(0, owner.blocks[0].add_input("f64[3]"))
    return graph


@breaks("order", "cos")
def a_value_of_another_block():
    graph, *_, owner, inside, _ = start()
    owner.add_block().insert("cos", inside)
    return graph


@breaks("order", "If")
def an_owner_that_reads_its_block():
    graph, *_, owner, inside, _ = start()
    owner.add_input(inside)
    return graph


@breaks("order", "cos")
def a_block_that_reads_its_owner():
    graph, *_, owner, _, _ = start()
    owner.blocks[0].insert("cos", owner.output)
    return graph


@breaks("order", "return")
def a_block_that_returns_what_comes_later():
    graph, *_, owner, _, e = start()
    owner.blocks[0].register_output(e)
    return graph


@breaks("order", "sin")
def a_node_of_a_block_that_comes_too_early():
    graph, *_, owner, inside, e = start()
    owner.blocks[0].insert("tan", e)
    inside.node.replace_input(0, inside.node.next.output)
    inside.node.next.replace_input(0, owner.inputs[0])
    return graph


@breaks("stage", "exp")
def a_node_before_its_operand_s_stage():
    graph, _, n, owner, inside, _ = start()
    for node in (n.node, owner, inside.node):
        node.stage = node.output.stage = 1
    return graph


@breaks("stage", "exp")
def stages_that_fall():
    graph, *_, owner, inside, _ = start()
    for node in (owner, inside.node):
        node.stage = node.output.stage = 1
    return graph


@breaks("stage", "exp")
def an_output_of_another_stage_than_its_node():
    graph, *_, e = start()
    e.stage = 2
    return graph


@breaks("stage", "sin")
def a_block_of_another_stage():
    graph, *_, inside, _ = start()
    inside.node.stage = inside.stage = 1
    return graph


@breaks("stage", "param")
def inputs_that_fall():
    graph, *_ = start()
    graph.inputs[0].stage = 1
    graph.add_input()
    for node in graph.nodes(nested=True):
        node.stage = node.output.stage = 1
    return graph


@breaks("stage", "param")
def an_input_of_a_block_of_another_stage():
    graph, *_, owner, _, _ = start()
    with graph.set_stage_temporarily(1):
        owner.blocks[0].add_input()
    return graph


@breaks("stage", "return")
def outputs_that_fall():
    graph, *_, e = start()
    graph.advance_stage()
    graph.register_output(graph.insert("neg", e))
    graph.register_output(e)
    return graph


@breaks("types", "exp")
def a_type_that_the_op_does_not_give():
    graph, *_, e = start()
    e.type = "f64[4]"
    return graph


@breaks("types", "sin")
def a_type_in_a_block():
    graph, *_, inside, _ = start()
    inside.type = "f32[3]"
    return graph


@breaks("types", "mul")
def operands_that_do_not_fit():
    graph, x, *_ = start()
    other = graph.add_input("f64[3]")
    graph.insert("mul", x, other)
    other.type = "f64[7]"
    return graph


@breaks("types", "exp")
def an_output_too_many():
    graph, *_, e = start()
    e.node.add_output()
    return graph


@breaks("types", "cos")
def an_output_too_few():
    graph, x, *_ = start()
    graph.insert("cos", x).node.erase_output(0)
    return graph


@breaks("types", "exp")
def an_operand_too_few():
    graph, *_, e = start()
    e.node.remove_input(0)
    return graph


@breaks("types", "exp")
def an_operand_too_many():
    graph, x, *_, e = start()
    e.node.add_input(x)
    return graph


def test_operands_on_two_devices_are_told():
    graph, x, *_ = start()
    graph.insert("mul", x, graph.add_input("f64[3]"))
    graph.inputs[1].type = "f64[3]@cuda:0"
    broken(graph, "types", "mul")


def condition(inputs=1, type="b1[]", blocks=2, given=1, taken=0, outputs=1, result="f64[]"):
    """A graph with one `cond`, any part of which may be wrong."""
    graph = Graph()
    p, x = graph.add_input(type), graph.add_input(result)
    node = graph.append(graph.create("cond", *[p] * inputs, outputs=outputs))
    for value in node.outputs:
        value.type = "f64[]"
    for _ in range(blocks):
        block = node.add_block()
        for _ in range(taken):
            block.add_input()
        for _ in range(given):
            block.register_output(x)
    return graph


def loop(inputs=2, blocks=2, taken=2, flags=1, flag="b1[]", given=2, result="f64[]", outputs=2):
    """A graph with one `while_loop`, any part of which may be wrong."""
    graph = Graph()
    p, x, y = graph.add_input(flag), graph.add_input("f64[]"), graph.add_input(result)
    node = graph.append(graph.create("while_loop", *[x] * inputs, outputs=outputs))
    for value in node.outputs:
        value.type = "f64[]"
    for k in range(blocks):
        block = node.add_block()
        for _ in range(taken):
            block.add_input("f64[]")
        for _ in range(given if k else flags):
            block.register_output(y if k else p)
    return graph


def test_the_makers_make_sound_graphs():
    condition().verify()
    condition(type=None).verify()
    condition(outputs=3, given=3).verify()
    condition(outputs=0, given=0).verify()
    condition(result="f64[*]").verify()
    loop().verify()
    loop(flag=None, result=None).verify()
    loop(inputs=0, taken=0, given=0, outputs=0).verify()


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": 0}, {"inputs": 2}, {"type": "f64[]"}, {"type": "b1[1]"}, {"type": "b1[3]"},
        {"type": "b1[]@cuda:0"}, {"blocks": 0}, {"blocks": 1}, {"blocks": 3}, {"given": 0},
        {"given": 2}, {"taken": 1}, {"outputs": 0}, {"outputs": 2}, {"result": "f32[]"},
        {"result": "f64[1]"}, {"result": "f64[]@cuda:0"},
    ],
    ids=str,
)  # fmt: skip
def test_a_cond_that_is_not_as_its_kind_says(wrong):
    broken(condition(**wrong), "control", "cond")


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": 1}, {"inputs": 3}, {"blocks": 0}, {"blocks": 1}, {"blocks": 3},
        {"taken": 1}, {"taken": 3}, {"flags": 0}, {"flags": 2}, {"flag": "f64[]"},
        {"flag": "b1[2]"}, {"given": 1}, {"given": 3}, {"outputs": 1}, {"outputs": 3},
        {"result": "f32[]"}, {"result": "f64[1]"},
    ],
    ids=str,
)  # fmt: skip
def test_a_while_loop_that_is_not_as_its_kind_says(wrong):
    broken(loop(**wrong), "control", "while_loop")


@pytest.mark.parametrize("kind", ["inputs of the blocks", "operands"])
def test_a_while_loop_carries_values_of_one_type(kind):
    graph = loop()
    (node,) = graph.nodes()
    if kind == "operands":
        node.replace_input(0, graph.add_input("f64[2]"))
    else:
        node.blocks[1].inputs[1].type = "i64[]"
    broken(graph, "control", "while_loop")


def test_control_is_checked_in_blocks_too():
    graph = Graph()
    block = graph.append(graph.create("If")).add_block()
    block.insert("cond", graph.add_input("b1[]"), outputs=0)
    broken(graph, "control", "cond")


def faults(graph):
    """The invariants that a graph breaks, by the checks one by one."""
    found = set()
    for check in _verify.CHECKS:
        try:
            check(graph)
        except VerifyError as error:
            found.add(str(error).partition("[")[2].partition("]")[0])
    for node in _verify.nodes_of(graph, CONTROL):
        try:
            check_control(node)
        except VerifyError:
            found.add("control")
    return found


def broken(graph, invariant, kind):
    """Assert that `graph` breaks this alone; verify tells it, the node and the text."""
    assert faults(graph) == {invariant}
    before = str(graph)
    with pytest.raises(VerifyError) as caught:
        graph.verify()
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"verify: [{invariant}] ")
    assert f"{kind}(" in first
    assert [before] == caught.value.__notes__
    assert str(graph) == before


@pytest.mark.parametrize("name", CASES)
def test_a_broken_graph_is_told(name):
    invariant, kind, function = CASES[name]
    broken(function(), invariant, kind)


def test_every_invariant_has_a_broken_graph():
    named = {check.__doc__.partition("[")[2].partition("]")[0] for check in _verify.CHECKS}
    assert named - BY_CONSTRUCTION == {invariant for invariant, *_ in CASES.values()}
    assert named > BY_CONSTRUCTION


@pytest.mark.parametrize(
    ("invariant", "inner"),
    [
        ("stage", stages_that_fall),
        ("types", a_type_in_a_block),
        ("types", an_output_too_many),
        ("control", lambda: condition(blocks=1)),
        ("control", lambda: loop(flags=2)),
    ],
)
def test_a_graph_that_an_attribute_holds_is_checked(invariant, inner):
    middle, graph = Graph(), Graph()
    middle.insert("f", x=(1, inner()))
    graph.insert("g", y=middle)
    with pytest.raises(VerifyError, match=rf"\[{invariant}\]") as caught:
        graph.verify()
    (text,) = caught.value.__notes__
    assert text == str(inner())


def test_a_graph_out_of_order_has_no_copy_to_hold():
    graph = Graph()
    with pytest.raises(VerifyError, match="exp"):
        graph.insert("f", x=an_operand_computed_later())
    assert len(graph) == 0
