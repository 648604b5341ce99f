"""Plain arrays and numbers as constants of a graph that is being traced.

Arrays are held by reference, so that later changes of a closed-over array are
seen.  An array that changes *while* the function is traced was two constants:
each use keeps the contents it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stagedad.errors import DTypeError, TraceError
from stagedad.front.location import place, user_location
from stagedad.ir import Graph, Value
from stagedad.types import TensorType, canonical_dtype

_COPY_LIMIT: Final = 1 << 20
"""Larger closed-over arrays are taken as constant during the trace, not compared."""

_CONTAINERS: Final = (list, tuple, range)
_PYTHON_DTYPE: Final = {
    bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(float),
    complex: np.dtype(complex),
}  # fmt: skip


@dataclass(slots=True)
class _Held:
    array: np.ndarray[Any, Any]
    value: Value | None
    contents: bytes | None
    place: str


class Constants:
    """The constants of one graph.

    `reached` is what the function's closures hold (see reach.py), or None.
    """

    def __init__(self, graph: Graph, reached: Any) -> None:
        self.graph = graph
        self.reached = reached
        self.local = 0
        """How many constants are arrays made in the trace, or numbers taken from an array."""
        self._held: dict[int, _Held] = {}
        self.numbers: dict[tuple[Any, ...], Value] = {}
        """(type, number, dtype) -> the constant made for it."""
        self._inherited: list[_Held] = []
        self.watched: list[np.ndarray[Any, Any]] = []
        """Closed-over arrays whose contents the trace depends on, not the graph."""

    def number(self, number: Any, dtype: np.dtype[Any]) -> Value:
        """Return a 0-d constant of `dtype`.

        Raises: OverflowError as NumPy does, with the user's line.
        """
        key = (type(number), number, dtype)
        # Zeros of both signs are equal keys, and NaN is no key at all.
        is_complex = isinstance(number, (complex, np.complexfloating))
        reusable = number == number and number != 0 and not is_complex
        found = self.numbers.get(key) if reusable else None
        if found is not None:
            return found
        plain = np.asarray(number).astype(dtype) if isinstance(number, np.generic) else number
        try:
            exact = np.array(plain, dtype=dtype).item()
        except OverflowError as error:
            raise OverflowError(
                f"constant: {error}: an int meets {dtype} ({place()})\n"
                "hint: float(...) of it has the range"
            ) from None
        value = self.graph.constant(exact, dtype=dtype, location=user_location())
        if isinstance(number, np.generic):
            self.local += 1  # it may have been read from a closed-over array
        if reusable:
            self.numbers[key] = value
        return value

    def array(self, array: np.ndarray[Any, Any]) -> Value:
        """Return a constant that holds `array` by reference."""
        held = self._held.get(id(array))
        if held is not None:
            if held.contents is None or held.contents == array.tobytes():
                assert held.value is not None
                return held.value
            self._freeze(held)
        is_closed_over = self._is_closed_over(array)
        self.local += not is_closed_over
        value = self.graph.constant(array, location=user_location())
        is_large = array.nbytes > _COPY_LIMIT and is_closed_over
        contents = None if is_large else array.tobytes()
        self._held[id(array)] = _Held(array, value, contents, place())
        return value

    def watch(self, array: np.ndarray[Any, Any]) -> None:
        """Note that the trace would be another one, had `array` other contents."""
        if self._is_closed_over(array):
            self.watched.append(array)

    def holds(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the graph reads `array`, or a view of it, at each run."""
        every = [*self._held.values(), *self._inherited]
        return any(base is array for held in every for base in bases(held.array))

    def seal(self, outer: Constants | None) -> None:
        """End the trace: arrays that changed since they were read keep what was read.

        Into `outer` go the arrays of a nested trace, to be looked at again at its end.
        """
        for held in self._held.values():
            if held.contents is not None and held.contents != held.array.tobytes():
                self._freeze(held)
            elif outer is not None:
                outer._inherited.append(held)
        for held in self._inherited:
            if held.contents is not None and held.contents != held.array.tobytes():
                raise _changed(held)
        if outer is not None:
            outer._inherited += self._inherited
            outer.local += self.local
            outer.watched += self.watched

    def _is_closed_over(self, array: np.ndarray[Any, Any]) -> bool:
        reached = self.reached
        if reached is None:
            return False
        # Of a view of a view NumPy keeps the owner of the memory alone.
        *views, owner = bases(array)
        return any(reached.holds(view) for view in views) or any(
            base is owner for known in reached.closed_over() for base in bases(known)
        )

    def _freeze(self, held: _Held) -> None:
        """Put the contents that were read in place of an array that changed."""
        if self._is_closed_over(held.array):
            raise _changed(held)
        assert held.contents is not None
        assert held.value is not None
        array = held.array
        then = np.frombuffer(held.contents, dtype=array.dtype).reshape(array.shape).copy()
        node = held.value.node
        frozen = self.graph.create("constant", value=then, location=node.location)
        frozen.insert_before(node)
        held.value.replace_all_uses_with(frozen.output)
        node.destroy()


def _changed(held: _Held) -> TraceError:
    return TraceError(
        f"trace: an array read at {held.place} changed while the function was traced: "
        f"{TensorType.of(held.array)}",
        hint="a traced call would not change it again; use an array made in the function",
    )


def bases(array: Any) -> Iterator[Any]:
    """Yield `array` and the arrays whose memory it views."""
    while array is not None:
        yield array
        array = getattr(array, "base", None)


def number_dtype(number: Any) -> np.dtype[Any]:
    """Return the dtype that NumPy gives a number on its own."""
    found = _PYTHON_DTYPE.get(type(number))
    return canonical_dtype(number.dtype) if found is None else found


def _carried(operand: Any, op: str) -> np.dtype[Any]:
    """Return the native dtype of a plain operand, or raise DTypeError with the user's line."""
    try:
        return canonical_dtype(operand.dtype, op)
    except DTypeError as error:
        raise DTypeError(
            f"{op}: unsupported dtype: {operand.dtype} ({place()})",
            op=op,
            hint="it holds a Python int beyond 64 bits, or things that are no numbers"
            if operand.dtype == object
            else error.hint,
        ) from None


def plain_operand(operand: Any, op: str) -> Any:
    """Return an untraced operand as a number or a native ndarray.

    Lists, tuples and ranges convert as NumPy converts them.

    Raises: DTypeError if it is none of these, or has a dtype that is not carried.
    """
    kind = type(operand)
    if kind is np.ndarray:
        dtype = _carried(operand, op)
        return operand if operand.dtype.isnative else operand.astype(dtype)
    if kind in _PYTHON_DTYPE:
        return operand
    if isinstance(operand, np.generic):
        _carried(operand, op)
        return operand
    if isinstance(operand, _CONTAINERS):
        return plain_operand(np.asarray(operand), op)
    raise DTypeError(
        f"{op}: cannot compute with {kind.__module__}.{kind.__qualname__}: {place()}",
        op=op,
        hint="convert it with np.asarray(...)",
    )
