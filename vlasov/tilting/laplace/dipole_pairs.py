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
_NEGLIGIBLE = -600.0  # exponents below count as minus infinity: products with smaller numbers take long

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
    far_readers, far_carriers = far
    rows, is_near = np.ascontiguousarray(vectors.T), np.ones(len(vectors), bool)
    is_near[far_readers] = False
    near = np.flatnonzero(is_near)
    if len(far_readers):
        found = np.empty((len(rows), len(far_readers)))
        in_threads(threads, _sum_for_few, readers.of(far_readers), carriers, rows, found)
        result[far_readers] += found.T @ values.T
    if len(far_carriers):
        found = np.empty((len(rows), len(near)))
        carried = np.ascontiguousarray(rows[:, far_carriers])
        in_threads(threads, _sum_of_few, readers.of(near), carriers.of(far_carriers), carried, found)
        result[near] += found.T @ values.T


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
        weights[j] = exp_negative(weights[j]) if weights[j] > _NEGLIGIBLE else 0.0
    for j in range(count):
        along[j] *= weights[j]


@kernel(flags=SUMS)
def _sum_for_few(readers, carriers, vectors, result, thread, threads):  # type: ignore[no-untyped-def]
    """result[:, i] = r_i for a share of the readers: tiles of carriers for each of them."""
    (d, n), weights, along = vectors.shape, numbers(_TILE), numbers(_TILE)
    first, last = share(result.shape[1], thread, threads)
    for i in range(first, last):
        for k in range(d):
            result[k, i] = 0.0
        for begin in range(0, n, _TILE):
            end = min(begin + _TILE, n)
            _tile(readers, i, carriers, vectors, begin, end, weights, along)
            for k in range(d):
                row, places = vectors[k, begin:end], carriers.places[k, begin:end]
                slope, total = readers.slopes[k, i], 0.0
                for j in range(end - begin):
                    total += weights[j] * row[j] + along[j] * (places[j] + slope)
                result[k, i] += total


@kernel(flags=SUMS)
def _sum_of_few(readers, carriers, vectors, result, thread, threads):  # type: ignore[no-untyped-def]
    """The same with few carriers: all of them for each tile of readers."""
    (d, few), weights, along, n = vectors.shape, numbers(_TILE), numbers(_TILE), result.shape[1]
    first, last = share((n + _TILE - 1) // _TILE, thread, threads)
    for tile in range(first, last):
        begin, end = tile * _TILE, min((tile + 1) * _TILE, n)
        count, logs = end - begin, readers.logs[begin:end]
        for k in range(d):
            result[k, begin:end] = 0.0
        for j in range(few):
            level, constant = carriers.logs[j], 0.0
            for k in range(d):
                constant += vectors[k, j] * carriers.slopes[k, j]
            for i in range(count):
                weights[i], along[i] = logs[i] + level, constant
            for k in range(d):
                places, place, vector = readers.places[k, begin:end], carriers.places[k, j], vectors[k, j]
                for i in range(count):
                    weights[i] += place * places[i]
                    along[i] += vector * places[i]
            for i in range(count):
                weights[i] = exp_negative(weights[i]) if weights[i] > _NEGLIGIBLE else 0.0
            for k in range(d):
                slopes, row = readers.slopes[k, begin:end], result[k, begin:end]
                place, vector = carriers.places[k, j], vectors[k, j]
                for i in range(count):
                    row[i] += weights[i] * (vector + along[i] * (place + slopes[i]))
