"""Kernels without a folder for the cache, what they may assume, and the number of threads."""

import os
import subprocess
import sys

import pytest

from vlasov import jit
from vlasov.errors import InputError

PROGRAM = """
from vlasov.compiling import CLOCK
from vlasov.jit import kernel

@kernel()
def double(x):
    return 2 * x

print(double(3.0), CLOCK.kept)
"""


@pytest.mark.parametrize("in_a_file", [True, False])
def test_an_unwritable_cache_is_no_error(tmp_path, in_a_file):
    """Neither for kernels in a file, beside which no folder can be made, nor for those in none."""
    program, blocked = tmp_path / "program.py", tmp_path / "__pycache__"
    program.write_text(PROGRAM)
    blocked.write_text("a file, not a folder")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(blocked / "cache"), "HOME": str(blocked)}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *([program] if in_a_file else ["-c", PROGRAM])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
    assert done.stdout == "6.0 False\n"


def test_waiting_threads_do_not_spin():
    assert os.environ["OMP_WAIT_POLICY"].lower() == "passive"


@pytest.mark.quick
@pytest.mark.parametrize("flags", [jit.SUMS, jit.EXACT])
def test_no_kernel_may_assume_that_nan_and_infinity_do_not_occur(flags):
    assert not {"nnan", "ninf", "fast"} & flags


@pytest.mark.quick
def test_threads_are_set_and_given_back():
    jit.set_threads(1)
    assert jit.numba.get_num_threads() == 1
    jit.set_threads(None)
    assert jit.numba.get_num_threads() == jit.numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize("count", [0, 10_000, 1.5, True])
def test_impossible_numbers_of_threads_are_refused(count):
    with pytest.raises(InputError, match="threads: "):
        jit.set_threads(count)
