"""Products of arrays: matmul, dot, tensordot, einsum, norm, ... on traced values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from operator import index
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from stagedad.errors import ShapeError
from stagedad.front.elementwise import (
    apply,
    astype,
    common_dtype,
    ndim_of,
    operand,
    shape_of,
    size_of,
    values,
)
from stagedad.front.reducing import reduction, refuse
from stagedad.front.shaping import axes_of, moveaxis, moved, reshape, reshaped, transpose
from stagedad.front.tracing import Traced, owner


def matmul(left: Any, right: Any, out: Any = None) -> Traced:
    """Record `np.matmul`."""
    refuse("matmul", out=out)
    operands = [operand(left, "matmul"), operand(right, "matmul")]
    for position, each in enumerate(operands):
        if ndim_of(each) == 0:
            raise ValueError(f"matmul: operand {position} is a scalar\nhint: use *")
    trace = owner(operands)
    return trace.emit("matmul", values(trace, operands))


def dot(a: Any, b: Any, out: Any = None) -> Traced:
    """Record `np.dot`: over the last axis of `a` and the last but one of `b`."""
    refuse("dot", out=out)
    left, right = operand(a, "dot"), operand(b, "dot")
    if ndim_of(left) == 0 or ndim_of(right) == 0:
        return apply("mul", left, right)
    if ndim_of(left) <= 2 and ndim_of(right) <= 2:
        return matmul(left, right)
    return tensordot(left, right, ([-1], [max(ndim_of(right) - 2, 0)]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Traced:
    """Record `np.tensordot`."""
    left, right = operand(a, "tensordot"), operand(b, "tensordot")
    if ndim_of(axes) == 0:
        over_left = tuple(range(ndim_of(left) - axes, ndim_of(left)))
        over_right = tuple(range(axes))
    else:
        over_left = axes_of(axes[0], ndim_of(left), "tensordot")
        over_right = axes_of(axes[1], ndim_of(right), "tensordot")
    summed = [shape_of(left)[axis] for axis in over_left]
    if summed != [shape_of(right)[axis] for axis in over_right]:
        raise ShapeError(
            "tensordot", "axes of different lengths", shape_of(left), shape_of(right)
        )
    rows, columns = _free(left, over_left), _free(right, over_right)
    inner = int(np.prod(summed, dtype=int))
    left = _matrix(left, over_left, back=True, shape=(-1, inner), free=rows)
    right = _matrix(right, over_right, back=False, shape=(inner, -1), free=columns)
    return reshape(matmul(left, right), rows + columns)


def inner(a: Any, b: Any) -> Traced:
    """Record `np.inner`: over the last axes."""
    left, right = operand(a, "inner"), operand(b, "inner")
    if ndim_of(left) == 0 or ndim_of(right) == 0:
        return apply("mul", left, right)
    return tensordot(left, right, ([-1], [-1]))


def outer(a: Any, b: Any, out: Any = None) -> Traced:
    """Record `np.outer` of the flattened operands."""
    refuse("outer", out=out)
    left, right = operand(a, "outer"), operand(b, "outer")
    column = reshaped(left, (size_of(left), 1))
    return apply("mul", column, reshaped(right, (1, size_of(right))))


def vdot(a: Any, b: Any) -> Traced:
    """Record `np.vdot`: of the flattened operands, the first conjugated."""
    left, right = operand(a, "vdot"), operand(b, "vdot")
    if common_dtype((left, right)).kind == "c":
        left = apply("conj", left) if isinstance(left, Traced) else np.conj(left)
    return matmul(reshaped(left, (size_of(left),)), reshaped(right, (size_of(right),)))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Traced:
    """Record `np.cross` of vectors of three components, or of two where NumPy takes them."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left: Any = operand(a, "cross")
    right: Any = operand(b, "cross")
    left, right = (moved(each, at, -1) for each, at in ((left, axisa), (right, axisb)))
    sizes = shape_of(left)[-1], shape_of(right)[-1]
    if not set(sizes) <= {2, 3}:
        raise ShapeError("cross", "not of two or three dims", shape_of(left), shape_of(right))
    x, y = (
        [each[..., i] for i in range(size)]
        for each, size in zip((left, right), sizes, strict=True)
    )

    def term(i: int, j: int) -> Any:
        """x_i y_j, or nothing where a vector has no such component."""
        return _product(x[i], y[j]) if i < sizes[0] and j < sizes[1] else None

    pairs = [(0, 1)] if sizes == (2, 2) else [(1, 2), (2, 0), (0, 1)]
    parts = [_difference(term(i, j), term(j, i)) for i, j in pairs]
    if len(parts) == 1:
        return parts[0]  # type: ignore[no-any-return]
    trace = owner(parts)
    stacked = [reshape(each, (*each.shape, 1)) for each in parts]
    joined = trace.emit(
        "concatenate", [trace.value(each) for each in stacked], {"axis": stacked[0].ndim - 1}
    )
    return moveaxis(joined, -1, axisc)


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, Traced) or isinstance(right, Traced):
        return apply("mul", left, right)
    return np.multiply(left, right)


def _difference(left: Any, right: Any) -> Any:
    if left is None:
        return apply("neg", right)
    return left if right is None else apply("sub", left, right)


def einsum(*operands: Any, optimize: Any = False, **kwargs: Any) -> Traced:
    """Record `np.einsum`: repeated labels, `...`, implicit results, lists of numbers."""
    del optimize
    refuse("einsum", **kwargs)
    subscripts, given = subscripts_of(operands)
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    labels = inputs.split(",")
    if len(labels) != len(given):
        raise ValueError(f"einsum: {len(labels)} subscripts for {len(given)} operands")
    known = [operand(each, "einsum") for each in given]
    labels, dots = _without_dots(labels, known)
    if not arrow:
        counts = Counter("".join(labels))
        once = [label for label, count in counts.items() if count == 1 and label not in dots]
        result = dots + "".join(sorted(once))
    elif "..." in result:
        result = result.replace("...", dots, 1)
    elif dots:
        raise ValueError(f"einsum: `...` of the operands is not in the result: {subscripts}")
    wrong = [each for each in result if result.count(each) > 1 or each not in "".join(labels)]
    if wrong:
        raise ValueError(f"einsum: `{wrong[0]}` of the result: {subscripts}")
    terms = []
    lengths = _lengths(labels, known)
    for text, array in zip(labels, known, strict=True):
        terms.append(_without_repeats(*_without_ones(array, text, lengths)))
    array, text = terms[0]
    for position, (other, other_text) in enumerate(terms[1:], 2):
        needed = set(result).union(*[later for _, later in terms[position:]])
        array, text = _contract(array, text, other, other_text, needed)
    gone = tuple([i for i, label in enumerate(text) if label not in result])
    if gone:
        array = reduction("sum", array, gone, False)
        text = "".join([label for label in text if label in result])
    ordered = transpose(array, [text.index(label) for label in result])
    # np.einsum sums in the dtype of the operands, and knows no larger integers.
    dtype = np.result_type(*[getattr(each, "dtype", type(each)) for each in known])
    return ordered if ordered.dtype == dtype else astype(ordered, dtype)


def subscripts_of(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the text and the arrays of an einsum, whose labels may be lists of numbers."""
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    arrays, lists = list(operands[:-1:2]), list(operands[1::2])
    texts = [_text(each) for each in lists]
    if len(operands) % 2:
        return f"{','.join(texts)}->{_text(operands[-1])}", arrays
    return ",".join(texts), arrays


def _text(numbers: Any) -> str:
    """Return labels for numbers, in the same order."""
    letters = ascii_uppercase + ascii_lowercase
    try:
        return "".join(
            ["..." if each is Ellipsis else letters[index(each)] for each in numbers]
        )
    except (TypeError, IndexError) as error:
        raise ValueError(f"einsum: not numbers of labels: {numbers!r}") from error


def _without_dots(labels: Sequence[str], arrays: Sequence[Any]) -> tuple[list[str], str]:
    """Return subscripts with labels of their own for `...`, and all of these labels."""
    # Characters that are no letters: nobody's labels.
    private = "".join(map(chr, range(0xE000, 0xE040)))
    found, most = [], 0
    for text, array in zip(labels, arrays, strict=True):
        letters = text.replace("...", "", 1)
        count = ndim_of(array) - len(letters)
        if not all(each.isascii() and each.isalpha() for each in letters):
            raise ValueError(f"einsum: labels are letters: {text!r}")
        if count < 0 or (count and letters == text):
            raise ShapeError("einsum", f"`{text}` does not fit", shape_of(array))
        most = max(most, count)
        found.append(text.replace("...", private[len(private) - count :], 1))
    return found, private[len(private) - most :]


def _lengths(labels: Sequence[str], arrays: Sequence[Any]) -> dict[str, int]:
    """Return how long each label is; axes of length 1 fit every length."""
    lengths: dict[str, int] = {}
    for text, array in zip(labels, arrays, strict=True):
        for label, length in zip(text, shape_of(array), strict=True):
            if lengths.setdefault(label, length) == 1:
                lengths[label] = length
            elif length not in (1, lengths[label]):
                raise ShapeError("einsum", f"`{label}` has two lengths", *map(shape_of, arrays))
    return lengths


def _without_ones(array: Any, text: str, lengths: dict[str, int]) -> tuple[Any, str]:
    """Return an operand without its axes of length 1 whose label is longer elsewhere."""
    shape = shape_of(array)
    kept = [at for at, label in enumerate(text) if shape[at] == lengths[label]]
    if len(kept) == len(text):
        return array, text
    labels = "".join([text[at] for at in kept])
    return reshaped(array, tuple([shape[at] for at in kept])), labels


def _contract(
    left: Any, left_text: str, right: Any, right_text: str, needed: set[str]
) -> tuple[Any, str]:
    """Multiply two operands, summing over the labels that both have and nobody needs."""
    both = [label for label in left_text if label in right_text]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    rows = [label for label in left_text if label not in both]
    columns = [label for label in right_text if label not in both]
    sizes = dict(zip(left_text + right_text, shape_of(left) + shape_of(right), strict=True))

    def arranged(value: Any, text: str, *groups: Sequence[str]) -> Any:
        order = [text.index(label) for group in groups for label in group]
        shape = [sizes[label] for label in groups[0]]
        shape += [prod(sizes[label] for label in group) for group in groups[1:]]
        moved = (
            transpose(value, order) if isinstance(value, Traced) else np.transpose(value, order)
        )
        return reshaped(moved, tuple(shape))

    left = arranged(left, left_text, batch, rows, summed)
    right = arranged(right, right_text, batch, summed, columns)
    # A product of plain operands stays plain.
    is_traced = isinstance(left, Traced) or isinstance(right, Traced)
    product = matmul(left, right) if is_traced else np.matmul(left, right)
    text = "".join([*batch, *rows, *columns])
    return reshaped(product, tuple([sizes[label] for label in text])), text


def _without_repeats(array: Any, text: str) -> tuple[Any, str]:
    """Return `array` with the diagonal taken of axes that have the same label."""
    while len(set(text)) < len(text):
        label = next(each for each in text if text.count(each) > 1)
        first = text.index(label)
        second = text.index(label, first + 1)
        if shape_of(array)[first] != shape_of(array)[second]:
            raise ShapeError("einsum", f"`{label}` has two lengths", shape_of(array))
        if isinstance(array, Traced):
            array = _diagonal(moveaxis(array, (first, second), (-2, -1)))
        else:
            array = np.diagonal(array, axis1=first, axis2=second)
        text = text[:first] + text[first + 1 : second] + text[second + 1 :] + label
    return array, text


def _diagonal(square: Traced) -> Traced:
    """Return the diagonal of the last two axes, of equal length, as the last axis."""
    length = square.shape[-1]
    flat = reshape(square, (*square.shape[:-2], length * length))
    return flat[..., :: length + 1]  # type: ignore[index, no-any-return]


def _free(value: Any, over: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([dim for axis, dim in enumerate(shape_of(value)) if axis not in over])


def _matrix(
    value: Any, over: tuple[int, ...], *, back: bool, shape: tuple[int, int],
    free: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return `value` as a matrix with the axes `over` last (`back`) or first."""
    ndim, count = ndim_of(value), len(over)
    target = range(ndim - count, ndim) if back else range(count)
    size = int(np.prod(free, dtype=int))
    known = (size, shape[1]) if back else (shape[0], size)
    return reshaped(moved(value, over, tuple(target)), known)
