"""Distances between two states of solutions that are much alike, or far more numerous than a distance needs.

Where W_2 shows that two states nearly agree, |m - m'| <= W_p <= W_2 tells all that can be seen of orders below 2; and
W_p <= W_q for p < q bounds each order by all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from vlasov.errors import InputError
from vlasov.measures import Gaussian, Measure, Particles
from vlasov.postprocess.transport.conditional import match
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.wasserstein import distance, in_order, quickly

_MANY = 400  # tokens beside a density, beyond which lattices replace them: atoms take half a minute
_FEW_PAIRS = 3_000_000  # of tokens that are transported exactly: half a second
_NODES = (200, 400, 800)  # of a lattice, a tenth of a second each
_DENSE = (500, 1000, 2000)  # of lattices for two densities, order other than 2
_ALIKE = 1e-2  # of the deviation: states nearer than that are not distinguished by orders below 2


def between(mu: Measure, nu: Measure, orders: Sequence[float]) -> list[Distance]:
    """W_p of every order; NaN where d > 3 and no grid holds what is no cloud.

    Of tokens with the same places in a sequence the conditional distance, else that of the laws of x.
    """
    if match(mu, nu):
        return [distance(mu, nu, p) for p in orders]
    mu, nu = (Particles(one.points, one.weights) if isinstance(one, Particles) else one for one in (mu, nu))
    found: dict[float, Distance] = {}
    spread = math.sqrt(float(np.trace(mu.covariance)))
    grid = mu.dimension > 1 and not all(isinstance(measure, Gaussian) for measure in (mu, nu))
    for p in sorted(orders, key=lambda p: (p < 2, p)):
        two = found.get(2.0)
        if grid and p < 2 and two is not None and two.value + two.error < _ALIKE * spread:
            shift = float(np.linalg.norm(mu.mean - nu.mean))
            found[p] = Distance(shift, max(two.value + two.error - shift, 0.0), two.method)
        else:
            found[p] = _one(mu, nu, p)
    found = in_order(found)
    return [found[p] for p in orders]


def _one(mu: Measure, nu: Measure, p: float) -> Distance:
    counts = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    if mu.dimension > 3 and len(counts) == 1:
        return Distance(math.nan, math.nan, "")
    if p == 2 and isinstance(mu, Gaussian) and isinstance(nu, Gaussian):  # in closed form
        return distance(mu, nu, p)
    if p == 2 and not counts and mu.dimension > 1:
        with suppress(InputError):  # where extents differ
            near = distance(mu, nu, p, method="linearised")
            if near.error < _ALIKE * math.sqrt(float(np.trace(mu.covariance))):
                return near
    if not counts and p != 2 and mu.dimension > 1:  # what W_2 bounds needs no more
        return quickly(mu, nu, p, _DENSE)
    if mu.dimension == 1 or not counts or (len(counts) == 1 and counts[0] <= _MANY):
        return distance(mu, nu, p)
    if len(counts) == 2 and (counts[0] * counts[1] <= _FEW_PAIRS or mu.dimension > 3):
        return distance(mu, nu, p)
    return quickly(mu, nu, p, _NODES)
