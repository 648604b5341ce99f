"""Second and third derivatives: df differentiated again, connected as its header says.

`pull` is a caller who knows only the fields of Gradient: each call of a pair becomes one node
of a tape, whose backward calls df by its own pair.  The cotangents that df gives for captured
temporaries go into their slots of the first pair, without which the orders above the first are
wrong in silence.
"""

from functools import cache

import numpy as np
import pytest

import stagedad as sd
from stagedad.transform import Capture
from stagedad.types import TensorType


class Variable:
    """An array, and the call that gave it."""

    def __init__(self, value, call=None):
        self.value, self.call = value, call


class Staged:
    """A pair that acts on variables, its backward included."""

    def __init__(self, graph, flags, walk):
        self.gradient, self.walk = sd.differentiate(graph, flags), walk
        self.f = walk(self.gradient.f)
        self._backward = None

    def __call__(self, *inputs):
        """The variables that f gives, temporaries included."""
        return Call(self, inputs).outputs

    @property
    def backward(self):
        if self._backward is None:
            df = self.gradient.df
            flags = [value.type.is_inexact for value in df.inputs]
            self._backward = Staged(df, flags, self.walk)
        return self._backward


class Call:
    count = 0

    def __init__(self, staged, inputs):
        Call.count += 1
        self.number, self.staged, self.inputs = Call.count, staged, inputs
        arrays = [variable.value for variable in inputs]
        self.outputs = [Variable(value, self) for value in staged.f(*arrays)]


@cache
def adder(type_, walk):
    graph = sd.Graph()
    graph.register_output(graph.insert("add", graph.add_input(type_), graph.add_input(type_)))
    return Staged(graph, [True, True], walk)


def pull(cotangents, wanted, walk):
    """The cotangents of the variables `wanted`, given pairs of a variable and its own."""
    found, calls = {}, {}

    def accumulate(variable, cotangent):
        if variable in found:
            add = adder(TensorType.of(cotangent.value), walk)
            cotangent = add(found[variable], cotangent)[0]
        found[variable] = cotangent
        if variable.call is not None:
            calls[variable.call.number] = variable.call

    for variable, cotangent in cotangents:
        accumulate(variable, cotangent)
    while calls:
        call = calls.pop(max(calls))
        gradient = call.staged.gradient
        operands = [
            (call.inputs if kind is Capture.INPUT else call.outputs)[offset]
            for kind, offset in gradient.df_input_captures
        ]
        for j in gradient.df_input_vjps:
            zeros = Variable(np.zeros_like(call.outputs[j].value))
            operands.append(found.get(call.outputs[j], zeros))
        results = call.staged.backward(*operands)
        for i, result in zip(gradient.df_output_vjps, results, strict=False):
            accumulate(call.inputs[i], result)
    return [found.get(variable, Variable(np.zeros_like(variable.value))) for variable in wanted]


def scalars(text, *numbers):
    """The graph of `text` over f64[] values, and its arguments as variables."""
    names = ", ".join(f"%{name} : f64[]" for name in "abc"[: len(numbers)])
    body = text.replace(" = ", " : f64[] = ")
    graph = sd.parse_graph(f"graph({names}) {{\n {body}\n}}")
    return graph, [Variable(np.array(float(x))) for x in numbers]


def partials(text, numbers, orders, walk):
    """The derivative of a function of numbers to one argument after the other."""
    graph, inputs = scalars(text, *numbers)
    value = Staged(graph, [True] * len(inputs), walk)(*inputs)[0]
    for at in orders:
        (value,) = pull([(value, Variable(np.array(1.0)))], [inputs[at]], walk)
    return float(value.value)


PRODUCT = "%t = mul(%a, %b)\n %p = mul(%t, %a)\n %y = add(%p, %b)\n return (%y)"
SQUARE = "%t = add(%a, %b)\n %y = mul(%t, %t)\n return (%y)"
CUBE = "%t = mul(%a, %a)\n %y = mul(%t, %a)\n return (%y)"
QUOTIENT = "%t = tanh(%a)\n %y = div(%t, %b)\n return (%y)"
SINE = "%t = mul(%a, %b)\n %y = sin(%t)\n return (%y)"
THREE = "%t = mul(%a, %b)\n %u = mul(%t, %c)\n %v = exp(%u)\n return (%v)"
T, E = np.tanh(0.5), np.exp(0.3)

# Function, arguments, what it is differentiated to, the derivative.
ANALYTIC = [
    (PRODUCT, (2, 3), "", 15), (PRODUCT, (2, 3), "a", 12), (PRODUCT, (2, 3), "b", 5),
    (PRODUCT, (2, 3), "aa", 6), (PRODUCT, (2, 3), "ab", 4), (PRODUCT, (2, 3), "ba", 4),
    (PRODUCT, (2, 3), "bb", 0), (PRODUCT, (2, 3), "aab", 2), (PRODUCT, (2, 3), "aba", 2),
    (PRODUCT, (2, 3), "baa", 2), (PRODUCT, (2, 3), "aaa", 0), (PRODUCT, (2, 3), "bba", 0),
    (SQUARE, (2, 3), "a", 10), (SQUARE, (2, 3), "aa", 2), (SQUARE, (2, 3), "ab", 2),
    (SQUARE, (2, 3), "bb", 2), (SQUARE, (2, 3), "aab", 0),
    (CUBE, (2,), "a", 12), (CUBE, (2,), "aa", 12), (CUBE, (2,), "aaa", 6),
    (CUBE, (2,), "aaaa", 0),
    (QUOTIENT, (0.5, 2), "aa", -2 * T * (1 - T**2) / 2),
    (QUOTIENT, (0.5, 2), "ab", -(1 - T**2) / 4),
    (QUOTIENT, (0.5, 2), "bb", 2 * T / 8),
    (QUOTIENT, (0.5, 2), "aab", 2 * T * (1 - T**2) / 4),
    (QUOTIENT, (0.5, 2), "bbb", -6 * T / 16),
    (QUOTIENT, (0.5, 2), "aaa", (1 - T**2) * (6 * T**2 - 2) / 2),
    (SINE, (0.5, 0.6), "aa", -0.36 * np.sin(0.3)),
    (SINE, (0.5, 0.6), "ab", np.cos(0.3) - 0.3 * np.sin(0.3)),
    (SINE, (0.5, 0.6), "aab", -1.2 * np.sin(0.3) - 0.18 * np.cos(0.3)),
    (THREE, (0.5, 0.6, 1), "ab", E * (1 + 0.3)),
    (THREE, (0.5, 0.6, 1), "abc", E * (1 + 3 * 0.3 + 0.3**2)),
    (THREE, (0.5, 0.6, 1), "cba", E * (1 + 3 * 0.3 + 0.3**2)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "numbers", "orders", "wanted"), ANALYTIC)
def test_derivatives_of_functions_of_numbers(text, numbers, orders, wanted, walk):
    found = partials(text, numbers, ["abc".index(name) for name in orders], walk)
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_without_the_slot_of_the_temporary_the_second_derivative_is_wrong(walk):
    """That the slots matter: of d2y/da2 = 6 the captured inputs alone give 3."""
    graph, inputs = scalars(PRODUCT, 2, 3)
    staged = Staged(graph, [True, True], walk)
    y, t = staged(*inputs)
    one = Variable(np.array(1.0))
    first, _ = pull([(y, one)], inputs, walk)
    t.call = None
    (second,) = pull([(first, one)], inputs[:1], walk)
    assert second.value == 3


def along(program, at, direction, numbers):
    """The arguments of a program, moved along a direction."""
    return [
        x + numbers * u if flag else x
        for x, u, flag in zip(at, direction, program.flags, strict=True)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_second_and_third_derivatives_of_random_graphs(seed, smooth_program, walk):
    """Along three random directions u, v, w, with random weights of the outputs.

    First order is the dual numbers' own, second a complex step of those, third a difference of
    complex steps.
    """
    program = smooth_program(seed)
    random = np.random.default_rng(seed)

    def direction():
        return [random.standard_normal(x.shape) for x in program.arrays]

    u, v, w = direction(), direction(), direction()
    wanted = [i for i, flag in enumerate(program.flags) if flag]
    inputs = [Variable(x) for x in program.arrays]
    staged = Staged(program.graph(), program.flags, walk)
    outputs = staged(*inputs)[: len(program.returned)]
    weights = [
        random.standard_normal(y.value.shape) * (y.value.dtype.kind == "f") for y in outputs
    ]

    def slope(arrays):
        tangents = [x * flag for x, flag in zip(u, program.flags, strict=True)]
        slopes = program.replay(arrays, tangents)[1]
        return sum((g * s).sum() for g, s in zip(weights, slopes, strict=True))

    def second(arrays):
        return np.imag(slope(along(program, arrays, v, 1e-30j))) * 1e30

    oracle = [
        np.real(slope(program.arrays)),
        second(program.arrays),
        sum(sign * second(along(program, program.arrays, w, sign * 1e-5)) for sign in (1, -1))
        / 2e-5,
    ]
    slots = staged.gradient.df_input_vjps
    seeds = [
        (y, Variable(g))
        for j, (y, g) in enumerate(zip(outputs, weights, strict=True))
        if j in slots
    ]
    for order, (way, tolerance) in enumerate(zip((u, v, w), (1e-9, 1e-9, 1e-5), strict=True)):
        found = pull(seeds, [inputs[i] for i in wanted], walk)
        parts = [g.value * way[i] for g, i in zip(found, wanted, strict=True)]
        for part, i in zip(parts, wanted, strict=True):
            assert part.shape == program.arrays[i].shape
        scale = 1 + sum(np.abs(part).sum() for part in parts)
        total = sum(part.sum() for part in parts)
        assert abs(total - oracle[order]) <= tolerance * scale, (order, total, oracle[order])
        seeds = [(g, Variable(way[i])) for g, i in zip(found, wanted, strict=True)]
