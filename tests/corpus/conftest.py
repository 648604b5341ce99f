"""The helpers of this folder are imported by name, from the tests as from the scripts."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
