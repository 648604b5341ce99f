"""What an installation carries, and that the tests see it and not the source folder."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import stagedad

PACKAGE = Path(stagedad.__file__).parent


@pytest.fixture
def installed():
    """The installed distribution."""
    try:
        return distribution("stagedad")
    except PackageNotFoundError:
        pytest.skip("stagedad is on the path but not installed")


def is_editable(installed):
    direct = installed.read_text("direct_url.json")
    return bool(direct) and json.loads(direct).get("dir_info", {}).get("editable", False)


def python(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_tests_see_the_installed_package(installed):
    if not is_editable(installed):
        assert Path(str(installed.locate_file("stagedad"))).resolve() == PACKAGE.resolve()


def test_version_is_that_of_the_package(installed):
    assert installed.version == stagedad.__version__


def test_requires_numpy_alone(installed):
    assert [line for line in installed.requires if "extra ==" not in line] == ["numpy>=2"]


def test_test_extra_includes_what_the_command_needs(installed):
    extras = {"cli": set(), "test": set()}
    for line in installed.requires:
        requirement, _, marker = line.partition(";")
        for extra, requirements in extras.items():
            if extra in marker:
                requirements.add(requirement.strip())
    assert extras["cli"]
    assert extras["cli"] <= extras["test"]


@pytest.mark.parametrize(
    "file", ["py.typed", "cli/data/digits.npz", "cli/data/README.md", "ops/_gen_table.py"]
)
def test_carries_its_data(file):
    assert (PACKAGE / file).is_file()


def test_carries_the_kernels(installed):
    kernels = (PACKAGE.parent if is_editable(installed) else PACKAGE) / "cuda"
    assert (kernels / "elementwise.cuh").is_file()


def test_carries_no_sources_of_compiled_modules(installed):
    if is_editable(installed):
        pytest.skip("an editable installation has its sources")
    assert [path.name for path in PACKAGE.rglob("*.py[xd]*") if path.suffix != ".pyc"] == []


def test_imports_nothing_but_numpy_and_the_standard_library():
    ran = python(
        "import sys, numpy; before = set(sys.modules); import stagedad;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(new - set(sys.stdlib_module_names) - {'stagedad', 'numpy'}))"
    )
    assert ran.returncode == 0, ran.stderr
    # Cython keeps what compiled modules share in modules without a file; sysconfig has its own.
    shared = ("_cython_", "cython_runtime", "_sysconfigdata_")
    assert [name for name in ran.stdout.split() if not name.startswith(shared)] == []


def test_import_reads_no_declarations():
    """Declarations are compiled when stagedad is built, for a fast import."""
    ran = python("import sys, stagedad; print('tomllib' in sys.modules)")
    assert ran.stdout.strip() == "False", ran.stderr


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_command_says_in_one_line_that_its_extra_is_missing(missing):
    ran = python(
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['stagedad', 'demo'];"
        "from stagedad.cli import main; main()"
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == f"stagedad: {missing} is missing: pip install 'stagedad[cli]'\n"
