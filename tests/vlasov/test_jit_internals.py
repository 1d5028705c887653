"""How kernels are compiled: without a folder for the cache, and found in it by the next process."""

import os
import subprocess
import sys

import pytest
from numba.core.registry import CPUDispatcher

from vlasov import cache, jit


def test_without_a_locator_compilation_goes_on_without_a_cache(monkeypatch):
    def without_locator(*_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(cache.Cache, "__init__", without_locator)
    monkeypatch.setattr(cache.CLOCK, "kept", True)
    assert jit.kernel()(lambda x: 2 * x)(3) == 6
    assert not cache.CLOCK.kept


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


def printed_by(module, folder):
    """What a process prints that runs a module of a folder, with a cache there."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", module]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True).stdout


def test_a_kernel_that_closes_over_others_is_found_in_the_cache_by_the_next_process(tmp_path):
    (tmp_path / "closure.py").write_text(CLOSURE)
    for hits in (0, 1):
        assert printed_by("closure", tmp_path).split() == ["5.0", str(hits)]


FACE = """
from vlasov.jit import kernel
{constants}
@kernel()
def face(a, b, c, d, e, f):
    return c + WEIGHT * (d - c)
"""
CALLS_IT = """
from face import face
from vlasov.jit import kernel

def flux(face):
    @kernel()
    def run(w):
        return w * face(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    return run

print(flux(face)(1.0))
"""


@pytest.mark.parametrize("constants", ["WEIGHT = {}", "from constants import WEIGHT"])
def test_what_was_compiled_for_an_edited_kernel_in_another_file_is_not_used_again(tmp_path, constants):
    (tmp_path / "calls_it.py").write_text(CALLS_IT)
    for weight, expected in ((0.0, 3.0), (0.5, 3.5)):
        (tmp_path / "constants.py").write_text(f"WEIGHT = {weight}")
        (tmp_path / "face.py").write_text(FACE.format(constants=constants.format(weight)))
        assert float(printed_by("calls_it", tmp_path)) == expected


@pytest.mark.skipif(not jit.LEAN, reason="this Numba compiles in its own way")
def test_a_kernel_inside_a_kernel_is_no_function_of_its_own_until_python_calls_it():
    half = jit.kernel()(lambda x: 0.5 * x)
    quarter = jit.kernel()(lambda x: half(half(x)))
    assert quarter(3.0) == 0.75
    assert not half.overloads  # no machine code, no wrapper
    [inside] = half.inside.overloads.values()
    assert inside.library.get_pointer_to_function(inside.fndesc.llvm_func_name) == 0
    assert half(3.0) == 1.5


def test_a_numba_that_is_not_known_compiles_in_its_own_way_to_the_same(monkeypatch):
    def made():
        part = jit.kernel(flags=jit.SUMS)(lambda x: (x / 3.0 + 1.0) / 7.0)
        return jit.kernel(flags=jit.SUMS)(lambda x: part(part(x)) + part(x))

    lean = made()
    assert (type(lean) is not CPUDispatcher) == jit.LEAN
    monkeypatch.setattr(jit, "LEAN", False)
    plain = made()
    assert type(plain) is CPUDispatcher
    assert plain(0.7) == lean(0.7)
    assert plain.name != lean.name  # nor does one find the other's code on disk


@pytest.mark.quick
@pytest.mark.parametrize("version", ["0.61.2", "0.69.0rc1", "1.0", "0+unknown"])
def test_only_numbas_that_were_checked_are_known(monkeypatch, version):
    monkeypatch.setattr(jit.lean.numba, "__version__", version)
    assert not jit.lean.serves()


DAMAGES = {
    "cut": lambda content: content[:100],
    "end": lambda content: content[:-9] + b"123456789",
    "content that can be read but is not what its hash says": lambda content: bytes(32) + content[32:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(cache.numba.config, "CACHE_DIR", str(tmp_path))

    def made():
        half = jit.kernel()(lambda x: 0.5 * x)
        return jit.kernel()(lambda x: half(half(x)))

    for hits in (0, 1):
        quarter = made()
        assert quarter(3.0) == 0.75
        assert sum(quarter.stats.cache_hits.values()) == hits
    kept = list(tmp_path.rglob("*.nbc"))
    assert len(kept) == 2  # one for what Python calls, one for what is inside
    for file in kept:
        file.write_bytes(damage(file.read_bytes()))
    quarter = made()
    assert quarter(3.0) == 0.75
    assert not quarter.stats.cache_hits
