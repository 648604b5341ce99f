"""How the tests of this folder call the command."""

import pytest
from click.testing import CliRunner

from stagedad.cli.commands import cli


@pytest.fixture(scope="session")
def call():
    """Calls the command; gives its exit code, stdout and stderr."""

    def run(*arguments):
        return CliRunner().invoke(cli, arguments, prog_name="stagedad")

    return run


@pytest.fixture
def refusal(call):
    """Calls the command, which must fail in order; gives its one line."""

    def run(*arguments):
        result = call(*arguments)
        assert result.exit_code != 0
        assert isinstance(result.exception, SystemExit), "a traceback"
        *usage, line = result.stderr.splitlines()
        assert all(text.startswith(("Usage:", "Try ")) or not text for text in usage)
        assert line.startswith("Error: ")
        return line

    return run
