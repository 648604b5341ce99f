"""Tests of run/float_errors: what np.errstate around a call asks for is what a run does."""

import io
import sys
import threading

import numpy as np
import pytest

import stagedad as sd
from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.ops.samples import active, samples
from stagedad.plan.kernels import loops_enabled
from stagedad.run import compile, live_counts
from stagedad.transform import differentiate
from stagedad.types import TensorType

X = np.array([0.0, 1.0, -1.0])


def program_of(*steps, type=None):
    """A program of a chain of nodes, the line of each its number from 1 on."""
    graph = Graph()
    value = graph.add_input(type)
    for line, (kind, *operands) in enumerate(steps, 1):
        operands = [value if operand is None else operand for operand in operands or [None]]
        operands = [
            graph.constant(operand) if isinstance(operand, float) else operand
            for operand in operands
        ]
        value = graph.insert(kind, *operands, location=("user.py", line))
    graph.register_output(value)
    return compile(graph)


@pytest.fixture
def logarithm():
    return program_of(["log"])


def test_errors_are_silent_by_default(logarithm):
    (result,) = logarithm(X)
    np.testing.assert_array_equal(result, [-np.inf, 0, np.nan])


def test_errors_are_raised_where_asked(logarithm):
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as caught:
        logarithm(X[:2])
    assert str(caught.value) == ("divide by zero encountered in log: %1 = log, at user.py:1")
    with (
        np.errstate(divide="ignore", invalid="raise"),
        pytest.raises(FloatingPointError, match=r"^invalid value encountered in log"),
    ):
        logarithm(X)
    with np.errstate(all="ignore", over="raise"):
        np.testing.assert_array_equal(logarithm(X), [[-np.inf, 0, np.nan]])
    np.testing.assert_array_equal(logarithm(X), [[-np.inf, 0, np.nan]])
    assert live_counts()["busy_arenas"] == 0


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("exp", 1000.0, "overflow encountered in exp"),
        ("exp", -1000.0, "underflow encountered in exp"),
        ("square", 1e300, "overflow encountered in square"),
        ("log", 0.0, "divide by zero encountered in log"),
        ("sqrt", -1.0, "invalid value encountered in sqrt"),
        ("sum", [1e308, 1e308], "overflow encountered in reduce"),
        ("mean", [1e308, 1e308], "overflow encountered in reduce"),
        ("sum", [[1e308, 1.0], [1e308, 1.0]], "overflow encountered in reduce"),
        ("sum", [np.inf, -np.inf], "invalid value encountered in reduce"),
    ],
)
def test_says_what_numpy_says(kind, value, words):
    value = np.asarray(value)
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError) as theirs:
            getattr(np, kind)(value)
        with pytest.raises(FloatingPointError) as ours:
            program_of([kind])(value)
    assert str(theirs.value) == words
    assert str(ours.value).startswith(words + ": ")
    assert str(ours.value).endswith("user.py:1")


@pytest.mark.parametrize(
    ("dtype", "value", "words"),
    [
        ("f4", 1e300, "overflow encountered in cast"),
        ("f2", 1e5, "overflow encountered in cast"),
        ("f2", 65519.999, None),
        ("f2", 65520.0, "overflow encountered in cast"),
        ("f2", 1e-6, "underflow encountered in cast"),
        ("f2", 1e-300, "underflow encountered in cast"),
        ("f2", 2.0**-24, None),
        ("f2", 0.0, None),
        ("f2", np.inf, None),
        ("i8", np.nan, "invalid value encountered in cast"),
        ("i4", 1e300, "invalid value encountered in cast"),
        ("f8", np.inf, None),
    ],
)
def test_casts_say_what_numpys_say(dtype, value, words):
    graph = Graph()
    graph.register_output(graph.insert("astype", graph.add_input(), dtype=np.dtype(dtype)))
    program = compile(graph)
    for shape in ((), (5,)):
        array = np.full(shape, value)
        with np.errstate(all="raise"):
            if words is None:
                np.testing.assert_array_equal(array.astype(dtype), program(array)[0])
                continue
            with pytest.raises(FloatingPointError, match=words):
                array.astype(dtype)
            with pytest.raises(FloatingPointError, match=words):
                program(array)


# Loops of NumPy that clear the flags, so that what came before them would be forgotten.
FORGETFUL = ["isnan", "neg", "tanh", "abs", "sign", "logical_not"]


@pytest.mark.parametrize("n", [1, 5, 100, 10_000])
@pytest.mark.parametrize("kind", FORGETFUL)
def test_no_loop_after_it_hides_an_error(kind, n):
    program = program_of(["log"], [kind], [kind])
    x = np.linspace(0, 1, n)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"log.*user.py:1$"):
        program(x)
    for binary in ("less", "maximum", "minimum", "equal", "logical_and"):
        program = program_of(["log"], [binary, None, 1.0])
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="log"):
            program(x)
    for reduction in ("max", "min"):
        program = program_of(["log"], [reduction])
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="log"):
            program(x)


def test_errors_before_a_run_are_not_its_own(logarithm):
    with np.errstate(all="ignore"):
        np.log(X)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(logarithm(np.ones(2)), [[0, 0]])


def test_the_first_node_in_error_is_named_also_within_blocks():
    program = program_of(["square"], ["log"], ["sqrt"], ["sin"])
    x = np.ones(10_000)
    x[7777] = 0
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"log.*user.py:2$"):
        program(x)
    if loops_enabled():
        assert program.instructions[0].kind == "block"
    x[7777] = 0.5
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"sqrt.*user.py:3$"):
        program(x)


def test_warnings_are_of_the_users_line(logarithm):
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning) as caught:
        (result,) = logarithm(X)
    np.testing.assert_array_equal(result, [-np.inf, 0, np.nan])
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "divide by zero encountered in log",
        "invalid value encountered in log",
    ]
    assert {(warning.filename, warning.lineno) for warning in caught} == {("user.py", 1)}


def test_warnings_without_a_line_are_of_the_caller():
    graph = Graph()
    graph.register_output(graph.insert("log", graph.add_input()))
    program = compile(graph)
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning) as caught:
        program(np.zeros(2))
    assert [warning.filename for warning in caught] == [__file__]


def test_functions_are_called_and_lines_printed(logarithm, monkeypatch):
    calls = []
    with np.errstate(all="call", call=lambda *given: calls.append(given)):
        logarithm(X)
    assert calls == [("divide by zero", 9), ("invalid value", 9)]
    log = io.StringIO()
    with np.errstate(all="log", call=log):
        logarithm(X[:1])
    assert log.getvalue().startswith("Warning: divide by zero encountered in log: ")
    monkeypatch.setattr(sys, "stderr", printed := io.StringIO())
    with np.errstate(all="print"):
        logarithm(X[:1])
    assert printed.getvalue() == log.getvalue()

    def refuse(*_given):
        raise LookupError

    with np.errstate(all="call", call=refuse), pytest.raises(LookupError):
        logarithm(X)
    with np.errstate(all="call"), pytest.raises(NameError):
        logarithm(X)
    assert live_counts()["busy_arenas"] == 0


def test_seterr_counts_as_much_as_errstate(logarithm):
    old = np.seterr(divide="raise")
    try:
        with pytest.raises(FloatingPointError):
            logarithm(X[:1])
    finally:
        np.seterr(**old)


def test_a_policy_is_of_its_thread(logarithm):
    results = []
    with np.errstate(all="raise"):
        thread = threading.Thread(target=lambda: results.append(logarithm(X)[0]))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(results, [[-np.inf, 0, np.nan]])


def test_run_speaks_after_it_has_written(logarithm):
    result = np.zeros(3)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        logarithm.run([X], [result])
    np.testing.assert_array_equal(result, [-np.inf, 0, np.nan])


def f(x):
    return np.sum(np.sqrt(x) * x)


def line_of(call):
    with np.errstate(all="raise"), pytest.raises(FloatingPointError) as caught:
        call()
    message = str(caught.value)
    assert __file__ in message
    return int(message.rpartition(":")[2])


def test_every_door_obeys():
    line = f.__code__.co_firstlineno + 1
    zero, negative = np.array([0.0, 1.0]), np.array([-1.0])
    pair = sd.compile(sd.differentiate(sd.trace(f, zero), [True]))
    assert line_of(lambda: sd.jit(f)(negative)) == line
    assert line_of(lambda: sd.grad(f)(zero)) == line
    assert line_of(lambda: sd.value_and_grad(f)(negative)) == line
    assert line_of(lambda: pair.joint(zero, 1.0)) == line
    out, pullback = pair(zero)
    assert line_of(lambda: pullback(1.0)) == line
    out, pull = sd.vjp(f, zero)
    assert out == 1
    assert line_of(lambda: pull(1.0)) == line
    assert np.isinf(sd.grad(f)(zero)).any() == np.isinf(pull(1.0)[0]).any()


def test_masked_products_are_no_errors():
    def g(x):
        return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0))

    with np.errstate(all="raise"):
        np.testing.assert_array_equal(sd.grad(g)(np.array([0.0, 4.0])), [0, 0.25])
    for dtype in ("f2", "f4", "f8", "c8", "c16"):
        for n in (1, 3, 40):
            graph = Graph()
            graph.register_output(graph.insert("mul0", graph.add_input(), graph.add_input()))
            program = compile(graph)
            with np.errstate(all="raise"):
                result = program(np.zeros(n, dtype), np.full(n, np.inf, dtype))[0]
                np.testing.assert_array_equal(result, np.zeros(n))
                result = program(np.zeros(2 * n, dtype)[::2], np.full(n, np.nan, dtype))[0]
                np.testing.assert_array_equal(result, np.zeros(n))
            with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                program(np.full(n, np.inf, dtype), np.zeros(n, dtype))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_sigmoid_is_right_without_errors(dtype):
    x = np.array([-5000, -40, 0, 40, 5000], dtype)
    with np.errstate(all="raise", under="ignore"):
        (result,) = program_of(["sigmoid"])(x)
    np.testing.assert_array_equal(result, [0, result[1], 0.5, result[3], 1])


@pytest.mark.parametrize("kind", list(OPS))
def test_gradients_that_are_finite_raise_no_error(kind):
    compared = 0
    for dtype in ("f2", "f8", "c16"):
        for sample in samples(kind, dtype):
            graph = Graph()
            inputs = [graph.add_input(TensorType.of(array)) for array in sample.arrays]
            results = graph.insert(kind, *inputs, **sample.attributes)
            for value in results if isinstance(results, tuple) else (results,):
                graph.register_output(value)
            flags = active(OPS[kind], sample.arrays)
            if (dtype == "c16" and not OPS[kind].is_complex) or not any(flags):
                continue
            pair = compile(differentiate(graph, flags))
            seeds = [np.ones(v.type.shape, v.type.dtype) for v in pair.joint.graph.inputs]
            seeds[: len(flags)] = sample.arrays
            quiet = pair.joint(*seeds)
            if all(np.isfinite(result).all() for result in quiet):
                # SciPy computes half precision in single, and the way back may underflow.
                under = "ignore" if dtype == "f2" and OPS[kind].scipy else "raise"
                with np.errstate(all="raise", under=under):
                    for one, other in zip(pair.joint(*seeds), quiet, strict=True):
                        np.testing.assert_array_equal(one, other)
                compared += 1
    found = [active(OPS[kind], sample.arrays) for sample in samples(kind, "f8")]
    assert compared or not any(map(any, found)) or kind in ("isnan", "logical_not")
