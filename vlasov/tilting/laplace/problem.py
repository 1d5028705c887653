"""A problem for ``laplace`` in numbers: the boxes of sources and tilts, moved to zero, and what errors may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vlasov.checks import Array

UNIT = 2.0**-53  # rounding error of one operation
_LEAST_SIZE = 4.0  # S_k is at least that, or stencils would overhang the boxes too far


@dataclass(frozen=True)
class Problem:
    """Sources in y_c +- R and tilts in xi_c +- Q, and what is asked for.

    Attributes
    ----------
    sizes
        S_k = Q_k R_k.
    lever
        sum_k |xi_c R|_k: the weights' factors e^{<xi_c, y - y_c>} lie within e^{+-lever}.
    weight_range
        Logarithm of the largest over the least weight that can matter at any target. A source changes no mean by more
        than e^{-40} R if its weight times e^{2 sum S} is less than e^{-40} / n times the largest.
    norm
        |R|.
    rounding
        Of y_c + (m - y_c).
    budget
        How large errors of the mean may be, in units of R.
    second_budget
        The same for the covariance, in units of R^2.
    """

    n: int
    m: int
    centre: list[float]
    radius: list[float]
    tilt: list[float]
    width: list[float]
    sizes: list[float]
    lever: float
    weight_range: float
    norm: float
    rounding: float
    budget: float
    second_budget: float
    weighted: bool
    covariance: bool
    peeled: bool
    threads: int


def pose(
    n: int,
    m: int,
    source_box: tuple[Array, Array],
    target_box: tuple[Array, Array],
    log_weight_range: float,
    tolerance: float,
    threads: int,
    covariance: bool,
    peeled: bool,
) -> Problem:
    """The problem of n sources and m tilts in these boxes; parameters as for ``laplace.plan``."""
    centre, radius = _middle(*source_box)
    # Rounding errors of y_c are a radius too: equal points are a box like any other.
    least = max(4 * UNIT * max(map(abs, centre)), 1e-150)
    radius = [max(r, least) for r in radius]
    tilt, width = _middle(*target_box)
    if log_weight_range == 0 and all(abs(t) <= 0.1 * w for t, w in zip(tilt, width, strict=True)):
        # A few more nodes are cheaper than an exponential for each source.
        width = [w + abs(t) for t, w in zip(tilt, width, strict=True)]
        tilt = [0.0] * len(tilt)
    width = [max(w, _LEAST_SIZE / r) for w, r in zip(width, radius, strict=True)]
    sizes = [q * r for q, r in zip(width, radius, strict=True)]
    lever = sum(abs(t) * r for t, r in zip(tilt, radius, strict=True))
    norm, largest, away = math.hypot(*radius), max(radius), math.hypot(*centre)
    rounding = 2 * UNIT * (away + norm)
    # What rounding of the result leaves of the tolerance; an error that rounding hides anyway is always allowed.
    hidden = min(rounding, tolerance * away / 8)
    allowed = max(tolerance * largest - rounding, tolerance * largest / 2, hidden)
    return Problem(
        n=n,
        m=m,
        centre=centre,
        radius=radius,
        tilt=tilt,
        width=width,
        sizes=sizes,
        lever=lever,
        weight_range=min(log_weight_range + 2 * lever, 2 * sum(sizes) + math.log(n) + 40),
        norm=norm,
        rounding=rounding,
        budget=min(allowed / norm, 0.01),
        second_budget=tolerance * (largest / norm) ** 2 if covariance else math.inf,
        weighted=log_weight_range > 0 or any(tilt),
        covariance=covariance,
        peeled=peeled,
        threads=threads,
    )


def _middle(low: Array, high: Array) -> tuple[list[float], list[float]]:
    """Centre and half widths; a margin of a few units of the last place keeps the corners inside."""
    ends = list(zip(low.tolist(), high.tolist(), strict=True))
    return [a + (b - a) / 2 for a, b in ends], [(b - a) / 2 * (1 + 1e-14) for a, b in ends]
