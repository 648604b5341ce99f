"""Tests that a traced value never becomes a plain one without a word."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import DTypeError, LeakedTracer, TraceError
from stagedad.front import Tracer, grad, jit, vjp

X = np.array([1.0, 2.0])


def assigned(x):
    out = np.zeros(2)
    out[0] = x[0]
    return out.sum()


def assigned_slice(x):
    out = np.zeros(2)
    out[:] = x
    return out.sum()


def assigned_traced(x):
    y = x * 2
    y[0] = 1.0
    return y.sum()


LOUD = {
    "float": lambda x: float(x[0]) * x[1],
    "complex": lambda x: complex(x[0]) * x[1],
    "int": lambda x: int(x[0]) * x[1],
    "index": lambda x: [1, 2][x.astype(int)[0]] * x[1],
    "range": lambda x: sum(range(x.astype(int)[0])) * x[1],
    "bool": lambda x: x[0] if x[0] > 0 else x[1],
    "and": lambda x: x[0] > 0 and x[1],
    "in": lambda x: 1.0 in x,
    "item": lambda x: x[0].item() * x[1],
    "tolist": lambda x: x.tolist()[0] * x[1],
    "math": lambda x: math.sin(x[0]) * x[1],
    "asarray": lambda x: np.asarray(x).sum(),
    "array_of_list": lambda x: np.array([x[0], x[1]]).sum(),
    "float64": lambda x: np.float64(x[0]) * x[1],
    "sum_of_list": lambda x: np.sum([x[0], x[1]]),
    "assigned": assigned,
    "assigned_slice": assigned_slice,
    "assigned_traced": assigned_traced,
    "lshift": lambda x: x << 1,
    "rshift": lambda x: 1 >> x,
    "xor": lambda x: x ^ 1,
    "or_of_floats": lambda x: x | 1,
    "and_of_floats": lambda x: np.ones(2, int) & x,
    "invert_of_floats": lambda x: ~x,
    "fill": lambda x: np.zeros(2).fill(x[0]),
    "copyto": lambda x: np.copyto(np.zeros(2), x),
    "full_like": lambda x: np.sum(np.full_like(np.zeros(3), 2 * x[0])),
    "put": lambda x: np.put(np.zeros(2), [0, 1], x),
    "fill_diagonal": lambda x: np.fill_diagonal(np.zeros((2, 2)), x),
    "out": lambda x: np.sin(x, out=np.zeros(2)).sum(),
    "out_of_sum": lambda x: np.sum(x, out=np.zeros(())),
    "where_argument": lambda x: np.sum(np.sin(x, where=[True, False])),
    "max_where": lambda x: np.max(x, out=np.zeros(())),
    "at": lambda x: np.add.at(np.zeros(2), [0, 1], x),
    "accumulate": lambda x: np.maximum.accumulate(x).sum(),
    "matmul_out": lambda x: np.matmul(x, x, out=np.zeros(())),
    "unknown_ufunc": lambda x: np.sum(np.isnat(x)),
    "unknown_function": lambda x: np.sum(np.i0(x)),
    "unknown_method": lambda x: x.choose([x, x]),
    "linalg": lambda x: np.linalg.matrix_rank(x * np.eye(2)) * x,
    "fft": lambda x: snp.fft.fftfreq(2, x[0]) * x,
    "user_ufunc": lambda x: np.frompyfunc(lambda a: a, 1, 1)(x).sum(),
    "vectorize": lambda x: np.vectorize(lambda a: a * 2)(x).sum(),
    "nonzero": lambda x: np.where(x > 0)[0],
    "arange": lambda x: snp.arange(x[0]).sum(),
    "random": lambda x: snp.random.default_rng(0).gamma(x[0]),
    "random_function": lambda x: snp.random.gamma(x[0]),
    "snp_unknown": lambda x: snp.i0([x[0], x[1]]).sum(),
    "snp_linalg": lambda x: snp.linalg.matrix_rank([[x[0], 1.0], [1.0, x[1]]]) * x,
    "pickle": lambda x: pickle.dumps(x),
    "einsum_out": lambda x: np.einsum("i->", x, out=np.zeros(())),
    "mode": lambda x: np.take(x, x.astype(int), mode="clip"),
    "object": lambda x: {"result": object(), "x": x},
}


@pytest.mark.parametrize("name", LOUD)
def test_raises_at_the_users_line(name):
    with pytest.raises(TraceError) as caught:
        grad(LOUD[name])(X)
    assert f"{__file__}:" in str(caught.value)
    lines = {entry.lineno for entry in caught.traceback if str(entry.path) == __file__}
    assert any(f"{__file__}:{line + 1}" in str(caught.value) for line in lines)


def test_the_message_has_a_way_out():
    with pytest.raises(TraceError, match=r"^bool: .*b1\[\].*\nhint: np\.where") as caught:
        grad(LOUD["bool"])(X)
    assert caught.value.op == "bool"


@pytest.mark.parametrize(
    "value",
    [
        np.ma.array([1.0, 2.0], mask=[True, False]),
        np.ones((1, 2)).view(np.matrix),
        np.recarray(2, dtype=[("a", float)]),
        np.array([1, 2], dtype=object),
        np.array(["a"]),
        np.array([1.0], dtype=np.longdouble),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.longdouble(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arrays_that_are_not_carried_raise(value):
    with pytest.raises(DTypeError, match="hint"):
        grad(lambda x: np.sum(x))(value)
    with pytest.raises(DTypeError, match="hint"):
        grad(lambda x: np.sum(x * value))(X)


def test_a_leaked_tracer_says_where_it_came_from():
    kept = []

    def function(x):
        kept.append(x * 2)
        return np.sum(x)

    grad(function)(X)
    for use in (
        lambda: kept[0] + 1,
        lambda: np.sum(kept[0]),
        lambda: kept[0][0],
        lambda: float(kept[0]),
        lambda: grad(lambda x: np.sum(x * kept[0]))(X),
        lambda: grad(np.sum)(kept[0]),
        lambda: kept[0].T,
    ):
        with pytest.raises(LeakedTracer, match=r"`function`.*test_loud\.py:\d+"):
            use()
    assert "leaked" in repr(kept[0])


def test_a_value_of_another_threads_trace_raises():
    started, finished = threading.Event(), threading.Event()
    kept = []

    def other(x):
        kept.append(x)
        started.set()
        finished.wait(10)
        return np.sum(x)

    thread = threading.Thread(target=grad(other), args=(X,))
    thread.start()
    started.wait(10)
    try:
        with pytest.raises(TraceError, match="does not enclose"):
            grad(lambda x: np.sum(x * kept[0]))(X)
    finally:
        finished.set()
        thread.join()


def test_printing_and_copying_work():
    seen = []

    def function(x):
        assert not isinstance(x, np.ndarray)
        assert isinstance(x, Tracer)
        seen.append((repr(x), str(x), f"{x[1] * 2:.2f}", f"{x}"))
        return np.sum(copy.copy(x) * copy.deepcopy([x])[0])

    np.testing.assert_array_equal(grad(function)(X), 2 * X)
    assert seen == [("Tracer(f64[2], [1., 2.])", "[1. 2.]", "4.00", "[1. 2.]")]


def test_attributes_that_arrays_lack_raise_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        jit(lambda x: x.nonsense)(X)
    with pytest.raises(TypeError):
        jit(lambda x: {x: 1})(X)


def test_in_place_operations_change_the_array_as_in_numpy():
    def function(x):
        y = x * 1.0
        alias = y
        y *= 3
        y += x
        return np.sum(alias * x)

    np.testing.assert_array_equal(grad(function)(X), 8 * X)
    assert jit(function)(X) == function(X)


def test_in_place_operations_on_a_scalar_bind_the_name():
    def function(x):
        total = 0.0
        for each in x:
            total += each**2
        return total

    np.testing.assert_array_equal(grad(function)(X), 2 * X)


@pytest.mark.parametrize("take", [lambda y: y[:1], lambda y: y.T, lambda y: y.reshape(2, 1)])
def test_in_place_operations_on_shared_memory_raise(take):
    def change_view(x):
        y = x * 1.0
        view = take(y)
        view *= 2
        return np.sum(y)

    def change_base(x):
        y = x * 1.0
        view = take(y)
        y *= 2
        return np.sum(view)

    for function in (change_view, change_base):
        with pytest.raises(TraceError, match="in place"):
            grad(function)(X)


def test_in_place_operations_keep_dtype_and_shape():
    def widen(x):
        y = x * 1
        y += np.ones((3, 2))
        return y

    def divide(x):
        y = x.astype(int)
        y /= 2
        return y

    with pytest.raises(ValueError, match="in place"):
        jit(widen)(X)
    with pytest.raises(DTypeError, match="in place"):
        jit(divide)(X)
    assert jit(lambda x: _add(x.astype(np.float32), np.ones(2)))(X).dtype == np.float32


def _add(y, other):
    y += other
    return y


def test_a_random_draw_while_tracing_warns():
    with pytest.warns(UserWarning, match="draws are constants"):
        jit(lambda x: x + np.random.rand())(X)


def test_a_local_array_that_changes_keeps_what_each_use_read():
    def function(x):
        weights = np.ones(2)
        first = np.sum(x * weights)
        weights[:] = [3, 5]
        second = np.sum(x * weights)
        weights[:] = 0
        return first + second

    np.testing.assert_array_equal(grad(function)(X), [4, 6])


def test_a_closed_over_array_that_changes_while_tracing_raises():
    counter = np.zeros(2)

    def function(x):
        y = x * counter
        counter[0] += 1
        return np.sum(y)

    with pytest.raises(TraceError, match="changed while the function was traced"):
        grad(function)(X)


def test_vjp_keeps_nothing_that_the_caller_changes():
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, pull = vjp(lambda x: np.exp(x) * w, x)
    seed = np.ones(2)
    wanted = np.exp(x) * w
    x[:] = 0
    value[:] = 0
    w = w.copy()
    np.testing.assert_allclose(pull(seed)[0], wanted)
    np.testing.assert_array_equal(seed, 1)


def test_a_draw_from_a_closed_over_generator_warns(recwarn):
    new, old = np.random.default_rng(0), np.random.RandomState(0)
    draw = new.normal
    for function in (
        lambda x: x * new.normal(),
        lambda x: x * old.rand(),
        lambda x: x * draw(),
    ):
        with pytest.warns(UserWarning, match="random generator was used") as caught:
            jit(function)(1.0)
        assert [warning.filename for warning in caught] == [__file__]
    jit(lambda x: x if new is old else 2 * x)(1.0)
    assert not recwarn.list


def test_assignment_names_what_makes_traced_arrays():
    with pytest.raises(TraceError, match=r"np\.stack.*stagedad\.numpy\.array"):
        jit(assigned)(X)
    for function in (
        lambda x: np.stack([x[0], x[1]]),
        lambda x: snp.array([x[0], x[1]]),
        lambda x: np.where([True, False], x[0], x[1]),
        lambda x: np.concatenate([x[:1], x[1:]]),
    ):
        np.testing.assert_array_equal(jit(function)(X), X)
