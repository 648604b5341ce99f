"""Tests of front/explain and run/explaining: what happens besides computing, and why."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.plan.kernels import loops_enabled

needs_loops = pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")

WEIGHTS = np.ones((3, 2))
SMALL = np.arange(3.0)
FACTOR = 2.0


class Settings:
    rate = 0.5


settings = Settings()
X = np.ones((4, 3))


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "0")


def facts(found):
    return [(each.op, str(each.type), each.why) for each in found]


def test_what_is_closed_over():
    count = 3

    def function(x):
        made = np.full(2, 0.5)
        return x @ WEIGHTS * FACTOR * settings.rate * SMALL[1] * count + made

    found = sd.explain(function, X)
    held = "held by reference, its contents are read at each run"
    value = "a constant of the trace; another value traces again"
    assert set(facts(found.captured)) == {
        ("WEIGHTS", "f64[3, 2]", held),
        ("SMALL", "f64[3]", "read while tracing; other contents trace again"),
        ("FACTOR", "None", f"2.0: {value}"),
        ("rate", "None", f"0.5: {value}"),
        ("count", "None", f"3: {value}"),
        ("array", "f64[2]", "made while tracing, a constant"),
    }
    assert found.watched > 5


def test_what_is_written_in_place():
    found = sd.explain(lambda x: np.exp(np.sin(x) + 1), X)
    assert facts(found.donated)[0] == (
        "add",
        "f64[4, 3]",
        "written over an operand that nobody reads later",
    )
    assert not sd.explain(lambda x: (np.sin(x), np.exp(x)), X).donated
    found = sd.explain(sd.grad(lambda x: np.sum(x[0] * x[1] + x[2])), np.ones(3))
    why = "the entries are added to a sum that nobody else reads"
    assert [each.why for each in found.donated].count(why) == 2
    # A sum goes on in one number, which is not an operand that is given away.
    assert not sd.explain(lambda x: np.sum(x), X).donated


def test_what_is_cast():
    found = sd.explain(lambda x: x.astype(np.float32), X)
    assert facts(found.cast) == [("astype", "f32[4, 3]", "f64 to f32, as the function asks")]
    found = sd.explain(lambda x, y: x + y, X, X.astype(np.float32))
    assert facts(found.cast) == [("add", "f64[4, 3]", "f32 to f64, in which add computes here")]
    assert found.cast[0].location[0] == __file__
    assert found.cast[0].bytes == 96


def test_what_is_copied():
    found = sd.explain(lambda x: (x, x.T, np.zeros(3)), X)
    assert [(each.op, each.why.split(" ", 2)[2]) for each in found.copied] == [
        ("return", "shares no memory with an argument or a closed-over array"),
        ("return", "shares no memory with an argument or a closed-over array"),
        ("return", "shares no memory with an argument or a closed-over array"),
    ]
    found = sd.explain(lambda x: (np.exp(x), np.exp(x).T), X)
    assert [each.why for each in found.copied] == [
        "an output is a view of another value, or returned twice"
    ]
    found = sd.explain(lambda x: np.concatenate([x, x]), X)
    assert [each.op for each in found.copied] == ["concatenate"] * 2
    found = sd.explain(lambda x: np.exp(x.T.reshape(-1)), X)
    assert [each.why for each in found.copied] == [
        "no strides say the new shape of what lies so"
    ]
    packed = np.zeros(3, [("a", "i1"), ("b", "f8")])["b"]
    found = sd.explain(np.exp, packed)
    assert [(each.op, each.type.shape) for each in found.copied] == [("input", (3,))]


@needs_loops
def test_what_is_copied_for_blas():
    x = np.ones((6, 6))
    assert not sd.explain(lambda x: x @ x.T, x).copied
    found = sd.explain(lambda x: x[::2, ::2] @ x[::2, 1::2], x)
    assert [each.op for each in found.copied] == ["matmul", "matmul"]


def test_what_is_called_as_an_object():
    found = sd.explain(lambda x: np.exp(x) + 1, X)
    if loops_enabled():
        assert not found.objects
    else:
        assert {each.op for each in found.objects} == {"exp", "add"}
        assert "STAGEDAD_LOOPS=off" in found.objects[0].why


def test_functions_transformed_functions_and_programs():
    def function(x):
        return np.sum(np.exp(x) * FACTOR)

    step = sd.value_and_grad(function)
    found = sd.explain(step, X)
    assert found.function == "function"
    assert step.cache_info()[1:] == (1, 64, 1)
    step(X)
    assert step.cache_info()[:2] == (1, 1)  # explain had traced it
    program = sd.compile(sd.trace(function, X))
    of_program = sd.explain(program, X)
    assert of_program.function == "program"
    assert of_program.captured == ()
    assert of_program.instructions == sd.explain(function, X).instructions == 3
    assert of_program.workspace_bytes == program.workspace_bytes


def test_nothing_is_run():
    program = sd.compile(sd.trace(lambda x, i: x[i], X, np.array([1])))
    assert sd.explain(program, X, np.array([99])).instructions == 1
    with pytest.raises(IndexError):
        program(X, np.array([99]))


def test_the_text_says_it_all():
    def function(x):
        for _ in range(3):
            x = np.exp(x)
        return x @ WEIGHTS * FACTOR

    text = str(sd.explain(function, X)).split("\n")
    assert text[0].startswith("function: 5 instructions, ")
    assert text[1] == "closed over:"
    assert "  FACTOR: 2.0: a constant of the trace; another value traces again" in text
    assert any(line.startswith("  2 x exp f64[4, 3]: written over") for line in text)
    assert any(line.endswith(f"({__file__.rpartition('/')[2]}:{_line(function, 2)})")
               for line in text)  # fmt: skip
    assert "cast: nothing" in text
    many = sd.explain(
        lambda xs: [x.astype("f4") for x in xs], [np.ones(n) for n in range(1, 30)]
    )
    assert "  ... and 9 more" in str(many).split("\n")


def _line(function, offset):
    return function.__code__.co_firstlineno + offset


def test_of_arguments_that_are_traced():
    with pytest.raises(sd.errors.TraceError, match="traced values"):
        sd.trace(lambda x: sd.explain(np.exp, x), X)
