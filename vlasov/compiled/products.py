"""Exponentials of all pairs of nodes, and products of matrices by threads that change no bit of the result.

    node_matrix    E[k, l] = e^{<xi_k, y_l>} on two uniform grids of nodes about zero
    multiply       out[b] = left @ sum_s right[s, b]
    map_rows       A x for every row x

BLAS may choose its order of summation by its number of threads. Here every entry is one sum from the first to the last
term. Eight columns of ``right`` at a time are copied to a contiguous strip, which stays in the cache while tiles of
eight rows run through it.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.blocks import multiply_tile
from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.memory import numbers, table
from vlasov.compiled.threads import in_threads, share
from vlasov.compiled.vectors import fused
from vlasov.compiled.views import plain
from vlasov.jit import EXACT, kernel

TILE = 8  # a vector of the widest processors; as many sums at a time keep them busy
_BLOCK = 4096
_FEW_PRODUCTS = 500_000  # one thread of BLAS is faster below


@kernel(flags=EXACT)
def node_matrix(first_step, second_step, result):  # type: ignore[no-untyped-def]
    """e^{k l s t} for k, l = -c ... c, with steps s and t so short in bits that k s and l t are exact.

    The rounding error of the exponent, up to 600 units of the last place, is found by a fused multiply-add and undone.
    """
    half = len(result) // 2
    small = numbers(half + 1)
    for k in range(half + 1):
        x, down, up = k * first_step, result[half - k], result[half + k]
        for l in range(half + 1):
            y = l * second_step
            exponent = x * y
            small[l] = exp_negative(-exponent) * (1.0 - fused(x, y, -exponent))
        for l in range(half + 1):
            up[half + l] = 1.0 / small[l]
            up[half - l] = down[half + l] = small[l]
            down[half - l] = up[half + l]


def multiply(left: Array, right: Array, out: Array, threads: int) -> None:
    """out (b, m, n) = left (m, k) @ right (s, b, k, n) summed over s; the sum is left in right[0]."""
    if len(right) > 1:
        in_threads(threads, _add_up, right.reshape(len(right), -1))
    in_threads(threads, _strips, left, right[0], out)


def map_rows(x: Array, matrix: Array, threads: int | None = None) -> Array:
    """x @ matrix.T, shape (m, k), by as many threads as are set if not given.

    Threads of BLAS would wait beside ours, and be in the way of what comes next.
    """
    few = x.size * len(matrix) <= _FEW_PRODUCTS
    if few and len(x) <= _BLOCK:  # a piece that is too small to wake them
        return x.dot(matrix.T)
    out = np.empty((len(x), len(matrix)))
    if matrix.shape in ((2, 2), (3, 3)):
        threads = 1 if few else get_num_threads() if threads is None else threads
        in_threads(threads, _map_short_rows, plain(x), plain(matrix), out)
        return out
    if few:
        for start in range(0, len(x), _BLOCK):
            np.matmul(x[start : start + _BLOCK], matrix.T, out=out[start : start + _BLOCK])
        return out
    threads = get_num_threads() if threads is None else threads
    multiply(plain(x), np.ascontiguousarray(matrix.T)[None, None], out[None], threads)
    return out


@kernel(flags=EXACT)
def _map_short_rows(x, matrix, out, thread, threads):  # type: ignore[no-untyped-def]
    """out[j] = A x_j for d = 2 and 3, each with a loop of its own, which vectorises."""
    (begin, stop), a = share(len(x), thread, threads), matrix
    source, result = x.reshape(-1), out.reshape(-1)
    if len(a) == 2:
        for j in range(2 * begin, 2 * stop, 2):
            p, q = source[j], source[j + 1]
            result[j] = a[0, 0] * p + a[0, 1] * q
            result[j + 1] = a[1, 0] * p + a[1, 1] * q
    else:
        for j in range(3 * begin, 3 * stop, 3):
            p, q, r = source[j], source[j + 1], source[j + 2]
            result[j] = a[0, 0] * p + a[0, 1] * q + a[0, 2] * r
            result[j + 1] = a[1, 0] * p + a[1, 1] * q + a[1, 2] * r
            result[j + 2] = a[2, 0] * p + a[2, 1] * q + a[2, 2] * r


@kernel(flags=EXACT)
def _add_up(terms, thread, threads):  # type: ignore[no-untyped-def]
    total, size = terms[0], terms.shape[1]
    begin, stop = share(size, thread, threads)
    for start in range(begin, stop, _BLOCK):
        end = min(start + _BLOCK, stop)
        for term in range(1, len(terms)):
            row = terms[term]
            for i in range(start, end):
                total[i] += row[i]


@kernel(flags=EXACT)
def _strips(left, right, out, thread, threads):  # type: ignore[no-untyped-def]
    rows, depth = left.shape
    batches, _, columns = right.shape
    per_matrix = (columns + TILE - 1) // TILE
    strip, tile = table(depth, TILE), table(TILE, TILE)
    for task in range(thread, batches * per_matrix, threads):
        batch, column = task // per_matrix, task % per_matrix * TILE
        width = min(TILE, columns - column)
        for k in range(depth):
            for j in range(TILE):
                strip[k, j] = right[batch, k, column + j] if j < width else 0.0
        for row in range(0, rows, TILE):
            multiply_tile(left, row, strip, tile, TILE)
            for i in range(min(TILE, rows - row)):
                for j in range(width):
                    out[batch, row + i, column + j] = tile[i, j]
