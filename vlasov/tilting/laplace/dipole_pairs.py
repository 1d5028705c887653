"""Pairs of dipoles of which one is beyond a plan's reach, summed one by one: what ``outliers`` are for ``dipoles``.

    r_i = sum_j e^{<c_i, c_j> + a_i + a_j} [u_j + (c_j + l_i) <u_j, c_i + l_j>]

is what a point reads of all dipoles u_j; both products are this sum, with sources and targets exchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.memory import numbers
from vlasov.compiled.threads import in_threads, share
from vlasov.jit import SUMS, kernel

_TILE = 512  # points at a time

Indices = NDArray[np.int64]


class Ends(NamedTuple):
    """One side of pairs: places c and slopes l (d, n), and the logarithms a (n,) of their scales."""

    places: Array
    slopes: Array
    logs: Array

    def of(self, some: Indices) -> Ends:
        """Those of some points."""
        return Ends(*(np.ascontiguousarray(rows[..., some]) for rows in self))


def add_pairs(
    readers: Ends,
    carriers: Ends,
    far: tuple[Indices, Indices],
    vectors: Array,
    values: Array,
    threads: int,
    result: Array,
) -> None:
    """Add ``values`` times what readers get of the vectors (n, d) of carriers, where one of them is ``far``."""
    n, (far_readers, far_carriers) = len(vectors), far
    near = np.setdiff1d(np.arange(n), far_readers)
    rows = np.ascontiguousarray(vectors.T)
    for some, others, carried in (
        (far_readers, carriers, rows),
        (near, carriers.of(far_carriers), np.ascontiguousarray(rows[:, far_carriers])),
    ):
        if len(some) and carried.shape[1]:
            found = np.empty((len(some), len(rows)))
            in_threads(threads, _sum_pairs, readers.of(some), others, carried, found)
            result[some] += found @ values.T


@kernel(flags=SUMS)
def _tile(reader, i, carriers, vectors, begin, end, weights, along):  # type: ignore[no-untyped-def]
    """Weights of the pairs of reader i with some carriers, and these times <u_j, c_i + l_j>."""
    count, level, logs = end - begin, reader.logs[i], carriers.logs[begin:end]
    for j in range(count):
        weights[j] = logs[j] + level
        along[j] = 0.0
    for k in range(len(vectors)):
        place, row = reader.places[k, i], vectors[k, begin:end]
        places, slopes = carriers.places[k, begin:end], carriers.slopes[k, begin:end]
        for j in range(count):
            weights[j] += place * places[j]
            along[j] += row[j] * (place + slopes[j])
    for j in range(count):
        weights[j] = exp_negative(weights[j])
    for j in range(count):
        along[j] *= weights[j]


@kernel(flags=SUMS)
def _sum_pairs(readers, carriers, vectors, result, thread, threads):  # type: ignore[no-untyped-def]
    """result[i] = r_i for a share of the readers."""
    (d, n), weights, along = vectors.shape, numbers(_TILE), numbers(_TILE)
    first, last = share(len(result), thread, threads)
    for i in range(first, last):
        for k in range(d):
            result[i, k] = 0.0
        for begin in range(0, n, _TILE):
            end = min(begin + _TILE, n)
            _tile(readers, i, carriers, vectors, begin, end, weights, along)
            for k in range(d):
                row, places = vectors[k, begin:end], carriers.places[k, begin:end]
                slope, total = readers.slopes[k, i], 0.0
                for j in range(end - begin):
                    total += weights[j] * row[j] + along[j] * (places[j] + slope)
                result[i, k] += total
