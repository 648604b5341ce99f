"""Tests of cuda/elementwise.cuh."""

import shutil
import subprocess
from pathlib import Path

import pytest

import stagedad

PACKAGE = Path(stagedad.__file__).parent
# In a wheel the kernels are package data, in a checkout they lie beside the package.
KERNELS = next(p for p in (PACKAGE / "cuda", PACKAGE.parent / "cuda") if p.is_dir())

INSTANCES = """
#include "elementwise.cuh"

struct mul {
  template <typename T> __device__ T operator()(T a, T b) const { return a * b; }
};
struct less {
  template <typename T> __device__ bool operator()(T a, T b) const { return a < b; }
};
struct negative {
  template <typename T> __device__ T operator()(T a) const { return -a; }
};

template __global__ void binary<float, float, mul>(const float*, long long, const float*,
                                                   long long, float*, long long);
template __global__ void binary<double, bool, less>(const double*, long long, const double*,
                                                    long long, bool*, long long);
template __global__ void unary<double, double, negative>(const double*, long long, double*,
                                                         long long);
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_compiles_without_a_warning(tmp_path):
    source = tmp_path / "instances.cu"
    source.write_text(INSTANCES)
    command = ["nvcc", "-ptx", "-Werror", "all-warnings", "-fmad=false", f"-I{KERNELS}", source]
    compiled = subprocess.run(
        [*command, "-o", tmp_path / "instances.ptx"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
    assert (tmp_path / "instances.ptx").read_text().count(".entry") == 3


def test_includes_no_header_that_nvrtc_may_lack():
    for path in KERNELS.glob("*.cu*"):
        assert "#include <" not in path.read_text(), path.name
