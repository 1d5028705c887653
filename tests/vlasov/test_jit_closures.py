"""Kernels that one function makes for different data have names of their own in machine code.

Names that differ by a count of what a process has compiled are the same in two processes; a third that loads both from
the cache would call one in place of the other.
"""

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
from vlasov.jit import kernel

def make(factor):
    @kernel()
    def scaled(x):
        return factor * x

    return scaled

def name(factor):
    scaled = make(factor)
    scaled(1.0)
    return next(iter(scaled.overloads.values())).fndesc.mangled_name
"""


def test_closures_compiled_by_two_processes_have_two_names(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, str(tmp_path)]), "NUMBA_CACHE_DIR": str(tmp_path)}

    def ask(factor):
        program = f"import made; print(made.name({factor}))"
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        return done.stdout.decode()

    assert ask(2.0) != ask(3.0)
