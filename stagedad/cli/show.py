"""`stagedad show`: the graph of a function and its gradient, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

import stagedad as sd
from stagedad.cli.arguments import parse_argument
from stagedad.cli.pair import capture_records, captures_text
from stagedad.cli.target import load_function, one_line
from stagedad.errors import StagedadError


def show_function(target: str, arguments: Sequence[str], as_json: bool) -> None:
    """Print the traced graph of `target` at `arguments`, then f and df with its captures.

    Every floating input is differentiated.
    Raises: click.ClickException, one line, if the function cannot be found, traced at these
            arguments or differentiated.
    """
    try:
        values = [parse_argument(text, position) for position, text in enumerate(arguments)]
    except StagedadError as error:
        raise click.ClickException(one_line(error)) from error
    function = load_function(target)
    file = Path(target.rpartition(":")[0])
    try:
        graph = sd.trace(function, *values)
    except Exception as error:  # the user's function may raise anything
        raise click.ClickException(f"{target}: {one_line(error, file)}") from error
    wanted = [value.type is not None and value.type.is_inexact for value in graph.inputs]
    if not any(wanted):
        raise click.ClickException(f"{target}: no floating argument to differentiate")
    try:
        gradient = sd.differentiate(graph, requires_grad=wanted)
    except StagedadError as error:
        raise click.ClickException(f"{target}: {one_line(error)}") from error

    texts = [str(program).rstrip() for program in (graph, gradient.f, gradient.df)]
    if as_json:
        parts = dict(zip(("graph", "f", "df"), texts, strict=True))
        click.echo(json.dumps({**parts, "captures": capture_records(gradient)}, indent=2))
        return
    titles = [
        target,
        "f: the same, and what df needs of it",
        "df: captures and cotangents of outputs in, of inputs out",
    ]
    for title, text in zip(titles, texts, strict=True):
        click.echo(f"# {title}\n{text}\n")
    click.echo(captures_text(gradient))
