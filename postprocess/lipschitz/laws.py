"""Laws of n tokens for a Lipschitz study, which have the size of a problem's initial measure.

random        drawn from the initial measure mu_0, of covariance Sigma_0 and trace tr
adversarial   one token at R u, all others at R c u: ``vlasov.estimates.adversarial_tokens``
clustered     a mixture of equally likely tight clusters, their centres N(0, tr/d I), drawn anew in each replica
correlated    N(0, Sigma) with the eigenvalues tr k^-decay / sum_k k^-decay of a power law, along the axes
positioned    mu_0, and a learnt position for each token: |p_i| = sqrt(tr) (i / 16)^growth, in a random direction
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vlasov.checks import Array
from vlasov.estimates import adversarial_tokens
from vlasov.problem import Problem

RANDOM, ADVERSARIAL, CLUSTERED, CORRELATED, POSITIONED = LAWS = (
    "random", "adversarial", "clustered", "correlated", "positioned",
)  # fmt: skip
_TIGHT = 0.1  # deviation of a token about the centre of its cluster, relative to that of a centre
_FIRST = 16  # the token whose position is as long as a token


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of tokens for one problem; see the options of ``LipschitzStudy``."""

    problem: Problem
    radius: float
    clusters: int
    decay: float
    growth: float
    seed: int

    def tokens(self, law: str, n: int, replica: int) -> Array:
        """Return the tokens of a replica, shape (n, d), which depend on these arguments and the seed alone."""
        seed = np.random.SeedSequence(self.seed, spawn_key=(LAWS.index(law), n, replica))
        if law == RANDOM:
            return self._drawn(n, seed)
        if law == ADVERSARIAL:
            return adversarial_tokens(self.problem.attention, self.radius, n)
        if law == POSITIONED:
            return self._positioned(n, seed)
        rng, d = np.random.default_rng(seed), self.problem.dimension
        if law == CORRELATED:
            return np.sqrt(self._spectrum) * rng.normal(size=(n, d))
        deviation = math.sqrt(self._size / d)
        centres = deviation * rng.normal(size=(self.clusters, d))
        return centres[rng.integers(self.clusters, size=n)] + _TIGHT * deviation * rng.normal(size=(n, d))

    def covariance(self, law: str) -> Array | None:
        """Return the covariance of a law that is Gaussian; None for all others."""
        initial = self.problem.initial
        if law == CORRELATED:
            return np.diag(self._spectrum)
        return initial.covariance if law == RANDOM and initial.kind == "gaussian" else None

    def _drawn(self, n: int, seed: np.random.SeedSequence | int) -> Array:
        return self.problem.initial.sample(n, "random", seed=seed).points

    def _positioned(self, n: int, seed: np.random.SeedSequence) -> Array:
        words, directions = (np.random.default_rng(child) for child in seed.spawn(2))
        unit = directions.normal(size=(n, self.problem.dimension))
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        lengths = math.sqrt(self._size) * (np.arange(1, n + 1) / _FIRST) ** self.growth
        return self._drawn(n, int(words.integers(2**32))) + lengths[:, None] * unit

    @property
    def _size(self) -> float:
        return float(np.trace(self.problem.initial.covariance))

    @property
    def _spectrum(self) -> Array:
        ranks = np.arange(1, self.problem.dimension + 1) ** -self.decay
        return self._size * ranks / ranks.sum()
