"""Every sample of every op as a small staged program, and which law runs over what."""

import importlib
import os
from functools import cache, cached_property
from itertools import product

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.ops.samples import ABSENT, LAYOUTS, active, samples
from stagedad.run import compile
from stagedad.transform import Capture, differentiate
from stagedad.types import CODES, TensorType

# What tests add to the table later is no concern of the laws.
KINDS = tuple(OPS)

# Directions and cotangents a sample.
ROUNDS = 20 if os.environ.get("STAGEDAD_SOAK") else 1

EVERY = tuple(CODES)
WIDE = ("f64", "c128")
INEXACT = ("f64", "c128", "f32", "c64", "f16")

# Law -> the dtypes that it runs over.
LAWS = {
    "test_programs_agree_with_the_reference": EVERY,
    "test_programs_agree_without_loops_too": EVERY,
    "test_cotangents_agree_with_differences": INEXACT,
    "test_cotangents_of_temporaries_agree_with_differences": INEXACT,
    "test_mixed_operands_agree_with_differences": WIDE,
    "test_mixed_operands_lose_no_precision": WIDE,
    "test_tangents_are_the_transpose_of_cotangents": INEXACT,
    "test_complex_cotangents_are_those_of_the_parts": ("c128",),
    "test_every_subset_of_gradients_gives_the_same": WIDE,
    "test_every_subset_of_cotangents_gives_the_same": WIDE,
    "test_second_order_through_df": WIDE,
    "test_second_order_through_the_joint_program": WIDE,
    "test_second_order_in_all_four_modes": WIDE,
    "test_joint_is_f_then_df": INEXACT,
    "test_gradients_added_in_place_are_the_joint_ones": INEXACT,
    "test_text_comes_back": ("f64", "c128", "i32", "b1"),
    "test_passes_keep_results": WIDE,
    "test_vjp_costs_at_most_five_functions": ("f64",),
    "test_the_check_of_a_gradient_passes": ("f64",),
}
FORWARD = {
    "test_programs_agree_with_the_reference",
    "test_programs_agree_without_loops_too",
    "test_text_comes_back",
}
TEMPORARIES = {
    "test_cotangents_of_temporaries_agree_with_differences",
    "test_every_subset_of_cotangents_gives_the_same",
}
SECOND = {
    "test_second_order_through_df",
    "test_second_order_through_the_joint_program",
    "test_second_order_in_all_four_modes",
}
MIXES = {
    "test_mixed_operands_agree_with_differences",
    "test_mixed_operands_lose_no_precision",
}
DIFFERENCES = {
    "test_cotangents_agree_with_differences",
    "test_cotangents_of_temporaries_agree_with_differences",
    "test_mixed_operands_agree_with_differences",
}

# Laws that move every element on its own, off the Hermitian matrices too.
FREE = DIFFERENCES | {
    "test_second_order_through_the_joint_program",
    "test_second_order_in_all_four_modes",
    "test_the_check_of_a_gradient_passes",
}

# The dtype of one operand, by that of the others and of the result.
MIXED = {"c128": CODES["f64"], "f64": CODES["f32"]}


def reason(law, op, dtype):
    """Why `law` does not run over `op` in `dtype`, or None if it does."""
    if not calls(op.kind, dtype):
        return "the op does not take the dtype"
    if law in FORWARD:
        return None
    if not op.arguments:
        return "has no operands"
    if "random" in op.traits:
        return "a key has no derivative; tests/front/test_random.py has more of draws"
    if all(argument.rule == "not_implemented" for argument in op.arguments):
        return "has no derivative"
    if "comparison" in op.traits:
        return None if law == "test_cotangents_agree_with_differences" else "is boolean"
    if CODES[dtype].kind == "c" and not op.is_complex:
        return "is refused: test_complex_operands_are_refused"
    if law in DIFFERENCES and op.kind == "stop_gradient":
        return "its gradient is declared to be none that it has"
    if law in FREE and op.kind == "hermitian":
        return "its gradient is that among Hermitian matrices: tests/ops/test_linalg.py"
    if law in SECOND and not op.is_differentiable:
        return "its vjp is a constant"
    if law == "test_second_order_through_df" and op.kind in ("max", "min"):
        return "compares two captures for equality: moved one by one, they no longer are"
    if law in MIXES and len(places(op)) < 2:
        return "has no two operands that could differ"
    return None


def places(op):
    """The arguments of `op` that carry a cotangent; a list counts as two."""
    found = [argument for argument in op.arguments if argument.rule == "formula"]
    return found * 2 if any(argument.is_list for argument in found) else found


class Call:
    """One sample as a staged program, with the random numbers to try it."""

    def __init__(self, op, arrays, attributes, layout, seed=0):
        self.op, self.arrays, self.attributes = op, arrays, attributes
        self.layout = layout
        self.random = np.random.default_rng(seed)

    def __repr__(self):
        types = ", ".join(str(TensorType.of(array)) for array in self.arrays)
        return f"{self.op.kind}({types}) {self.attributes} {self.layout}"

    def build(self, *tails, chosen=None):
        """A graph of typed inputs; its outputs are the results of `tails`.

        A tail takes the graph, the inputs and a result of the op; where there are several
        results it is called for each.  Only the outputs `chosen` by number are made.
        """
        graph = Graph()
        inputs = [graph.add_input(TensorType.of(array)) for array in self.arrays]
        results = results_of(graph.insert(self.op.kind, *inputs, **self.attributes))
        for number, (tail, result) in enumerate(product(tails, results)):
            if chosen is None or number in chosen:
                graph.register_output(tail(graph, inputs, result))
        return graph

    @cached_property
    def graph(self):
        """The op alone."""
        return self.build(result_itself)

    @cached_property
    def squared(self):
        """The op, and the square of its result, which needs it: a captured temporary."""
        return self.build(square_of_result)

    @property
    def flags(self):
        """Which inputs carry a cotangent."""
        return active(self.op, self.arrays)

    @cached_property
    def gradient(self):
        return differentiate(self.graph, self.flags)

    @cached_property
    def squared_gradient(self):
        return differentiate(self.squared, self.flags)

    @property
    def carries(self):
        """Whether the result carries a cotangent."""
        return self.graph.outputs[0].type.is_inexact

    def normal(self, like):
        return normal(self.random, like)

    def pull(self, gradient, cotangents, arrays=None):
        """What df gives for `cotangents` by output of f; zeros where there is none."""
        arrays = self.arrays if arrays is None else arrays
        pair = compile(gradient)
        outputs = pair.f(*arrays)
        given = [
            np.asarray(cotangents.get(j, np.zeros_like(outputs[j])))
            for j in gradient.df_input_vjps
        ]
        found = pair.df(*captured(gradient, arrays, outputs), *given)
        return dict(zip(gradient.df_output_vjps, found, strict=True))

    def check(self, gradient, arrays=None, wide=None):
        """Assert that df is the adjoint of the differences of f; count the comparisons.

        <u, J v> = <J'u, v> for random u and v, one input of f at a time.  All outputs of f
        take part, temporaries too.  `wide` is (gradient, arrays) of the same function in
        double precision, whose differences are taken where those of f would be too coarse.
        """
        arrays = self.arrays if arrays is None else arrays
        pair = compile(gradient)
        outputs = pair.f(*arrays)
        function, points = (pair.f, arrays) if wide is None else (compile(wide[0]).f, wide[1])
        count = 0
        for _ in range(ROUNDS):
            u = {j: self.normal(outputs[j]) for j in gradient.df_input_vjps}
            saved = captured(gradient, arrays, outputs)
            found = pair.df(*saved, *u.values())
            for place, cotangent in zip(gradient.df_output_vjps, found, strict=True):
                assert cotangent.dtype == arrays[place].dtype
                assert cotangent.shape == arrays[place].shape
                for v in directions(self.random, arrays[place]):
                    self.compare(function, points, place, u, v, cotangent)
                    count += 1
        return count

    def compare(self, function, points, place, u, v, cotangent):
        values = function(*points)
        coarse = epsilon(*points, *(values[j] for j in u))
        step = 0.5 if self.op.traits & {"linear"} and len(values) == 1 else coarse ** (1 / 3)
        sides = []
        for sign in (step, -step):
            moved = list(points)
            moved[place] = (points[place] + sign * v).astype(points[place].dtype)
            sides.append(function(*moved))
        slopes = {j: (sides[0][j] - sides[1][j]) / (2 * step) for j in u}
        # Central differences err by step ** 2 and by coarse / step.
        tolerance = 200 * coarse if step == 0.5 else 1000 * step**2
        narrowest = epsilon(cotangent, *u.values(), *self.arrays)
        tolerance = max(tolerance, 200 * narrowest)
        expected = sum(inner(u[j], slopes[j]) for j in u)
        scale = sum(size(u[j], slopes[j]) for j in u) + size(cotangent, v)
        np.testing.assert_allclose(
            inner(cotangent, v), expected, rtol=0, atol=tolerance * max(1.0, scale)
        )


def results_of(inserted):
    """The outputs of an inserted node as a tuple."""
    return inserted if isinstance(inserted, tuple) else (inserted,)


def result_itself(_graph, _inputs, result):
    return result


def square_of_result(graph, _inputs, result):
    return graph.insert("mul", result, result)


def captured(gradient, arrays, outputs):
    """The arrays that df takes from a run of f."""
    return [
        arrays[offset] if kind is Capture.INPUT else outputs[offset]
        for kind, offset in gradient.df_input_captures
    ]


def seeds(call, values):
    """Random arrays of the types of those of `values` that carry a cotangent, by position."""
    return {
        j: call.normal(np.empty(value.type.shape, value.type.dtype))
        for j, value in enumerate(values)
        if value.type.is_inexact
    }


def normal(random, like):
    """Random numbers of the shape and dtype of `like`."""
    values = random.standard_normal(like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * random.standard_normal(like.shape)
    return np.asarray(values).astype(like.dtype)


def directions(random, like):
    """Directions to move `like` in: for complex numbers a real and an imaginary one."""
    v = normal(random, like)
    return [v] if like.dtype.kind == "f" else [v.real.astype(v.dtype), 1j * v.imag]


def widened(array):
    """`array` in double precision, if it is inexact."""
    return (
        array.astype(np.result_type(array, np.float64)) if array.dtype.kind in "fc" else array
    )


def inner(left, right):
    """Re <left, right>, in double precision."""
    return np.vdot(widened(left), widened(right)).real


def size(left, right):
    """What rounding errors of the inner product are relative to."""
    return float(np.sum(np.abs(widened(left)) * np.abs(widened(right))))


def epsilon(*arrays):
    """The spacing at 1 of the coarsest dtype."""
    return max(float(np.finfo(array.dtype).eps) for array in arrays if array.dtype.kind in "fc")


def make_calls(op, dtype):
    """Fresh calls of `op` as the table has it now."""
    return [
        Call(op, sample.arrays, sample.attributes, sample.layout, number)
        for number, sample in enumerate(samples(op.kind, CODES[dtype]))
    ]


@cache
def calls(kind, dtype):
    """The calls of an op, shared by all laws with the pairs made of them."""
    return make_calls(OPS[kind], dtype)


@cache
def cases(law):
    """The (op, dtype) that `law` runs over."""
    every = [(OPS[kind], dtype) for kind in KINDS for dtype in LAWS[law]]
    return [case for case in every if reason(law, *case) is None]


def pytest_generate_tests(metafunc):
    if metafunc.function.__name__ in LAWS:
        found = cases(metafunc.function.__name__)
        ids = [f"{op.kind}-{dtype}" for op, dtype in found]
        metafunc.parametrize(("op", "dtype"), found, ids=ids)


@pytest.fixture
def over(op, dtype):
    """Run a law over all calls; it returns how much it compared, in every layout some."""

    def run(law):
        covered = set()
        for call in calls(op.kind, dtype):
            try:
                if law(call):
                    covered.add(call.layout)
            except Exception as error:
                error.add_note(repr(call))
                raise
        assert {layout for layout in LAYOUTS if (op.kind, layout) not in ABSENT} == covered

    return run


@pytest.fixture
def fresh_rules(monkeypatch):
    """No rule that was made before, or is made here, is used again."""
    module = importlib.import_module("stagedad.transform.differentiate")
    policies = {policy: {} for policy in module.NAN_POLICIES}
    monkeypatch.setattr(module, "_templates", policies)
    return policies


@pytest.fixture
def laws():
    """What the laws share: modules of tests do not import one another."""
    return Shared


class Shared:
    KINDS = KINDS
    LAWS = LAWS
    FREE = FREE
    MIXED = MIXED
    INEXACT = INEXACT
    Call = Call
    calls = staticmethod(calls)
    make_calls = staticmethod(make_calls)
    captured = staticmethod(captured)
    cases = staticmethod(cases)
    epsilon = staticmethod(epsilon)
    inner = staticmethod(inner)
    size = staticmethod(size)
    reason = staticmethod(reason)
    seeds = staticmethod(seeds)
    result_itself = staticmethod(result_itself)
    results_of = staticmethod(results_of)
    square_of_result = staticmethod(square_of_result)
    widened = staticmethod(widened)
