r"""Bounds on the errors of ``dipoles``, entry by entry of J, from those of interpolation and of the sums.

    J_ij = V P_ij (1 + (y_j - m_i) (xi_i + s_j)^T) + delta_ij V C_i A,     |J~_ij - J_ij| <= |V| (a P_ij + delta_ij b)

Here xi_i is that about the tilt, which s_j = tilt - (P + P^T) y_j holds. With the relative errors e_0 of e^{<xi, y>}
interpolated, e_1 of its derivatives by xi or y over R or Q, and e_2 of the mixed one over Q R, and those of Z, m and C.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from vlasov.tilting.laplace.plan import Plan
from vlasov.tilting.nodes import UNIT
from vlasov.tilting.stencils import errors, errors_on_both_sides, mixed_error


class Lengths(NamedTuple):
    """Of all pairs: bounds on |y - centre|, on |xi - tilt|, and on |s_j|.

    ``rounding`` bounds errors of the log weights, ``of_slopes`` those of s_j.
    """

    points: float
    tilts: float
    slopes: float
    rounding: float = 0.0
    of_slopes: float = 0.0

    @property
    def largest(self) -> float:
        """A bound on |1 + (y_j - m_i) (xi_i + s_j)^T|, the largest that J_ij / (|V| P_ij) might be."""
        return 1 + 2 * self.points * (self.tilts + self.slopes)


class EntryErrors(NamedTuple):
    """a and b."""

    pairs: float
    own: float


def entry_errors(plan: Plan, lengths: Lengths) -> EntryErrors:
    """For a plan with the covariance; infinite where nothing is promised."""
    value, first, mixed = _relative(plan)
    box, tilts = (math.hypot(*(plan.kappa / h for h in step)) for step in (plan.target_step, plan.source_step))
    mass = plan.mass_error + 2 * lengths.rounding
    if not mass < 0.5:
        return EntryErrors(math.inf, math.inf)
    across, along = 2 * lengths.points, lengths.tilts + lengths.slopes
    mean = plan.error_bound + across * 2 * lengths.rounding
    pairs = mixed * box * tilts + first * box * lengths.slopes + lengths.points * (first * tilts + value * along)
    pairs += mean * along * (1 + first + value) + mass * lengths.largest + across * lengths.of_slopes
    own = plan.covariance_bound + 2 * across * across * lengths.rounding
    return EntryErrors(pairs / (1 - mass), own)


def _relative(plan: Plan) -> tuple[float, float, float]:
    """e_0, e_1 and e_2 in d dimensions.

    A rounding error grows with each derivative by what the stencil's slope does to it. Those of sums over sources are
    spared on the targets' side: they are sums of exponentials e^{<xi, y_l>} at nodes, whose slopes are about R.
    """
    d = len(plan.cells)
    size = min(plan.kappa**2 / (s * t) for s, t in zip(plan.source_step, plan.target_step, strict=True))
    both, mixed = errors_on_both_sides(plan.order, plan.kappa, size), mixed_error(plan.order, plan.kappa, size)
    if both is None or mixed is None:
        return math.inf, math.inf, math.inf
    low, steep, _ = errors(plan.order, plan.kappa).growth
    interpolation = 1.02 * d * both.value
    rounding, grows = max(plan.mass_error - interpolation, 0.0), max(1.0, steep / (plan.kappa * low))
    at_nodes = low**d * UNIT * (low**d * (0.5 * math.sqrt(sum(plan.cells)) + 4) + 8)
    overhang = 1 + plan.order / 2 * plan.kappa / size
    first = 1.02 * (both.slope + (d - 1) * both.value) + grows * rounding
    across = max(mixed + 1.25 * (d - 1) * both.value, 2 * both.slope + (d - 1) * both.value)
    return interpolation + rounding, first, 1.02 * across + grows * (overhang * rounding + grows * at_nodes)
