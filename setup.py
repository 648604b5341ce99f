"""Build of the compiled modules and of the generated ones; pyproject.toml says the rest.

STAGEDAD_DEBUG=1 turns the bounds, None and initialisation checks of Cython on and defines
STAGEDAD_DEBUG for C.  STAGEDAD_SANITIZE=thread compiles with that sanitizer of the compiler's.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
DEBUG = os.environ.get("STAGEDAD_DEBUG", "0") not in ("", "0")
SANITIZE = os.environ.get("STAGEDAD_SANITIZE", "")
VARIANT = ("debug" if DEBUG else "release") + (f"-{SANITIZE}" if SANITIZE else "")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": True,
    "auto_pickle": False,
    "autotestdict": False,
    "binding": True,
    "embedsignature": True,
}
# -ffp-contract=off: a fused multiply-add rounds once where NumPy rounds twice.
COMPILE_ARGS = ["-fno-strict-aliasing", "-ffp-contract=off", "-Wno-unused-function"]
COMPILE_ARGS += ["-Og", "-g"] if DEBUG else ["-O1", "-g"] if SANITIZE else ["-O3", "-g0"]
SANITIZE_ARGS = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
COMPILE_ARGS += SANITIZE_ARGS
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
MACROS += [("STAGEDAD_DEBUG", "1")] if DEBUG else [("NDEBUG", None)]


def extensions() -> list[Extension]:
    """Return one extension a `pyx/stagedad/**/_*.pyx`, named by its path."""
    stamp = variant_stamp()
    return [
        Extension(
            ".".join(path.with_suffix("").parts[1:]),
            [path.as_posix()],
            include_dirs=["pyx", path.parent.as_posix(), numpy.get_include()],
            define_macros=MACROS,
            extra_compile_args=COMPILE_ARGS,
            extra_link_args=SANITIZE_ARGS,
            depends=[stamp],
        )
        for path in sorted(
            path.relative_to(ROOT) for path in (ROOT / "pyx" / "stagedad").rglob("_*.pyx")
        )
    ]


def variant_stamp() -> str:
    """Return a file that is newer than every module that was built with other flags.

    Modules are rebuilt when a dependency is newer; directives and flags are in no file.
    """
    stamp = ROOT / "build" / f"variant{'-' + SANITIZE if SANITIZE else ''}.txt"
    text = f"{VARIANT} {sys.version} numpy {numpy.__version__}\n{DIRECTIVES}\n{COMPILE_ARGS}\n"
    if not stamp.exists() or stamp.read_text() != text:
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(text)
    return stamp.relative_to(ROOT).as_posix()


def generate() -> None:
    """Compile the op declarations to Python, by a script: stagedad cannot be imported yet."""
    subprocess.run(
        [sys.executable, str(ROOT / "stagedad" / "ops" / "build.py")], check=True, cwd=ROOT
    )


class Build(build):
    """`build` into an empty folder, so that no file of an older tree gets into a wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildPy(build_py):
    """`build_py` that generates modules first and adds cuda/ as package data."""

    def run(self) -> None:
        generate()
        super().run()
        if not self.editable_mode:
            kernels = Path(self.build_lib) / "stagedad" / "cuda"
            shutil.copytree(ROOT / "cuda", kernels, dirs_exist_ok=True)


class BuildExt(build_ext):
    """`build_ext` on every core."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        if self.inplace:  # `build_ext --inplace` alone must leave a tree that can be imported
            generate()
        super().run()


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["pyx"],
        build_dir=f"build/cython-{VARIANT}",
        compiler_directives=DIRECTIVES,
        annotate=DEBUG,
    ),
    cmdclass={"build": Build, "build_py": BuildPy, "build_ext": BuildExt},
)
