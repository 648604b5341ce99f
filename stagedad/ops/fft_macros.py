"""Derivatives of Fourier transforms along one axis, and of angles.

A transform is linear, and its adjoint the transform back without its division by the
number of points: the one under the `norm` that divides the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagedad.ops.macros import macro

if TYPE_CHECKING:
    from stagedad.ops.builder import Builder

_ADJOINT = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
FIT = ("slice", "unslice")


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


@macro("where", "equal", "mul", "div", "real", "conj", "constant", "constant_like")
def angle_pull(b: Builder, self: Any, g: Any) -> Any:
    """Return g i z / |z|^2, for d angle = Im(conj(z) dz) / |z|^2."""
    if not _is_complex(self):
        return b.zero
    return b.call("mul", (_turn(b, self), g))


@macro("where", "equal", "mul", "div", "real", "conj", "constant", "constant_like")
def angle_tangent(b: Builder, self: Any, self_t: Any) -> Any:
    """Return the real part of conj(i z / |z|^2) z_t."""
    if not _is_complex(self):
        return b.zero
    return b.call("real", (b.call("mul", (b.conj(_turn(b, self)), self_t)),))


def _turn(b: Builder, self: Any) -> Any:
    """Return i z / |z|^2, and 0 at 0."""
    size = b.call("real", (b.call("mul", (self, b.conj(self))),))
    is_zero = b.call("equal", (size, 0))
    unit = b.call("div", (self, b.call("where", (is_zero, 1, size))))
    return b.call("mul", (unit, 1j))


def _is_complex(self: Any) -> bool:
    return self.type is not None and self.type.dtype.kind == "c"


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
