"""Tests of random draws: in graphs, and by stagedad.numpy.random in traced functions."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as onp
import pytest

import stagedad as sd
import stagedad.numpy as np
from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.ops import evaluate

KEY = onp.array([5, 7], onp.uint64)


def test_draws_are_functions_of_key_and_number():
    for kind, attributes in (
        ("random_uniform", {"shape": (4,)}),
        ("random_normal", {"shape": (4,), "dtype": "float32"}),
        ("random_exponential", {"shape": (4,)}),
        ("random_integers", {"shape": (40,), "low": -3, "high": 4}),
        ("random_permutation", {"count": 30}),
    ):
        (one,) = evaluate(kind, [KEY], attributes)
        (again,) = evaluate(kind, [KEY], attributes)
        (other,) = evaluate(kind, [KEY], {**attributes, "draw": 1})
        # The count of draws before and the number of the draw add up.
        (same,) = evaluate(kind, [KEY + onp.array([0, 1], onp.uint64)], attributes)
        onp.testing.assert_array_equal(one, again)
        onp.testing.assert_array_equal(other, same)
        assert not onp.array_equal(one, other)


def test_the_stream_is_philox():
    (found,) = evaluate("random_uniform", [KEY], {"shape": (5,), "draw": 2})
    philox = onp.random.Philox(key=onp.array([5, 9], onp.uint64))
    onp.testing.assert_array_equal(found, onp.random.Generator(philox).random(5))


def test_a_key_counts():
    state = onp.array([3, onp.iinfo(onp.uint64).max - 1], onp.uint64)
    graph = sd.Graph()
    graph.register_output(graph.insert("random_key", state=state, count=3))
    program = sd.compile(graph)
    assert program()[0].tolist() == [3, onp.iinfo(onp.uint64).max - 1]
    assert program()[0].tolist() == [3, 1]  # it wraps
    assert state.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("kind", "key", "attributes", "error"),
    [
        ("random_uniform", "f64[2]", {}, DTypeError),
        ("random_uniform", "u64[3]", {}, ShapeError),
        ("random_uniform", "u64[2, 1]", {}, ShapeError),
        ("random_uniform", "u64[2]", {"dtype": "int64"}, DTypeError),
        ("random_uniform", "u64[2]", {"dtype": "float16"}, DTypeError),
        ("random_uniform", "u64[2]", {"shape": (-1,)}, ShapeError),
        ("random_uniform", "u64[2]", {"draw": -1}, TypeError),
        ("random_integers", "u64[2]", {"low": 2, "high": 2}, ValueError),
        ("random_integers", "u64[2]", {"low": 0, "high": 257, "dtype": "uint8"}, ValueError),
        ("random_integers", "u64[2]", {"low": 0.5, "high": 3}, TypeError),
        ("random_integers", "u64[2]", {"low": 0, "high": 3, "dtype": "float64"}, DTypeError),
        ("random_permutation", "u64[2]", {"count": -1}, TypeError),
    ],
)
def test_bad_draws_are_refused(kind, key, attributes, error):
    graph = sd.Graph()
    value = graph.add_input(key)
    with pytest.raises(error, match=kind):
        graph.insert(kind, value, **attributes)


@pytest.mark.parametrize(
    "state",
    [
        onp.zeros(2),
        onp.zeros(3, onp.uint64),
        [0, 0],
        onp.broadcast_to(onp.zeros(1, onp.uint64), (2,)),
        None,
    ],
)
def test_bad_states_are_refused(state):
    with pytest.raises(TypeError, match="random_key"):
        sd.Graph().insert("random_key", state=state)


def test_outside_of_traces_all_is_numpy():
    ours, theirs = np.random.default_rng(3), onp.random.default_rng(3)
    assert isinstance(ours, onp.random.Generator)
    onp.testing.assert_array_equal(ours.normal(size=4), theirs.normal(size=4))
    onp.testing.assert_array_equal(ours.gamma(2.0, size=4), theirs.gamma(2.0, size=4))
    np.random.seed(4)
    found = np.random.rand(3), np.random.poisson(3.0, 3)
    onp.random.seed(4)
    onp.testing.assert_array_equal(found[0], onp.random.rand(3))
    onp.testing.assert_array_equal(found[1], onp.random.poisson(3.0, 3))
    assert np.random.default_rng(ours) is ours
    assert ours.spawn(2)[0].random() == theirs.spawn(2)[0].random()


def test_each_run_draws_anew_and_a_seed_repeats_them():
    def runs(seed):
        rng = np.random.default_rng(seed)
        step = sd.jit(lambda x: x * rng.normal(size=3))
        return [step(1.0) for _ in range(3)]

    first, again, other = runs(1), runs(1), runs(2)
    onp.testing.assert_array_equal(first, again)
    assert len({tuple(run) for run in [*first, *other]}) == 6


def test_a_generator_made_in_the_function_begins_anew_at_each_run():
    @sd.jit
    def step(x):
        rng = np.random.default_rng(3)
        inner = sd.jit(lambda y: y + rng.random(2))
        return x + rng.random(2), inner(x), rng.random(2)

    first, again = step(0.0), step(0.0)
    onp.testing.assert_array_equal(first, again)
    assert len(onp.unique(first)) == 6


def test_tracing_moves_no_generator():
    rng = np.random.default_rng(0)
    sd.jit(lambda x: x + rng.random())(1.0)
    assert rng.random() == onp.random.default_rng(0).random()


DISTRIBUTIONS = {
    "random": (),
    "uniform": (-1.0, 3.0),
    "standard_normal": (),
    "normal": (2.0, 3.0),
    "standard_exponential": (),
    "exponential": (0.5,),
    "lognormal": (0.2, 0.5),
    "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0),
    "gumbel": (1.0, 2.0),
    "rayleigh": (2.0,),
    "weibull": (1.5,),
    "pareto": (3.0,),
    "power": (2.5,),
    "standard_cauchy": (),
    "triangular": (-1.0, 0.0, 4.0),
    "integers": (-2, 9),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_those_of_numpy(name):
    count = 40_000
    rng = np.random.default_rng(8)
    parameters = DISTRIBUTIONS[name]
    drawn = sd.jit(lambda: getattr(rng, name)(*parameters, size=count))()
    known = getattr(onp.random.default_rng(9), name)(*parameters, size=count)
    assert drawn.dtype == known.dtype
    # The Kolmogorov-Smirnov distance of two samples; a thousandth of pairs is beyond this.
    both = onp.sort(onp.concatenate([drawn, known]))
    one, other = (onp.searchsorted(onp.sort(x), both, side="right") for x in (drawn, known))
    assert onp.max(onp.abs(one - other)) / count < 1.95 * onp.sqrt(2 / count)


def test_permutations_and_choices():
    rng = np.random.default_rng(2)

    @sd.jit
    def draws(x):
        return (
            rng.permutation(50),
            rng.permutation(x),
            rng.choice(x, 5, replace=False),
            rng.choice(3, (1000,), p=[0.0, 0.25, 0.75]),
            rng.choice(x, (2, 3)),
            np.random.permutation(4),
        )

    x = onp.arange(8.0)
    order, mixed, some, often, any_, four = draws(x)
    assert sorted(order) == list(range(50))
    assert sorted(mixed) == sorted(x)
    assert len(set(some)) == 5
    assert set(some) <= set(x)
    counts = onp.bincount(often, minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - 250) < 60
    assert any_.shape == (2, 3)
    assert sorted(four) == [0, 1, 2, 3]


def test_gradients_go_through_location_and_scale():
    rng = np.random.default_rng(5)
    loc, scale = onp.array([1.0, -2.0]), onp.array([0.5, 3.0])
    both = sd.value_and_grad(lambda m, s: np.sum(rng.normal(m, s)), argnums=(0, 1))
    for _ in range(2):
        value, (to_loc, to_scale) = both(loc, scale)
        onp.testing.assert_array_equal(to_loc, 1)
        onp.testing.assert_allclose(value, onp.sum(loc + scale * to_scale), rtol=1e-14)
        assert 0 < onp.abs(to_scale).max() < 6


def test_df_has_the_draws_of_f():
    rng = np.random.default_rng(6)
    step = sd.value_and_grad(lambda x: np.sum(rng.random(4) * x))
    for _ in range(3):
        value, slope = step(onp.ones(4))
        onp.testing.assert_allclose(value, slope.sum(), rtol=1e-14)
    second = sd.grad(lambda x: np.sum(sd.grad(lambda y: np.sum(rng.random(3) * y**2))(x)))
    found = second(onp.ones(3))
    assert ((found > 0) & (found < 2)).all()


def test_passes_change_no_draw():
    state = onp.array([1, 0], onp.uint64)
    text = """graph(%x : f64[3]) {
      %1 : u64[2] = random_key[state=array([1, 0], u64), count=3]()
      %2 : f64[3] = random_normal[shape=(3,)](%1)
      %3 : f64[3] = random_normal[shape=(3,), draw=1](%1)
      %4 : f64[3] = random_normal[shape=(3,), draw=2](%1)
      %5 : f64[3] = mul(%x, %2)
      %6 : f64[3] = add(%5, %4)
      %7 : f64[3] = mul(%x, %2)
      %8 : f64[3] = add(%6, %7)
      return (%8)
    }"""
    x = onp.ones(3)
    plain, optimised = sd.parse_graph(text), sd.parse_graph(text)
    assert sd.optimize(optimised)
    kinds = [node.kind for node in optimised.nodes()]
    assert kinds.count("random_normal") == 2  # nothing reads the other
    (one,), (other,) = sd.compile(plain)(x), sd.compile(optimised)(x)
    onp.testing.assert_array_equal(one, other)
    first, _, third = (
        evaluate("random_normal", [state], {"shape": (3,), "draw": draw})[0]
        for draw in range(3)
    )
    onp.testing.assert_allclose(one, 2 * first + third, rtol=1e-14)


def test_a_key_stays_though_nothing_reads_it():
    state = onp.array([1, 0], onp.uint64)
    graph = sd.Graph()
    graph.insert("random_key", state=state)
    graph.insert("random_key", state=state)
    graph.register_output(graph.add_input("f64[]"))
    sd.optimize(graph)
    assert len(graph) == 2
    copied = graph.copy()
    assert copied.constants[0] is state
    assert sd.parse_graph(str(graph)).constants[0] is not state


def test_inner_transforms_draw_for_themselves():
    rng = np.random.default_rng(7)
    inner = sd.jit(lambda x: x + rng.random(2))
    outer = sd.jit(lambda x: (rng.random(2), inner(x), inner(x), rng.random(2)))
    rows = onp.concatenate([outer(0.0), outer(0.0), [inner(0.0)]])
    assert len(onp.unique(rows)) == rows.size


def test_threads_share_no_draws():
    rng = np.random.default_rng(11)
    step = sd.jit(lambda x: x + rng.random(2))
    step(0.0)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(step, [0.0] * 400))
    assert len(onp.unique(rows)) == 800


def test_the_functions_of_the_module():
    @sd.jit
    def draws(x):
        return (
            x + np.random.rand(), np.random.randn(2, 3), np.random.randint(0, 4, (5,)),
            np.random.normal(x, size=(2,)), np.random.choice(7),
        )  # fmt: skip

    np.random.seed(1)
    first = draws(0.0)
    assert [onp.shape(each) for each in first] == [(), (2, 3), (5,), (2,), ()]
    second = draws(0.0)
    np.random.seed(1)
    for one, other, again in zip(first, second, draws(0.0), strict=True):
        onp.testing.assert_array_equal(one, again)
        assert onp.size(one) < 2 or not onp.array_equal(one, other)


def test_the_module_may_be_imported_by_a_traced_function():
    code = """
import stagedad as sd
import stagedad.numpy as np
draw = sd.jit(lambda x: x + np.random.rand(4))
assert draw(0.0).tolist() != draw(0.0).tolist()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: rng.gamma(x),
        lambda x, rng: rng.shuffle(x),
        lambda x, rng: rng.integers(0, x),
        lambda x, rng: rng.random(x),
        lambda _, rng: rng.random(out=onp.zeros(3)),
        lambda _, rng: rng.choice(4, 2, replace=False, p=[0.25] * 4),
        lambda _, __: np.random.seed(3),
        lambda x, _: np.random.default_rng(x),
        lambda x, _: np.random.poisson(x),
    ],
)
def test_what_is_not_drawn_in_traces_says_so(function):
    rng = np.random.default_rng(0)
    with pytest.raises(TraceError, match=r"test_random\.py"):
        sd.jit(lambda x: function(x, rng))(1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda rng: rng.choice(3, 4, replace=False),
        lambda rng: rng.choice(0),
        lambda rng: rng.choice(3, p=[0.5, 0.5]),
        lambda rng: rng.integers(4, 4),
        lambda rng: rng.choice(2, p=[-1.0, 2.0]),
        lambda rng: rng.choice(2, p=[0.2, 0.2]),
        lambda rng: rng.normal(0.0, -1.0),
        lambda rng: rng.lognormal(0.0, [1.0, -1.0]),
        lambda rng: rng.exponential(-1.0, size=3),
        lambda rng: rng.weibull(-1.0),
        lambda rng: rng.power(0.0),
        lambda rng: rng.triangular(0.0, 2.0, 1.0),
    ],
)
def test_bad_arguments_raise_as_in_numpy(function):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"."):
        sd.jit(lambda: function(rng))()
    with pytest.raises(ValueError, match=r"."):
        function(rng)


def test_plain_parameters_beside_traced_ones_are_checked():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="scale < 0"):
        sd.jit(lambda x: rng.normal(x, -1.0))(0.0)
    assert sd.jit(lambda x: rng.triangular(x, 5.0, 6.0))(4.5) > 4
    ends = onp.array([1.0, 2.0])
    assert sd.jit(lambda: rng.uniform(ends, ends + 1))().shape == (2,)
    assert sd.jit(lambda x: rng.normal(ends, x))(1.0).shape == (2,)
    assert sd.jit(lambda x: rng.uniform(x, 0.5))(0.25) <= 0.5


def test_generators_pickle_and_copy():
    rng = np.random.default_rng(3)
    sd.jit(lambda x: x + rng.random())(0.0)
    for other in (pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng)):
        one, two = (sd.jit(lambda x, g=g: x + g.random(3))(0.0) for g in (other, other))
        assert not onp.array_equal(one, two)
    a, b = pickle.loads(pickle.dumps((rng, 0)))[0], copy.deepcopy(rng)
    onp.testing.assert_array_equal(
        sd.jit(lambda x: x + a.random(3))(0.0), sd.jit(lambda x: x + b.random(3))(0.0)
    )
    assert a.random() == b.random()


def test_programs_that_count_are_checked_without_a_twin(monkeypatch):
    monkeypatch.setenv("STAGEDAD_CHECK", "1")
    rng = np.random.default_rng(3)
    step = sd.jit(lambda x: x * rng.random(5))
    found = step(2.0)
    monkeypatch.delenv("STAGEDAD_CHECK")
    rng = np.random.default_rng(3)
    onp.testing.assert_array_equal(sd.jit(lambda x: x * rng.random(5))(2.0), found)
