"""Which code fits which arrays: a bounded cache of plans, one a signature.

A signature is the layout of every argument (dtype, shape, C-contiguous or exact
strides, alignment) and of every array that a constant holds.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.plan import Layout, check_kinds, held_arrays, make_plan
from stagedad.run._interpreter import Code
from stagedad.run.check import compare
from stagedad.run.listing import Instruction, listing
from stagedad.types import TensorType, as_type, canonical_dtype

if TYPE_CHECKING:
    from stagedad.ir import Graph
    from stagedad.plan import Plan
    from stagedad.run._program import Program

Array = np.ndarray[Any, Any]

MAX_SIGNATURES = 64
MAX_STRIDED = 16
"""Codes for non-contiguous arguments; past that these are copied, not planned for."""


class CacheInfo(NamedTuple):
    """As `functools.lru_cache` says it."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class Specialisations:
    """The codes made of one graph.

    It works on a copy, so that later edits do not matter, unless `owned` says that nobody
    else will edit it.

    Raises: KernelError if a node is no op of the table.
    """

    def __init__(
        self, graph: Graph, maxsize: int = MAX_SIGNATURES, *, owned: bool = False
    ) -> None:
        check_kinds(graph)
        self.graph = graph if owned else graph.copy()
        self.held = held_arrays(self.graph)
        self.declared = [value.type for value in self.graph.inputs]
        self.inputs = len(self.declared)
        self.declared += [TensorType.of(array) for array in self.held]
        self.maxsize = maxsize
        self._codes: OrderedDict[tuple[Layout, ...], Code] = OrderedDict()
        self._lock = Lock()
        self._misses = 0
        self._strided = 0

    def select(self, arguments: Sequence[Any]) -> tuple[Code, list[Array], bool]:
        """Return the code for `arguments`, they themselves as arrays, and if it was there.

        Raises: DTypeError for what no code can take: other dtypes, subclasses,
                objects that are no arrays.
        """
        arrays = [
            _as_array(index, given, declared)
            for index, (given, declared) in enumerate(
                zip(arguments, self.declared, strict=True)
            )
        ]
        signature = tuple(map(_layout, arrays))
        code = self._cached(signature)
        if code is not None:
            return code, arrays, True
        if any(layout.strides is not None for layout in signature):
            if self._strided >= MAX_STRIDED:
                return self.select([np.array(array, order="C") for array in arrays])
            self._strided += 1
        return self._made(signature), arrays, False

    def for_types(self, types: Iterable[TensorType | str | Array | None]) -> Code:
        """Return the code for C-contiguous arguments of `types`."""
        wanted = [
            TensorType.of(given) if isinstance(given, np.ndarray) else as_type(given)
            for given in types
        ]
        inputs = len(self.graph.inputs)
        if len(wanted) != inputs:
            raise TypeError(f"specialise: {len(wanted)} types for {inputs} inputs")
        layouts = []
        for index, type in enumerate(wanted):
            if type is None or not type.is_static:
                raise ShapeError(
                    "specialise",
                    f"the type of input {index} is not known in full",
                    type,
                    hint="call the program on arrays, or give types such as f64[2, 3]",
                )
            layouts.append(Layout(type.dtype, type.shape))  # type: ignore[arg-type]
        held = [_as_array(inputs + index, array) for index, array in enumerate(self.held)]
        signature = (*layouts, *map(_layout, held))
        return self._cached(signature) or self._made(signature)

    def as_declared(self) -> Code:
        """Return the code for the types that the graph's inputs have."""
        return self.for_types([value.type for value in self.graph.inputs])

    def info(self, hits: int) -> CacheInfo:
        """Return what `Program.cache_info` says."""
        return CacheInfo(hits, self._misses, self.maxsize, len(self._codes))

    def clear(self) -> None:
        """Forget all codes; those in a run live until it ends."""
        with self._lock:
            self._codes.clear()
            self._misses = self._strided = 0

    def listing(self, plan: Plan) -> list[Instruction]:
        """Return what `Program.instructions` says."""
        return listing(plan)

    def run_through_temporaries(
        self,
        program: Program,
        plan: Plan,
        arguments: Sequence[Array],
        targets: Sequence[Array],
    ) -> None:
        """Check outputs that loops cannot write to; fill them if a copy can."""
        for index, (target, layout) in enumerate(zip(targets, plan.outputs, strict=True)):
            _check_output(index, target, layout)
            others = [*arguments, *targets[:index]]
            if any(np.may_share_memory(target, other) for other in others):
                raise ValueError(f"run: output {index} overlaps another array")
        results = program(*arguments[: len(self.graph.inputs)])
        for target, result in zip(targets, results, strict=True):
            target[...] = result

    def _check_declared(self, index: int, declared: TensorType | None, layout: Layout) -> None:
        """Raise unless the argument is of the type that the graph was made for.

        Shapes and dtypes have gone into the graph's attributes and constants, and into what
        `differentiate` decided, so another type would give wrong numbers.
        """
        what = f"argument {index}" if index < self.inputs else "an array held by a constant"
        found = TensorType(layout.dtype, layout.shape)
        if declared is None:
            if self.graph.assumes_real and found.dtype.kind == "c":
                raise DTypeError(
                    f"program: {what} is {found}: the graph was differentiated for real values",
                    hint="give the graph's inputs their types before differentiating it",
                )
            return
        if declared.dtype != found.dtype:
            raise DTypeError(
                f"program: {what} is {found}, the graph is for {declared}",
                hint="convert with astype, or trace the function for this type",
            )
        known = declared.shape
        if known is not None and (
            len(known) != len(layout.shape)
            or any(a not in (None, b) for a, b in zip(known, layout.shape, strict=True))
        ):
            raise ShapeError(
                "program",
                f"{what} does not have the shape that the graph is for",
                layout.shape,
                declared,
                hint="trace the function for this shape, or give the input a type with ?",
            )

    def _cached(self, signature: tuple[Layout, ...]) -> Code | None:
        with self._lock:
            code = self._codes.get(signature)
            if code is not None:
                self._codes.move_to_end(signature)
            return code

    def _made(self, signature: tuple[Layout, ...]) -> Code:
        for index, (declared, layout) in enumerate(zip(self.declared, signature, strict=True)):
            self._check_declared(index, declared, layout)
        # Not under the lock: planning is slow, and two threads may do it at once.
        if os.environ.get("STAGEDAD_CHECK") == "1":
            twin = Code(make_plan(self.graph, signature, reuse=False))
            code = Code(make_plan(self.graph, signature, poisoned=True), twin, compare)
        else:
            code = Code(make_plan(self.graph, signature))
        with self._lock:
            self._misses += 1
            self._codes[signature] = code
            while len(self._codes) > self.maxsize:
                self._codes.popitem(last=False)
        return code


def _as_array(index: int, given: Any, declared: TensorType | None = None) -> Array:
    """Return argument `index` as an ndarray of a native dtype that stagedad carries.

    A Python number takes the declared dtype where NumPy would let it.
    """
    if type(given) is not np.ndarray:
        if (
            declared is not None
            and isinstance(given, bool | int | float | complex)
            and np.result_type(declared.dtype, given) == declared.dtype
        ):
            return np.asarray(given, declared.dtype)
        if isinstance(given, np.ndarray):
            raise DTypeError(
                f"program: argument {index} is a subclass of ndarray: {type(given).__name__}",
                hint="pass numpy.asarray(x), which drops what the class adds",
            )
        if not isinstance(given, int | float | complex | np.generic | list | tuple):
            raise DTypeError(
                f"program: argument {index} is no array: {type(given).__name__}",
                hint="pass numpy.asarray(x)",
            )
        given = np.asarray(given)
    array: Array = given
    dtype = canonical_dtype(array.dtype, f"program: argument {index}")
    if not array.dtype.isnative:
        return array.astype(dtype)
    if array.dtype.num != dtype.num:  # two names of one type, as C's long and long long
        return array.view(dtype)
    return array


def _layout(array: Array) -> Layout:
    flags = array.flags
    strides = None if flags.c_contiguous else array.strides
    return Layout(canonical_dtype(array.dtype), array.shape, strides, flags.aligned)


def _check_output(index: int, target: Any, layout: Layout) -> None:
    """Raise unless `target` can take the output that `layout` says."""
    if type(target) is not np.ndarray:
        raise TypeError(f"run: output {index} is no ndarray: {type(target).__name__}")
    if target.dtype != layout.dtype:
        raise DTypeError(f"run: output {index} is {target.dtype}, to be {layout.dtype}")
    if target.shape != layout.shape:
        raise ShapeError(
            "run", f"output {index} has the wrong shape", target.shape, layout.shape
        )
    if not target.flags.writeable:
        raise ValueError(f"run: output {index} is read-only")
    if not _is_apart(target):
        raise ValueError(f"run: output {index} overlaps itself")


def _is_apart(target: Array) -> bool:
    """Whether each axis steps over all that the axes with smaller strides reach.

    Enough for no two elements to share memory; views that interleave well are refused too.
    """
    if target.size == 0:
        return True
    reach = target.itemsize
    axes = sorted(
        (abs(stride), dim)
        for stride, dim in zip(target.strides, target.shape, strict=True)
        if dim > 1
    )
    for stride, dim in axes:
        if stride < reach:
            return False
        reach += stride * (dim - 1)
    return True
