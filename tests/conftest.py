"""What must hold before the first test module is imported: threads, backend and reproducible random examples."""

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "2")  # the same number on every machine; read when numba is imported
os.environ.setdefault("MPLBACKEND", "Agg")  # also for the subprocesses of the tests

from hypothesis import settings

# No deadline: the first example of many tests compiles.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
