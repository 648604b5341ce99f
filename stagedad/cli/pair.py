"""A staged pair as text: what goes from f to df."""

from __future__ import annotations

from typing import Any

from stagedad.transform import Gradient

TITLES = ("in f", "in df", "type", "bytes", "made by", "at", "read in df by")


def capture_records(gradient: Gradient) -> list[dict[str, Any]]:
    """Return what df keeps of f, one record a capture, as JSON can carry it."""
    return [
        {
            **capture._asdict(),
            "type": None if capture.type is None else str(capture.type),
            "location": None if capture.location is None else list(capture.location),
        }
        for capture in gradient.captures
    ]


def captures_text(gradient: Gradient) -> str:
    """Return the captures as a table, with their sizes and the sum of them."""
    rows = [TITLES]
    sizes = []
    for capture in gradient.captures:
        sizes.append(capture.bytes)
        file, line = capture.location or (None, None)
        rows.append(
            (
                capture.name,
                capture.inside,
                "?" if capture.type is None else str(capture.type),
                "?" if capture.bytes is None else f"{capture.bytes:,}",
                capture.producer or "-",
                "-" if file is None else f"{file.rpartition('/')[2]}:{line}",
                ", ".join(capture.consumers) or "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if title == "bytes" else cell.ljust(width)
            for cell, width, title in zip(row, widths, TITLES, strict=True)
        ).rstrip()
        for row in rows
    ]
    known = [size for size in sizes if size is not None]
    unknown = f" and {len(sizes) - len(known)} of unknown size" if None in sizes else ""
    return "\n".join([*lines, f"{len(sizes)} captures: {sum(known):,} bytes{unknown}"])
