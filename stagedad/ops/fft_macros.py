"""Derivatives of Fourier transforms along one axis.

A transform is linear, and its adjoint the transform back without its division by the
number of points: the one under the `norm` that divides the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagedad.ops.macros import macro, metadata

if TYPE_CHECKING:
    from stagedad.ops.builder import Builder

_ADJOINT = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
FIT = ("slice", "unslice")


@metadata
def doublings(shape: Any, axis: Any) -> int:
    """Return the logarithm of a length by base 2, rounded up: the passes of a transform."""
    length: int = shape[axis]
    return max(length - 1, 0).bit_length()


@macro("ifft", *FIT)
def fft_pull(b: Builder, g: Any, shape: Any, n: Any, axis: Any, norm: Any) -> Any:
    """Return the cotangent of the operand of fft."""
    back = b.call("ifft", (g,), {"n": None, "axis": axis, "norm": _ADJOINT[norm]})
    return _fit(b, back, shape, n, axis)


@macro("fft", *FIT)
def ifft_pull(b: Builder, g: Any, shape: Any, n: Any, axis: Any, norm: Any) -> Any:
    """Return the cotangent of the operand of ifft."""
    back = b.call("fft", (g,), {"n": None, "axis": axis, "norm": _ADJOINT[norm]})
    return _fit(b, back, shape, n, axis)


@macro("irfft", "interior", *FIT)
def rfft_pull(b: Builder, g: Any, shape: Any, n: Any, axis: Any, norm: Any) -> Any:
    """Return the cotangent of the operand of rfft: irfft counts the inner points twice."""
    points = b.static(shape, "rfft")[axis] if n is None else n
    halves = b.call("interior", (g,), {"n": points, "axis": axis, "scale": 0.5})
    back = b.call("irfft", (halves,), {"n": points, "axis": axis, "norm": _ADJOINT[norm]})
    return _fit(b, back, shape, n, axis)


@macro("rfft", "interior", *FIT)
def irfft_pull(b: Builder, g: Any, shape: Any, n: Any, axis: Any, norm: Any) -> Any:
    """Return the cotangent of the operand of irfft, which counts the inner points twice."""
    points = 2 * (b.static(shape, "irfft")[axis] - 1) if n is None else n
    back = b.call("rfft", (g,), {"n": None, "axis": axis, "norm": _ADJOINT[norm]})
    back = b.call("interior", (back,), {"n": points, "axis": axis, "scale": 2.0})
    return _fit(b, back, shape, points // 2 + 1, axis)


def _fit(b: Builder, back: Any, shape: Any, n: Any, axis: Any) -> Any:
    """Undo that the operand was cut, or filled with zeros, to `n` points."""
    if n is None or back is b.zero:
        return back
    dims = b.static(shape, "fft")
    at = axis % len(dims)
    if n == dims[at]:
        return back
    stop = list(dims)
    stop[at] = min(n, dims[at])
    slices = {"start": (0,) * len(dims), "stop": tuple(stop), "step": (1,) * len(dims)}
    if n > dims[at]:
        return b.call("slice", (back,), slices)
    return b.call("unslice", (back,), {"shape": tuple(dims), **slices})
