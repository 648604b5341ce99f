"""`gradient.check`: a staged pair against its function, its tangent and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagedad.errors import VerifyError
from stagedad.front.blame import DIFFERENCES, TANGENT, blame, place_of
from stagedad.front.probing import Array, Probe, Pulled, Weight
from stagedad.front.signature import signature
from stagedad.front.slopes import Slopes
from stagedad.front.tree import flatten
from stagedad.transform import Gradient
from stagedad.transform.gradient import set_check
from stagedad.transform.wiring import check_captures, check_fields, input_name, output_name

ROUNDS = 2
"""Directions of each input that are tried."""
GROUPS = 64
"""Outputs are weighed one by one, or in so many groups where there are more."""
ELEMENTS = 1 << 24
"""Numbers that all groups together may go through; larger arrays mean fewer groups."""
DEPTH = 3
"""How often a direction is halved to get away from a kink."""
NUMERIC = (np.ndarray, np.generic, bool, int, float, complex)


class Checked(NamedTuple):
    """How much a check compared."""

    tangents: int
    """Comparisons of df with the tangent of f, which err by rounding alone."""
    differences: int
    """Comparisons of df with finite differences."""
    blunt: int
    """How many of either could not tell, for a wrong derivative might not show in them."""


def check(
    gradient: Gradient, arguments: tuple[Any, ...], function: Callable[..., Any] | None = None
) -> Checked:
    """Check `gradient` at `arguments`; see `Gradient.check`."""
    for graph in (gradient.f, gradient.df):
        graph.verify()
    check_fields(gradient)
    check_captures(gradient)
    key, leaves = signature(arguments, {})
    numeric = [v for v, leaf in zip(leaves, key.leaves, strict=True) if leaf.type is not None]
    inputs = len(gradient.f.inputs)
    if len(numeric) != inputs:
        raise TypeError(f"gradient.check: {len(numeric)} arrays for the {inputs} inputs of f")
    # Copies, in case the function writes to what it is given.
    numeric = [np.array(v) if isinstance(v, np.ndarray) else v for v in numeric]
    with np.errstate(all="ignore"):
        probe = Probe(gradient, numeric)
        if function is not None:
            _check_value(probe, function(*arguments))
        return _Comparison(probe).run()


def _check_value(probe: Probe, result: Any) -> None:
    """Check that the real outputs of f are what the function gave."""
    leaves: list[Any] = []
    flatten(result, leaves)
    given = [leaf for leaf in leaves if isinstance(leaf, NUMERIC)]
    found = probe.outputs[: probe.gradient.f_real_outputs]
    if len(given) != len(found):
        problem = f"f has {len(found)} outputs, the function gives {len(given)}"
        raise VerifyError(f"gradient.check: {problem}")
    for offset, (mine, leaf) in enumerate(zip(found, given, strict=True)):
        yours = np.asarray(leaf)
        what = output_name(probe.gradient, offset)
        is_typed = isinstance(leaf, np.ndarray | np.generic)
        if mine.shape != yours.shape or (is_typed and mine.dtype != yours.dtype):
            problem = f"{what} is {mine.dtype}{mine.shape}"
            raise VerifyError(
                f"gradient.check: {problem}, the function gives {yours.dtype}{yours.shape}"
            )
        # Programs may sum in another order.
        precision = 1e3 * probe.epsilon
        largest = np.max(np.abs(yours[np.isfinite(yours)]), initial=0)
        near = np.isclose(mine, yours, precision, precision * largest, equal_nan=True)
        if not near.all():
            at = tuple(map(int, np.argwhere(~near)[0]))
            raise VerifyError(
                f"gradient.check: {what}{place_of(at)} is {mine[at]}, the function gives "
                f"{yours[at]}",
                hint="f is another function, or what the function closes over has changed",
                output=offset,
                output_index=at,
                found=mine[at],
                expected=yours[at],
            )


class _Comparison:
    """<u, Jv> three ways: by df, by the tangent of f, by differences of f."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.random = np.random.default_rng(0)
        self.tangents = self.differences = self.blunt = 0
        self.is_finite = all(np.isfinite(output).all() for output in probe.outputs)

    def run(self) -> Checked:
        """Compare, for each input along some directions, for each group of outputs."""
        pulled = [self._pulled(weight) for weight in self._weights()]
        for place in self.probe.places:
            self._input(place, pulled)
        return Checked(self.tangents, self.differences, self.blunt)

    def _weights(self) -> Iterator[Weight]:
        """Yield random cotangents, real ones and imaginary, of a few outputs at a time.

        They are zero where f is not finite: nothing can be told there.
        """
        outputs = self.probe.outputs
        slots = [slot for slot in self.probe.slots if outputs[slot].size]
        room = ELEMENTS // (1 + sum(each.size for each in (*self.probe.arrays, *outputs)))
        groups = min(len(slots), GROUPS, max(room, 4))
        if not groups:
            yield {}  # nothing goes in, so zeros come out
        for number in range(groups):
            for unit in (1, 1j):
                weight = {}
                for slot in slots[number::groups]:
                    output = outputs[slot]
                    if unit == 1 or output.dtype.kind == "c":
                        signs = unit * self._signs(output.shape) * np.isfinite(output)
                        weight[slot] = np.asarray(signs).astype(output.dtype)
                if weight:
                    yield weight

    def _signs(self, shape: tuple[int, ...]) -> Array:
        """Return random numbers of either sign, none near zero."""
        sizes = self.random.uniform(0.5, 1.5, shape)
        return np.where(self.random.random(shape) < 0.5, -sizes, sizes)

    def _pulled(self, weight: Weight) -> Pulled:
        """Return what df gives, which has the shapes and dtypes of the inputs."""
        found = self.probe.pull(weight)
        for number, (place, cotangent) in enumerate(found.cotangents.items()):
            array = self.probe.arrays[place]
            is_typed = self.probe.gradient.f.inputs[place].type is not None
            if cotangent.shape != array.shape or (is_typed and cotangent.dtype != array.dtype):
                name = input_name(self.probe.gradient, place)
                raise VerifyError(
                    f"gradient.check: df output {number}, the cotangent of {name}, is "
                    f"{cotangent.dtype}{cotangent.shape}, the input {array.dtype}{array.shape}"
                )
        return found

    def _input(self, place: int, pulled: Sequence[Pulled]) -> None:
        array, scales = self.probe.arrays[place], self.probe.scales(place)
        if not array.size:
            return
        finite = np.ones(array.shape, bool)
        for each in pulled:
            finite &= np.isfinite(each.cotangents[place])
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            for _ in range(ROUNDS):
                full = np.asarray(unit * scales * self._signs(array.shape)).astype(array.dtype)
                direction = np.where(finite, full, 0).astype(array.dtype)
                if direction.any():
                    self._direction(place, direction, pulled)
            for at in np.flatnonzero(~finite)[:4]:
                single = np.zeros_like(array)
                single.flat[at] = full.flat[at]
                self._singular(place, single, pulled)

    def _direction(self, place: int, direction: Array, pulled: Sequence[Pulled]) -> None:
        pushed = self.probe.push(place, direction)
        slopes = Slopes(self.probe, place, direction, [each.weight for each in pulled])
        for number, each in enumerate(pulled):
            if pushed is not None:
                sides = pushed.agreement(each)
                self.tangents += 1
                self.blunt += not np.isfinite(sides.expected)
                if sides.excess > 1:
                    raise blame(self.probe, place, direction, each.weight, TANGENT)
            self._with_differences(slopes, number, each)

    def _with_differences(
        self, slopes: Slopes, number: int, pulled: Pulled, depth: int = 0
    ) -> None:
        """Compare; where a kink hides what could be wrong, look at parts of the input."""
        sides, is_sharp = slopes.agreement(number, pulled)
        if not is_sharp and depth < DEPTH and np.count_nonzero(slopes.direction) > 1:
            for half in slopes.halves:
                self._with_differences(half, number, pulled, depth + 1)
            return
        self.differences += 1
        self.blunt += not is_sharp
        if sides.excess > 1:
            raise blame(self.probe, slopes.place, slopes.direction, pulled.weight, DIFFERENCES)

    def _singular(self, place: int, single: Array, pulled: Sequence[Pulled]) -> None:
        """Compare at an element where df is not finite: then no derivative may be finite.

        A value that is not finite, anywhere in f, may be why.
        """
        pushed = self.probe.push(place, single)
        weights = [each.weight for each in pulled]
        for number, each in enumerate(pulled):
            if np.isfinite(each.cotangents[place][single != 0]).all():
                continue
            if pushed is None:
                kind = DIFFERENCES
                regular = (
                    Slopes(self.probe, place, single, weights).estimate(number, 0).is_sharp
                )
            else:
                kind = TANGENT
                regular = all(
                    np.isfinite(pushed.moves[slot]).all() for slot in self.probe.slots
                )
            if regular and self.is_finite:
                raise blame(self.probe, place, single, each.weight, kind)
            self.blunt += 1


set_check(check)
