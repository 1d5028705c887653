"""Distances between two states of solutions, each in about a second.

|m - m'| <= W_p <= W_2 tells orders below 2 where it leaves next to nothing open, and W_p <= W_q for p < q bounds each
order by all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from vlasov.errors import InputError
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.conditional import match
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.wasserstein import distance, in_order, quickly

_MANY = 400  # tokens beside a density, beyond which lattices replace them: atoms take half a minute
_FEW_PAIRS = 3_000_000  # of tokens that are transported exactly: half a second
_NODES = (200, 400, 800)  # of a lattice, a tenth of a second each
_DENSE = (500, 1000, 2000)  # of lattices for two densities
_CLOSE = 1e-6  # of W_2 or of the deviation: what it may leave open of orders below 2


def between(mu: Measure, nu: Measure, orders: Sequence[float]) -> list[Distance]:
    """W_p of every order; NaN where d > 3 and no grid holds what is no cloud.

    Of tokens with the same places in a sequence the conditional distance, else that of the laws of x.
    """
    if match(mu, nu):
        return [distance(mu, nu, p) for p in orders]
    mu, nu = (Particles(one.points, one.weights) if isinstance(one, Particles) else one for one in (mu, nu))
    found: dict[float, Distance] = {}
    shift = float(np.linalg.norm(mu.mean - nu.mean))
    spread = math.sqrt(float(np.trace(mu.covariance)))
    approximate = mu.dimension > 1 and not all(isinstance(one, Particles) for one in (mu, nu))
    for p in sorted(orders, key=lambda p: (p < 2, p)):
        two = found.get(2.0) if p < 2 and approximate else None
        if two is not None and (room := two.value + two.error - shift) <= _CLOSE * max(two.value, spread):
            found[p] = Distance(shift, max(room, 0.0), two.method)
        else:
            found[p] = _in_a_second(mu, nu, p)
    found = in_order(found)
    return [found[p] for p in orders]


def _in_a_second(mu: Measure, nu: Measure, p: float) -> Distance:
    """W_p by ``distance`` where that is fast, else on coarser lattices; the method is theirs to choose."""
    counts = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    if len(counts) < 2 and mu.dimension > 3:
        with suppress(InputError):
            return distance(mu, nu, p)
        return Distance(math.nan, math.nan, "")
    few = math.prod(counts) <= _FEW_PAIRS if len(counts) == 2 else 0 < sum(counts) <= _MANY
    if few or mu.dimension == 1 or mu.dimension > 3:
        return distance(mu, nu, p)
    return quickly(mu, nu, p, _NODES if counts else _DENSE)
