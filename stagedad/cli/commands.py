"""The commands, as click sees them; the work is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path

import click

import stagedad

HELP = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=HELP)
@click.version_option(stagedad.__version__, message="stagedad %(version)s")
def cli() -> None:
    """Staged automatic differentiation for NumPy code."""


@cli.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("stagedad-demo"),
    show_default=True,
    help="Folder for the function, f, df and the picture of the loss.",
)
@click.option("--steps", type=click.IntRange(min=1), default=6000, hidden=True)
def demo(out: Path, steps: int) -> None:
    """Train a classifier of handwritten digits and show its gradient.

    The model is an ordinary NumPy function. Prints it, the two programs that its gradient
    consists of, and how far that gradient is right and fast, measured there and then.
    """
    from stagedad.cli.demo import run_demo

    run_demo(out, steps)


# A negative number is an argument here, not an unknown option.
@cli.command(context_settings={**HELP, "ignore_unknown_options": True})
@click.argument("target", metavar="FILE.py:FUNCTION")
@click.option("--args", is_flag=True, help="The example arguments follow: ARG...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("arguments", nargs=-1, metavar="ARG...")
def show(target: str, args: bool, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Print the graph of a function and its gradient as two programs, f and df.

    ARG is a Python literal, or a type such as f64[3,2] that stands for an array of
    reproducible random numbers.

    \b
    Example:  stagedad show model.py:loss --args 'f64[5,2]' 'f64[2]' 0.1
    """  # noqa: D301 - click wants the character
    from stagedad.cli.show import show_function

    if arguments and not args:
        raise click.UsageError(f"write --args before the arguments: {arguments[0]!r}")
    show_function(target, arguments, as_json)


@cli.command()
@click.argument("name", required=False)
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option("--markdown", "form", flag_value="markdown", help="Print a page of Markdown.")
def ops(name: str | None, form: str | None) -> None:
    """List the ops: dtypes, modes and orders of derivatives, declared points, functions.

    With NAME, one op whole, with its formulas.

    \b
    Example:  stagedad ops | grep reduction
    """  # noqa: D301 - click wants the character
    from stagedad.cli.ops import print_ops

    print_ops(name, form or "text")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Print versions, and what this machine offers to stagedad."""
    from stagedad.cli.doctor import print_report

    print_report(as_json)
