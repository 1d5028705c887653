"""Bounds on |J~ - J|_2 by rounding errors, from the sizes of what products are made of.

With u half a unit in the last place, gamma_L = L u of sums of L terms in any order, norms of Frobenius where factors
are multiplied entry by entry, and g = sqrt(rows columns) >= |G|_2 of the largest sums of |G|, h that of H:

    |J~ - J| <= |W| (eta + gamma) (g |V| + h (|q| + |slope|) |K| |v - o| + rows |Q| |k| |v - o|)

since every entry of G and H has a relative error eta at most, of exponents and sums, and what they are multiplied by
comes from sums of as many terms as gamma has.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.linearised.all_pairs import Pairs
from vlasov.linearised.factors import Factors
from vlasov.tilting.results import longest as longest

_UNIT = 0.5 * float(np.finfo(float).eps)
_OF_CALLS = 16  # units in the last place of e^x, of quotients and of what stands in no sum


def bound(pairs: Pairs, factors: Factors, points: Array, centre: Array) -> float:
    """On |J~ - J|_2 of one head, ``points`` y + c about the ``centre`` c."""
    s, sizes = pairs.sources, pairs.sizes
    queries, keys, values = longest(s.queries), longest(s.keys), longest(s.values) + longest(pairs.means)
    query, key, value, output = (norm(matrix) for matrix in factors[:4])
    slope = 0.0 if s.slope is None else longest(s.slope)
    n, (k, d) = len(s.keys), factors.query.shape
    eta = exponents(pairs, factors, points, centre)
    gamma = n + 2 * d + 2 * k + s.values.shape[1] + _OF_CALLS
    whole, steep = np.sqrt(sizes.rows * sizes.columns), np.sqrt(sizes.slope_rows * sizes.slope_columns)
    size = whole * value + steep * (queries + slope) * key * values + sizes.slope_rows * query * keys * values
    return float(output * (2 * eta + 3 * _UNIT * gamma) * size)


def exponents(pairs: Pairs, factors: Factors, points: Array, centre: Array) -> float:
    """How far exponents may be off, of keys, queries and log weights that were rounded themselves."""
    s = pairs.sources
    k, d = factors.query.shape
    away, query, key = longest(points), norm(factors.query), norm(factors.key)
    bend = 0.0 if factors.quadratic is None else 2 * norm(factors.quadratic)
    keys, far = longest(s.keys), float(np.sqrt(np.square(centre).sum()))
    of_queries = (d + 4) * query * away + (d + k + 8) * (query + bend * key) * far
    of_keys = (longest(s.queries) + bend * keys) * (d + 4) * key * away
    logs = float(np.abs(s.logs[np.isfinite(s.logs)]).max(initial=0.0))
    terms = (k + 4) * longest(s.queries) * keys + of_queries * keys + of_keys + (k * k + 4) * bend * keys * keys
    return _UNIT * (terms + 8 * logs + len(s.keys))


def norm(matrix: Array | None) -> float:
    """Frobenius'; that of the identity is one, as it multiplies nothing."""
    return 1.0 if matrix is None else float(np.linalg.norm(matrix))
