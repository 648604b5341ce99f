"""Tests of ops/build.py."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from stagedad.ops import build
from stagedad.ops.table import TABLE

HERE = Path(build.__file__).parent


def test_table_is_what_the_declarations_say():
    assert build.TARGET.read_text(encoding="utf-8") == build.generate()
    scipy_table = build.generate(build.SCIPY, build.DECLARATIONS)
    assert build.SCIPY_TARGET.read_text(encoding="utf-8") == scipy_table


def test_table_holds_plain_literals():
    tree = ast.parse(build.TARGET.read_text(encoding="utf-8"))
    (assignment,) = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert ast.literal_eval(assignment.value) == TABLE


def test_writes_only_what_changed(tmp_path):
    target = tmp_path / "table.py"
    assert build.build(target=target)
    before = target.stat().st_mtime_ns
    assert not build.build(target=target)
    assert target.stat().st_mtime_ns == before


def test_writes_nothing_if_a_declaration_is_wrong(tmp_path):
    (tmp_path / "wrong.toml").write_text('[mul]\ntype = "elementwise"\n')
    target = tmp_path / "table.py"
    with pytest.raises(ValueError, match=r"wrong\.toml:1:1: mul: missing signature"):
        build.build(tmp_path, target)
    assert not target.exists()


def test_leaves_the_imported_package_alone():
    before = {name: module for name, module in sys.modules.items() if "stagedad" in name}
    build.generate()
    after = {name: module for name, module in sys.modules.items() if "stagedad" in name}
    assert before == after


def test_runs_as_a_file_without_the_package(tmp_path):
    """As setup.py runs it: neither the table nor a compiled module can be imported."""
    copy = tmp_path / "stagedad"
    (copy / "ops" / "declarations" / "scipy").mkdir(parents=True)
    names = ["errors.py", "types.py", *(f"ops/{path.name}" for path in HERE.glob("*.py"))]
    names += [f"ops/{path.relative_to(HERE)}" for path in build.DECLARATIONS.rglob("*.toml")]
    for name in names:
        if "_gen_" not in name:
            (copy / name).write_bytes((HERE.parent / name).read_bytes())
    (copy / "__init__.py").write_text("raise ImportError('compiled modules are missing')\n")
    for expected in ("written", "up to date"):
        run = subprocess.run(
            [sys.executable, str(copy / "ops" / "build.py")],
            capture_output=True, text=True, check=True, cwd=tmp_path,
        )  # fmt: skip
        assert expected in run.stdout
    for target in (build.TARGET, build.SCIPY_TARGET):
        assert (copy / "ops" / target.name).read_text() == target.read_text()
