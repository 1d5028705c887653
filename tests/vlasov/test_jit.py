"""Kernels compile with and without a folder for the cache."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from vlasov import jit
from vlasov.errors import InputError

PROGRAM = """
import numpy as np
from vlasov.tilting import tilt
print(tilt(np.array([[1.0], [3.0]]), np.zeros(2), np.zeros((1, 1))).mean[0, 0])
"""


def test_an_unwritable_cache_is_no_error(tmp_path):
    blocked = tmp_path / "a file, not a folder"
    blocked.touch()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(blocked / "cache"), "HOME": str(blocked)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
    assert done.stdout == "2.0\n"


def test_without_a_locator_compilation_goes_on_without_a_cache(monkeypatch):
    asked = []
    njit = jit.numba.njit

    def without_locator(function, *, cache, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(function, cache=False, **options)

    monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=without_locator))
    assert jit.kernel()(lambda x: 2 * x)(3) == 6
    assert asked == [True, False]


CLOSURE = """
from vlasov.jit import kernel

def twice(function):
    @kernel()
    def run(x):
        return function(function(x))
    return run

@kernel()
def more(x):
    return x + 1

outer = twice(twice(more))
print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""


def test_a_kernel_that_closes_over_others_is_found_in_the_cache_by_the_next_process(tmp_path):
    (tmp_path / "closure.py").write_text(CLOSURE)
    command, environment = [sys.executable, "-m", "closure"], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    for hits in (0, 1):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        assert done.stdout.split() == ["5.0", str(hits)]


def test_waiting_threads_do_not_spin():
    assert os.environ["OMP_WAIT_POLICY"] == "passive"


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
