"""The `stagedad` command.  Needs the extra `cli`; importing stagedad does not."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say in one line that the extra is missing."""
    try:
        import rich  # noqa: F401 - of the demo alone, but the extra is there or it is not

        from stagedad.cli.commands import cli
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f"stagedad: {error.name} is missing: pip install 'stagedad[cli]'")
    cli(prog_name="stagedad")
