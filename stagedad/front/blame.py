"""What is wrong with a staged pair, narrowed to one element of an input and of an output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np

from stagedad.errors import VerifyError
from stagedad.front.probing import Array, Probe, Sides, Weight, halved
from stagedad.front.slopes import Slopes
from stagedad.transform import Capture
from stagedad.transform.wiring import input_name, output_name

TANGENT = "the tangent of f"
DIFFERENCES = "finite differences"
TRIES = 256
"""Other captures that are tried, to say which one is wrong."""

_HINTS = {
    TANGENT: "a rule in df is wrong, or a value it captures; gradient.captures lists those",
    DIFFERENCES: "where df agrees with the tangent, an op of f declares its derivative wrongly",
}


def blame(
    probe: Probe, place: int, direction: Array, weight: Weight, against: str
) -> VerifyError:
    """Return the error for a disagreement of df with `against`, found for `weight`.

    Direction and weight are halved while one half still disagrees.
    """
    hint = _wrong_capture(probe) if against == TANGENT else None

    def badness(direction: Array, weight: Weight) -> tuple[float, float]:
        sides = _measured(probe, place, direction, weight, against)
        return sides.excess, abs(sides.expected)

    while parts := _halves(direction):
        worst = max(parts, key=lambda part: badness(part, weight))
        if badness(worst, weight)[0] <= 1:
            break
        direction = worst
    while weights := _less(weight):
        least = max(weights, key=lambda part: badness(direction, part))
        if badness(direction, least)[0] <= 1:
            break
        weight = least
    sides = _measured(probe, place, direction, weight, against)
    return _error(probe, place, direction, weight, sides, against, hint or _HINTS[against])


def place_of(index: tuple[int, ...]) -> str:
    """Return how a message names an element: ` at (1, 2)`; nothing for that of a 0-d array."""
    return f" at {index}" if index else ""


def _measured(
    probe: Probe, place: int, direction: Array, weight: Weight, against: str
) -> Sides:
    pulled = probe.pull(weight)
    if against == TANGENT:
        pushed = probe.push(place, direction)
        assert pushed is not None
        return pushed.agreement(pulled)
    return Slopes(probe, place, direction, [weight]).agreement(0, pulled)[0]


def _error(
    probe: Probe,
    place: int,
    direction: Array,
    weight: Weight,
    sides: Sides,
    against: str,
    hint: str,
) -> VerifyError:
    slots = list(weight)
    mine = _element(direction)
    yours = _element(weight[slots[0]]) if len(slots) == 1 else None
    factor, along = 1.0, ", along one direction"
    if mine is not None and yours is not None:
        factor, along = mine.factor * yours.factor, ""
    found, expected = sides.found / factor, sides.expected / factor
    whose = "zero cotangents"
    if slots:
        whose = output_name(probe.gradient, slots[0]) + _where(yours)
    if len(slots) > 1:
        whose += f" and {len(slots) - 1} more"
    return VerifyError(
        f"gradient.check: df output {probe.places.index(place)}, the cotangent of "
        f"{input_name(probe.gradient, place)}{_where(mine)}: df gives {found:.9g}, {against} "
        f"{expected:.9g}: of {whose}{along}",
        hint=hint,
        input=place,
        index=None if mine is None else mine.at,
        output=slots[0] if slots else None,
        output_index=None if yours is None else yours.at,
        found=found,
        expected=expected,
    )


def _wrong_capture(probe: Probe) -> str | None:
    """Return what is wrong with the captures, if df fits once it is fed others."""
    random = np.random.default_rng(3)
    outputs = [(slot, probe.outputs[slot]) for slot in probe.slots]
    weight = {slot: _numbers(random, output) for slot, output in outputs}
    moves = [probe.push(place, _numbers(random, probe.arrays[place])) for place in probe.places]
    for said, captures in islice(_other_captures(probe), TRIES):
        pulled = probe.pull(weight, captures)
        sides = [
            pushed.agreement(pulled, strict=True) for pushed in moves if pushed is not None
        ]
        if all(side.excess <= 1 and np.isfinite(side.expected) for side in sides):
            return said
    return None


def _numbers(random: np.random.Generator, like: Array) -> Array:
    """Return random numbers of the type of `like`, zero where it is not finite."""
    return np.asarray(random.uniform(0.5, 1.5, like.shape) * np.isfinite(like)).astype(
        like.dtype
    )


def _other_captures(probe: Probe) -> Iterator[tuple[str, list[Capture]]]:
    """Yield captures in which two are exchanged, or one is another value of its type."""
    captures = probe.gradient.df_input_captures
    types = [_type_of(probe.captured(capture)) for capture in captures]
    for i, j in combinations(range(len(captures)), 2):
        if types[i] == types[j]:
            others = list(captures)
            others[i], others[j] = captures[j], captures[i]
            yield f"captures {i} ({captures[i]}) and {j} ({captures[j]}) are exchanged", others
    every = [Capture(Capture.INPUT, i) for i in range(len(probe.arrays))]
    every += [Capture(Capture.OUTPUT, j) for j in range(len(probe.outputs))]
    for i, capture in enumerate(captures):
        for other in every:
            if other != capture and _type_of(probe.captured(other)) == types[i]:
                said = f"capture {i} is {capture}, and df fits with {other}"
                yield said, [*captures[:i], other, *captures[i + 1 :]]


class _Element(NamedTuple):
    """The one element of an array that is not zero."""

    at: tuple[int, ...]
    factor: float
    is_imaginary: bool


def _element(array: Array) -> _Element | None:
    """Return the one element that is not zero, or None where there are more."""
    support = np.argwhere(array)
    if len(support) != 1:
        return None
    at = tuple(map(int, support[0]))
    value = complex(array[at])
    return _Element(at, value.real or value.imag, value.real == 0)


def _where(element: _Element | None) -> str:
    if element is None:
        return ""
    return place_of(element.at) + (", imaginary part" if element.is_imaginary else "")


def _halves(direction: Array) -> list[Array]:
    return [] if np.count_nonzero(direction) < 2 else list(halved(direction))


def _less(weight: Weight) -> list[Weight]:
    """Return two halves of the outputs that are weighed, or of the elements of the only one."""
    slots = list(weight)
    if not slots:
        return []
    if len(slots) == 1:
        return [{slots[0]: half} for half in _halves(weight[slots[0]])]
    middle = len(slots) // 2
    return [{slot: weight[slot] for slot in some} for some in (slots[:middle], slots[middle:])]


def _type_of(array: Array) -> tuple[tuple[int, ...], Any]:
    return array.shape, array.dtype
