"""Every op by its NumPy function, one at a time: the oracle of all backends.

Also what folds constants, and what runs an op that has no loop of its own.
Floating-point errors are silent; results are arrays, 0-d ones too, and the ops
with the trait `view` may give views of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from stagedad.ops import (
    fft_reference,
    functions,
    linalg_reference,
    random_reference,
    sequence_reference,
)
from stagedad.ops.called_rules import results_of
from stagedad.ops.op import Op
from stagedad.ops.type_rules import real_function_dtype

Array: TypeAlias = "np.ndarray[Any, Any]"
Function: TypeAlias = "Callable[..., Any]"


def function(op: Op) -> Function:
    """Return the function of `op`: of arrays, and of its attributes by name.

    Raises: NotImplementedError if the op has none.
    """
    if op.function is not None:
        return op.function
    own = FUNCTIONS.get(op.kind)
    if own is not None:
        return own
    if op.ufunc is not None:
        return op.ufunc
    if op.numpy is None:
        raise NotImplementedError(f"{op.kind}: has no reference")
    found: Function = attrgetter(op.numpy)(np)
    return found


def evaluate_op(
    op: Op, arrays: Sequence[Array], attributes: Mapping[str, Any]
) -> tuple[Array, ...]:
    """Return the results of `op`, every attribute being given."""
    with np.errstate(all="ignore"):
        results = function(op)(*arrays, **attributes)
    if op.function is not None:
        return results_of(op, results)
    if op.has_one_result:
        return (np.asarray(results),)
    return tuple(np.asarray(result) for result in results)


def _scaled(combine: np.ufunc) -> Function:
    def scaled(self: Array, other: Array, *, alpha: complex) -> Any:
        return combine(self, other if alpha == 1 else np.multiply(other, alpha))

    return scaled


def _sigmoid(self: Array) -> Any:
    # An exponential that overflows is infinite, and its inverse is 0, as it should be.
    x = self.astype(real_function_dtype("sigmoid", self.dtype))
    return np.divide(1, np.add(np.exp(np.negative(x)), 1))


def _mul0(self: Array, other: Array) -> Array:
    product = np.asarray(np.multiply(self, other))
    return np.where(np.equal(self, 0), np.zeros((), product.dtype), product)


def _astype(self: Array, *, dtype: Any) -> Array:
    target = np.dtype(dtype)
    # NumPy warns when it drops an imaginary part; here that is what was asked.
    if self.dtype.kind == "c" and target.kind not in "cb":
        self = self.real
    return self.astype(target)


def _sum_to(self: Array, *, shape: Any) -> Array:
    target = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    lead = self.ndim - len(target)
    axes = tuple(range(lead)) + tuple(
        lead + axis
        for axis, dim in enumerate(target)
        if dim == 1 and self.shape[lead + axis] != 1
    )
    if not axes:
        return self.copy()
    return np.sum(self, axis=axes, dtype=self.dtype).reshape(target)


def _slices(start: Any, stop: Any, step: Any) -> tuple[slice, ...]:
    return tuple(map(slice, start, stop, step))


def _unslice(self: Array, *, shape: Any, start: Any, stop: Any, step: Any) -> Array:
    result = np.zeros(shape, self.dtype)
    result[_slices(start, stop, step)] = self
    return result


def _take_add(self: Array, indices: Array, *, shape: Any, axis: int) -> Array:
    result = np.zeros(shape, self.dtype)
    np.add.at(result, _at(result, indices, axis), self)
    return result


def _written(self: Array, value: Array) -> Array:
    return np.array(self, np.result_type(self.dtype, value.dtype))


def _slice_set(self: Array, value: Array, *, start: Any, stop: Any, step: Any) -> Array:
    result = _written(self, value)
    result[_slices(start, stop, step)] = value
    return result


def _slice_add(self: Array, value: Array, *, start: Any, stop: Any, step: Any) -> Array:
    result = _written(self, value)
    result[_slices(start, stop, step)] += value
    return result


def _at(self: Array, indices: Array, axis: int) -> Any:
    return (*(slice(None),) * (axis % self.ndim), indices)


def _index_set(self: Array, indices: Array, value: Array, *, axis: int) -> Array:
    result = _written(self, value)
    result[_at(self, indices, axis)] = value
    return result


def _index_add(self: Array, indices: Array, value: Array, *, axis: int) -> Array:
    result = _written(self, value)
    np.add.at(result, _at(self, indices, axis), value)
    return result


def _take_last(self: Array, indices: Array, *, axis: int) -> Array:
    at = axis % self.ndim
    result = np.asarray(np.take(self, indices, at))
    places = (indices % max(self.shape[at], 1)).ravel().tolist()
    last = {place: number for number, place in enumerate(places)}
    over = np.array([last[place] != number for number, place in enumerate(places)], bool)
    result[_at(self, over.reshape(indices.shape), at)] = 0
    return result


def _constant(*, value: Any, dtype: Any, shape: Any, is_zero: int) -> Array:  # noqa: ARG001
    array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype)
    return array if shape is None else np.full(shape, array)


FUNCTIONS: dict[str, Function] = {
    "add": _scaled(np.add),
    "sub": _scaled(np.subtract),
    "mul0": _mul0,
    "sigmoid": _sigmoid,
    "astype": _astype,
    "copy": lambda self: np.array(self),
    "stop_gradient": lambda self: np.array(self),
    "sum_to": _sum_to,
    "sum_to_like": lambda self, like: _sum_to(self, shape=like.shape),
    "broadcast_like": lambda self, like: np.broadcast_to(self, like.shape),
    "reshape": lambda self, *, shape: np.reshape(self, shape),
    "reshape_like": lambda self, like: np.reshape(self, like.shape),
    "expand_dims": lambda self, *, axis: np.expand_dims(self, axis),
    "concatenate": lambda *arrays, axis: np.concatenate(arrays, axis),
    "slice": lambda self, *, start, stop, step: self[_slices(start, stop, step)],
    "unslice": _unslice,
    "take_add": _take_add,
    "slice_set": _slice_set,
    "slice_add": _slice_add,
    "index_set": _index_set,
    "index_add": _index_add,
    "take_last": _take_last,
    "constant": _constant,
    "constant_like": lambda self, *, value: np.asarray(value).astype(self.dtype),
    **linalg_reference.FUNCTIONS,
    **fft_reference.FUNCTIONS,
    **functions.FUNCTIONS,
    **random_reference.FUNCTIONS,
    **sequence_reference.FUNCTIONS,
}
"""What is not one call of NumPy by the op's own arguments and attributes."""
