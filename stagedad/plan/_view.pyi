from collections.abc import Sequence
from typing import Any, final

import numpy as np

MOST_BYTES: int

@final
class Buffer:
    space: int
    index: int
    nbytes: int
    place: int
    first: int
    last: int
    claimed: bool
    donated: bool
    local: bool
    def __init__(self, space: int, index: int, nbytes: int) -> None: ...

@final
class View:
    def __init__(
        self,
        buffer: Buffer,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None: ...
    @property
    def buffer(self) -> Buffer: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def offset(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dense(self) -> bool: ...
    @property
    def is_whole(self) -> bool: ...
    def covers_same(self, other: View) -> bool: ...

def fresh(
    dtype: np.dtype[Any], shape: tuple[int, ...], space: int = 0, index: int = -1
) -> View: ...
def dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]: ...
def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool: ...
def broadcast(view: View, shape: tuple[int, ...]) -> View: ...
def sliced(
    view: View,
    start: tuple[int | None, ...],
    stop: tuple[int | None, ...],
    step: tuple[int | None, ...],
) -> View: ...
def reshape(view: View, shape: tuple[int, ...]) -> View | None: ...
def merged(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]: ...
def loop_axes(
    shape: tuple[int, ...],
    strides: Sequence[tuple[int, ...]],
    itemsizes: Sequence[int],
    any_inner: bool = True,
) -> tuple[int, tuple[int, ...], tuple[int, ...]]: ...
