"""A staged pair at one point as linear maps: df pulls cotangents, the tangent of f pushes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stagedad.errors import ForwardModeUnsupported, NotDifferentiable
from stagedad.front.noise import noisy
from stagedad.ir import Graph, Node
from stagedad.run import Program
from stagedad.run import compile as compile_program
from stagedad.transform import Capture, Gradient, tangent

Array = np.ndarray[Any, Any]
Weight = Mapping[int, Array]
"""Cotangents by output of f; what is absent is zero."""

SAMPLES = 3
"""How often rounding is drawn at random."""
CHANCE = 16
"""How many times as large as in the samples rounding may be."""
ROUNDINGS = 50
"""How many roundings of the size of the sums two ways of computing may be apart anyway."""


class Sides(NamedTuple):
    """One number two ways, and how far apart they may be."""

    found: float
    expected: float
    tolerance: float

    @property
    def excess(self) -> float:
        """How many tolerances lie between them; infinite where df gives no number."""
        if not np.isfinite(self.found) and np.isfinite(self.expected):
            return float("inf")
        apart = abs(self.found - self.expected)
        return apart / max(self.tolerance, 5e-324) if apart else 0.0


class Probe:
    """f, df and the tangent of f at `arrays`, the arguments in the dtypes of f's inputs.

    Raises: what `Program` does for arguments that f does not take.
    """

    def __init__(self, gradient: Gradient, arguments: Sequence[Any]) -> None:
        self.gradient = gradient
        self.slots = tuple(gradient.df_input_vjps)
        self.places = tuple(gradient.df_output_vjps)
        self._f, self._df = compile_program(gradient.f), compile_program(gradient.df)
        code = self._f.specialisations
        self.arrays = code.select([*arguments, *code.held])[1][: len(arguments)]
        self.outputs = self._f(*self.arrays)
        values = [value for node in gradient.f.nodes() for value in node.outputs]
        dtypes = [value.type.dtype for value in values if value.type is not None]
        dtypes += [array.dtype for array in (*self.arrays, *self.outputs)]
        known = [float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind in "fc"]
        self.epsilon = max(known, default=2.0**-52)
        """The spacing at 1 of the coarsest dtype that f computes in."""

    def captured(self, capture: Capture) -> Array:
        """Return the array that a capture names."""
        arrays = self.arrays if capture.kind is Capture.INPUT else self.outputs
        return arrays[capture.offset]

    def pull(self, weight: Weight, captures: Iterable[Capture] | None = None) -> Pulled:
        """Give `weight` to df, with other captures if given."""
        if captures is None:
            captures = self.gradient.df_input_captures
        kept = [self.captured(capture) for capture in captures]
        given = [
            weight[slot] if slot in weight else np.zeros_like(self.outputs[slot])
            for slot in self.slots
        ]
        return Pulled(self, weight, [*kept, *given], self._df)

    def push(self, place: int, direction: Array) -> Pushed | None:
        """Move input `place` along `direction`; None where an op of f has no forward rule."""
        program = self._tangent
        if program is None:
            return None
        moves = [
            direction if other == place else np.zeros_like(self.arrays[other])
            for other in sorted(self.places)
        ]
        return Pushed(self, place, direction, [*self.arrays, *moves], program)

    def moved(self, place: int, change: Array) -> tuple[Array, ...]:
        """Return the outputs of f where input `place` is changed, but no stop_gradient is."""
        program, kept = self._held
        arrays = list(self.arrays)
        arrays[place] = _added(arrays[place], change)
        return program(*arrays, *kept)

    def change(self, weight: Weight, outputs: Sequence[Array]) -> float:
        """Return <u, outputs - those here> for the cotangents u of `weight`."""
        total = 0.0
        for slot, factor in weight.items():
            there = factor != 0
            here = widened(self.outputs[slot][there])
            total += inner(factor[there], widened(outputs[slot][there]) - here)
        return total

    def noise(self, weight: Weight) -> float:
        """Return how far rounding may put <u, f> off."""
        return CHANCE * largest(self.change(weight, outputs) for outputs in self._noisy)

    def scales(self, place: int) -> Array:
        """Return the length by which each element of input `place` may be moved.

        Its size, or that of its neighbours where they are larger; 1 among zeros only.
        """
        sizes = np.abs(widened(self.arrays[place]))
        sizes = np.where(np.isfinite(sizes), sizes, 0)
        typical = np.sqrt(np.mean(np.square(sizes))) if sizes.size else 0
        return np.asarray(np.maximum(sizes, typical if typical > 0 else 1))

    def at(self, place: int, change: Array) -> Probe:
        """Return the probe at the point where input `place` is changed."""
        twin = copy(self)
        for name in ("_held", "_noisy"):  # which belong to the point
            twin.__dict__.pop(name, None)
        twin.arrays = list(self.arrays)
        twin.arrays[place] = _added(self.arrays[place], change)
        twin.outputs = self._f(*twin.arrays)
        return twin

    @cached_property
    def _tangent(self) -> Program | None:
        moves = [place in self.places for place in range(len(self.arrays))]
        try:
            return compile_program(tangent(self.gradient.f, moves))
        except (NotDifferentiable, ForwardModeUnsupported):
            return None

    @cached_property
    def _noisy(self) -> list[list[Array]]:
        return [noisy(self._f.graph, self.arrays, 0, seed) for seed in range(SAMPLES)]

    @cached_property
    def _held(self) -> tuple[Program, tuple[Array, ...]]:
        """f with what its stop_gradients give here as further inputs, and that."""
        shown, held = self.gradient.f.copy(), self.gradient.f.copy()
        for node in _stops(shown):
            shown.register_output(node.output)
        for node in _stops(held):
            node.output.replace_all_uses_with(held.add_input(node.output.type))
            node.destroy()
        results = compile_program(shown)(*self.arrays)
        return compile_program(held), results[len(self.outputs) :]


class Pulled:
    """What df gives for `weight`, by input of f."""

    def __init__(
        self, probe: Probe, weight: Weight, arguments: list[Array], program: Program
    ) -> None:
        self.probe, self.weight = probe, weight
        self._arguments, self._program = arguments, program
        self.cotangents = dict(zip(probe.places, program(*arguments), strict=True))

    def along(self, place: int, direction: Array) -> float:
        """Return <J'u, v>."""
        return inner(direction, self.cotangents[place])

    def size(self, place: int, direction: Array) -> float:
        """Return what the rounding of `along` is relative to."""
        return size_of({place: direction}, self.cotangents)

    def noise(self, place: int, direction: Array) -> float:
        """Return how far rounding may put `along` off, where df cancels."""
        number, exact = self.probe.places.index(place), self.along(place, direction)
        return CHANCE * largest(inner(direction, each[number]) - exact for each in self._noisy)

    @cached_property
    def _noisy(self) -> list[list[Array]]:
        first = len(self._arguments) - len(self.probe.slots)
        graph = self._program.graph
        return [noisy(graph, self._arguments, first, seed) for seed in range(SAMPLES)]


class Pushed:
    """How the outputs of f move when input `place` moves along `direction`."""

    def __init__(
        self,
        probe: Probe,
        place: int,
        direction: Array,
        arguments: list[Array],
        program: Program,
    ) -> None:
        self.place, self.direction = place, direction
        self._arguments, self._program, self._inputs = arguments, program, len(probe.arrays)
        self._outputs = probe.outputs
        self.moves = self._by_slot(program(*arguments))

    def along(self, weight: Weight) -> float:
        """Return <u, Jv>."""
        return inner_sum(weight, self.moves)

    def agreement(self, pulled: Pulled, *, strict: bool = False) -> Sides:
        """Return <J'u, v> by df and <u, Jv> by the tangent, which differ by rounding alone.

        With `strict`, by no more than where nothing cancels.
        """
        found = pulled.along(self.place, self.direction)
        expected = self.along(pulled.weight)
        size = size_of(pulled.weight, self.moves) + pulled.size(self.place, self.direction)
        tolerance = ROUNDINGS * pulled.probe.epsilon * size
        if not strict and abs(found - expected) > tolerance:  # unless parts of one cancel
            tolerance += pulled.noise(self.place, self.direction)
            tolerance += CHANCE * largest(
                inner_sum(pulled.weight, moves) - expected for moves in self._noisy
            )
        return Sides(found, expected, tolerance)

    def _by_slot(self, results: Sequence[Array]) -> dict[int, Array]:
        moving = [j for j, output in enumerate(self._outputs) if output.dtype.kind in "fc"]
        return dict(zip(moving, results[len(self._outputs) :], strict=True))

    @cached_property
    def _noisy(self) -> list[dict[int, Array]]:
        graph, first = self._program.graph, self._inputs
        samples = [noisy(graph, self._arguments, first, seed) for seed in range(SAMPLES)]
        return [self._by_slot(results) for results in samples]


def halved(array: Array) -> tuple[Array, Array]:
    """Return `array` with the first half of its nonzero elements, and with the second."""
    support = np.flatnonzero(array)
    parts = []
    for some in (support[: len(support) // 2], support[len(support) // 2 :]):
        part = np.zeros_like(array)
        part.flat[some] = array.flat[some]
        parts.append(part)
    return parts[0], parts[1]


def widened(array: Array) -> Array:
    """Return `array` in double precision."""
    return array.astype(np.result_type(array, np.float64), copy=False)


def inner(left: Array, right: Array) -> float:
    """Return Re <left, right> in double precision; where `left` is 0, `right` may be NaN."""
    there = left != 0
    return float(np.vdot(widened(left[there]), widened(right[there])).real)


def inner_sum(left: Weight, right: Mapping[int, Array]) -> float:
    """Return Re <left, right> of cotangents and tangents."""
    return sum(inner(array, right[slot]) for slot, array in left.items())


def size_of(left: Weight, right: Any) -> float:
    """Return what the rounding errors of an inner product are relative to."""
    total = 0.0
    for key, array in left.items():
        there = array != 0
        parts = np.abs(widened(array[there])) * np.abs(widened(right[key][there]))
        total += float(np.sum(parts))
    return total


def largest(numbers: Iterable[float]) -> float:
    """Return the largest size among finite numbers."""
    return max((abs(number) for number in numbers if np.isfinite(number)), default=0.0)


def _added(array: Array, change: Array) -> Array:
    return np.asarray(widened(array) + change).astype(array.dtype)


def _stops(graph: Graph) -> list[Node]:
    """Return the nodes that derivatives do not pass although their operand varies."""
    return [node for node in graph.nodes() if node.kind == "stop_gradient"]
