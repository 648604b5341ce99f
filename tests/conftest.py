"""What every test shares: checks turned on, and how many random examples are tried."""

import os

# Before stagedad is imported: verify graphs after every pass, poison dead buffers.
os.environ.setdefault("STAGEDAD_CHECK", "1")
# `python -c` in a test sees the installed package as well, not the folder it is called in.
os.environ["PYTHONSAFEPATH"] = "1"

from hypothesis import settings

# Fixed seeds, so that a failure is the change's own; no deadline, since machines are shared.
settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("STAGEDAD_SOAK") else "test")
