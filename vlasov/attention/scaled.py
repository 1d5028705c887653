"""What Sinkhorn attention knows of a measure once its kernel is scaled: points with their potential."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.tilting import Tilted

if TYPE_CHECKING:
    from vlasov.scaling.solve import Solution
    from vlasov.scaling.sums import Sums

_REACH = 4.0  # standard deviations, up to which nodes of a measure serve
_MOST_COMPARED = 1_000_000  # numbers


class Scaled(NamedTuple):
    """Points with their potential; the tokens it was solved for, if none was left out as too light; all of them."""

    sums: Sums
    found: Solution
    solved_at: Array | None
    whole: Sums | None = None

    def without_light(self, whole: Sums, share: float, asked: float) -> Scaled:
        """Who has left out tokens that make up such a share at most of what is seen anywhere."""
        from vlasov.scaling.solve import contracted

        found = self.found
        deviation = min(2.0, found.deviation * (1 + share / asked) + 4 * share)
        elsewhere = min(2.0, contracted(found.marginal + 2 * share, whole.cross_ratio) + 2 * share)
        elsewhere = deviation if whole.symmetric else elsewhere
        return Scaled(self.sums, found._replace(deviation=deviation, elsewhere=elsewhere), None, whole)

    @property
    def radius(self) -> float:
        """At least of all tokens, about the centre of those that count."""
        if self.whole is None:
            return self.sums.radius
        return self.whole.radius + float(np.linalg.norm(self.whole.centre - self.sums.centre))

    def deviation(self, x: Array) -> float:
        """How far means at x may be off for the potential's sake, in radii of the points."""
        tokens = self.solved_at
        among = tokens is not None and (x is tokens or _are_among(x, tokens))
        return self.found.deviation if among else self.found.elsewhere

    def rows(self, x: Array) -> Tilted:
        """Means about the centre."""
        if x is self.solved_at:
            return self.found.rows
        return self.sums.at(x - self.sums.centre, self.found.g)


def _are_among(x: Array, tokens: Array) -> bool:
    """Whether each x is one of the tokens, as where a prefix of them is seen; of many nobody looks."""
    if x.size * len(tokens) > _MOST_COMPARED:
        return False
    return bool((x[:, None] == tokens).all(axis=2).any(axis=1).all())


def nodes_for(measure: Measure, x: Array, matrix: Array) -> Particles:
    """Points for a measure, as many as tilts A x need where most of its mass is, and at these x."""
    spread, away = math.sqrt(float(np.trace(measure.covariance))), x - measure.mean
    farthest = math.sqrt(float(np.square(away).sum(axis=1).max(initial=0.0)))
    return measure.points_for(float(np.linalg.norm(matrix, 2)) * max(_REACH * spread, farthest))
