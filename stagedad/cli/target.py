"""Python functions named on a command line, as FILE.py:FUNCTION."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from stagedad.errors import StagedadError


def load_function(target: str) -> Callable[..., Any]:
    """Return the function that `FILE.py:FUNCTION` names; FUNCTION may be dotted.

    The file is executed as a module, with its folder on sys.path as for a script.
    Raises: click.ClickException, one line, whatever is wrong.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name:
        raise click.ClickException(f"{target!r} is not of the form FILE.py:FUNCTION")
    found: Any = _load_module(Path(file))
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise click.ClickException(f"{file} has no function {name!r}") from None
    if not callable(found):
        raise click.ClickException(f"{file}: {name!r} is not a function: {found!r:.60}")
    return found  # type: ignore[no-any-return]


def _load_module(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.ClickException(f"no such file: {path}")
    name = f"_shown_{path.stem}"  # apart from any library that the file is named after
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look modules up by name
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise click.ClickException(f"cannot import {path}: {one_line(error, path)}") from error
    return module


def one_line(error: BaseException, path: Path | None = None) -> str:
    """Return `error` as one line, with the last line of `path` that it passed through.

    stagedad's own errors have their hint in a second line and speak for themselves.
    """
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    if not isinstance(error, StagedadError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if path is None:
        return text
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename:
        return text if "line" in text else f"line {error.lineno}: {text}"
    frames = traceback.extract_tb(error.__traceback__)
    here = path.resolve()
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == here]
    return f"line {lines[-1]}: {text}" if lines else text
