"""Random graphs by the thousand: f against NumPy, each cotangent slot of df by forward mode.

df is right if, for a cotangent g in any one slot, <df(g), direction> = <g, derivative along the
direction of the value that the slot belongs to>, and the same for all slots at once.
"""

import os
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import stagedad as sd
from stagedad.errors import NotDifferentiable
from stagedad.transform import Capture
from stagedad.types import TensorType

COUNT = 1000 * (10 if os.environ.get("STAGEDAD_SOAK") else 1)  # of graphs a chunk


def numbers_in_f(program, walk):
    """Which value of the program each value of f is: f has the nodes that are not dead."""
    first, alive, living = len(program.arrays), set(program.returned), []
    ends = np.cumsum([first, *(count for *_, count in program.steps)]).tolist()
    for at in reversed(range(len(program.steps))):
        results = range(ends[at], ends[at + 1])
        if alive.intersection(results):
            alive.update(program.steps[at][1])
            living.append((program.steps[at][0], results))
    assert [kind for kind, *_ in walk.steps] == [kind for kind, _ in reversed(living)]
    numbers = [*range(first)]
    for _, results in reversed(living):
        numbers += results
    return numbers


def check_fields(program, gradient, walk):
    """The contract of Gradient; gives the program's number of each output of f."""
    f, df, real = gradient.f, gradient.df, gradient.f_real_outputs
    numbers = numbers_in_f(program, walk)
    where = [numbers[i] for i in walk.returned]
    assert real == len(program.returned)
    assert where[:real] == program.returned
    captured = []
    for kind, offset in gradient.df_input_captures:
        assert kind in (Capture.INPUT, Capture.OUTPUT)
        captured.append(offset if kind is Capture.INPUT else where[offset])
    # Inputs first, then what nodes gave, each once; never as an input what is returned, and
    # what is returned twice as the first of the two.
    assert captured == sorted(set(captured))
    for (kind, offset), number in zip(gradient.df_input_captures, captured, strict=True):
        is_input = number < len(program.arrays) and number not in where[:real]
        assert kind is (Capture.INPUT if is_input else Capture.OUTPUT)
        assert kind is Capture.INPUT or where.index(number) == offset
    # Temporaries are the other captures, in order; each of them is needed.
    temporaries = [
        n for n in captured if n >= len(program.arrays) and n not in program.returned
    ]
    assert where[real:] == temporaries
    # What is captured is read; without types, a part of a split may be wanted for its shape
    # alone, which the cotangent that it gets thereby has as well.
    count = len(captured)
    for value, number in zip(df.inputs, captured, strict=False):
        assert value.uses or (not program.typed and number in program.parts)
    # Slots: in the order of f's outputs, for all that have a derivative, for none that is
    # integer or independent of the wanted inputs.
    slots = gradient.df_input_vjps
    assert slots == sorted(set(slots))
    assert {j for j, n in enumerate(where) if program.carries[n]} <= set(slots)
    for j in slots:
        assert program.depends[where[j]]
        known = program.values[where[j]].dtype.kind in "fc"
        assert known or (not program.typed and f.outputs[j].type is None)
    assert gradient.df_output_vjps == [i for i, flag in enumerate(program.flags) if flag]
    assert len(df.inputs) == count + len(slots)
    assert len(df.outputs) == len(gradient.df_output_vjps)
    return where


def check_types(program, gradient, where):
    """What a value of f or df is said to be is what it is; a cotangent is like its value."""
    types = [TensorType.of(x) for x in program.values]
    inputs = [
        gradient.f.inputs[at] if kind is Capture.INPUT else gradient.f.outputs[at]
        for kind, at in gradient.df_input_captures
    ]
    inputs += [gradient.f.outputs[j] for j in gradient.df_input_vjps]
    assert [v.type for v in gradient.df.inputs] == [v.type for v in inputs]
    if program.typed:
        assert [v.type for v in gradient.f.outputs] == [types[i] for i in where]
        wanted = [types[i] for i in gradient.df_output_vjps]
        assert [v.type for v in gradient.df.outputs] == wanted


def product(cotangents, tangents):
    """Re <cotangents, tangents>, and the size of what was added up."""
    terms = [np.real(np.conj(g) * u).ravel() for g, u in zip(cotangents, tangents, strict=True)]
    terms = np.concatenate(terms) if terms else np.zeros(1)
    return terms.sum(), np.abs(terms).sum()


class Checked:
    """The gradient of a program, with what one run of it gives."""

    def __init__(self, program, gradient, walk):
        self.program, self.gradient = program, gradient
        self.f, self.df = walk(gradient.f), walk(gradient.df)
        self.where = check_fields(program, gradient, self.f)
        check_types(program, gradient, self.where)
        self.outputs = self.f(*program.arrays)
        self.rounding = 1e-9 if program.float == "f8" else 1e-4
        self.saved = [
            (program.arrays if kind is Capture.INPUT else self.outputs)[offset]
            for kind, offset in gradient.df_input_captures
        ]
        self.zeros = [np.zeros_like(self.outputs[j]) for j in gradient.df_input_vjps]
        self.cotangents = [
            program.draw(zero.shape, zero.dtype.str[1:]) if zero.dtype.kind in "fc" else zero
            for zero in self.zeros
        ]

    def check_f(self, outputs):
        rtol = 1e-12 if self.program.float == "f8" else 1e-5
        for found, number in zip(outputs, self.where, strict=True):
            wanted = self.program.values[number]
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert np.allclose(found, wanted, rtol=rtol, atol=rtol)

    def check_df(self, found, cotangents):
        arrays = [self.program.arrays[i] for i in self.gradient.df_output_vjps]
        for one, array in zip(found, arrays, strict=True):
            assert (one.dtype, one.shape) == (array.dtype, array.shape)
        inputs = [self.program.tangents[i] for i in self.gradient.df_output_vjps]
        slots = [self.program.tangents[self.where[j]] for j in self.gradient.df_input_vjps]
        (one, size), (other, scale) = product(found, inputs), product(cotangents, slots)
        assert abs(one - other) <= self.rounding * (1 + size + scale), (one, other)

    def single(self):
        """Cotangents in one slot, zeros in the others, for each slot."""
        for slot, cotangent in enumerate(self.cotangents):
            if len(self.zeros) > 1:
                yield [*self.zeros[:slot], cotangent, *self.zeros[slot + 1 :]]

    def check(self):
        self.check_f(self.outputs)
        for cotangents in (self.cotangents, *self.single()):
            self.check_df(self.df(*self.saved, *cotangents), cotangents)

    def check_compiled(self):
        pair = sd.compile(self.gradient)
        outputs = pair.f(*self.program.arrays)
        self.check_f(outputs)
        for cotangents in (self.cotangents, *self.single()):
            self.check_df(pair.df(*self.saved, *cotangents), cotangents)
        # The pair and the joint program take no cotangents of temporaries.
        real = self.gradient.f_real_outputs
        count = sum(j < real for j in self.gradient.df_input_vjps)
        given = self.cotangents[:count]
        padded = [*given, *self.zeros[count:]]
        results, pullback = pair(*self.program.arrays)
        self.check_f([*results, *outputs[real:]])
        self.check_df(pullback(*given), padded)
        joint = pair.joint(*self.program.arrays, *given)
        self.check_f([*joint[:real], *outputs[real:]])
        self.check_df(joint[real:], padded)


NEEDS_SHAPE = ("slice", "take", "split", "concatenate", "matmul")


def differentiated(program):
    """The graph of a program and its gradient, and whether that needs types."""
    try:
        graph = program.graph()
        return graph, sd.differentiate(graph, program.flags), False
    except NotDifferentiable as error:
        if program.typed or error.op not in NEEDS_SHAPE or "shape" not in str(error):
            raise
    program.typed = True
    graph = program.graph()
    return graph, sd.differentiate(graph, program.flags), True


@contextmanager
def noted(program, seed):
    """Tell an error which program it comes from."""
    try:
        yield
    except Exception as error:
        error.add_note(f"seed {seed}, flags {program.flags}:\n{program.graph()}")
        raise


@pytest.mark.parametrize("chunk", range(10))
def test_every_cotangent_slot_agrees_with_forward_mode(chunk, random_program, walk):
    slots = temporaries = refused = 0
    for seed in range(chunk * COUNT, (chunk + 1) * COUNT):
        program = random_program(seed, typed=seed % 6 != 0)
        with noted(program, seed):
            graph, gradient, needs_types = differentiated(program)
            checked = Checked(program, gradient, walk)
            checked.check()
            if seed % 10 == 0:
                checked.check_compiled()
        assert graph == program.graph()
        slots += len(checked.zeros)
        temporaries += len(checked.where) - gradient.f_real_outputs
        refused += needs_types
    assert slots > 2 * COUNT
    assert temporaries > COUNT / 2
    assert refused < COUNT / 20


@pytest.mark.parametrize("chunk", range(2))
def test_cotangents_of_complex_values_agree_with_forward_mode(chunk, complex_program, walk):
    """In Re <u, v>, whose vjp is the conjugate transpose."""
    values = 0
    for seed in range(chunk * COUNT // 2, (chunk + 1) * COUNT // 2):
        program = complex_program(seed)
        with noted(program, seed):
            gradient = sd.differentiate(program.graph(), program.flags)
            checked = Checked(program, gradient, walk)
            checked.check()
            if seed % 10 == 0:
                checked.check_compiled()
        values += sum(zero.dtype.kind == "c" for zero in checked.zeros)
    assert values > COUNT / 4


def without_slot(gradient, slot):
    """The pair with a df that ignores one of its cotangents."""
    df = gradient.df.copy()
    value = df.inputs[len(gradient.df_input_captures) + slot]
    zeros = df.create("zeros_like", value)
    for node in list(df.nodes())[:1]:
        zeros.insert_before(node)
    if zeros.output.uses == () and len(df) == 0:
        df.append(zeros)
    value.replace_all_uses_with(zeros.output, except_=zeros)
    return replace(gradient, df=df)


def test_a_cotangent_that_is_ignored_is_noticed(random_program, walk):
    noticed = temporaries = 0
    for seed in range(300):
        program = random_program(seed)
        gradient = sd.differentiate(program.graph(), program.flags)
        checked = Checked(program, gradient, walk)
        for slot, j in enumerate(gradient.df_input_vjps):
            if np.abs(program.tangents[checked.where[j]]).max(initial=0) < 1e-3:
                continue
            broken = Checked(program, without_slot(gradient, slot), walk)
            with pytest.raises(AssertionError):
                broken.check()
            noticed += 1
            temporaries += j >= gradient.f_real_outputs
    assert noticed > 300
    assert temporaries > 100


FAULTS = {
    "captures out of order": lambda g: {"df_input_captures": g.df_input_captures[::-1]},
    "slots out of order": lambda g: {"df_input_vjps": g.df_input_vjps[::-1]},
    "outputs out of order": lambda g: {"df_output_vjps": g.df_output_vjps[::-1]},
    "a slot too few": lambda g: {"df_input_vjps": g.df_input_vjps[:-1]},
    "an output too few": lambda g: {"df_output_vjps": g.df_output_vjps[1:]},
    "a temporary for the caller": lambda g: {"f_real_outputs": len(g.f.outputs)},
    "an output as a temporary": lambda g: {"f_real_outputs": g.f_real_outputs - 1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_field_is_noticed(fault, random_program, walk):
    noticed = 0
    for seed in range(100):
        program = random_program(seed)
        gradient = sd.differentiate(program.graph(), program.flags)
        changes = FAULTS[fault](gradient)
        if any(getattr(gradient, name) != field for name, field in changes.items()):
            with pytest.raises(AssertionError):
                Checked(program, replace(gradient, **changes), walk)
            noticed += 1
    assert noticed > 10
