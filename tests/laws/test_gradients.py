"""Laws of first order: df is the adjoint of f's differences, whatever part of it is wanted."""

import dataclasses
import importlib
from itertools import chain, compress, product

import numpy as np
import pytest

from stagedad.errors import NotDifferentiable, StagedadError
from stagedad.ops import OPS
from stagedad.ops.builder import Builder
from stagedad.transform import differentiate


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


@pytest.fixture
def fresh_rules(monkeypatch):
    """No rule that was made before, or is made here, is used again."""
    module = importlib.import_module("stagedad.transform.differentiate")
    policies = {policy: {} for policy in module.NAN_POLICIES}
    monkeypatch.setattr(module, "_templates", policies)


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
