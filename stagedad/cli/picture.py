"""A curve as an SVG file, so that the demo needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50


def curve_svg(values: Sequence[float], title: str, x_label: str, y_label: str) -> str:
    """Draw positive `values` over their index, on a logarithmic scale.

    A value that is not positive and finite has no place on that scale and leaves a gap.
    """
    logs = [math.log10(v) if v > 0 and math.isfinite(v) else math.nan for v in values]
    shown = [y for y in logs if not math.isnan(y)] or [0.0]
    low, high = math.floor(min(shown)), max(math.ceil(max(shown)), math.floor(min(shown)) + 1)
    last = max(len(values) - 1, 1)

    def x_of(index: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * index / last

    def y_of(log: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - log) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 24, title, size=16),
        _text(WIDTH / 2, HEIGHT - 10, x_label),
        _text(18, HEIGHT / 2, y_label, turn=-90),
    ]
    for log in range(low, high + 1):
        y = y_of(log)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10.0**log:g}", anchor="end"))
    for index in range(0, last + 1, _tick(last)):
        parts.append(_text(x_of(index), HEIGHT - BOTTOM + 18, f"{index:,}"))
    parts += [
        f'<polyline points="{run}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>'
        for run in _runs([(x_of(i), y_of(log)) for i, log in enumerate(logs)])
    ]
    return "\n".join([*parts, "</svg>", ""])


def _runs(points: Sequence[tuple[float, float]]) -> list[str]:
    """Coordinates of each stretch without a gap."""
    runs: list[list[str]] = [[]]
    for x, y in points:
        if math.isnan(y):
            runs.append([])
        else:
            runs[-1].append(f"{x:.1f},{y:.1f}")
    return [" ".join(run) for run in runs if run]


def _tick(last: int) -> int:
    """The round step that puts four to ten ticks on an axis from 0 to `last`."""
    step: int = 10 ** max(int(math.log10(last)), 0)
    for divisor in (1, 2, 5):
        if last / step * divisor >= 4:
            return max(step // divisor, 1)
    return max(step // 10, 1)


def _text(
    x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12, turn: int = 0
) -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turned}>'
        f"{escaped}</text>"
    )
