"""The section of CONTRIBUTING.md on adding an op, followed to the letter in a copy."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import stagedad
from stagedad.ops.build import DECLARATIONS

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="needs the source tree")


def blocks():
    """(file named last before it, language, text) of every block of the section."""
    section = DOCUMENT.read_text().partition("## Adding an op")[2].partition("## Manners")[0]
    found = []
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        files = re.findall(r"`(stagedad/[\w/]+\.\w+)`", section[: match.start()])
        found.append((files[-1], match[1], match[2]))
    return found


def test_the_entry_of_an_elementwise_op_is_one_of_the_table():
    file, language, text = blocks()[0]
    assert (file, language) == ("stagedad/ops/declarations/functions.toml", "toml")
    declared = tomllib.loads((DECLARATIONS / "functions.toml").read_text())
    assert tomllib.loads(text) == {"log10": declared["log10"]}


USE = """
import numpy as np
import stagedad as sd

graph = sd.Graph()
graph.register_output(graph.insert("given_twice", graph.add_input("f64[3]")))
print(graph.outputs[0].type)
program = sd.compile(graph)
print(program(np.arange(3.0))[0].tolist(), [each.kind for each in program.instructions])
print(sd.parse_graph(str(graph)) == graph)
print(sd.differentiate(graph, [True]).check(np.ones(3)).differences > 0)
"""


@pytest.mark.slow
def test_a_structural_op_is_added_as_it_says(tmp_path):
    home = Path(stagedad.__file__).parent
    copy = tmp_path / "stagedad"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("__pycache__"))
    written = blocks()[1:-1]
    assert [file.rpartition("/")[2] for file, _, _ in written] == [
        "shape.toml", "type_rules.py", "reference.py", "shaping.py",
    ]  # fmt: skip
    for file, _, text in written:
        target = tmp_path / file
        source = target.read_text()
        if text.startswith("    "):
            head = "FUNCTIONS: dict[str, Function] = {\n"
            assert head in source
            target.write_text(source.replace(head, head + text))
        else:
            target.write_text(f"{source}\n\n{text}")
    places = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}

    def run(*command):
        found = subprocess.run(
            [sys.executable, *command],
            capture_output=True, text=True, cwd=tmp_path, env=environment,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    run(str(copy / "ops" / "build.py"))
    assert run("-c", USE).splitlines() == [
        "f64[2, 3]",
        "[[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]] ['own']",
        "True",
        "True",
    ]
    (command,) = [text for _, language, text in blocks() if language == "bash"]
    program, *arguments = command.split()
    assert program == "pytest"
    # The settings of the project, with its tests in their place.
    paths = [str(ROOT / each) if each.startswith("tests/") else each for each in arguments]
    result = run("-m", "pytest", "-q", f"--rootdir={ROOT}", f"-c{ROOT / 'pyproject.toml'}",
                 "-pno:cacheprovider", *paths)  # fmt: skip
    assert int(re.search(r"(\d+) passed", result)[1]) > 30
    assert "failed" not in result
