"""Macros: names that formulas use for several ops, or for sums over metadata.

A macro expands into ops of the table, so that every order of derivative exists;
it gets a `Builder`, which knows structural zeros, and calls nothing else.  `uses`
names the kinds it may emit: the loader computes the derivative order from them.
Shapes arrive as tuples, or as a `ShapeOf` where they are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from stagedad.ops.type_rules import part_bounds

if TYPE_CHECKING:
    from stagedad.ops.builder import Builder

MASK = ("astype", "where", "constant_like", "constant")


@dataclass(frozen=True, slots=True)
class Macro:
    """A function of a builder (unless it only looks at metadata) and its arguments."""

    function: Callable[..., Any]
    uses: tuple[str, ...]
    implicit: int
    """How many arguments come before those of the formula: the builder, or nothing."""


MACROS: dict[str, Macro] = {}


def macro(*uses: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of (builder, ...) as a macro that may emit `uses`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        MACROS[function.__name__] = Macro(function, uses, 1)
        return function

    return register


def metadata(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function of metadata alone as a macro."""
    MACROS[function.__name__] = Macro(function, (), 0)
    return function


@metadata
def inverse_axes(axes: Any) -> tuple[int, ...] | None:
    """Return the permutation that undoes `axes`."""
    if axes is None:
        return None
    numbers = [axis % len(axes) for axis in axes]
    return tuple(sorted(range(len(numbers)), key=numbers.__getitem__))


@metadata
def contracted(shape: Any) -> int:
    """Return how many products a matmul sums, given the shape of its left operand."""
    length: int = shape[-1]
    return length


@macro("expand_dims", "broadcast_to", "broadcast_like")
def expand_reduced(b: Builder, g: Any, shape: Any, axis: Any, keepdims: Any) -> Any:
    """Spread a reduced `g` over the axes that were reduced.

    Shapes: g [kept] -> shape
    """
    return b.broadcast_to(_expand(b, g, axis, keepdims), shape)


@macro("constant_like", "broadcast_like", "sum")
def reduced_count(b: Builder, shape: Any, g: Any, axis: Any, keepdims: Any) -> Any:
    """Return how many elements a reduction takes: a number, or an operand shaped like `g`."""
    count = _count(b, shape, axis)
    if count is not None:
        return count
    one = b.call("constant_like", (g,), {"value": 1})
    ones = b.broadcast_to(one, shape)
    return b.call("sum", (ones,), {"axis": axis, "keepdims": keepdims})


@macro("expand_dims", "equal", "sum", "div", *MASK)
def ties(b: Builder, self: Any, result: Any, axis: Any, keepdims: Any) -> Any:
    """Return the share of each element in the extremum `result`; shares sum to 1.

    Shapes: self [all], result [kept] -> [all]
    """
    if _count(b, b.shape(self), axis) == 1:
        return 1
    mask, count = _extrema(b, self, result, axis, keepdims)
    return b.call("div", (mask, count))


@macro("expand_dims", "broadcast_to", "broadcast_like", "equal", "sum", "div", "mul", *MASK)
def to_extremum(b: Builder, g: Any, self: Any, result: Any, axis: Any, keepdims: Any) -> Any:
    """Hand `g` to the elements that equal the extremum `result`, in equal shares.

    As g * ties(...), with the division done on the reduced shape.  An element alone is its
    extremum, also where it is NaN, which equals nothing.

    Shapes: g, result [kept], self [all] -> [all]
    """
    shape = b.shape(self)
    if _count(b, shape, axis) == 1:
        return expand_reduced(b, g, shape, axis, keepdims)
    mask, count = _extrema(b, self, result, axis, keepdims)
    share = b.call("div", (_expand(b, g, axis, keepdims), count))
    return b.call("mul", (share, mask))


@macro("mul", "astype", "constant")
def imag_cotangent(b: Builder, g: Any, dtype: Any) -> Any:
    """Return the cotangent of z, given that of imag(z): i g, or nothing for real z."""
    if dtype is None or dtype.kind != "c":
        return b.zero
    return b.call("mul", (b.astype(g, dtype), 1j))


@macro("slice")
def pieces(b: Builder, g: Any, shapes: Any, axis: Any) -> Any:
    """Return the parts of `g` that the operands of a concatenation have in it.

    Shapes: g [.., sum of dims at axis, ..] -> one of each of `shapes`
    """
    start = 0
    parts = []
    for number, shape in enumerate(shapes):
        dims = b.static(shape, "concatenate")
        at = axis % len(dims)
        stop = start + dims[at]
        parts.append(b.zero)
        if b.wanted is None or b.wanted[number]:
            first, last = [0] * len(dims), list(dims)
            first[at], last[at] = start, stop
            slices = {"start": tuple(first), "stop": tuple(last), "step": (1,) * len(dims)}
            parts[-1] = b.call("slice", (g,), slices)
        start = stop
    return tuple(parts)


@macro(
    "concatenate", "unslice", "add", "zeros_like", "constant", "constant_like", "broadcast_to",
)  # fmt: skip
def join(b: Builder, g: Any, shapes: Any, shape: Any, sections: Any, axis: Any) -> Any:
    """Return the cotangent of an array that was split, given those of the parts in `g`.

    A single one is unsliced; zeros take the place of those that are absent among others.

    Shapes: g [.., part, ..] each, or zero; `shapes` of the parts -> shape
    """
    if len(g) == 1:
        return g[0]
    present = [number for number, part in enumerate(g) if part is not b.zero]
    dims = b.dims(shape)
    is_static = dims is not None and None not in dims
    if _tiles(sections, None if dims is None else dims[axis]) and not (
        is_static and len(present) == 1
    ):
        like = g[present[0]]
        parts = [
            b.zeros(part_shape, like) if part is b.zero else part
            for part, part_shape in zip(g, shapes, strict=True)
        ]
        return b.call("concatenate", tuple(parts), {"axis": axis})
    # Parts between cuts that do not rise overlap, or leave elements out.
    dims = b.static(shape, "split")
    at = axis % len(dims)
    bounds = part_bounds(sections, dims[at])
    total = b.zero
    for number in present:
        start, stop = [0] * len(dims), list(dims)
        start[at], stop[at] = bounds[number]
        slices = {"start": tuple(start), "stop": tuple(stop), "step": (1,) * len(dims)}
        part = b.call("unslice", (g[number],), {"shape": tuple(dims), **slices})
        total = part if total is b.zero else b.call("add", (total, part))
    return total


@macro("expand_dims", "equal", "where", "sub", "exp", "constant", "constant_like")
def share_of_exponentials(b: Builder, self: Any, result: Any, axis: Any, keepdims: Any) -> Any:
    """Return exp(self) over their sum, given its logarithm; 0 where that is -inf.

    Shapes: self [all], result [kept] -> [all]
    """
    total = _expand(b, result, axis, keepdims)
    total = b.call("where", (b.call("equal", (total, float("-inf"))), 0, total))
    return b.call("exp", (b.call("sub", (self, total)),))


@macro("sub", "add", "mul", "neg", "constant", "constant_like")
def one_less_square(b: Builder, self: Any) -> Any:
    """Return (1 - self) (1 + self), which near 1 has the digits that 1 - self ** 2 loses.

    Of complex numbers by differences alone: the sides of a branch cut are told apart by the
    sign of a zero, which 1 - self and 1 + self lose.
    """
    if self.type is not None and self.type.dtype.kind != "c":
        return b.call("mul", (b.call("sub", (1, self)), b.call("add", (1, self))))
    less, more = (b.call("sub", (self, one)) for one in (1, -1))
    return b.call("mul", (b.call("neg", (less,)), more))


@macro("hypot", "div", "sub", "mul", "sqrt", "constant", "constant_like")
def reciprocal_length(b: Builder, self: Any) -> Any:
    """Return 1 / sqrt(1 + self ** 2); of reals without the square, which may overflow.

    Of complex numbers by a difference: a sum loses the sign of a zero, by which the sides of
    a branch cut are told apart.
    """
    if self.type is not None and self.type.dtype.kind != "c":
        return b.call("div", (1, b.call("hypot", (1, self))))
    square = b.call("sub", (b.call("mul", (self, self)), -1))
    return b.call("div", (1, b.call("sqrt", (square,))))


@macro("equal", "where", "div", "constant", "constant_like")
def over(b: Builder, value: Any, length: Any) -> Any:
    """Return value / length, and 0 where the length is 0.

    There it divides by infinity and not by 1, so that all further derivatives are 0 too.
    """
    is_zero = b.call("equal", (length, 0))
    return b.call("div", (value, b.call("where", (is_zero, float("inf"), length))))


@macro("sign", "equal", "where", "div", "constant", "constant_like")
def direction(b: Builder, self: Any, length: Any) -> Any:
    """Return self / abs(self), 0 at 0: the sign of a real number."""
    if self.type is None or self.type.dtype.kind != "c":
        return b.call("sign", (self,))
    return over(b, self, length)


@macro("hypot", "equal", "where", "div", "constant", "constant_like")
def over_length(b: Builder, value: Any, x: Any, y: Any) -> Any:
    """Return value / hypot(x, y), and 0 where that is 0."""
    return over(b, value, b.call("hypot", (x, y)))


@macro("sub", "isinf", "equal", "logical_and", "where", "constant", "constant_like")
def gap(b: Builder, self: Any, other: Any) -> Any:
    """Return self - other, and 0 between equal infinities."""
    alike = b.call("logical_and", (b.call("isinf", (self,)), b.call("equal", (self, other))))
    return b.call("where", (alike, 0, b.call("sub", (self, other))))


@macro("isnan", "logical_or", "logical_not", "equal", *MASK)
def chosen(b: Builder, loses: Any, self: Any, other: Any) -> Any:
    """Return 0 where `loses` or `self` is NaN, a half where `self` equals `other`, else 1."""
    out = b.call("logical_or", (loses, b.call("isnan", (self,))))
    wins = b.mask(b.call("logical_not", (out,)), self)
    return b.call("where", (b.call("equal", (self, other)), 0.5, wins))


@macro("index_set", "zeros_like", "constant", "constant_like", "broadcast_to")
def put(b: Builder, g: Any, indices: Any, shape: Any, axis: Any) -> Any:
    """Return zeros in which `g` was written at `indices`; of several the last stays.

    Shapes: g [taken] -> shape
    """
    return b.call("index_set", (b.zeros(shape, g), indices, g), {"axis": axis})


MATMUL = (
    "matmul", "mul", "conj", "transpose", "expand_dims", "squeeze", "sum_to", "sum_to_like",
)  # fmt: skip


@macro(*MATMUL)
def matmul_left(b: Builder, g: Any, other: Any, shape: Any) -> Any:
    """Return the cotangent of the left operand of a matmul, of shape `shape`.

    Shapes: g [.., m, n], other [.., k, n] conjugated -> [.., m, k]; m or n absent
            where an operand was 1-d
    """
    ndim, other_ndim = b.ndim(shape, "matmul"), b.ndim(b.shape(other), "matmul")
    other = b.conj(other)
    if other_ndim == 1:
        product = b.call("mul", (g if ndim == 1 else _insert(b, g, -1), other))
    elif ndim == 1:
        product = b.call("matmul", (other, _insert(b, g, -1)))
        product = b.call("squeeze", (product,), {"axis": -1})
    else:
        product = b.call("matmul", (g, _swap(b, other, other_ndim)))
    return b.sum_to(product, shape)


@macro(*MATMUL)
def matmul_right(b: Builder, g: Any, self: Any, shape: Any) -> Any:
    """Return the cotangent of the right operand of a matmul, of shape `shape`.

    Shapes: g [.., m, n], self [.., m, k] conjugated -> [.., k, n]; m or n absent
            where an operand was 1-d
    """
    ndim, self_ndim = b.ndim(shape, "matmul"), b.ndim(b.shape(self), "matmul")
    self = b.conj(self)
    if self_ndim == 1 and ndim == 1:
        product = b.call("mul", (g, self))
    elif self_ndim == 1:
        product = b.call("mul", (_insert(b, g, -2), _insert(b, self, -1)))
    elif ndim == 1:
        product = b.call("matmul", (_swap(b, self, self_ndim), _insert(b, g, -1)))
        product = b.call("squeeze", (product,), {"axis": -1})
    else:
        product = b.call("matmul", (_swap(b, self, self_ndim), g))
    return b.sum_to(product, shape)


def _count(b: Builder, shape: Any, axis: Any) -> int | None:
    """Return how many elements a reduction over `axis` takes, or None where it is unknown."""
    dims = b.dims(shape)
    if dims is None:
        return None
    axes = range(len(dims)) if axis is None else axis if _is_list(axis) else (axis,)
    known = [dim for dim in (dims[number] for number in axes) if dim is not None]
    return prod(known) if len(known) == len(axes) else None


def _extrema(b: Builder, self: Any, result: Any, axis: Any, keepdims: Any) -> tuple[Any, Any]:
    """Return where the elements equal the extremum, as numbers, and how often they do."""
    mask = b.mask(b.call("equal", (self, _expand(b, result, axis, keepdims))), self)
    return mask, b.call("sum", (mask,), {"axis": axis, "keepdims": True})


def _expand(b: Builder, reduced: Any, axis: Any, keepdims: Any) -> Any:
    """Put dims of 1 in the place of the reduced axes, where broadcasting would not."""
    if keepdims or axis is None or axis == ():
        return reduced
    return b.call("expand_dims", (reduced,), {"axis": axis})


def _insert(b: Builder, operand: Any, axis: int) -> Any:
    return b.call("expand_dims", (operand,), {"axis": axis})


def _swap(b: Builder, operand: Any, ndim: int) -> Any:
    axes = (*range(ndim - 2), ndim - 1, ndim - 2)
    return b.call("transpose", (operand,), {"axes": None if ndim == 2 else axes})


def _tiles(sections: Any, dim: int | None) -> bool:
    """Whether the parts, one behind the other, are the axis; of None, whatever its size."""
    if not _is_list(sections):
        return True
    cuts = [0, *sections]
    if dim is not None:
        cuts = [min(cut + dim if cut < 0 else cut, dim) for cut in cuts]
    return all(one <= other for one, other in pairwise(cuts))


def _is_list(axis: Any) -> bool:
    return isinstance(axis, tuple | list)
