"""Sample calls of every op: what the laws run over, in every layer.

Eight layouts an op and dtype, away from ties and singular points (those are the
`points` of the declarations).  Drawn from a fixed seed.  An op that cannot have
a layout says why in `ABSENT`; nothing is left out silently.
"""

# ruff: noqa: ARG001, ARG005  (every maker of cases takes the dtype)
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from stagedad.errors import DTypeError
from stagedad.ops import fft_samples, linalg_samples, random_samples, sequence_samples
from stagedad.ops.op import Op
from stagedad.ops.table import OPS, infer, resolve
from stagedad.types import TensorType, canonical_dtype

Array: TypeAlias = "np.ndarray[Any, Any]"
Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
Attributes: TypeAlias = "dict[str, Any]"
Case: TypeAlias = "tuple[str, Shapes, Attributes]"

LAYOUTS = ("0-d", "empty", "size-1", "4-d", "strided", "reversed", "broadcast", "plain")

_NEEDS_AXIS = "needs an axis"
_NO_OPERANDS = "has no operands"
ABSENT: dict[tuple[str, str], str] = {
    ("matmul", "0-d"): _NEEDS_AXIS,
    ("take", "0-d"): _NEEDS_AXIS,
    ("take_add", "0-d"): _NEEDS_AXIS,
    ("take_last", "0-d"): _NEEDS_AXIS,
    ("index_set", "0-d"): _NEEDS_AXIS,
    ("index_add", "0-d"): _NEEDS_AXIS,
    ("concatenate", "0-d"): _NEEDS_AXIS,
    ("split", "0-d"): _NEEDS_AXIS,
    ("constant", "strided"): _NO_OPERANDS,
    ("constant", "reversed"): _NO_OPERANDS,
    ("constant", "broadcast"): _NO_OPERANDS,
    **random_samples.ABSENT,
    **{(kind, "0-d"): _NEEDS_AXIS for kind in (*linalg_samples.CASES, *fft_samples.CASES)},
    **sequence_samples.ABSENT,
}
"""(op, layout) -> why the op has no such sample."""

# NumPy's max of nothing raises, so the empty sample keeps an axis that has elements.
_EXTREMA = ("max", "min")


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Operands and attributes of one call."""

    arrays: tuple[Array, ...]
    attributes: Attributes
    layout: str


def samples(kind: str, dtype: Any) -> list[Sample]:
    """Return the samples of op `kind` whose numeric operands are of `dtype`.

    Operands that are masks or indices keep their own dtype.  Empty if the op does
    not take `dtype`.

    Raises: KeyError if `kind` is no known op.
    """
    op, known = OPS[resolve(kind)], canonical_dtype(dtype)
    result = []
    for number, (layout, shapes, attributes) in enumerate(_cases(op, known)):
        seed = crc32(f"{op.kind} {known} {number}".encode())
        arrays = _operands(op, known, layout, shapes, attributes, np.random.default_rng(seed))
        try:
            infer(op.kind, [TensorType.of(array) for array in arrays], attributes)
        except DTypeError:
            return []
        result.append(Sample(arrays, attributes, layout))
    return result


def active(op: Op, arrays: Sequence[Array]) -> list[bool]:
    """Return which operands a cotangent is asked of: the inexact ones with a derivative."""
    rules = [argument.rule for argument in op.arguments]
    rules += rules[-1:] * (len(arrays) - len(rules))
    return [
        array.dtype.kind in "fc" and rule != "not_implemented"
        for array, rule in zip(arrays, rules, strict=True)
    ]


def _cases(op: Op, dtype: np.dtype[Any]) -> list[Case]:
    special = _CASES.get(op.kind)
    if special is not None:
        return special(dtype)
    return _reduction(op) if op.type_rule.endswith("reduction") else _elementwise(op, dtype)


def _elementwise(op: Op, dtype: np.dtype[Any] | None = None) -> list[Case]:
    """Cases of ops whose operands broadcast."""
    count = len(op.arguments)
    alike: list[tuple[str, tuple[int, ...]]] = [
        ("0-d", ()),
        ("empty", (0, 3)),
        ("size-1", (1, 3, 1)),
        ("4-d", (2, 3, 1, 2)),
        ("strided", (3, 4)),
        ("reversed", (5,)),
        ("broadcast", (2, 3)),
        ("plain", (2, 3)),
    ]
    result: list[Case] = [(layout, (shape,) * count, {}) for layout, shape in alike]
    if "order" in op.attributes:
        result += [("plain", ((2, 3),), {"order": order}) for order in (1, 2, 5)]
    if count > 1:
        shapes: list[Shapes] = [
            ((3, 1), (4,)), ((), (2, 3)), ((2, 3), ()), ((2, 1, 4), (2, 3, 1)),
            ((0, 3), (1, 3)), ((1,), (3,)),
        ]  # fmt: skip
        pad = ((2, 3),) * (count - 2)
        for pair in shapes:
            fits = not pad or np.broadcast_shapes(*pair) == (2, 3)
            result.append(("plain", pair + (pad if fits else pair[:1] * len(pad)), {}))
    if "alpha" in op.attributes:
        result.append(("plain", ((2, 3), (3,)), {"alpha": 3}))
        negative = dtype is not None and dtype.kind in "ifc"
        result.append(("reversed", ((3,), (2, 3)), {"alpha": -2 if negative else 2}))
    return result


def _reduction(op: Op) -> list[Case]:
    result: list[Case] = [
        ("0-d", ((),), {}),
        ("empty", ((0, 3),), {"axis": 1}),
        ("size-1", ((1, 3, 1),), {"axis": (0, 2)}),
        ("4-d", ((2, 3, 1, 2),), {"axis": (1, -1)}),
        ("4-d", ((2, 3, 1, 2),), {"axis": (0, 3), "keepdims": True}),
        ("strided", ((3, 4),), {"axis": 0}),
        ("strided", ((3, 4),), {}),
        ("reversed", ((3, 4),), {"axis": -1, "keepdims": True}),
        # Broadcast samples repeat along axis 0, where an extremum would be tied.
        ("broadcast", ((2, 3),), {"axis": 1}),
        ("plain", ((2, 3),), {"keepdims": True}),
        ("plain", ((5,),), {"axis": ()}),
    ]
    if op.kind not in _EXTREMA:
        result += [
            ("broadcast", ((2, 3),), {}),
            ("empty", ((2, 0),), {"axis": 0}),
        ]
    if op.kind == "sum":
        result += [("empty", ((2, 0),), {"axis": 1}), ("empty", ((0,),), {})]
    return result


_STRETCHES: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("0-d", (), ()),
    ("empty", (1, 3), (0, 3)),
    ("size-1", (1, 3, 1), (2, 3, 4)),
    ("4-d", (2, 1, 1, 2), (2, 3, 1, 2)),
    ("strided", (3, 1), (3, 4)),
    ("reversed", (3,), (2, 3)),
    ("broadcast", (2, 3), (4, 2, 3)),
    ("plain", (), (2, 3)),
    ("plain", (2, 3), (2, 3)),
]


def _stretch(kind: str) -> Callable[[np.dtype[Any]], list[Case]]:
    """Cases of sum_to, broadcast_to and those that take the shape from an operand."""

    def cases(dtype: np.dtype[Any]) -> list[Case]:
        result: list[Case] = []
        for layout, small, large in _STRETCHES:
            given, asked = (large, small) if kind.startswith("sum") else (small, large)
            if layout == "0-d":
                given = ()
            if kind.endswith("like"):
                result.append((layout, (given, asked), {}))
            else:
                result.append((layout, (given,), {"shape": asked}))
        return result

    return cases


def _attribute_cases(*cases: tuple[str, tuple[int, ...], Attributes]) -> Any:
    """Cases of an op with one operand."""
    return lambda dtype: [(layout, (shape,), attributes) for layout, shape, attributes in cases]


def _astype(dtype: np.dtype[Any]) -> list[Case]:
    shapes = [(layout, shape) for layout, (shape, *_), _ in _elementwise(OPS["exp"])]
    targets = ["float32", "float64", "complex128", "complex64", "int64", "bool", "float16"]
    return [
        (layout, (shape,), {"dtype": np.dtype(targets[number % len(targets)])})
        for number, (layout, shape) in enumerate([*shapes, *shapes[1:]])
    ]


def _constant(dtype: np.dtype[Any]) -> list[Case]:
    shapes = [("0-d", ()), ("empty", (0, 3)), ("size-1", (1, 3, 1)), ("4-d", (2, 3, 1, 2))]
    result: list[Case] = [("0-d", (), {"value": 2, "dtype": dtype})]
    for layout, shape in [*shapes, *[("plain", (2, 3))] * 4]:
        value = np.ones(shape, dtype)
        if layout == "plain":
            value *= dtype.type(len(result) % 2)
        result.append((layout, (), {"value": value}))
    return result


def _constant_like(dtype: np.dtype[Any]) -> list[Case]:
    return [(layout, shapes, {"value": 3}) for layout, shapes, _ in _elementwise(OPS["exp"])]


def _reshape_like(dtype: np.dtype[Any]) -> list[Case]:
    pairs = [
        ("0-d", (), (1,)), ("empty", (0, 3), (2, 0)), ("size-1", (1, 3, 1), (3,)),
        ("4-d", (2, 3, 1, 2), (4, 3)), ("strided", (3, 4), (2, 6)), ("reversed", (4,), (2, 2)),
        ("broadcast", (2, 3), (6,)), ("plain", (2, 3), (3, 2)),
    ]  # fmt: skip
    return [(layout, (given, asked), {}) for layout, given, asked in pairs]


def _concatenate(dtype: np.dtype[Any]) -> list[Case]:
    return [
        ("empty", ((0, 3), (2, 3)), {}),
        ("empty", ((0, 3), (0, 3)), {}),
        ("size-1", ((1, 3, 1), (1, 3, 1)), {"axis": 2}),
        ("4-d", ((2, 3, 1, 2), (2, 1, 1, 2), (2, 2, 1, 2)), {"axis": 1}),
        ("strided", ((3, 4), (3, 4)), {"axis": -1}),
        ("reversed", ((4,), (2,)), {}),
        ("broadcast", ((2, 3), (2, 3)), {}),
        ("plain", ((2, 3),), {}),
        ("plain", ((2, 3), (1, 3), (3, 3)), {"axis": 0}),
    ]


_SLICES: list[tuple[str, tuple[int, ...], Attributes]] = [
    ("0-d", (), {"start": (), "stop": (), "step": ()}),
    ("empty", (0, 3), {"start": (0, 1), "stop": (0, 3), "step": (1, 1)}),
    ("empty", (4, 3), {"start": (2, 0), "stop": (2, 3), "step": (1, 1)}),
    ("size-1", (1, 3, 1), {"start": (0, 0, 0), "stop": (1, 3, 1), "step": (1, 2, 1)}),
    ("4-d", (2, 3, 1, 2), {"start": (1, 0, 0, 0), "stop": (2, 3, 1, 2), "step": (1, 2, 1, 1)}),
    ("strided", (3, 4), {"start": (0, 1), "stop": (3, 4), "step": (2, 2)}),
    ("reversed", (5,), {"start": (4,), "stop": (None,), "step": (-1,)}),
    ("broadcast", (2, 3), {"start": (1, 2), "stop": (None, None), "step": (-1, -2)}),
    ("plain", (2, 3), {"start": (0, 1), "stop": (2, 2), "step": (1, 1)}),
    ("plain", (7,), {"start": (5,), "stop": (1,), "step": (-2,)}),
]


def _unslice(dtype: np.dtype[Any]) -> list[Case]:
    result: list[Case] = []
    for layout, shape, attributes in _SLICES:
        kept = _dims(infer("slice", [TensorType("float64", shape)], attributes)[0])
        result.append((layout, (kept,), {"shape": shape, **attributes}))
    return result


_TAKES: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = [
    ("empty", (4, 3), (0,), 0),
    ("empty", (4, 0), (2,), 0),
    ("size-1", (1, 3, 1), (1, 1), 1),
    ("4-d", (2, 3, 1, 2), (2, 2), 1),
    ("strided", (3, 4), (5,), -1),
    ("reversed", (4,), (6,), 0),
    ("broadcast", (2, 3), (4,), 1),
    ("plain", (5,), (), 0),
    ("plain", (5, 2), (3, 2), 0),
]


def _take(dtype: np.dtype[Any]) -> list[Case]:
    return [
        (layout, (shape, indices), {"axis": axis}) for layout, shape, indices, axis in _TAKES
    ]


def _take_add(dtype: np.dtype[Any]) -> list[Case]:
    result: list[Case] = []
    for layout, shape, indices, axis in _TAKES:
        at = axis % len(shape)
        taken = shape[:at] + indices + shape[at + 1 :]
        result.append((layout, (taken, indices), {"shape": shape, "axis": axis}))
    return result


def _slice_set(dtype: np.dtype[Any]) -> list[Case]:
    result: list[Case] = []
    for layout, shape, attributes in _SLICES:
        kept = _dims(infer("slice", [TensorType("float64", shape)], attributes)[0])
        result.append((layout, (shape, kept), attributes))
        # The value may be stretched: a number, one row.
        layout = "plain" if layout == "empty" and 0 not in shape else layout
        result.append((layout, (shape, ()), attributes))
        result.append((layout, (shape, (1, *kept[1:]) if kept else ()), attributes))
    return result


def _index_set(dtype: np.dtype[Any]) -> list[Case]:
    result: list[Case] = []
    for layout, shape, indices, axis in [*_TAKES, ("plain", (4, 3), (7,), 1)]:
        at = axis % len(shape)
        taken = shape[:at] + indices + shape[at + 1 :]
        result.append((layout, (shape, indices, taken), {"axis": axis}))
        result.append((layout, (shape, indices, ()), {"axis": axis}))
        result.append((layout, (shape, indices, taken[1:]), {"axis": axis}))
    return result


def _matmul(dtype: np.dtype[Any]) -> list[Case]:
    pairs: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
        ("empty", (0, 3), (3, 2)), ("empty", (2, 0), (0, 3)), ("empty", (0,), (0,)),
        ("size-1", (1, 1), (1, 1)), ("size-1", (1, 2, 3), (4, 3, 1)),
        ("4-d", (2, 1, 3, 2), (1, 3, 2, 2)), ("strided", (3, 4), (4, 2)),
        ("reversed", (3, 4), (4,)), ("broadcast", (2, 3), (3, 3)),
        ("plain", (2, 3), (3, 4)), ("plain", (3,), (3,)), ("plain", (3,), (3, 2)),
        ("plain", (2, 3), (3,)), ("plain", (3,), (2, 3, 4)), ("plain", (2, 4, 3), (3,)),
        ("plain", (2, 2, 3), (3, 2)), ("plain", (2, 3), (2, 3, 2)),
    ]  # fmt: skip
    return [(layout, (left, right), {}) for layout, left, right in pairs]


_CASES: dict[str, Callable[[np.dtype[Any]], list[Case]]] = {
    "astype": _astype,
    "constant": _constant,
    "constant_like": _constant_like,
    "sum_to": _stretch("sum_to"),
    "sum_to_like": _stretch("sum_to_like"),
    "broadcast_to": _stretch("broadcast_to"),
    "broadcast_like": _stretch("broadcast_like"),
    "reshape_like": _reshape_like,
    "concatenate": _concatenate,
    "slice": _attribute_cases(*_SLICES),
    "unslice": _unslice,
    "take": _take,
    "take_add": _take_add,
    "take_last": _take,
    "slice_set": _slice_set,
    "slice_add": _slice_set,
    "index_set": _index_set,
    "index_add": _index_set,
    "matmul": _matmul,
    "reshape": _attribute_cases(
        ("0-d", (), {"shape": (1, 1)}),
        ("empty", (0, 3), {"shape": (2, 0)}),
        ("size-1", (1, 3, 1), {"shape": (-1,)}),
        ("4-d", (2, 3, 1, 2), {"shape": (4, -1)}),
        ("strided", (3, 4), {"shape": (2, 6)}),
        ("reversed", (4,), {"shape": (2, 2)}),
        ("broadcast", (2, 3), {"shape": 6}),
        ("plain", (2, 3), {"shape": (2, 3)}),
    ),
    "transpose": _attribute_cases(
        ("0-d", (), {}),
        ("empty", (0, 3), {}),
        ("size-1", (1, 3, 1), {"axes": (1, 2, 0)}),
        ("4-d", (2, 3, 1, 2), {"axes": (3, 0, -2, 1)}),
        ("strided", (3, 4), {}),
        ("reversed", (5,), {}),
        ("broadcast", (2, 3), {"axes": (1, 0)}),
        ("plain", (2, 3), {}),
    ),
    "split": _attribute_cases(
        ("empty", (0, 3), {"indices_or_sections": 2}),
        ("empty", (3, 0), {"indices_or_sections": (1, 2)}),
        ("size-1", (1, 3, 1), {"indices_or_sections": 3, "axis": 1}),
        ("4-d", (2, 3, 1, 2), {"indices_or_sections": 2, "axis": -1}),
        ("strided", (3, 4), {"indices_or_sections": (1, 3), "axis": 1}),
        ("reversed", (6,), {"indices_or_sections": 3}),
        ("broadcast", (2, 3), {"indices_or_sections": (2,), "axis": 1}),
        ("plain", (4, 2), {"indices_or_sections": 1}),
        ("plain", (5,), {"indices_or_sections": (1, -1)}),
        ("plain", (3,), {"indices_or_sections": (2, 2, 9)}),
        # Cuts that do not rise: an element is in two parts, or in none.
        ("plain", (5, 2), {"indices_or_sections": (3, 1)}),
    ),
    "expand_dims": _attribute_cases(
        ("0-d", (), {"axis": 0}),
        ("empty", (0, 3), {"axis": 1}),
        ("size-1", (1, 3, 1), {"axis": (0, 2)}),
        ("4-d", (2, 3, 1, 2), {"axis": -1}),
        ("strided", (3, 4), {"axis": (1, -1)}),
        ("reversed", (5,), {"axis": 0}),
        ("broadcast", (2, 3), {"axis": -2}),
        ("plain", (2, 3), {"axis": 2}),
    ),
    "squeeze": _attribute_cases(
        ("0-d", (), {}),
        ("empty", (0, 1, 3), {"axis": 1}),
        ("size-1", (1, 3, 1), {}),
        ("4-d", (2, 3, 1, 2), {"axis": -2}),
        ("strided", (3, 1, 4), {"axis": (1,)}),
        ("reversed", (5, 1), {"axis": -1}),
        ("broadcast", (2, 1, 3), {"axis": 1}),
        ("plain", (1, 2, 1, 3), {"axis": (0, 2)}),
    ),
    **random_samples.CASES,
    **linalg_samples.CASES,
    **fft_samples.CASES,
    **sequence_samples.CASES,
}


def _operands(
    op: Op,
    dtype: np.dtype[Any],
    layout: str,
    shapes: Shapes,
    attributes: Attributes,
    random: np.random.Generator,
) -> tuple[Array, ...]:
    """Return operands of `shapes` whose values are distinct across all of them."""
    names = [argument.name for argument in op.arguments]
    names += names[-1:] * (len(shapes) - len(names))
    stored = [_stored_shape(shape, layout) for shape in shapes]
    # One shuffled grid for all operands: neither ties within nor between them.  The
    # offset keeps every value off the integers, where floor and sign jump.
    count = max(sum(map(prod, stored)), 1)
    grid = (random.permutation(count) + 0.37) / count
    result: list[Array] = []
    at = 0
    for name, shape, part in zip(names, shapes, stored, strict=True):
        unit = grid[at : at + prod(part)].reshape(part)
        at += prod(part)
        values: Array
        if name == "indices":
            size = (attributes.get("shape") or shapes[0])[attributes["axis"]]
            values = random.integers(-size, size, part)
        elif name == "key":
            values = random.integers(0, 1 << 64, part, np.uint64)
        elif name == "exponent":
            values = random.integers(-3, 4, part)
        elif name == "n":  # the order of a Bessel function
            values = random.integers(0, 4, part)
        elif name == "condition":
            values = unit < 0.5
        else:
            values = _values(unit, dtype, op.domain.get(name), random)
            if op.kind in linalg_samples.VALUES:
                values = linalg_samples.VALUES[op.kind](values, name)
        result.append(_laid_out(values, shape, layout))
    return tuple(result)


def _values(
    unit: Array,
    dtype: np.dtype[Any],
    domain: tuple[float, float] | None,
    random: np.random.Generator,
) -> Array:
    """Return values of `dtype` from numbers in (0, 1)."""
    if dtype.kind == "b":
        return np.less(unit, 0.5)
    if dtype.kind in "iu":
        # Integer powers have no negative exponents; a domain says that signs matter.
        least = 1 if dtype.kind == "u" or domain else -4
        whole: Array = np.floor(least + unit * (5 - least)).astype(dtype)
        return whole
    low, high = domain or (-2.0, 2.0)
    values = low + unit * (high - low)
    if dtype.kind == "c":
        return (values + 1j * random.uniform(-0.4, 0.4, unit.shape)).astype(dtype)
    return values.astype(dtype)


def _stored_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    return (1, *shape[1:]) if layout == "broadcast" and shape and shape[0] else shape


def _laid_out(values: Array, shape: tuple[int, ...], layout: str) -> Array:
    """Return `values` as an array of `shape` whose strides are those of `layout`."""
    if layout == "strided" and shape:
        room = np.empty(tuple(2 * dim for dim in shape), values.dtype)
        view = room[tuple(slice(None, None, 2) for _ in shape)]
        view[...] = values
        return view
    if layout == "reversed":
        flip = (slice(None, None, -1),) * len(shape)
        return np.ascontiguousarray(values[flip])[flip] if shape else values
    if layout == "broadcast":
        return np.broadcast_to(values, shape)
    return np.array(values)


def _dims(type: TensorType | None) -> tuple[int, ...]:
    assert type is not None
    assert type.shape is not None
    return tuple(dim for dim in type.shape if dim is not None)


def layouts(kind: str, found: Sequence[Sample]) -> set[str]:
    """Return the layouts of `LAYOUTS` that `found` lacks without a reason in `ABSENT`."""
    have = {sample.layout for sample in found}
    return {layout for layout in LAYOUTS if layout not in have and (kind, layout) not in ABSENT}
