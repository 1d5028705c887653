"""Compilation is timed apart from the work, and whoever waits for it on a terminal is told once."""

import os
import pty
import subprocess
import sys

PROGRAM = """
import vlasov as vl
problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 0.1)
for tolerance in (1e-8, 1e-9):
    run = vl.solve(problem, "particles", n=40, times=[0.1], tolerance=tolerance, warn_above=float("inf"))
    print(run.attrs["compile_seconds"], run.attrs["wall_seconds"])
"""


def run_on_a_terminal(cache):
    """What the program prints, and what appears on its terminal for errors."""
    leader, follower = pty.openpty()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, text=True, env=environment, check=True)
    os.close(follower)
    try:
        seen = os.read(leader, 10_000).decode()
    except OSError:  # Linux: nothing was written, and nobody can write any more
        seen = ""
    os.close(leader)
    return [list(map(float, line.split())) for line in done.stdout.splitlines()], seen


def test_compilation_is_timed_apart_and_announced_once(tmp_path):
    (first, second), seen = run_on_a_terminal(tmp_path)
    assert first[0] > 0.5
    assert second[0] < 0.1 * first[0]  # the same kernels
    assert first[1] < 0.5 * first[0]  # the work itself, with what is imported for it
    assert (seen.count("compiling, once") == 1) == (first[0] > 1.5)
    (first, _), seen = run_on_a_terminal(tmp_path)
    assert (first[0], seen) == (0.0, "")  # from the cache
