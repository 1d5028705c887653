"""The k atoms with the least |x_i - y|^p - f_i, for many y, by a tree of boxes: any p, any potentials f.

Boxes are halved along their widest side. In each, f is below a plane, flat unless p = 2: a box that cannot hold less
than the k-th least is left out.
"""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads, share
from vlasov.jit import kernel

_LEAF = 8  # atoms in a box that is not halved, at most
_THREADED = 2000  # places from which on threads pay


class Tree(NamedTuple):
    """Atoms in the order of the leaves (some repeated, to fill a power of two), and corners of boxes by node."""

    order: NDArray[np.int64]
    spare: NDArray[np.bool_]
    places: Array
    low: Array
    high: Array


def tree(places: Array) -> Tree:
    """Return the tree of points (n, d). The children of node k are 2 k and 2 k + 1, node 1 is the root."""
    n, d = places.shape
    depth = max(0, math.ceil(math.log2(n / _LEAF)))
    leaf = math.ceil(n / 2**depth)
    order = np.arange(leaf * 2**depth) % n
    spare = np.arange(order.size) >= n
    low, high = (np.empty((2 ** (depth + 1), d)) for _ in range(2))
    for level in range(depth + 1):
        blocks = places[order].reshape(2**level, -1, d)
        nodes = slice(2**level, 2 ** (level + 1))
        low[nodes], high[nodes] = blocks.min(axis=1), blocks.max(axis=1)
        if level == depth:
            break
        widest = np.argmax(high[nodes] - low[nodes], axis=1)
        keys = np.take_along_axis(blocks, widest[:, None, None], axis=2)[..., 0]
        ranks = np.argsort(keys, axis=1, kind="stable")
        order, spare = (np.take_along_axis(a.reshape(2**level, -1), ranks, axis=1).ravel() for a in (order, spare))
    return Tree(order, spare, np.ascontiguousarray(places[order]), low, high)


def nearest(atoms: Tree, f: Array, y: Array, smear: Array, p: float, k: int) -> tuple[NDArray[np.int64], Array]:
    """Return the k atoms with the least (|x_i - y|^2 + smear)^{p/2} - f_i, in increasing order, and these values.

    Shapes (m, k) for m places; ``k`` is at most the number of atoms.
    """
    tops = np.where(atoms.spare, -np.inf, f[atoms.order])
    slopes, most = _planes(atoms, f[atoms.order], steep=p == 2)
    which, least = np.empty((len(y), k), dtype=np.int64), np.empty((len(y), k))
    threads = (os.cpu_count() or 1) if len(y) > _THREADED else 1
    at = np.ascontiguousarray(y), np.ascontiguousarray(smear), float(p)
    in_threads(threads, _search, atoms.places, tops, atoms.low, atoms.high, slopes, most, *at, which, least)
    return atoms.order[which], least


def _planes(atoms: Tree, f: Array, *, steep: bool) -> tuple[Array, Array]:
    """Return slopes (nodes, d) and constants (nodes,) of a plane above f in each box, flat unless ``steep``."""
    slopes, most = np.zeros_like(atoms.low), np.full(len(atoms.low), -np.inf)
    d = slopes.shape[1]
    for level in range((len(most) // 2).bit_length()):
        nodes = slice(2**level, 2 ** (level + 1))
        x, values = atoms.places.reshape(2**level, -1, d), f.reshape(2**level, -1)
        if steep:
            away = x - x.mean(axis=1, keepdims=True)
            squares = np.einsum("bid,bie->bde", away, away)
            squares += (1e-9 * np.trace(squares, axis1=1, axis2=2) + 1e-300)[:, None, None] * np.eye(d)
            slopes[nodes] = np.linalg.solve(squares, np.einsum("bid,bi->bd", away, values)[..., None])[..., 0]
        most[nodes] = (values - np.einsum("bid,bd->bi", x, slopes[nodes])).max(axis=1)
    return slopes, most


@kernel()
def _search(  # type: ignore[no-untyped-def]
    places, tops, low, high, slopes, most, y, smear, p, which, least, thread, threads
):
    """Fill rows of ``which`` and ``least``, depth first, the nearer child first."""
    begin, stop = share(len(y), thread, threads)
    leaves, d, k = len(low) // 2, y.shape[1], which.shape[1]
    leaf = len(places) // leaves
    nodes, bounds = np.empty(128, dtype=np.int64), np.empty(128)
    for row in range(begin, stop):
        for j in range(k):
            which[row, j], least[row, j] = 0, np.inf
        nodes[0], bounds[0], size = 1, -np.inf, 1
        while size:
            size -= 1
            node = nodes[size]
            if bounds[size] >= least[row, k - 1]:
                continue
            if node >= leaves:
                for i in range((node - leaves) * leaf, (node - leaves + 1) * leaf):
                    square = smear[row]
                    for axis in range(d):
                        square += (places[i, axis] - y[row, axis]) ** 2
                    value = _power(square, p) - tops[i]
                    if value < least[row, k - 1]:
                        j = k - 1
                        while j > 0 and least[row, j - 1] > value:
                            which[row, j], least[row, j] = which[row, j - 1], least[row, j - 1]
                            j -= 1
                        which[row, j], least[row, j] = i, value
                continue
            first, second = _bound(2 * node, low, high, slopes, most, y, smear, p, row), 0.0
            second = _bound(2 * node + 1, low, high, slopes, most, y, smear, p, row)
            near = 2 * node + (second < first)
            nodes[size], bounds[size] = 4 * node + 1 - near, max(first, second)
            nodes[size + 1], bounds[size + 1] = near, min(first, second)
            size += 2


@kernel(forceinline=True)
def _bound(node, low, high, slopes, most, y, smear, p, row):  # type: ignore[no-untyped-def]
    """Return the least value that an atom in a box may have."""
    square, plane = smear[row], most[node]
    for axis in range(y.shape[1]):
        slope = slopes[node, axis]
        x = max(y[row, axis] + slope / 2, low[node, axis])
        x = min(x, high[node, axis])
        square += (x - y[row, axis]) * (x - y[row, axis])
        plane += slope * x
    return _power(square, p) - plane


@kernel(forceinline=True)
def _power(square, p):  # type: ignore[no-untyped-def]
    """Return |x|^p from |x|^2."""
    if p == 2.0:
        return square
    if p == 1.0:
        return np.sqrt(square)
    return square ** (p / 2)
