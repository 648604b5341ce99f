"""Pair: a staged pair of programs, called as a function that returns its pullback."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from stagedad.errors import DTypeError, ShapeError
from stagedad.run._program import Program
from stagedad.run.specialise import Specialisations
from stagedad.transform import Capture, Gradient, joint

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]


class Pair:
    """The programs of a Gradient.

    `pair(*arrays)` gives the real outputs and a pullback, which takes one
    cotangent for each entry of `df_input_vjps` that is a real output and gives
    the cotangents of the inputs `df_output_vjps`.
    """

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient
        self.f = Program(Specialisations(gradient.f))
        """The function; its temporaries follow the real outputs."""
        self.df = Program(Specialisations(gradient.df))
        """The vjp: captures, then cotangents, to cotangents of the inputs."""
        self._real = tuple(
            offset for offset in gradient.df_input_vjps if offset < gradient.f_real_outputs
        )

    @cached_property
    def joint(self) -> Program:
        """Value and vjp in one plan: inputs of f, then cotangents of the real outputs."""
        return Program(Specialisations(joint(self.gradient)))

    def __call__(self, *arrays: Any) -> tuple[Arrays, Callable[..., Arrays]]:
        """Return the outputs and the pullback at `arrays`.

        What the pullback keeps is its own: changing an argument or an output
        afterwards does not change what it gives.  Arrays that constants hold
        are read at each run, in the pullback too.
        """
        results = self.f(*arrays)
        real = self.gradient.f_real_outputs
        kept = []
        for kind, offset in self.gradient.df_input_captures:
            if kind is Capture.INPUT:
                declared = self.f.specialisations.declared[offset]
                dtype = None if declared is None else declared.dtype
                kept.append(np.array(arrays[offset], dtype, order="C"))
            elif offset < real:
                kept.append(results[offset].copy())
            else:
                kept.append(results[offset])
        types = [(results[offset].shape, results[offset].dtype) for offset in self._real]
        zeros = [
            _zeros(results[offset]) for offset in self.gradient.df_input_vjps if offset >= real
        ]

        def pullback(*cotangents: Any) -> Arrays:
            if len(cotangents) != len(types):
                raise TypeError(
                    f"pullback: {len(cotangents)} cotangents for {len(types)} outputs"
                )
            given = [
                _cotangent(offset, value, *type)
                for offset, value, type in zip(self._real, cotangents, types, strict=True)
            ]
            return self.df(*kept, *given, *zeros)

        return results[:real], pullback

    def __repr__(self) -> str:
        return f"<Pair of {self.gradient!r}>"


def _zeros(like: Array) -> Array:
    """Return zeros without memory: the cotangent of a temporary in a first backward."""
    return np.broadcast_to(np.zeros((), like.dtype), like.shape)


def _cotangent(offset: int, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return the cotangent of output `offset` as an array of its shape and dtype."""
    array = np.asarray(value)
    if array.shape != shape:
        raise ShapeError("pullback", f"cotangent of output {offset}", array.shape, shape)
    if array.dtype == dtype:
        return array
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise DTypeError(
            f"pullback: cotangent of output {offset} is {array.dtype}, to be {dtype}"
        )
    return array.astype(dtype)
