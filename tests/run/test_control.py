"""`cond` and `while_loop` run: T11 of the first seed's tests, and what can go wrong."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import KernelError, NotDifferentiable, ShapeError, VerifyError
from stagedad.ir import Graph, parse_graph

MAXIMUM = """graph(%a, %b) {
  %p = less(%a, %b)
  %c = cond(%p)
    block0() {
      return (%b)
    }
    block1() {
      return (%a)
    }
  return (%c)
}"""

MINIMUM = MAXIMUM.replace("return (%b)", "return (%tmp)").replace(
    "return (%a)", "return (%b)"
).replace("return (%tmp)", "return (%a)")  # fmt: skip

WHILE = """graph(%a : i64[], %i : i64[]) {
  %x, %n = while_loop(%a, %i)
    block0(%a0 : i64[], %i0 : i64[]) {
      %three : i64[] = constant[value=3]()
      %go = less(%i0, %three)
      return (%go)
    }
    block1(%a1 : i64[], %i1 : i64[]) {
      %squared = mul(%a1, %a1)
      %one : i64[] = constant[value=1]()
      %next = add(%i1, %one)
      return (%squared, %next)
    }
  return (%x)
}"""


@pytest.mark.parametrize(
    ("text", "arguments", "result"),
    [
        (MAXIMUM, (1, 2), 2),
        (MAXIMUM, (3, 2), 3),
        (MINIMUM, (2, 3), 2),
        (MINIMUM, (3, 2), 2),
        (WHILE, (2, 0), 256),
        (WHILE, (2, 2), 4),
        (WHILE, (2, 3), 2),
    ],
)
def test_t11_control_flow(text, arguments, result):
    (found,) = sd.compile(parse_graph(text))(*arguments)
    assert found == result
    assert found.dtype == np.int64


def test_a_run_is_one_instruction_that_is_no_object_call():
    program = sd.compile(parse_graph(WHILE))
    program(2, 0)
    assert [each.kind for each in program.instructions] == ["sub-program"]


def test_arrays_go_through_and_results_are_fresh():
    program = sd.compile(parse_graph(MAXIMUM.replace("less(%a, %b)", "less(%s, %t)").replace(
        "graph(%a, %b) {", "graph(%a, %b) {\n  %s = sum(%a)\n  %t = sum(%b)"
    )))  # fmt: skip
    a, b = np.ones((3, 4)), np.full((3, 4), 2.0)[:, ::-1]
    (result,) = program(a, b)
    np.testing.assert_array_equal(result, b)
    assert not np.may_share_memory(result, b)
    result[...] = 0
    assert b.min() == 2
    (empty,) = program(np.ones((0, 4)), np.ones((0, 4)))
    assert empty.shape == (0, 4)


def test_constants_held_in_blocks_are_read_at_each_run():
    graph = Graph()
    p = graph.add_input("b1[]")
    node = graph.append(graph.create("cond", p))
    held = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    for array in held:
        block = node.add_block()
        block.register_output(block.insert("constant", value=array))
    graph.register_output(graph.insert("neg", node.output))
    assert [id(each) for each in graph.constants] == [id(each) for each in held]
    program = sd.compile(graph)
    assert program(np.array(True))[0].tolist() == [-1, -2]
    assert program(np.array(False))[0].tolist() == [-3, -4]
    held[1][0] = 30
    assert program(np.array(False))[0].tolist() == [-30, -4]


def test_loops_nest_and_read_what_is_around():
    # Sum of i * j * s over 0 <= i < n and 0 <= j < i.
    text = """graph(%n : i64[], %s : i64[]) {
      %zero : i64[] = constant[value=0]()
      %one : i64[] = constant[value=1]()
      %total, %i = while_loop(%zero, %zero)
        block0(%t0 : i64[], %i0 : i64[]) {
          %go = less(%i0, %n)
          return (%go)
        }
        block1(%t1 : i64[], %i1 : i64[]) {
          %is = mul(%i1, %s)
          %sum, %j = while_loop(%t1, %zero)
            block0(%u0 : i64[], %j0 : i64[]) {
              %on = less(%j0, %i1)
              return (%on)
            }
            block1(%u1 : i64[], %j1 : i64[]) {
              %part = mul(%is, %j1)
              %more = add(%u1, %part)
              %up = add(%j1, %one)
              return (%more, %up)
            }
          %next = add(%i1, %one)
          return (%sum, %next)
        }
      return (%total)
    }"""
    graph = parse_graph(text)
    assert parse_graph(str(graph)) == graph
    wanted = sum(i * j * 5 for i in range(7) for j in range(i))
    assert sd.compile(graph)(7, 5) == (wanted,)


def test_a_loop_takes_no_step_for_a_false_condition_and_gives_copies():
    text = """graph(%x : f64[3]) {
      %y : f64[3] = while_loop(%x)
        block0(%a : f64[3]) {
          %no = constant[value=False]()
          return (%no)
        }
        block1(%b : f64[3]) {
          return (%b)
        }
      return (%y)
    }"""
    x = np.arange(3.0)
    (y,) = sd.compile(parse_graph(text))(x)
    assert y.tolist() == [0, 1, 2]
    assert not np.may_share_memory(x, y)


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("less(%a, %b)", "less(%s, %s)", ShapeError, "value 0 of block 1"),
        ("less(%a, %b)", "add(%a, %b)", KernelError, r"what decides is f64\[3\]"),
        ("less(%a, %b)", "less(%b, %b)", KernelError, r"what decides is b1\[3\]"),
    ],
)
def test_types_that_do_not_fit_are_named(old, new, error, says):
    text = MAXIMUM.replace("{\n  %p", "{\n  %s = sum(%a)\n  %p", 1)
    text = text.replace("return (%b)", "return (%s)").replace(old, new)
    program = sd.compile(parse_graph(text))
    with pytest.raises(error, match=says):
        program(np.arange(3.0), np.arange(3.0))


def test_a_body_must_give_what_it_takes():
    text = WHILE.replace(": i64[]", "").replace("mul(%a1, %a1)", "div(%a1, %a1)")
    with pytest.raises(ShapeError, match="value 0 of block 1"):
        sd.compile(parse_graph(text))(2, 0)


def test_an_error_in_a_block_names_the_node_and_leaves_the_program_usable():
    text = """graph(%p : b1[], %x : f64[3], %i : i64[2]) {
      %y = cond(%p)
        block0() {
          %t = take(%x, %i)  # model.py:7
          return (%t)
        }
        block1() {
          %u = slice[start=(0,), stop=(2,), step=(1,)](%x)
          return (%u)
        }
      return (%y)
    }"""
    program = sd.compile(parse_graph(text))
    x = np.arange(3.0)
    with pytest.raises(IndexError) as caught:
        program(np.array(True), x, np.array([0, 3]))
    assert "model.py:7" in "".join(caught.value.__notes__)
    assert program(np.array(False), x, np.array([0, 3]))[0].tolist() == [0, 1]
    assert program(np.array(True), x, np.array([0, 2]))[0].tolist() == [0, 2]


def test_blocks_are_checked_before_anything_runs():
    graph = Graph()
    node = graph.append(graph.create("cond", graph.add_input("b1[]")))
    node.add_block().register_output(graph.inputs[0])
    graph.register_output(node.output)
    with pytest.raises(VerifyError, match=r"\[control\] has 1 blocks"):
        sd.compile(graph)


def test_blocks_of_another_kind_have_no_kernel():
    graph = Graph()
    x = graph.add_input("f64[]")
    node = graph.append(graph.create("neg", x))
    node.add_block()
    graph.register_output(node.output)
    with pytest.raises(KernelError, match="no kernel for its blocks"):
        sd.compile(graph)


def test_too_deep_a_nest_is_refused():
    graph = Graph()
    p = graph.add_input("b1[]")
    contexts = []
    for _ in range(60):
        node = graph.append(graph.create("cond", p, outputs=0))
        inside, _ = node.add_block(), node.add_block()
        contexts.append(graph.inside(inside))
        contexts[-1].__enter__()
    with pytest.raises(KernelError, match="more than 50 deep"):
        sd.compile(graph)


def test_differentiation_refuses_where_a_cotangent_arrives_and_only_there():
    graph = parse_graph(MAXIMUM)
    for transform in (sd.differentiate, sd.transform.tangent):
        with pytest.raises(NotDifferentiable, match="cond: what runs blocks"):
            transform(graph, [True, True])
        with pytest.raises(NotDifferentiable, match="cond: what runs blocks"):
            transform(graph, [False, True])
    floats = WHILE.replace("i64", "f64").replace("=3]", "=3.0]").replace("=1]", "=1.0]")
    with pytest.raises(NotDifferentiable, match="while_loop: what runs blocks"):
        sd.differentiate(parse_graph(floats), [True, False])
    assert sd.differentiate(graph, [False, False]).f == graph
    dead = parse_graph(MAXIMUM.replace("return (%c)\n}", "%d = mul(%a, %a)\n return (%d)\n}"))
    pair = sd.compile(sd.differentiate(dead, [True, False]))
    (value,), pullback = pair(np.array(3.0), np.array(1.0))
    assert value == 9
    assert pullback(1.0) == (6.0,)


def test_what_does_not_depend_on_the_input_may_run_blocks():
    text = MAXIMUM.replace(
        "graph(%a, %b)", "graph(%a : f64[], %b : f64[], %x : f64[])"
    ).replace("return (%c)\n}", "%y : f64[] = mul(%c, %x)\n return (%y)\n}")
    gradient = sd.differentiate(parse_graph(text), [False, False, True])
    pair = sd.compile(gradient)
    (value,), pullback = pair(np.array(3.0), np.array(4.0), np.array(10.0))
    assert value == 40
    assert pullback(1.0) == (4.0,)


def test_passes_reach_into_blocks_and_keep_their_bounds():
    text = """graph(%p : b1[], %x : f64[]) {
      %e : f64[] = exp(%x)
      %c = cond(%p)
        block0() {
          %e0 : f64[] = exp(%x)
          %s0 : f64[] = sin(%x)
          %dead : f64[] = cos(%x)
          %y0 : f64[] = add(%e0, %s0)
          return (%y0)
        }
        block1() {
          %two : f64[] = constant[value=2.0]()
          %four : f64[] = mul(%two, %two)
          %s1 : f64[] = sin(%x)
          %s2 : f64[] = sin(%x)
          %y1 : f64[] = add(%s1, %s2)
          %y2 : f64[] = mul(%y1, %four)
          return (%y2)
        }
      %r = add(%c, %e)
      return (%r)
    }"""
    graph = parse_graph(text)
    before = [sd.compile(graph)(np.array(p), np.array(0.3)) for p in (True, False)]
    assert sd.optimize(graph)
    graph.verify()
    assert (
        str(graph)
        == """graph(%p : b1[], %x : f64[]) {
  %e : f64[] = exp(%x)
  %c = cond(%p)
    block0() {
      %s0 : f64[] = sin(%x)
      %y0 : f64[] = add(%e, %s0)
      return (%y0)
    }
    block1() {
      %15 : f64[] = constant[value=4.0]()
      %s1 : f64[] = sin(%x)
      %y1 : f64[] = add(%s1, %s1)
      %y2 : f64[] = mul(%y1, %15)
      return (%y2)
    }
  %r = add(%c, %e)
  return (%r)
}"""
    )
    after = [sd.compile(graph)(np.array(p), np.array(0.3)) for p in (True, False)]
    assert before == after
    assert not sd.optimize(graph)
