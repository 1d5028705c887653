"""Bounds on |J~ - J|_2 by rounding errors, from the sizes of what products are made of.

With g = sqrt(rows columns) >= |G|_2 of the largest sums of |G|, h that of H, and the longest queries, keys, values:

    |J| <= s = |W| (g |V| + h (|q| + |l'|) |K| |v - o| + rows |Q| |k| |v - o|)

Entries of G and H have relative errors of two exponents, eta, and of sums over the sources; what they are multiplied
by, and their products, have those of as many terms as are summed, half a unit u in the last place each. A
product with a matrix M adds u L |M|_F / |M| for its L columns. So

    |J~ - J| <= s (2 eta + 3 u (T + 2 k + r + 16) + u sum_M L |M|_F / |M|)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.linearised.all_pairs import Pairs
from vlasov.linearised.factors import Factors, terms_of
from vlasov.tilting.results import longest

if TYPE_CHECKING:
    from vlasov.linearised.few_dimensions import FewDimensions

_UNIT = 0.5 * float(np.finfo(float).eps)
_OF_CALLS = 16  # units in the last place of e^x, of quotients and of what stands in no sum


def bound(pairs: Pairs | FewDimensions, factors: Factors, points: Array, centre: Array) -> float:
    """On |J~ - J|_2 of one head at points, whose coordinates were taken from the ``centre``."""
    s, sizes = pairs.sources, pairs.sizes
    queries, keys, values = longest(s.queries), longest(s.keys), longest(s.values) + longest(pairs.means)
    slope = 0.0 if s.slope is None else longest(s.slope)
    whole, steep = np.sqrt(sizes.rows * sizes.columns), np.sqrt(sizes.slope_rows * sizes.slope_columns)
    query, key, value, output = (spectral(matrix) for matrix in factors[:4])
    size = whole * value + steep * (queries + slope) * key * values + sizes.slope_rows * query * keys * values
    terms = pairs.terms + 2 * s.keys.shape[1] + s.values.shape[1] + _OF_CALLS
    mapped = sum(m.shape[1] * float(np.linalg.norm(m)) / spectral(m) for m in factors[:4] if m is not None and m.any())
    eta = exponents(pairs, factors, points, centre)
    return float(output * size * (2 * eta + _UNIT * (3 * terms + mapped)))


def exponents(pairs: Pairs | FewDimensions, factors: Factors, points: Array, centre: Array) -> float:
    """How far exponents less log masses may be off, of keys, queries and log weights that were rounded themselves."""
    s = pairs.sources
    k, d = factors.query.shape
    away, query, key = longest(points - centre), norm(factors.query), norm(factors.key)
    bend = 0.0 if factors.quadratic is None else 2 * norm(factors.quadratic)
    keys, far = longest(s.keys), float(np.sqrt(np.square(centre).sum()))
    of_queries = (terms_of(d) + 4) * query * away + (d + k + 8) * (query + bend * key) * far
    of_keys = (longest(s.queries) + bend * keys) * (terms_of(d) + 4) * key * away
    logs = float(np.abs(s.logs[np.isfinite(s.logs)]).max(initial=0.0))
    terms = (k + 4) * longest(s.queries) * keys + of_queries * keys + of_keys + (k * k + 4) * bend * keys * keys
    return _UNIT * (terms + 8 * logs + pairs.terms)


def norm(matrix: Array | None) -> float:
    """Frobenius'; that of the identity is one, as it multiplies nothing."""
    return 1.0 if matrix is None else float(np.linalg.norm(matrix))


def spectral(matrix: Array | None) -> float:
    """The largest singular value."""
    return 1.0 if matrix is None else float(np.linalg.norm(matrix, 2))
