"""Finite differences that know how far they can be off: at kinks, jumps and singular points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stagedad.front.probing import (
    ROUNDINGS,
    Array,
    Probe,
    Pulled,
    Sides,
    Weight,
    halved,
    size_of,
)

RUNGS = 4
"""Lengths of step that are tried, each a part in 32 of the one before."""
FINE = 1e-5
"""Relative tolerance at which no shorter step is tried."""
COARSE = 0.05
"""Relative tolerance above which a comparison says little."""


class Estimate(NamedTuple):
    """A slope by finite differences, and how far the true one may be from it."""

    value: float
    tolerance: float
    is_sharp: bool
    """Whether a wrong slope would show."""

    def sides(self, found: float, rounding: float) -> Sides:
        """Return `found` beside the estimate."""
        return Sides(found, self.value, self.tolerance + rounding)


class Slopes:
    """Slopes of <u, f> along one direction of one input, for each u of `weights`.

    Steps shrink until the slopes at a step and at half of it agree, and those of both sides.
    At a kink the sides never do: then every slope between them is within the tolerance, and
    at a jump any slope.
    """

    def __init__(
        self, probe: Probe, place: int, direction: Array, weights: Sequence[Weight]
    ) -> None:
        self.probe, self.place, self.direction, self.weights = probe, place, direction, weights
        self._rungs: list[list[tuple[float, ...]] | None] = []

    def agreement(self, number: int, pulled: Pulled) -> tuple[Sides, bool]:
        """Return <J'u, v> by df and by differences, and whether a wrong one would show."""
        found = pulled.along(self.place, self.direction)
        size = pulled.size(self.place, self.direction)
        rounding = ROUNDINGS * self.probe.epsilon * size
        estimate = self.estimate(number, found)
        if estimate.sides(found, rounding).excess > 1:
            estimate = self.careful(number, found)
        return estimate.sides(found, rounding), estimate.is_sharp

    def estimate(self, number: int, near: float) -> Estimate:
        """Return an estimate for weight `number`, of a slope that should be `near`."""
        best = _NOTHING
        for rung in range(RUNGS):
            best = min(best, self._at(rung, number, near), key=_tolerance)
            if best.tolerance <= FINE * (abs(best.value) + abs(near)):
                break
        return best

    def careful(self, number: int, near: float) -> Estimate:
        """Return one that stands up to doubt, with what df says at the ends of the steps.

        f may cancel, and be less exact than its values show.  It may change faster than the
        steps see, or have a branch that they never meet, as `where(x == 0, a, b)`: then df
        is another there, where differences are at most an average of it.
        """
        noise = self.probe.noise(self.weights[number])
        best = _NOTHING
        for rung in range(RUNGS):
            found = self._at(rung, number, near, noise)
            drift = 2 * self._drift(number, near, self._step(rung))
            best = min(
                best,
                self._judged(number, near, found.value, found.tolerance + drift),
                key=_tolerance,
            )
        return best

    @cached_property
    def halves(self) -> list[Slopes]:
        """The slopes along the first and the second half of the elements that move."""
        return [
            Slopes(self.probe, self.place, part, self.weights)
            for part in halved(self.direction)
        ]

    def _at(self, rung: int, number: int, near: float, noise: float = 0.0) -> Estimate:
        """Return the estimate at one length of step, from both sides and half of it."""
        found = self._rung(rung)
        if found is None:
            return _NOTHING
        ahead, behind, near_ahead, near_behind = found[number]
        far, close = (ahead + behind) / 2, (near_ahead + near_behind) / 2
        # What is left of the sides' difference where a smooth function would leave nothing.
        kink = abs(2 * (near_ahead - near_behind) - (ahead - behind)) / 2
        # Rounding moves the argument by a part of the step, and the values of f.
        size = self._sizes[number] + abs(close) + abs(far)
        rounding = (32 * self.probe.epsilon * size + 4 * noise) / self._step(rung)
        value, tolerance = close + (close - far) / 3, 4 * abs(close - far) + kink + rounding
        return self._judged(number, near, value, tolerance)

    def _judged(self, number: int, near: float, value: float, tolerance: float) -> Estimate:
        known = max(abs(value), abs(near), self._sizes[number])
        return Estimate(value, tolerance, tolerance <= COARSE * known)

    def _drift(self, number: int, near: float, step: float) -> float:
        """Return how far df goes from `near` within a step."""
        drift = 0.0
        if not np.isfinite(near):
            return drift
        for h in (step, -step, step / 2, -step / 2):
            there = self.probe.at(self.place, h * self.direction).pull(self.weights[number])
            change = abs(there.along(self.place, self.direction) - near)
            drift = max(drift, change if np.isfinite(change) else np.inf)
        return drift

    @cached_property
    def _sizes(self) -> list[float]:
        return [size_of(weight, self.probe.outputs) for weight in self.weights]

    def _step(self, rung: int) -> float:
        return float(self.probe.epsilon**0.25 / 32**rung)

    def _rung(self, rung: int) -> list[tuple[float, ...]] | None:
        """Return for each weight the four slopes; None where f is not finite."""
        while len(self._rungs) <= rung:
            step = self._step(len(self._rungs))
            columns = [self._slope(h) for h in (step, -step, step / 2, -step / 2)]
            rows = list(zip(*columns, strict=True))
            self._rungs.append(rows if np.isfinite(columns).all() else None)
        return self._rungs[rung]

    def _slope(self, step: float) -> list[float]:
        """Return for each weight the slope between here and a step away."""
        outputs = self.probe.moved(self.place, step * self.direction)
        slopes = []
        for weight in self.weights:
            slopes.append(self.probe.change(weight, outputs) / step)
        return slopes


_NOTHING = Estimate(float("nan"), float("inf"), False)


def _tolerance(estimate: Estimate) -> float:
    return estimate.tolerance
