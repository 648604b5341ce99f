"""The documents at the root say what is true."""

import re
from pathlib import Path

import pytest

import stagedad.ops
from stagedad.ops.registry import scipy_ops
from stagedad.ops.table import TABLE

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(ROOT.glob("*.md"))

pytestmark = pytest.mark.skipif(not DOCUMENTS, reason="needs the source tree")


def test_examples_of_the_readme_run(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["value"] == 9
    assert list(names["gradient"]) == [-2] * 9 + [0]
    assert capsys.readouterr().out.count("graph(") == 2


def test_readme_lists_every_op():
    """By family, in the order of the declarations."""
    families = {}
    for op in [*map(stagedad.ops.OPS.__getitem__, TABLE), *scipy_ops().values()]:
        families.setdefault(op.family, []).append(op.kind)
    listed = re.findall(r"^- (\w+): ((?:[\w ]|\n  )+)$", (ROOT / "README.md").read_text(), re.M)
    assert {family: sorted(kinds.split()) for family, kinds in listed} == {
        family: sorted(kinds) for family, kinds in families.items()
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_paths_lead_somewhere(path):
    text = path.read_text()
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    folders = re.findall(r"`((?:stagedad|pyx|tests|bench|cuda|\.ci)/[\w/.]*)`", text)
    missing = [link for link in [*links, *folders] if not (ROOT / link).exists()]
    assert [name for name in missing if "_gen_" not in name] == []


def test_layers_stand_in_the_order_of_the_layer_test():
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    layers = re.search(r"^LAYERS = \[(.*)\]", (ROOT / "tests/test_layers.py").read_text(), re.M)
    order = re.findall(r"\w+", layers[1])
    assert table == [layer for layer in order if layer in table]


def test_every_make_target_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)", makefile, re.MULTILINE)[1].split()
    assert targets == re.findall(r"^([a-z-]+):.*  ## ", makefile, re.MULTILINE)
