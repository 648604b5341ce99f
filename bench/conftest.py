"""One thread a library, and this folder importable as `bench` from wherever pytest starts."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # last: an installed stagedad comes first

from bench.measure import one_thread

if "numpy" not in sys.modules:
    one_thread()
elif os.environ.get("OPENBLAS_NUM_THREADS") != "1":
    print("bench: numpy was loaded before: BLAS may use more than one thread", file=sys.stderr)


def pytest_configure(config):
    """Let peers deprecate what they like: their warnings are not ours to mend."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning")
