"""Kernels made by one function for different data stay apart, in whatever processes they were compiled."""

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
from vlasov.jit import kernel

def make(factor):
    @kernel()
    def inner(x):
        return factor * x

    @kernel()
    def outer(x):
        return inner(x) + 1.0

    return outer
"""


def test_closures_that_other_processes_compiled_do_not_take_each_others_place(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, str(tmp_path)]), "NUMBA_CACHE_DIR": str(tmp_path)}

    def ask(*factors):
        program = f"from made import make; print(*[make(factor)(1.0) for factor in {factors}])"
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        return done.stdout.decode().split()

    assert [ask(2.0), ask(3.0), ask(2.0, 3.0)] == [["3.0"], ["4.0"], ["3.0", "4.0"]]
