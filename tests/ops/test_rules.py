"""Laws of the declared derivatives: every op, every sample, by NumPy alone."""

import dataclasses
from itertools import product

import numpy as np
import pytest

from stagedad.errors import NotDifferentiable
from stagedad.ops import OPS, evaluate, infer
from stagedad.ops.builder import Builder
from stagedad.ops.formula import ZERO, bind, jvp, named_cotangents, vjp
from stagedad.ops.samples import samples
from stagedad.types import TensorType

ACTIVE = [op for op in OPS.values() if op.is_differentiable]
DTYPES = ["float64", "complex128"]
CASES = [
    pytest.param(op, dtype, id=f"{op.kind}-{dtype}")
    for op in ACTIVE
    for dtype in DTYPES
    if dtype == "float64" or op.is_complex
]


class Arr:
    """An operand that has a value."""

    def __init__(self, value, tangent=ZERO):
        self.value = np.asarray(value)
        self.type = TensorType.of(self.value)
        self.tangent = tangent


class Compute:
    """Emitter that computes at once, and checks that types are inferred rightly."""

    def emit(self, kind, operands, attributes):
        results = evaluate(kind, [operand.value for operand in operands], attributes)
        types = infer(kind, [operand.type for operand in operands], attributes)
        assert types == tuple(TensorType.of(result) for result in results)
        made = tuple(map(Arr, results))
        return made if len(made) > 1 else made[0]


def several(found):
    """The results of an op, or their tangents, as a tuple."""
    return found if isinstance(found, tuple) else (found,)


class Dual(Compute):
    """Emitter that carries tangents: forward mode."""

    def emit(self, kind, operands, attributes):
        op, result = OPS[kind], super().emit(kind, operands, attributes)
        results = several(result)
        env = bind(op, operands, attributes, results, **tangents_of(op, operands))
        tangent = jvp(op, env, Compute())
        if tangent is not ZERO:
            for each, moved in zip(results, several(tangent), strict=True):
                each.tangent = moved
        return result


class Tape(Compute):
    """Emitter that records: reverse mode."""

    def __init__(self):
        self.nodes = []

    def emit(self, kind, operands, attributes):
        result = super().emit(kind, operands, attributes)
        self.nodes.append((OPS[kind], operands, attributes, several(result)))
        return result

    def backward(self, output, seed):
        """Cotangents by operand, of all that `output` was made from."""
        found = {output: seed}
        for op, operands, attributes, results in reversed(self.nodes):
            g = [found.get(result, ZERO) for result in results]
            env = bind(op, operands, attributes, results, **named_cotangents(op, g))
            for number, argument in enumerate(op.arguments):
                if argument.rule.startswith("no") or all(part is ZERO for part in g):
                    continue
                cotangent = vjp(op, argument.name, env, Compute())
                targets = operands[number:] if argument.is_list else [operands[number]]
                parts = cotangent if argument.is_list else (cotangent,)
                for target, part in zip(targets, parts, strict=True):
                    if part is not ZERO:
                        old = found.get(target)
                        found[target] = Arr(part.value + old.value) if old else part
        return found


def tangents_of(op, operands):
    """Tangents of `operands` under the names that jvps use."""
    result = {}
    for number, argument in enumerate(op.arguments):
        parts = tuple(operand.tangent for operand in operands[number:])
        result[f"{argument.name}_t"] = parts if argument.is_list else parts[0]
    return result


def normal(random, like):
    """Random numbers of the shape and dtype of `like`."""
    values = random.standard_normal(like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * random.standard_normal(like.shape)
    return values.astype(like.dtype)


def inner(left, right):
    """Re <left, right>, in double precision."""
    wide = np.result_type(left.dtype, right.dtype, np.float64)
    return np.vdot(left.astype(wide), right.astype(wide)).real


def total(lefts, rights):
    """The sum of the inner products of the results of an op with others."""
    return sum(inner(left, right) for left, right in zip(lefts, rights, strict=True))


def rtol(*arrays):
    """What rounding and differencing leave, from the narrowest dtype."""
    coarsest = max(np.finfo(array.dtype).eps for array in arrays if array.dtype.kind in "fc")
    return max(2e-6, 30 * float(coarsest))


def places(op, arrays):
    """(position, argument) of every operand that carries a cotangent."""
    for number, array in enumerate(arrays):
        argument = op.arguments[min(number, len(op.arguments) - 1)]
        if argument.rule == "formula" and array.dtype.kind in "fc":
            yield number, argument


def cotangent(op, operands, attributes, number, argument, g, emitter, masked=True):
    """The cotangent of operand `number`, computed by `emitter`; `g` has one a result."""
    results = several(emitter.emit(op.kind, tuple(operands), attributes))
    env = bind(op, operands, attributes, results, **named_cotangents(op, several(g)))
    if not argument.is_list:
        return vjp(op, argument.name, env, emitter, masked)
    start = op.arguments.index(argument)
    wanted = [at == number - start for at in range(len(operands) - start)]
    parts = vjp(op, argument.name, env, emitter, masked, wanted)
    assert all(part is ZERO for part, here in zip(parts, wanted, strict=True) if not here)
    return parts[number - start]


def moved(arrays, number, direction, step):
    """`arrays` with operand `number` moved along `direction`."""
    result = list(arrays)
    result[number] = (arrays[number] + step * direction).astype(arrays[number].dtype)
    return result


def check_vjp(op, sample, random):
    """<u, J v> by central differences is <J'u, v>, operand by operand."""
    arrays, attributes = sample.arrays, sample.attributes
    results = evaluate(op.kind, arrays, attributes)
    if results[0].dtype.kind not in "fc":
        return
    u = [normal(random, result) for result in results]
    step = 0.5 if "linear" in op.traits else 1e-6
    for number, argument in places(op, arrays):
        operands, g = list(map(Arr, arrays)), tuple(map(Arr, u))
        found = cotangent(op, operands, attributes, number, argument, g, Compute())
        if found is ZERO:
            found = Arr(np.zeros_like(arrays[number]))
        assert found.type is TensorType.of(arrays[number])
        for _ in range(3):
            v = normal(random, arrays[number])
            sides = (
                evaluate(op.kind, moved(arrays, number, v, by), attributes)
                for by in (step, -step)
            )
            slopes = [(high - low) / (2 * step) for high, low in zip(*sides, strict=True)]
            tolerance = rtol(*u, arrays[number])
            np.testing.assert_allclose(
                inner(found.value, v), total(u, slopes), rtol=tolerance, atol=10 * tolerance
            )


def check_jvp(op, sample, random):
    """<u, J v> by the forward rule is <J'u, v>, each operand alone and all together."""
    arrays, attributes = sample.arrays, sample.attributes
    results = tuple(map(Arr, evaluate(op.kind, arrays, attributes)))
    if results[0].value.dtype.kind not in "fc":
        return
    u = tuple(Arr(normal(random, result.value)) for result in results)
    moving = dict(places(op, arrays))
    for some in [*({number} for number in moving), set(moving)]:
        operands = [
            Arr(array, Arr(normal(random, array)) if number in some else ZERO)
            for number, array in enumerate(arrays)
        ]
        env = bind(op, operands, attributes, results, **tangents_of(op, operands))
        forward = jvp(op, env, Compute())
        forward = tuple(
            Arr(np.zeros_like(result.value)) if moved is ZERO else moved
            for moved, result in zip(
                (ZERO,) * len(results) if forward is ZERO else several(forward),
                results,
                strict=True,
            )
        )
        assert [each.type for each in forward] == [result.type for result in results]
        reverse = 0.0
        for number in some:
            g = cotangent(op, operands, attributes, number, moving[number], u, Compute())
            if g is not ZERO:
                reverse += inner(g.value, operands[number].tangent.value)
        tolerance = rtol(*(each.value for each in (*u, *results)), *arrays)
        ahead = total([each.value for each in u], [each.value for each in forward])
        np.testing.assert_allclose(ahead, reverse, rtol=tolerance, atol=10 * tolerance)


def check_second(op, sample, random):
    """The vjp itself: its tangent by differences, and its own vjp by adjointness."""
    arrays, attributes = sample.arrays, sample.attributes
    results = evaluate(op.kind, arrays, attributes)
    if results[0].dtype.kind not in "fc" or rtol(*results, *arrays) > 2e-6:
        return
    inputs = [*arrays, *(normal(random, result) for result in results)]
    active = [*dict(places(op, arrays)), *range(len(arrays), len(inputs))]
    for number, argument in places(op, arrays):

        def first(operands, emitter, number=number, argument=argument):
            primals, g = operands[: len(arrays)], tuple(operands[len(arrays) :])
            return cotangent(op, primals, attributes, number, argument, g, emitter)

        directions = {at: normal(random, inputs[at]) for at in active}
        duals = [
            Arr(value, Arr(directions[at]) if at in directions else ZERO)
            for at, value in enumerate(inputs)
        ]
        out = first(duals, Dual())
        if out is ZERO:
            continue
        tangent = np.zeros_like(out.value) if out.tangent is ZERO else out.tangent.value
        high, low = (
            first(
                [
                    Arr(x + by * directions[at] if at in directions else x)
                    for at, x in enumerate(inputs)
                ],
                Compute(),
            )
            for by in (1e-6, -1e-6)
        )
        np.testing.assert_allclose(
            tangent, (high.value - low.value) / 2e-6, rtol=1e-4, atol=1e-4
        )

        tape, operands = Tape(), list(map(Arr, inputs))
        out = first(operands, tape)
        w = normal(random, out.value)
        found = tape.backward(out, Arr(w))
        reverse = sum(
            inner(found[operands[at]].value, directions[at])
            for at in active
            if operands[at] in found
        )
        np.testing.assert_allclose(inner(w, tangent), reverse, rtol=1e-6, atol=1e-6)


LAWS = [check_vjp, check_jvp, check_second]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_laws_hold(op, dtype, law):
    if op.kind == "hermitian" and law is not check_jvp:
        pytest.skip("its derivative is that among Hermitian matrices: test_linalg.py")
    found = samples(op.kind, dtype)
    assert len(found) >= 8
    for number, sample in enumerate(found):
        law(op, sample, np.random.default_rng(number))


# What vjp itself may add to a formula.
WRAPPING = {"sum_to", "conj", "real", "astype", "constant", "mul", "mul0", "neg", "zeros_like"}


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_formulas_emit_what_they_are_said_to_use(op, dtype):
    for sample in samples(op.kind, dtype):
        arrays = list(map(Arr, sample.arrays))
        for number, argument in places(op, sample.arrays):
            tape = Tape()
            results = evaluate(op.kind, sample.arrays, sample.attributes)
            if results[0].dtype.kind in "fc":
                g = tuple(map(Arr, results))
                cotangent(op, arrays, sample.attributes, number, argument, g, tape)
            formula = op.partials.get(argument.name) or op.vjps[argument.name]
            assert {node[0].kind for node in tape.nodes[1:]} <= formula.uses | WRAPPING


LISTS = [op for op in ACTIVE if not op.has_one_result]


@pytest.mark.parametrize("op", LISTS, ids=lambda op: op.kind)
def test_absent_cotangents_count_as_zeros(op):
    for sample in samples(op.kind, "float64"):
        operands = list(map(Arr, sample.arrays))
        results = evaluate(op.kind, sample.arrays, sample.attributes)
        for present in product((False, True), repeat=len(results)):
            pairs = [*zip(results, present, strict=True)]
            some = tuple(Arr(each) if here else ZERO for each, here in pairs)
            filled = tuple(Arr(each if here else np.zeros_like(each)) for each, here in pairs)
            for number, argument in places(op, sample.arrays):
                found, wanted = (
                    cotangent(op, operands, sample.attributes, number, argument, g, Compute())
                    for g in (some, filled)
                )
                if found is ZERO:  # as of the sign of a real determinant
                    assert wanted is ZERO or not np.any(wanted.value)
                    assert not all(present)
                else:
                    assert any(present)
                    assert found.type is wanted.type
                    np.testing.assert_array_equal(found.value, wanted.value)


@pytest.mark.parametrize("op", ACTIVE, ids=lambda op: op.kind)
def test_float32_stays_float32(op):
    for sample in samples(op.kind, "float32"):
        check_jvp(op, sample, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("op", "point"),
    [
        pytest.param(op, point, id=f"{op.kind}-{number}")
        for op in OPS.values()
        for number, point in enumerate(op.points)
    ],
)
def test_points_are_as_declared(op, point):
    operands = [Arr(np.array(point["at"][argument.name])) for argument in op.arguments]
    attributes = point.get("attributes", {})
    result = evaluate(op.kind, [operand.value for operand in operands], attributes)[0]
    g = Arr(np.full_like(result, point.get("cotangent", 1.0)))
    for number, argument in enumerate(op.arguments):
        if argument.rule == "not_implemented":
            continue
        found = cotangent(op, operands, attributes, number, argument, g, Compute())
        value = 0.0 if found is ZERO else found.value
        expected = np.broadcast_to(
            point["gradient"][argument.name], operands[number].value.shape
        )
        np.testing.assert_array_equal(np.broadcast_to(value, expected.shape), expected)


@pytest.mark.parametrize(
    ("kind", "on"),
    [("arcsin", "real"), ("arccos", "real"), ("arccosh", "real"), ("arctanh", "real"),
     ("log", "real"), ("log1p", "real"), ("log2", "real"), ("log10", "real"), ("sqrt", "real"),
     ("arctan", "imaginary"), ("arcsinh", "imaginary")],
)  # fmt: skip
def test_derivatives_on_a_branch_cut_are_those_of_the_side_that_the_zero_names(kind, on):
    """NumPy's values are: arcsin(2 + 0j) is the limit from above, arcsin(2 - 0j) from below."""
    op = OPS[kind]
    for size, zero in product((-3.0, -1.5, -0.5, 0.5, 2.0), (0.0, -0.0)):
        beside = np.copysign(1e-9, zero)
        at, near = (
            complex(size, part) if on == "real" else complex(part, size)
            for part in (zero, beside)
        )
        found, wanted = (
            cotangent(op, [Arr(np.array(z))], {}, 0, op.arguments[0], Arr(1 + 0j), Compute())
            for z in (at, near)
        )
        np.testing.assert_allclose(found.value, wanted.value, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_infinities_tie_and_nan_makes_both_partials_nan(kind):
    """HIPS, JAX and PyTorch share ties of infinities too; their difference is no number."""
    op = OPS[kind]
    for at, wanted in (
        ((np.inf, np.inf), (0.5, 0.5)),
        ((-np.inf, -np.inf), (0.5, 0.5)),
        ((np.inf, -np.inf), (1, 0) if kind == "maximum" else (0, 1)),
        ((-np.inf, 3.0), (0, 1) if kind == "maximum" else (1, 0)),
        ((np.nan, 3.0), (np.nan, np.nan)),
        ((np.inf, np.nan), (np.nan, np.nan)),
    ):
        operands = list(map(Arr, at))
        for number, argument in enumerate(op.arguments):
            found = cotangent(op, operands, {}, number, argument, Arr(2.0), Compute())
            np.testing.assert_array_equal(found.value, 2 * np.asarray(wanted[number]))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [((1, 3, 1), {"axis": (0, 2)}), ((1, 1), {}), ((2, 3), {"axis": ()}), ((), {})],
)
def test_an_element_alone_is_its_extremum_whatever_it_is(kind, shape, attributes):
    op = OPS[kind]
    x = np.full(shape, 2.0)
    x.flat[:2] = np.nan, np.inf
    result = evaluate(kind, [x], attributes)[0]
    g = np.random.default_rng(0).standard_normal(result.shape)
    argument = op.arguments[0]
    found = cotangent(op, [Arr(x)], attributes, 0, argument, Arr(g), Compute())
    np.testing.assert_array_equal(found.value, g.reshape(shape))
    moved = np.random.default_rng(1).standard_normal(shape)
    env = bind(op, [Arr(x)], attributes, [Arr(result)], self_t=Arr(moved))
    tangent = jvp(op, env, Compute())
    np.testing.assert_array_equal(tangent.value, moved.reshape(result.shape))


@pytest.mark.parametrize(
    ("kind", "at"),
    [("div", (0.0, 0.0)), ("log", (0.0,)), ("log1p", (-1.0,)), ("sqrt", (0.0,)),
     ("pow", (0.0, 0.5)), ("exp", (1e3,)), ("expm1", (1e3,)), ("arcsin", (1.0,)),
     ("arccos", (-1.0,)), ("arccosh", (1.0,)), ("arctanh", (1.0,)), ("exp2", (2e3,)),
     ("log2", (0.0,)), ("log10", (0.0,)), ("cbrt", (0.0,)), ("reciprocal", (0.0,)),
     ("sinh", (1e3,)), ("cosh", (1e3,)), ("float_power", (0.0, 0.5))],
)  # fmt: skip
def test_zero_cotangents_pass_infinite_partials_unless_strict(kind, at):
    op, operands, g = OPS[kind], list(map(Arr, at)), Arr(0.0)
    argument = op.arguments[0]
    assert cotangent(op, operands, {}, 0, argument, g, Compute()).value == 0
    strict = cotangent(op, operands, {}, 0, argument, g, Compute(), masked=False)
    assert np.isnan(strict.value)


def test_masked_tangents_pass_infinite_partials_too():
    op, x = OPS["sqrt"], Arr(0.0)
    env = bind(op, [x], {}, [Arr(0.0)], self_t=Arr(0.0))
    assert jvp(op, env, Compute()).value == 0
    assert np.isnan(jvp(op, env, Compute(), masked=False).value)


def test_power_of_zero_has_no_slope_in_the_exponent():
    """HIPS#149: d/dy 0**y at y = 1 was NaN, with a warning of division by zero."""
    op = OPS["pow"]
    for exponent in (0.0, 1.0, 2.5):
        operands = [Arr(0.0), Arr(exponent)]
        assert cotangent(op, operands, {}, 1, op.arguments[1], Arr(1.0), Compute()).value == 0


@pytest.mark.parametrize("kind", ["maximum", "max", "sign"])
def test_refuses_what_was_not_checked_for_complex(kind):
    op, z = OPS[kind], Arr(np.array([1 + 2j, 2 - 1j]))
    operands = [z] * len(op.arguments)
    result = Arr(evaluate(kind, [z.value] * len(op.arguments), {})[0])
    with pytest.raises(NotDifferentiable, match=f"^{kind}: no derivative at complex"):
        vjp(op, "self", bind(op, operands, {}, [result], g=result), Compute())


def caught(law, op, dtype):
    """Whether `law` fails on some sample of `op`."""
    for sample in samples(op.kind, dtype):
        try:
            law(op, sample, np.random.default_rng(0))
        except (AssertionError, ValueError):
            return True
    return False


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("kind", ["add", "mul", "div", "pow", "maximum"])
def test_nothing_is_caught_where_nothing_is_wrong(kind, law):
    assert not caught(law, OPS[kind], "float64")


@pytest.mark.parametrize(
    "kind",
    ["sub", "mul", "div", "pow", "maximum", "minimum", "arctan2", "hypot", "logaddexp",
     "logaddexp2", "fmod", "remainder", "fmax", "fmin", "float_power"],
)  # fmt: skip
def test_swapped_partials_are_caught(kind):
    op = OPS[kind]
    swapped = {"self": op.partials["other"], "other": op.partials["self"]}
    faulty = dataclasses.replace(op, partials=swapped)
    assert caught(check_vjp, faulty, "float64")


@pytest.mark.parametrize(
    "op", [op for op in ACTIVE if "exp" in op.kind], ids=lambda op: op.kind
)
def test_wrong_partial_is_caught(op):
    wrong = OPS["square"].partials["self"]
    assert caught(check_vjp, dataclasses.replace(op, partials={"self": wrong}), "float64")


@pytest.mark.parametrize(
    "kind",
    ["mul", "div", "pow", "exp", "log", "sqrt", "tanh", "sin", "square", "matmul", "mul0",
     "tan", "arcsin", "arctan", "arccosh", "log2", "reciprocal", "sinc", "prod", "cumprod",
     "recurrence", "convolve"],
)  # fmt: skip
def test_lost_conj_is_caught(kind, monkeypatch):
    monkeypatch.setattr(Builder, "conj", lambda _, value: value)
    for law in (check_vjp, check_jvp):
        assert caught(law, OPS[kind], "complex128")
        assert not caught(law, OPS[kind], "float64")


@pytest.mark.parametrize(
    "kind",
    ["add", "sub", "mul", "div", "pow", "maximum", "where", "matmul", "arctan2", "ldexp",
     "fmax", "remainder", "nextafter"],
)  # fmt: skip
def test_missing_sum_to_is_caught(kind, monkeypatch):
    monkeypatch.setattr(Builder, "sum_to", lambda _, value, *_rest: value)
    for law in (check_vjp, check_jvp):
        assert caught(law, OPS[kind], "float64")


def test_missing_cast_is_caught(monkeypatch):
    monkeypatch.setattr(Builder, "astype", lambda _, value, *_rest: value)
    assert caught(check_vjp, OPS["astype"], "float64")


@pytest.mark.parametrize(
    "kind",
    ["max", "mean", "matmul", "where", "mul0", "slice", "take", "prod", "cumsum", "cumprod",
     "recurrence", "convolve", "sort", "take_along_axis", "logsumexp", "ldexp"],
)  # fmt: skip
def test_wrong_forward_rule_is_caught(kind, monkeypatch):
    right = jvp

    def doubled(op, env, emitter, masked=True):
        found = right(op, env, emitter, masked)
        return found if found is ZERO else Arr(2 * found.value)

    monkeypatch.setitem(check_jvp.__globals__, "jvp", doubled)
    assert caught(check_jvp, OPS[kind], "float64")
