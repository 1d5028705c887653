"""How kernels are compiled: without a folder for the cache, and found in it by the next process."""

import os
import subprocess
import sys
from types import SimpleNamespace

from vlasov import jit


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
