"""How kernels are compiled: without a folder for the cache, and found in it by the next process."""

import os
import random
import subprocess
import sys

import pytest
from numba.core import compiler
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
print("closure", outer(1.0), sum(outer.stats.cache_hits.values()))
"""
FACE = """
from vlasov.jit import kernel
{constants}
@kernel()
def face(a, b, c, d, e, f):
    return c + WEIGHT * (d - c)
"""
CALLS_IT = """
from {face} import face
from vlasov.jit import kernel

def flux(face):
    @kernel()
    def run(w):
        return w * face(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    return run

print("{face}", flux(face)(1.0))
"""
WRITTEN = """
from numba.core import types
from numba.extending import intrinsic
from llvmlite import ir

@intrinsic
def number(typing_context):
    return types.float64(), lambda *_: ir.Constant(ir.DoubleType(), {})
"""
TAKES_IT = """
from vlasov.jit import kernel
from written import number

@kernel()
def run(x):
    return x + number()

print("intrinsic", run(1.0))
"""
NAME = """
from vlasov.jit import kernel
from constants import FACTOR

def make(factor):
    @kernel()
    def scaled(x):
        return factor * x

    return scaled

scaled = make(FACTOR)
scaled(1.0)
print("name", next(iter(scaled.overloads.values())).fndesc.mangled_name)
"""
BY_ADDRESS = """
import numpy as np
from numba import types
from vlasov.compiled.pointers import address, call
from vlasov.jit import kernel

@kernel()
def add(factor, x, out):
    for i in range(x.size):
        out[i] += factor * x[i]

@kernel()
def times(factor, x, out):
    for i in range(x.size):
        out[i] *= factor * x[i]

@kernel()
def refuses(factor, x, out):
    if factor > 0.0:
        raise ValueError("a kernel refuses")

@kernel()
def twice(function, factor, x, out):
    for _ in range(2):
        call(function, (factor, x, out))

line = types.float64[::1]
numbers = []
for kernel in (add, times):
    out = np.array([1.0, 2.0])
    twice(address(kernel, types.float64, line, line), 3.0, np.array([1.0, 10.0]), out)
    numbers += out.tolist()
try:
    twice(address(refuses, types.float64, line, line), 3.0, out, out)
except ValueError as error:
    numbers.append(int("refuses" in str(error)))
print("address", *numbers, len(twice.overloads), sum(twice.stats.cache_hits.values()))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Lines that two processes print, one after the other, by their first words; files are edited between them."""
    folder = tmp_path_factory.mktemp("kernels")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    files = {"closure": CLOSURE, "by_address": BY_ADDRESS, "takes_it": TAKES_IT, "name": NAME}
    files |= {f"calls_{face}": CALLS_IT.format(face=face) for face in ("constant", "imported")}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    program = f"import {', '.join(files)}"
    processes = []
    for weight, number in ((0.0, 1.0), (0.5, 20.0)):
        (folder / "constants.py").write_text(f"WEIGHT = {weight}\nFACTOR = {number}")
        (folder / "constant.py").write_text(FACE.format(constants=f"WEIGHT = {weight}"))
        (folder / "imported.py").write_text(FACE.format(constants="from constants import WEIGHT"))
        (folder / "written.py").write_text(WRITTEN.format(number))
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True)
        processes.append({line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()})
    return processes


def test_a_kernel_that_closes_over_others_is_found_in_the_cache_by_the_next_process(printed):
    assert [lines["closure"] for lines in printed] == [["5.0", "0"], ["5.0", "1"]]


@pytest.mark.parametrize("face", ["constant", "imported"])
def test_what_was_compiled_for_an_edited_kernel_in_another_file_is_not_used_again(printed, face):
    assert [float(lines[face][0]) for lines in printed] == [3.0, 3.5]


def test_what_was_compiled_for_edited_words_of_llvm_is_not_used_again(printed):
    assert [float(lines["intrinsic"][0]) for lines in printed] == [2.0, 21.0]


def test_kernels_are_called_by_address_also_by_the_next_process(printed):
    for hits, lines in enumerate(printed):
        assert list(map(float, lines["address"])) == [7, 62, 9, 1800, 1, 1, hits]


def test_closures_compiled_by_two_processes_have_two_names(printed):
    """A count of what a process has compiled would not do: a third process that loads both would call one for both."""
    first, second = (lines["name"][0] for lines in printed)
    assert first != second


@pytest.mark.skipif(not jit.LEAN, reason="this Numba compiles in its own way")
def test_whole_numbers_that_are_written_down_compile_nothing_anew():
    new = random.random()  # in no cache
    power = jit.kernel()(lambda x, n: new * x**n)
    assert jit.kernel()(lambda x: power(x, 2) + power(x, 3))(2.0) == pytest.approx(12.0 * new)
    assert len(power.inside.overloads) == 1


@pytest.mark.skipif(not jit.LEAN, reason="this Numba compiles in its own way")
def test_flags_are_numbas():
    flags = compiler.Flags()
    flags.nrt, flags.fastmath = True, True
    ours = jit.lean._Flags(flags)
    assert ours == flags
    assert hash(ours) == hash(flags)
    ours.nrt = False
    assert ours != flags
    assert ours.copy().values() == ours.values()


@pytest.mark.skipif(not jit.LEAN, reason="this Numba compiles in its own way")
def test_a_kernel_inside_a_kernel_is_no_function_of_its_own_until_python_calls_it():
    new = random.random()  # in no cache
    half = jit.kernel()(lambda x: new * (0.5 * x))
    quarter = jit.kernel()(lambda x: half(half(x)) / (new * new))
    assert quarter(3.0) == pytest.approx(0.75)
    assert not half.overloads  # no machine code, no wrapper
    [inside] = half.inside.overloads.values()
    assert inside.library.get_pointer_to_function(inside.fndesc.llvm_func_name) == 0
    assert half(3.0) == pytest.approx(1.5 * new)


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
