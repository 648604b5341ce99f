"""Tests of run/profiling: what is counted, not how long it takes."""

import re

import numpy as np
import pytest

import stagedad as sd
from stagedad.plan.kernels import loops_enabled

needs_loops = pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")

X = np.linspace(0.1, 1.0, 10)


def model(x):
    y = np.exp(x)
    z = y * y
    return np.sum(z)


LINE = model.__code__.co_firstlineno


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "0")


def test_calls_and_bytes_by_node():
    profile = sd.compile(sd.trace(model, X)).profile(X, runs=3)
    assert profile.runs == 3
    assert [(node.what, node.calls, node.bytes) for node in profile.nodes] == [
        ("exp", 1, 160),
        ("mul", 1, 240),
        ("sum", 1, 96),
    ]
    assert profile.nanoseconds > 0
    assert all(node.nanoseconds >= 0 for node in profile.nodes)


def test_by_line_of_the_user():
    profile = sd.compile(sd.trace(model, X)).profile(X)
    lines = {line.location: line for line in profile.lines}
    assert {place[1] - LINE for place in lines} == {1, 2, 3}
    assert lines[__file__, LINE + 1].source == "y = np.exp(x)"
    spent = [line.nanoseconds for line in profile.lines]
    assert spent == sorted(spent, reverse=True)
    np.testing.assert_allclose(sum(spent), sum(node.nanoseconds for node in profile.nodes))


def test_a_line_has_all_its_nodes():
    profile = sd.compile(sd.trace(lambda x: np.exp(np.sin(x) + np.cos(x)), X)).profile(X)
    (line,) = profile.lines
    assert set(line.what.split(", ")) == {"exp", "sin", "cos", "add"}
    assert line.calls == 4


def test_a_transformed_function_has_a_profile():
    step = sd.value_and_grad(model)
    profile = step.profile(X)
    assert "exp" in [node.what for node in profile.nodes]
    assert step.cache_info().misses == 1
    step(X)
    assert step.cache_info().misses == 1


@needs_loops
def test_blocks_are_counted_as_they_run():
    x = np.linspace(0, 1, 5000)
    program = sd.compile(sd.trace(lambda x: np.exp(np.sin(x) + x), x))
    profile = program.profile(x, runs=2)
    by_op = {node.what: node for node in profile.nodes}
    assert set(by_op) == {"block", "sin", "add", "exp"}
    blocks = by_op["sin"].calls
    assert blocks > 1
    assert {by_op[op].calls for op in ("sin", "add", "exp")} == {blocks}
    assert by_op["block"].calls == 0
    assert by_op["add"].bytes == 3 * x.nbytes


def test_strides_of_zero_count_once():
    program = sd.compile(sd.trace(lambda x, y: x * y, np.ones((4, 5)), np.ones((4, 1))))
    (node,) = program.profile(np.ones((4, 5)), np.ones((4, 1))).nodes
    assert node.bytes == 8 * (20 + 4 + 20)


def test_the_text_is_a_table():
    text = str(sd.compile(sd.trace(model, X)).profile(X))
    head, _, names, *_ = text.split("\n")
    assert re.fullmatch(r"\S+ .s a run, \S+ .s in instructions, least of \d+ runs", head)
    assert names.split() == ["time", "share", "calls", "bytes", "line", "ops", "source"]
    assert f"test_profiling.py:{LINE + 1}" in text
    assert "y = np.exp(x)" in text
    assert "%1 = exp" in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_long_texts_are_cut():
    def long(x):
        for _ in range(50):
            x = np.sin(x)
        return x

    text = str(sd.compile(sd.trace(long, X)).profile(X))
    assert "... and 30 nodes that take less" in text


def test_results_and_arguments_stay_as_they_are():
    program = sd.compile(sd.differentiate(sd.trace(model, X), [True])).joint
    x = X.copy()
    wanted = program(x, np.ones(()))
    program.profile(x, np.ones(()), runs=5)
    assert x.tolist() == X.tolist()
    for one, other in zip(program(x, np.ones(())), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_program_for_strided_arguments():
    program = sd.compile(sd.trace(model, X))
    strided = np.linspace(0.1, 1.0, 20)[::2]
    assert len(program.profile(strided).nodes) == 3
    assert program.profile([float(x) for x in X]).nodes[0].bytes == 160


def test_errors_are_those_of_a_call():
    program = sd.compile(sd.trace(lambda x, i: x[i], X, np.array([1, 2])))
    with pytest.raises(IndexError, match="out of bounds: 10"):
        program.profile(X, np.array([1, 10]))
    assert program.profile(X, np.array([1, 2])).runs > 0
    with pytest.raises(TypeError, match="takes 2 arrays: 1"):
        program.profile(X)
    with pytest.raises(ValueError, match="one run or more: 0"):
        program.profile(X, np.array([1, 2]), runs=0)
    assert sd.compile(sd.trace(lambda x: x + 1, X)).profile(X, runs=1).runs == 1


def test_with_checks_the_twin_is_not_counted(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "1")
    profile = sd.compile(sd.trace(model, X)).profile(X, runs=1)
    assert [node.what for node in profile.nodes] == ["exp", "mul", "sum"]


def test_of_a_function_that_is_being_traced():
    with pytest.raises(sd.errors.TraceError, match="traced values"):
        sd.trace(lambda x: sd.jit(model).profile(x), X)
