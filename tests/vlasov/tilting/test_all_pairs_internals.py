"""How all pairs are compiled: machine code of the loops, and a cache that finds them again."""

import os
import re
import subprocess
import sys

import numba
import numpy as np
import pytest

from tests.processor import FEATURES, FUSED, X86
from vlasov.jit import kernel
from vlasov.tilting.all_pairs import covariances, few_dimensions, tiles
from vlasov.tilting.all_pairs.covariances import COLUMNS
from vlasov.tilting.all_pairs.lanes import four_exponents
from vlasov.tilting.all_pairs.panels import SOURCES, exponents, sum_up, width_of

WIDE = "+avx512f" in FEATURES
LONGEST = "%zmm" if WIDE else "%ymm" if "+avx" in FEATURES else "%xmm"
PRODUCT = r"vfmadd\d+pd" if FUSED else r"v?mulpd"


def assembly(kernel, *arguments):
    """Machine code of a kernel: compiled anew, since Numba's cache keeps none to read."""
    fresh = numba.njit(**{k: v for k, v in kernel.targetoptions.items() if k != "nopython"})(kernel.py_func)
    fresh(*arguments)
    [code] = fresh.inspect_asm().values()
    return code


@kernel()
def exponents_of_four(start, tile, columns, tilts, exponents):
    four_exponents(start, tile, COLUMNS, tilts, columns, exponents)


@kernel()
def sums_of_panel(sources, tilts, panel, tops, sums):
    exponents(sources, 9, SOURCES, 8, tilts, panel, tops, True)
    sum_up(panel, sources, 9, SOURCES, 8, sums)
    return width_of(panel)


def products(code, register):
    return len(re.findall(rf"{PRODUCT}\s.*{register}", code))


@pytest.mark.arithmetic
@pytest.mark.skipif(not X86, reason="names of another family of processors")
def test_vectors_that_are_written_out_are_the_longest():
    points, zero = np.random.default_rng(0).normal(size=(64, 2)), (0.0,) * 3
    sources = tiles.Sources(*tiles.prepare(points, np.empty(0), points, np.empty(1000), 2, 64))
    code = assembly(few_dimensions.means, sources, points, np.empty(0), np.empty((64, 2)), zero)
    assert products(code, LONGEST) >= 20
    row = np.zeros(4 * COLUMNS)
    code_of_many = assembly(exponents_of_four, row, row.copy(), COLUMNS, np.zeros((4, 4)), row.copy())
    assert products(code_of_many, LONGEST) >= 8
    if WIDE:
        assert "vpermi2q" in code or "vpermt2q" in code


@pytest.mark.arithmetic
def test_panels_multiply_matrices():
    """z = l + Y q for the targets of three vectors, and the sums over sources of their rows by z."""
    rng = np.random.default_rng(0)
    width = sums_of_panel(*(np.zeros(4000) for _ in range(5)))
    sources, tilts = rng.normal(size=(SOURCES, 9)), rng.normal(size=(8, width))
    panel, sums = np.zeros((SOURCES, width)), rng.normal(size=(8, width))
    before, flat = sums.copy(), [array.reshape(-1) for array in (sources, tilts, panel, np.zeros(width), sums)]
    sums_of_panel(*flat)
    np.testing.assert_allclose(panel, sources[:, :8] @ tilts + sources[:, 8:], rtol=0, atol=1e-13)
    np.testing.assert_allclose(sums, before + sources[:, :8].T @ panel, rtol=0, atol=1e-11)
    if X86:
        code = assembly(sums_of_panel, *flat)
        assert products(code, LONGEST) >= 3 * ((8 if WIDE else 4) + 4)


@pytest.mark.arithmetic
@pytest.mark.skipif(not X86, reason="names of another family of processors")
def test_loops_are_made_of_vector_instructions():
    """Of the length that LLVM prefers: on many processors with AVX-512 that is half of the longest."""
    rows, square = np.zeros(4 * COLUMNS), (0.0,) * 16
    dots = assembly(covariances._dots, rows, rows, 32, square)
    assert products(dots, "%[yz]mm" if WIDE else LONGEST) >= 16


CALLS = """
import numpy as np
from vlasov.tilting import all_pairs
from vlasov.tilting.all_pairs import few_dimensions, kernels
points = np.random.default_rng(0).normal(size=(3, 100, 2))
_, mean, _, _ = all_pairs.batch(points, None, points)
stats = kernels.loops(few_dimensions.means).batch.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), float(np.abs(mean).max()))
"""


def test_compiled_code_is_found_again(tmp_path):
    """In a folder of its own: the first process compiles the loops over many clouds, the second finds them."""

    def printed():
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", CALLS], capture_output=True, text=True, env=environment, check=False
        )
        assert done.stderr == ""
        return done.stdout.split()

    first, second = printed(), printed()
    assert (first[:2], second[:2]) == (["0", "1"], ["1", "0"])
    assert first[2] == second[2]
