"""Laws of first order: df is the adjoint of f's differences, whatever part of it is wanted."""

import dataclasses
from itertools import chain, compress, product
from pathlib import Path

import numpy as np
import pytest

from stagedad.errors import NotDifferentiable, StagedadError
from stagedad.ir import Graph
from stagedad.ops import OPS, build
from stagedad.ops.builder import Builder
from stagedad.ops.loader import load
from stagedad.ops.table import make_op
from stagedad.run import compile
from stagedad.transform import differentiate, tangent
from stagedad.types import TensorType


def wide_twin(laws, call):
    """The same call in double precision."""
    arrays = [laws.widened(array) for array in call.arrays]
    return laws.Call(call.op, arrays, call.attributes, call.layout)


def check_first(laws, call, gradient="gradient"):
    """Check df of the op alone, or followed by a square; in double precision or against it."""
    if not call.carries:
        # Nothing comes in, so zeros go out.
        found = call.pull(call.gradient, {})
        assert not any(array.any() for array in found.values())
        return len(found)
    wide = None
    if any(array.dtype.char in "efF" for array in call.arrays):
        twin = wide_twin(laws, call)
        wide = getattr(twin, gradient), twin.arrays
    return call.check(getattr(call, gradient), wide=wide)


def test_cotangents_agree_with_differences(over, laws):
    over(lambda call: check_first(laws, call))


def test_cotangents_of_temporaries_agree_with_differences(over, laws):
    def law(call):
        if call.carries and call.op.is_differentiable and any(call.flags):
            gradient = call.squared_gradient
            results = len(call.graph.outputs)
            assert len(gradient.f.outputs) == 2 * results
            slots = set(gradient.df_input_vjps)
            assert slots in (set(range(2 * results)), set())
        return check_first(laws, call, "squared_gradient")

    over(law)


def check_tangent(laws, call):
    """<u, J v> by the forward program is <J' u, v> by df, all inputs moved at once."""
    count = 0
    for graph in (call.graph, call.squared):
        forward = tangent(graph, call.flags)
        forward.verify()
        v = [call.normal(x) for x, flag in zip(call.arrays, call.flags, strict=True) if flag]
        u = laws.seeds(call, graph.outputs)
        outputs = compile(forward)(*call.arrays, *v)
        values, moved = np.split(np.arange(len(outputs)), [len(graph.outputs)])
        wanted = compile(graph)(*call.arrays)
        for j in values:
            # Loops differ by memory layout.
            tolerance = 32 * laws.epsilon(wanted[j]) if j in u else 0
            np.testing.assert_allclose(outputs[j], wanted[j], rtol=tolerance, atol=tolerance)
        pulled = call.pull(differentiate(graph, call.flags), u).values()
        ahead = [outputs[k] for k in moved]
        assert [each.dtype for each in ahead] == [each.dtype for each in u.values()]
        left, right = (
            sum(map(laws.inner, *pair)) for pair in ((u.values(), ahead), (pulled, v))
        )
        scale = max(1.0, *(sum(map(laws.size, *p)) for p in ((u.values(), ahead), (pulled, v))))
        narrowest = laws.epsilon(*call.arrays, *u.values())
        np.testing.assert_allclose(left, right, rtol=0, atol=64 * narrowest * scale)
        count += 1
    return count


def test_tangents_are_the_transpose_of_cotangents(over, laws):
    over(lambda call: check_tangent(laws, call) if call.carries else 1)


def check_parts(laws, call):
    """df of the op as a function of real and imaginary parts: the parts of the cotangent."""
    graph = Graph()
    inputs, parts, points = [], {}, []
    for i, array in enumerate(call.arrays):
        if array.dtype.kind != "c":
            points.append(array)
            inputs.append(graph.add_input(TensorType.of(array)))
            continue
        points += [array.real.copy(), array.imag.copy()]
        real, imag = (graph.add_input(TensorType.of(part)) for part in points[-2:])
        parts[i] = len(points) - 2
        turn = graph.insert("constant", value=1j)
        inputs.append(graph.insert("add", real, graph.insert("mul", imag, turn)))
    results = laws.results_of(graph.insert(call.op.kind, *inputs, **call.attributes))
    u = laws.seeds(call, results)
    seeds = []
    for each, result in zip(u.values(), results, strict=True):
        for kind in ("real", "imag") if each.dtype.kind == "c" else ("real",):
            seeds.append(getattr(each, kind))
            graph.register_output(graph.insert(kind, result))
    flags = [array.dtype.kind == "f" for array in points]
    found = call.pull(differentiate(graph, flags), dict(enumerate(seeds)), points)
    wanted = call.pull(call.gradient, u)
    for i, at in parts.items():
        cotangent = found[at] + 1j * found[at + 1]
        scale = max(1.0, float(np.max(np.abs(wanted[i]), initial=0)))
        np.testing.assert_allclose(cotangent, wanted[i], rtol=1e-12, atol=1e-12 * scale)
    return len(parts)


def test_complex_cotangents_are_those_of_the_parts(over, laws):
    over(lambda call: check_parts(laws, call) if call.carries else 1)


def mixed(laws, call, dtype):
    """`call` with one operand after the other narrowed: float32 beside float64 and such."""
    for at in [number for number, flag in enumerate(call.flags) if flag]:
        arrays = list(call.arrays)
        arrays[at] = arrays[at].real.astype(laws.MIXED[dtype])
        one = laws.Call(call.op, arrays, call.attributes, call.layout)
        if one.graph.outputs[0].type is call.graph.outputs[0].type:  # not all is narrow
            yield one


def test_mixed_operands_agree_with_differences(over, laws, dtype):
    over(lambda call: 1 + sum(check_first(laws, one) for one in mixed(laws, call, dtype)))


def test_mixed_operands_lose_no_precision(over, laws, dtype):
    def law(call):
        for one in mixed(laws, call, dtype):
            u = laws.seeds(one, one.graph.outputs)
            wanted = wide_twin(laws, one).pull(wide_twin(laws, one).gradient, u)
            for i, array in one.pull(one.gradient, u).items():
                if array.dtype == wanted[i].dtype:
                    tolerance = 64 * laws.epsilon(array)
                    np.testing.assert_allclose(array, wanted[i], rtol=tolerance, atol=tolerance)
        return 1

    over(law)


def test_every_subset_of_gradients_gives_the_same(over, laws):
    def law(call):
        if not call.carries:
            return 1
        for graph in (call.graph, call.squared):
            u = laws.seeds(call, graph.outputs)
            wanted = call.pull(differentiate(graph, call.flags), u)
            choices = [(False, True) if flag else (False,) for flag in call.flags]
            for flags in product(*choices):
                found = call.pull(differentiate(graph, flags), u)
                assert list(found) == [i for i, flag in enumerate(flags) if flag]
                for i, array in found.items():
                    np.testing.assert_array_equal(array, wanted[i])
        return 1

    over(law)


def test_every_subset_of_cotangents_gives_the_same(over, laws):
    def law(call):
        if not call.carries:
            return 1
        first = call.flags.index(True)
        tails = [
            laws.result_itself,
            laws.square_of_result,
            lambda graph, inputs, _: graph.insert("neg", inputs[first]),
        ]
        graph = call.build(*tails)
        full = differentiate(graph, call.flags)
        u = laws.seeds(call, graph.outputs)
        count = len(call.graph.outputs)
        # The results of the op one by one, what follows them together.
        groups = [*([j] for j in range(count)), *np.arange(count, 3 * count).reshape(2, -1)]
        for some in product((False, True), repeat=len(groups)):
            chosen = [int(j) for j in chain(*compress(groups, some))]
            # Zeros for what is absent; or a program that never had it.
            wanted = call.pull(full, {j: u[j] for j in chosen})
            part = differentiate(call.build(*tails, chosen=chosen), call.flags)
            found = call.pull(part, {k: u[j] for k, j in enumerate(chosen)})
            assert list(found) == list(wanted)
            for i, array in found.items():
                np.testing.assert_allclose(
                    array, wanted[i], rtol=16 * laws.epsilon(array), atol=0
                )
        return 1

    over(law)


def test_the_check_of_a_gradient_passes(over):
    def law(call):
        found = call.squared_gradient.check(*call.arrays)
        sizes = [
            array.size for array, flag in zip(call.arrays, call.flags, strict=True) if flag
        ]
        assert (found.differences > 0) == any(sizes)
        return 1

    over(law)


REAL = [
    op
    for op in OPS.values()
    if not op.is_complex and any(each.rule != "not_implemented" for each in op.arguments)
]


@pytest.mark.parametrize("op", REAL, ids=lambda op: op.kind)
def test_complex_operands_are_refused(op, laws):
    for call in laws.calls(op.kind, "c128"):
        with pytest.raises(NotDifferentiable, match="no derivative at complex"):
            differentiate(call.graph, call.flags)


# Planted faults: the law is worth something only if it finds them.


def caught(laws, kind, dtype="f64"):
    """Whether the law of first order fails on some call of the op."""
    for call in laws.make_calls(OPS[kind], dtype):
        try:
            check_first(laws, call)
            check_first(laws, call, "squared_gradient")
        except (AssertionError, StagedadError):
            return True
    return False


BINARY = ["sub", "mul", "div", "pow", "maximum", "minimum"]


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("kind", ["add", *BINARY, "matmul", "where"])
def test_nothing_is_caught_where_nothing_is_wrong(kind, laws):
    assert not caught(laws, kind)


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("kind", BINARY)
def test_swapped_partials_are_caught(kind, laws, monkeypatch):
    op = OPS[kind]
    swapped = {"self": op.partials["other"], "other": op.partials["self"]}
    monkeypatch.setitem(OPS, kind, dataclasses.replace(op, partials=swapped))
    assert caught(laws, kind)


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("kind", ["mul", "div", "pow", "exp", "log", "sin", "matmul", "mul0"])
def test_lost_conj_is_caught(kind, laws, monkeypatch):
    monkeypatch.setattr(Builder, "conj", lambda _, value: value)
    assert caught(laws, kind, "c128")
    assert not caught(laws, kind, "f64")


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize("kind", ["add", *BINARY, "where", "mul0"])
def test_missing_sum_to_is_caught(kind, laws, monkeypatch):
    monkeypatch.setattr(Builder, "sum_to", lambda _, value, *_rest: value)
    assert caught(laws, kind)


@pytest.mark.usefixtures("fresh_rules")
@pytest.mark.parametrize(("kind", "scale"), [("add", "1"), ("sub", "-1")])
def test_forgotten_alpha_is_caught(kind, scale, laws, monkeypatch):
    op = OPS[kind]
    one = OPS["add" if scale == "1" else "neg"].partials["self"]
    forgetful = {**op.partials, "other": one}
    monkeypatch.setitem(OPS, kind, dataclasses.replace(op, partials=forgetful))
    assert caught(laws, kind)


@pytest.mark.parametrize("kind", ["exp", "mul", "sum", "matmul"])
def test_lost_cotangent_of_a_temporary_is_caught(kind, laws):
    for call in laws.make_calls(OPS[kind], "f64"):
        if call.layout == "strided":
            gradient = call.squared_gradient
            slot = gradient.df.inputs[len(gradient.df_input_captures) + 1]
            zero = gradient.df.insert("zeros_like", slot)
            zero.node.move_before(next(gradient.df.nodes()))
            slot.replace_all_uses_with(zero, except_=zero.node)
            with pytest.raises(AssertionError):
                call.check(gradient)


def check_point(laws, op, point):
    """The gradient that an op declares at a tie or singular point, by df and by tangents."""
    arrays = [np.array(point["at"][argument.name]) for argument in op.arguments]
    call = laws.Call(op, arrays, point.get("attributes", {}), "plain")
    (result,) = compile(call.graph)(*arrays)
    given = point.get("cotangent", 1.0)
    pulled = call.pull(call.gradient, {0: np.full_like(result, given)})
    forward = compile(tangent(call.graph, call.flags))
    still = [np.zeros_like(array) for array in arrays]
    for i, argument in enumerate(op.arguments):
        if argument.rule == "not_implemented":
            continue
        wanted = np.broadcast_to(point["gradient"][argument.name], arrays[i].shape)
        np.testing.assert_array_equal(pulled[i], wanted)
        for at in np.ndindex(arrays[i].shape if given else (0,)):
            ways = [way.copy() for way in still]
            ways[i][at] = 1
            moving = [way for way, flag in zip(ways, call.flags, strict=True) if flag]
            moved = forward(*arrays, *moving)[1]
            assert np.sum(given * moved) == wanted[at]


@pytest.mark.parametrize(
    ("op", "point"),
    [
        pytest.param(op, point, id=f"{op.kind}-{number}")
        for op in OPS.values()
        for number, point in enumerate(op.points)
    ],
)
def test_points_are_as_declared(op, point, laws):
    check_point(laws, op, point)


# Faults as they happen, each an edit of a declaration: (law, dtype), kind, old text, new text.
FIRST, TANGENT, POINT = ("cotangents", "f64"), ("tangents", "f64"), ("points", "f64")
COMPLEX = ("cotangents", "c128")
PLANTED = {
    "wrong sign": [
        (FIRST, "cos", '"-sin(self)"', '"sin(self)"'),
        (FIRST, "sub", '"-alpha"', '"alpha"'),
        (FIRST, "div", '"-result / other"', '"result / other"'),
        (FIRST, "arccos", '"-1 / sqrt', '"1 / sqrt'),
        (FIRST, "remainder", '"-floor_divide', '"floor_divide'),
        (FIRST, "arctan2", '"-over_length(', '"over_length('),
        (FIRST, "sinc", "order + 1)", "order + 1) * -1"),
        (TANGENT, "matmul", "other) + matmul", "other) - matmul"),
        (TANGENT, "convolve", "other) + convolve", "other) - convolve"),
    ],
    "lost factor": [
        (FIRST, "square", "2 * self", "self"),
        (FIRST, "sqrt", "0.5 / result", "1 / result"),
        (FIRST, "cbrt", "3 * result", "result"),
        (FIRST, "log10", "0.4342944819032518 / self", "1 / self"),
        (FIRST, "tanh", "1 - result * result", "1 - result"),
        (FIRST, "pow", "mul0(other, self ** (other - 1))", "self ** (other - 1)"),
        (FIRST, "hypot", '"over(other, result)"', '"other"'),
        (FIRST, "mean", "g / reduced_count(self.shape, g, axis, keepdims)", "g"),
        (FIRST, "logsumexp",
         "keepdims) * share_of_exponentials(self, result, axis, keepdims)\"\njvp",
         "keepdims)\"\njvp"),
        (FIRST, "cumprod", " * conj(product_before(result, axis))", ""),
        (TANGENT, "prod", "self_t * product_of_others(self, axis)", "self_t"),
        (TANGENT, "max", "self_t * ties(self, result, axis, keepdims)", "self_t"),
    ],
    "lost conj": [
        (COMPLEX, "convolve", "conj(other)", "other"),
        (COMPLEX, "convolve_valid", "conj(other)", "other"),
        (COMPLEX, "prod",
         "conj(product_of_others(self, axis))",
         "product_of_others(self, axis)"),
        (COMPLEX, "cumprod", "recurrence(conj(self), g", "recurrence(self, g"),
        (COMPLEX, "conj", 'vjp.self = "conj(g)"', 'vjp.self = "g"'),
    ],
    "missing sum_to": [
        (FIRST, "where",
         'vjp.self = "sum_to(where(condition, g, 0), self.shape)"',
         'vjp.self = "where(condition, g, 0)"'),
        (FIRST, "slice_set",
         '"sum_to(slice(g, start, stop, step), value.shape)"',
         '"slice(g, start, stop, step)"'),
        (FIRST, "broadcast_to", 'vjp.self = "sum_to(g, self.shape)"', 'vjp.self = "g"'),
    ],
    "swapped partials": [
        (FIRST, "where", "where(condition, g, 0)", "where(condition, 0, g)"),
        (FIRST, "logaddexp", "gap(self, other)", "gap(other, self)"),
        (FIRST, "recurrence",
         'vjp.other = "recurrence(conj(self), g, axis, reverse=not reverse)"',
         'vjp.other = "g"'),
        (TANGENT, "where",
         "where(condition, self_t, other_t)",
         "where(condition, other_t, self_t)"),
    ],
    "changed tie rule": [
        (POINT, "maximum",
         'partial.self = "where(equal(self, other), 0.5',
         'partial.self = "where(equal(self, other), 1'),
        (POINT, "minimum",
         '"1 - where(equal(self, other), 0.5',
         '"1 - where(equal(self, other), 1'),
        (POINT, "fmax",
         "chosen(less_equal(self, other), self, other)",
         "heaviside(self - other, 1)"),
        (POINT, "abs", "g * direction(self, result)", "g * copysign(1, self)"),
        (POINT, "relu", "heaviside(self, 0)", "heaviside(self, 1)"),
        (POINT, "hypot", "over(self, result)", "self / result"),
        (POINT, "div", "singular = true", "singular = false"),
        (POINT, "max",
         "to_extremum(g, self, result, axis, keepdims)",
         "add_along_axis(expand_dims(g, 0), expand_dims(argmax(self, -1), 0), self.shape, -1)"),
    ],
    "wrong permutation": [
        (FIRST, "transpose", "transpose(g, inverse_axes(axes))", "transpose(g, axes)"),
        (FIRST, "sort",
         "add_along_axis(g, argsort(self, axis, stable=True), self.shape, axis)",
         "take_along_axis(g, argsort(self, axis, stable=True), axis)"),
        (FIRST, "cumsum", "reverse=not reverse", "reverse=reverse"),
        (FIRST, "convolve",
         '"convolve_valid(g, reversed_vector(conj(self)))"',
         '"convolve_valid(g, conj(self))"'),
        (FIRST, "convolve_valid",
         '"reversed_vector(convolve_valid(conj(self), reversed_vector(g)))"',
         '"convolve_valid(conj(self), reversed_vector(g))"'),
        (FIRST, "reshape", '"reshape(g, self.shape)"', '"reshape(transpose(g), self.shape)"'),
        (TANGENT, "sort",
         "take_along_axis(self_t, argsort(self, axis, stable=True), axis)",
         "sort(self_t, axis)"),
        (TANGENT, "recurrence",
         "recurrence_tangent(self_t, result, axis, reverse), axis, reverse)",
         "recurrence_tangent(self_t, result, axis, reverse), axis)"),
    ],
}  # fmt: skip
EDITS = [(fault, *edit) for fault, edits in PLANTED.items() for edit in edits]


def edited(kind, old, new, folder):
    """The op `kind` as the table has it once `old` is `new` in its declaration."""
    for path in Path(build.DECLARATIONS).glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        head, found, rest = text.partition(f"\n[{kind}]\n")
        entry, *others = rest.partition("\n[")
        if found:
            assert entry.count(old) == 1
            text = head + found + entry.replace(old, new) + "".join(others)
        (folder / path.name).write_text(text, encoding="utf-8")
    return make_op(load(sorted(folder.glob("*.toml")))[kind])


def law_fails(laws, law, op):
    """Whether the law (name, dtype) fails on some call of the op, as the table has it now."""
    name, dtype = law
    if name == "cotangents":
        return caught(laws, op.kind, dtype)
    try:
        if name == "points":
            for point in op.points:
                check_point(laws, op, point)
        else:
            for call in laws.make_calls(op, dtype):
                check_tangent(laws, call)
    except (AssertionError, StagedadError):
        return True
    return False


@pytest.mark.parametrize(
    ("fault", "law", "kind", "old", "new"),
    EDITS,
    ids=[f"{fault}-{kind}".replace(" ", "_") for fault, _, kind, *_ in EDITS],
)
def test_planted_faults_are_caught(
    fault, law, kind, old, new, laws, fresh_rules, monkeypatch, tmp_path
):
    assert not law_fails(laws, law, OPS[kind])
    for rules in fresh_rules.values():
        rules.clear()
    monkeypatch.setitem(OPS, kind, edited(kind, old, new, tmp_path))
    assert law_fails(laws, law, OPS[kind]), fault
