"""`stagedad doctor`: versions, and what this machine offers to stagedad."""

from __future__ import annotations

import json
import os
import platform
import shutil

import click
import numpy as np

import stagedad


def print_report(as_json: bool) -> None:
    """Print the report, a line a fact or one JSON object."""
    facts = report()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        click.echo(f"{name.ljust(width)}  {'not found' if fact is None else fact}")


def report() -> dict[str, str | None]:
    """Return fact by name; None where something is missing."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    switches = sorted(f"{n}={v}" for n, v in os.environ.items() if n.startswith("STAGEDAD_"))
    return {
        "stagedad": stagedad.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "numpy": np.__version__,
        "BLAS": f"{blas['name']} {blas['version']}",
        "C compiler": next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None),
        "switches": " ".join(switches) or "none set",
    }
