"""W_2 of a state to a Gaussian, quickly; beyond d = 3 between tokens and as many that are drawn from the Gaussian."""

from __future__ import annotations

import math

import numpy as np

from vlasov.measures import Gaussian, Measure, Particles
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.wasserstein import distance, quickly

_NODES, _OF_SAMPLE = (400, 800, 1600), (200, 400, 800)  # of a lattice
_ON_GRIDS = 3  # the largest d that has grids
_FEW = 64  # tokens, between which and a Gaussian lattices know next to nothing: exactly then, at a second or two each
_SEEDS = (0, 1)


def to_gaussian(state: Measure, gaussian: Gaussian, nodes: tuple[int, ...] = _NODES) -> Distance:
    """W_2 of the law of x; NaN where d > 3 and there are no tokens."""
    law = _law(state)
    if not isinstance(law, Particles) and law.dimension > _ON_GRIDS:
        return distance(law, gaussian, 2) if isinstance(law, Gaussian) else Distance(math.nan, math.nan, "")
    if isinstance(law, Particles) and law.dimension > _ON_GRIDS:
        return distance(law, gaussian.sample(len(law), "random", seed=_SEEDS[0]), 2)
    several = isinstance(law, Particles) and len(law) > _FEW
    return quickly(law, gaussian, 2, nodes) if several and law.dimension > 1 else distance(law, gaussian, 2)


def of_sample(state: Measure, gaussian: Gaussian) -> float:
    """What so many tokens of the Gaussian itself are from it by the same method; NaN where tokens have weights."""
    if not isinstance(state, Particles) or np.ptp(state.weights) > 0 or not gaussian.covariance.any():
        return math.nan
    return to_gaussian(gaussian.sample(len(state), "random", seed=_SEEDS[1]), gaussian, _OF_SAMPLE).value


def _law(state: Measure) -> Measure:
    """Without places in a sequence, which say nothing here."""
    return Particles(state.points, state.weights) if isinstance(state, Particles) else state
