"""The layering of ARCHITECTURE.md: a module imports only from lower layers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Low to high.  ORDER LAYERS: same order as the table in ARCHITECTURE.md.
LAYERS = ["errors", "types", "ops", "ir", "transform", "plan", "files", "run", "eager", "front"]
# Imported by no layer; a leaf may import every layer and the leaves before it.
LEAVES = [
    "numpy", "special", "scipy", "compat", "testing", "codegen", "capi", "distributed", "cli",
    "__main__",
]  # fmt: skip

SOURCES = sorted(
    path
    for root in (ROOT / "stagedad", ROOT / "pyx" / "stagedad")
    for path in root.rglob("*")
    if path.suffix in {".py", ".pyi", ".pyx", ".pxd", ".pxi"}
)
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#;]+)"
    r"|c?import[ \t]+(?P<modules>[^\n#;]+))",
    re.MULTILINE,
)
DYNAMIC_IMPORT = re.compile(r"""import_module\(\s*["'](stagedad[\w.]*)["']""")

Reference = tuple[int, str, list[str]]  # dots, module, names imported from it


def python_imports(text: str) -> Iterator[Reference]:
    """Every import statement of a Python file, wherever it stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, []
    for match in DYNAMIC_IMPORT.finditer(text):
        yield 0, match[1], []


def cython_imports(text: str) -> Iterator[Reference]:
    """Every `import` and `cimport` of a Cython file."""
    for match in CYTHON_IMPORT.finditer(text.replace("\\\n", " ")):
        if match["modules"]:
            for name in match["modules"].split(","):
                yield 0, name.split()[0], []
        else:
            module = match["module"].lstrip(".")
            names = [
                name.split()[0]
                for name in match["names"].strip("() \t").split(",")
                if name.strip()
            ]
            yield len(match["module"]) - len(module), module, names


def parts_imported(text: str, suffix: str, package: list[str]) -> set[str]:
    """Names of the parts of stagedad that a file in `package` imports; "" is the root."""
    read = python_imports if suffix in {".py", ".pyi"} else cython_imports
    found = set()
    for dots, module, names in read(text):
        path = package[: len(package) + 1 - dots] if dots else []
        path = path + [part for part in module.split(".") if part]
        if path[:1] != ["stagedad"]:
            continue
        if len(path) > 1:
            found.add(path[1])
        else:
            known = {*LAYERS, *LEAVES}
            found |= {name if name in known else "" for name in names or [""]}
    return found


def fault(here: str, there: str) -> str | None:
    """Why part `here` of stagedad may not import part `there`, or None."""
    if here == there or here == "__init__":
        return None
    if here in LEAVES:
        if there in LEAVES and LEAVES.index(there) > LEAVES.index(here):
            return f"{here} imports the later leaf {there}"
        return None
    if there == "":
        return f"{here} imports the package root, which imports {here}"
    if there not in LAYERS:
        return f"{here} imports {there}, which is no layer"
    if LAYERS.index(there) > LAYERS.index(here):
        return f"{here} imports {there}, a higher layer"
    return None


def location(path: Path) -> tuple[str, list[str]]:
    """The part of stagedad that `path` belongs to, and the package it is in."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[parts.index("stagedad") :]
    return parts[1], list(parts[:-1])


@pytest.mark.skipif(not SOURCES, reason="needs the source tree")
def test_every_module_belongs_to_a_layer():
    parts = {location(path)[0] for path in SOURCES}
    assert parts <= {*LAYERS, *LEAVES, "__init__"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path):
    here, package = location(path)
    there = parts_imported(path.read_text(encoding="utf-8"), path.suffix, package)
    assert [fault(here, part) for part in sorted(there) if fault(here, part)] == []


@pytest.mark.parametrize(
    ("suffix", "text", "parts"),
    [
        (".py", "from stagedad.ir import Graph", {"ir"}),
        (".py", "import stagedad.front.trace as t, numpy", {"front"}),
        (".py", "from stagedad import types, Graph", {"types", ""}),
        (".py", "from .text import parse", {"ir"}),
        (".py", "from ..plan import lifetimes", {"plan"}),
        (".py", "from .. import front", {"front"}),
        (".py", "def f():\n    from ..front import trace", {"front"}),
        (".py", "import_module('stagedad.front')", {"front"}),
        (".py", "import numpy as np", set()),
        (".pyx", "from stagedad.run._loops cimport Loop, \\\n    Other", {"run"}),
        (".pyx", "cimport stagedad.run._loops as loops", {"run"}),
        (".pyx", "cimport numpy, stagedad.run", {"run"}),
        (".pyx", "from ._graph cimport (\n    Graph,\n    Node)", {"ir"}),
        (".pyx", "from ..run._loops cimport Loop", {"run"}),
        (".pxd", "from .. cimport run", {"run"}),
        (".pyx", "from stagedad cimport ir, run  # both", {"ir", "run"}),
        (".pyx", "from libc.stdint cimport int64_t", set()),
    ],
)
def test_sees_every_form_of_import(suffix, text, parts):
    assert parts_imported(text, suffix, ["stagedad", "ir"]) == parts


@pytest.mark.parametrize(
    ("here", "there"),
    [("ir", "transform"), ("front", "numpy"), ("ops", ""), ("numpy", "cli"), ("types", "ops")],
)
def test_refuses_imports_that_point_up(here, there):
    assert fault(here, there)


@pytest.mark.parametrize(
    ("here", "there"),
    [("transform", "ir"), ("numpy", "front"), ("cli", "numpy"), ("cli", ""), ("ir", "ir")],
)
def test_allows_imports_that_point_down(here, there):
    assert fault(here, there) is None
