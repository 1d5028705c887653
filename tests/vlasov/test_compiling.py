"""Compilation is timed apart from the work, and whoever waits for it on a terminal is told once."""

import os
import pty
import subprocess
import sys

# The first run imports, and compiles what no other test has; the second one has a kernel that nobody else has.
PROGRAM = """
import numpy as np
import vlasov as vl
from vlasov import compiling
from vlasov.jit import kernel

compiling._PATIENCE = 0.1

@kernel()
def middle(x):
    return np.median(x)

used = []

def values(t):
    return [[middle(np.ones(3))]] if used else [[1.0]]

problem = vl.Problem(vl.Softmax(A=[[1.0]], V=values), vl.Gaussian(0.0, 1.0), 0.1)
for tolerance in (1e-8, 1e-8, 1e-9):
    run = vl.solve(problem, "particles", n=40, times=[0.1], tolerance=tolerance, warn_above=float("inf"))
    print(run.attrs["compile_seconds"], run.attrs["wall_seconds"])
    used.append("from now on")
"""


def run_on_a_terminal(program):
    """What the program prints, and what appears on its terminal for errors."""
    leader, follower = pty.openpty()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, text=True, env=environment, check=True)
    os.close(follower)
    try:
        seen = os.read(leader, 10_000).decode()
    except OSError:  # Linux: nothing was written, and nobody can write any more
        seen = ""
    os.close(leader)
    return [list(map(float, line.split())) for line in done.stdout.splitlines()], seen


def test_compilation_is_timed_apart_and_announced_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (_, first, second), seen = run_on_a_terminal(program)
    assert first[0] > 0.2
    assert second[0] < 0.1 * first[0]  # the same kernels
    assert first[1] < 0.5 * first[0]  # the work itself
    assert seen.count("compiling, once") == 1
    runs, seen = run_on_a_terminal(program)
    assert [seconds for seconds, _ in runs] == [0.0] * 3  # from the cache
    assert seen == ""
