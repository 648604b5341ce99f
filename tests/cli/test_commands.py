"""Tests of cli/commands.py and cli/doctor.py."""

import json
import subprocess
import sys

import stagedad as sd


def test_doctor_reports(call):
    facts = json.loads(call("doctor", "--json").stdout)
    assert facts["stagedad"] == sd.__version__
    lines = call("doctor").stdout.splitlines()
    assert set(facts) <= {line.partition("  ")[0] for line in lines}


def test_version(call):
    assert call("--version").stdout == f"stagedad {sd.__version__}\n"


def test_help_names_every_command(call):
    result = call("--help")
    assert result.exit_code == 0
    assert {"demo", "show", "ops", "doctor"} <= set(result.stdout.split())


def test_unknown_command(refusal):
    assert "No such command 'trace'" in refusal("trace")


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "stagedad", "ops", "sinn"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no op 'sinn': did you mean 'sin'?" in done.stderr
