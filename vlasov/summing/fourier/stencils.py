"""Interpolation of waves on uniform nodes: stencils fitted to the frequencies of the sigmoid's Fourier series.

    e^{i w k t} ~ sum_a w_a(t) e^{i w k x_a},   x_a = a - (p-1)/2,   |t| <= 1/2,   k: the step, in units of 1/z

The weights are exact for the frequencies below, and for 1 and t: the zeros of the polynomial in w^2 that is least in
mean with the series' amplitudes as its weight. Real exponentials as in ``vlasov.tilting.stencils`` would not do: the
series' amplitudes fall like e^{-pi w}, and waves do not grow.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache, lru_cache

import numpy as np

from vlasov.checks import Array
from vlasov.tilting.stencils import DIGITS, chebyshev_points, coefficients

COARSE = 20  # order of the stencils between fine and coarse nodes
FREQUENCIES = {  # beside zero, which counts twice
    8: (0.41, 1.07, 2.09),
    12: (0.36, 0.89, 1.59, 2.51, 3.79),
    20: (0.24, 0.57, 0.97, 1.45, 2.01, 2.66, 3.44, 4.39, 5.64),
}


@cache
def table(order: int, kappa: float) -> Array:
    """Coefficients (p, p): entry [j, a] belongs to t^j in w_a(t). Takes 2 to 10 ms, once."""
    with localcontext() as context:
        context.prec = DIGITS
        angles = [Decimal(kappa) * Decimal(frequency) for frequency in FREQUENCIES[order]]
        nodes = [Decimal(2 * a - order + 1) / 2 for a in range(order)]
        return coefficients(_waves(nodes, angles), _waves([c / 2 for c in chebyshev_points(order)], angles))


def _waves(places: list[Decimal], angles: list[Decimal]) -> list[list[Decimal]]:
    """1, cosines, t and sines at these places."""
    values = [[_wave(angle * place) for place in places] for angle in angles]
    cosines, sines = ([[value[k] for value in row] for row in values] for k in (0, 1))
    return [[Decimal(1)] * len(places), *cosines, places, *sines]


def _wave(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine, by Taylor's series."""
    parts, term, k = [Decimal(0), Decimal(0)], Decimal(1), 0
    while k < 4 or abs(term) > Decimal(10) ** -DIGITS:
        parts[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term *= angle / k
    return parts[0], parts[1]


@lru_cache(maxsize=8)
def halves(order: int, kappa: float, coarse: float, cells: int) -> Array:
    """From fine to coarse nodes on the positive half of an axis, for even and for odd masses: (2, coarse, fine).

    The transpose goes back, for even and for odd potentials. Without coarse steps there are no coarse nodes.
    """
    last = (cells + order - 2) // 2  # nodes reach from -last to last, with zero in the middle
    if coarse:
        half = reach(order, kappa, coarse, cells) - COARSE // 2 + 1
        place = np.arange(last + 1) * (kappa / coarse) + half
        cell = np.clip(np.floor(place), 0, 2 * half - 1).astype(int)
        offset = place - cell - 0.5
        weights = np.zeros((last + 1, 2 * half + COARSE - 1))
        along = offset[:, None] ** np.arange(COARSE) @ table(COARSE, coarse)
        np.put_along_axis(weights, cell[:, None] + np.arange(COARSE), along, axis=1)
    else:
        weights = np.eye(last + 1, 2 * last + 1, last)
    middle = weights.shape[1] // 2
    positive, negative = weights[:, middle:].T, weights[:, middle::-1].T
    result = np.ascontiguousarray([positive + negative, positive - negative])
    result[0, 0] /= 2
    return result


def reach(order: int, kappa: float, coarse: float, cells: int) -> int:
    """How many nodes are on either side of zero after ``halves``."""
    last = (cells + order - 2) // 2
    return int(np.ceil(last * kappa / coarse)) + COARSE // 2 - 1 if coarse else last
