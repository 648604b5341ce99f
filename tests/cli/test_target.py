"""Tests of cli/target.py."""

import click
import pytest

from stagedad.cli.target import load_function, one_line
from stagedad.errors import ShapeError


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and returns its path."""

    def write(text, name="model.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def message(target):
    with pytest.raises(click.ClickException) as caught:
        load_function(target)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_finds_a_function(file):
    path = file("def double(x):\n    return x + x\n")
    assert load_function(f"{path}:double")(2) == 4


def test_finds_a_method(file):
    path = file("class A:\n    @staticmethod\n    def f(x):\n        return x\n")
    assert load_function(f"{path}:A.f")(3) == 3


def test_file_may_import_its_neighbour(file, monkeypatch):
    monkeypatch.syspath_prepend("")  # puts sys.path back afterwards
    file("ONE = 1\n", "neighbour_of_model.py")
    path = file("from neighbour_of_model import ONE\ndef f():\n    return ONE\n")
    assert load_function(f"{path}:f")() == 1


def test_file_named_after_a_library_does_not_replace_it(file):
    import json

    path = file("def f():\n    return 'mine'\n", "json.py")
    assert load_function(f"{path}:f")() == "mine"
    assert __import__("json") is json


@pytest.mark.parametrize("target", ["model.py", ":f", "model.py:", ""])
def test_refuses_other_forms(target):
    assert "not of the form FILE.py:FUNCTION" in message(target)


def test_refuses_a_missing_file(tmp_path):
    assert message(f"{tmp_path}/none.py:f") == f"no such file: {tmp_path}/none.py"


def test_refuses_a_file_that_is_not_python(file):
    assert "not a Python file" in message(f"{file('x', 'notes.txt')}:f")


def test_refuses_a_missing_function(file):
    path = file("def f(x):\n    return x\n")
    assert message(f"{path}:g") == f"{path} has no function 'g'"


def test_refuses_what_cannot_be_called(file):
    path = file("f = 3\n")
    assert message(f"{path}:f") == f"{path}: 'f' is not a function: 3"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\nx = 1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("import no_such_module_here\n", "line 1: ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "line 1: SystemExit: 0"),
        ("def f(:\n", "SyntaxError: invalid syntax (model.py, line 1)"),
    ],
)
def test_tells_why_a_file_cannot_be_imported(file, text, problem):
    path = file(text)
    assert message(f"{path}:f").startswith(f"cannot import {path}: {problem}")


def test_an_error_of_stagedad_speaks_for_itself():
    error = ShapeError("mul", "do not broadcast", (2, 3), (4,))
    assert one_line(error) == "mul: do not broadcast: (2, 3), (4,)"


def test_an_error_becomes_one_line():
    assert one_line(ValueError("a\n  hint: b\n")) == "ValueError: a; hint: b"
    assert one_line(ValueError()) == "ValueError"
