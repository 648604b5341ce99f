"""numpy.fft on traced values: transforms along one axis, and along several one by one."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from stagedad.front.elementwise import apply, operand
from stagedad.front.moving import roll
from stagedad.front.reducing import refuse
from stagedad.front.shaping import integers
from stagedad.front.tracing import Traced, owner

_SWAPPED: Final = {
    None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"
}  # fmt: skip


def transform(kind: str, a: Any, n: Any, axis: int, norm: Any) -> Traced:
    """Record one of the ops fft, ifft, rfft and irfft."""
    source = operand(a, kind)
    if norm not in _SWAPPED:
        raise ValueError(f"{kind}: norm={norm!r}\nhint: 'backward', 'ortho' or 'forward'")
    if not -source.ndim <= axis < source.ndim:
        raise np.exceptions.AxisError(axis, source.ndim)
    attributes: dict[str, Any] = {}
    if n is not None:
        attributes["n"] = index(n)
    if axis % source.ndim != source.ndim - 1:
        attributes["axis"] = axis
    if norm not in (None, "backward"):
        attributes["norm"] = norm
    trace = owner([source])
    return trace.emit(kind, (trace.value(source),), attributes or None)


def _one(kind: str) -> Callable[..., Traced]:
    def along(
        a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Traced:
        refuse(kind, out=out)
        return transform(kind, a, n, axis, norm)

    return along


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Traced:
    """Record `np.fft.hfft`: irfft of the conjugate, scaled the other way."""
    refuse("hfft", out=out)
    source = operand(a, "hfft")
    if source.dtype.kind == "c":
        source = apply("conj", source)
    return transform("irfft", source, n, axis, _swapped("hfft", norm))


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Traced:
    """Record `np.fft.ihfft`: the conjugate of rfft, scaled the other way."""
    refuse("ihfft", out=out)
    return apply("conj", transform("rfft", a, n, axis, _swapped("ihfft", norm)))


def _several(kind: str, default: Any) -> Callable[..., Traced]:
    """Return fftn or ifftn, or those over the last two axes."""

    def over(
        a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None
    ) -> Traced:
        refuse(f"{kind}n", out=out)
        result = operand(a, kind)
        points, along = _points(result, s, axes)
        for n, axis in zip(reversed(points), reversed(along), strict=True):
            result = transform(kind, result, n, axis, norm)
        return result  # type: ignore[no-any-return]

    return over


def _real_several(default: Any) -> Callable[..., Traced]:
    def rfftn(
        a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None
    ) -> Traced:
        refuse("rfftn", out=out)
        source = operand(a, "rfftn")
        points, along = _points(source, s, axes)
        result = transform("rfft", source, points[-1], along[-1], norm)
        for n, axis in zip(reversed(points[:-1]), reversed(along[:-1]), strict=True):
            result = transform("fft", result, n, axis, norm)
        return result

    return rfftn


def _to_real_several(default: Any) -> Callable[..., Traced]:
    def irfftn(
        a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None
    ) -> Traced:
        refuse("irfftn", out=out)
        result = operand(a, "irfftn")
        points, along = _points(result, s, axes)
        if s is None:
            points[-1] = 2 * (result.shape[along[-1]] - 1)
        for n, axis in zip(points[:-1], along[:-1], strict=True):
            result = transform("ifft", result, n, axis, norm)
        return transform("irfft", result, points[-1], along[-1], norm)

    return irfftn


def _points(source: Any, s: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Return how many points along which axes, as numpy.fft completes `s` and `axes`."""
    if s is None:
        along = list(range(source.ndim)) if axes is None else [index(axis) for axis in axes]
        return [source.shape[axis] for axis in along], along
    asked = [index(n) for n in s]
    along = list(range(-len(asked), 0)) if axes is None else [index(axis) for axis in axes]
    if len(asked) != len(along):
        raise ValueError(f"fft: shape and axes have different lengths: {s}, {axes}")
    return [
        source.shape[axis] if n == -1 else n for n, axis in zip(asked, along, strict=True)
    ], along


def _shift(*, back: bool) -> Callable[..., Traced]:
    def shifted(x: Any, axes: Any = None) -> Traced:
        source = operand(x, "fftshift")
        along = range(source.ndim) if axes is None else integers(axes, "fftshift")
        middle = [source.shape[axis] // 2 for axis in along]
        return roll(source, [-n if back else n for n in middle], tuple(along))

    return shifted


def _swapped(name: str, norm: Any) -> str:
    if norm not in _SWAPPED:
        raise ValueError(f"{name}: norm={norm!r}\nhint: 'backward', 'ortho' or 'forward'")
    return _SWAPPED[norm]


FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {
    np.fft.fft: _one("fft"),
    np.fft.ifft: _one("ifft"),
    np.fft.rfft: _one("rfft"),
    np.fft.irfft: _one("irfft"),
    np.fft.hfft: hfft,
    np.fft.ihfft: ihfft,
    np.fft.fftn: _several("fft", None),
    np.fft.ifftn: _several("ifft", None),
    np.fft.fft2: _several("fft", (-2, -1)),
    np.fft.ifft2: _several("ifft", (-2, -1)),
    np.fft.rfftn: _real_several(None),
    np.fft.rfft2: _real_several((-2, -1)),
    np.fft.irfftn: _to_real_several(None),
    np.fft.irfft2: _to_real_several((-2, -1)),
    np.fft.fftshift: _shift(back=False),
    np.fft.ifftshift: _shift(back=True),
}
