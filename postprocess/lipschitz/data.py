"""The tokens of a Lipschitz study: laws of n tokens, of the size of a problem's initial measure.

random        drawn from the initial measure mu_0, of covariance Sigma_0 and trace tr
adversarial   one token at R u, all others at R c u: ``vlasov.estimates.adversarial_tokens``
clustered     a mixture of equally likely tight clusters, their centres N(0, tr/d I), drawn anew in each replica
correlated    N(0, Sigma) with the eigenvalues tr k^-decay / sum_k k^-decay of a power law, along the axes
positioned    mu_0, and a learnt position for each token: |p_i| = sqrt(tr) (i / 16)^growth, in a random direction
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlasov.checks import Array
from vlasov.estimates import adversarial_tokens
from vlasov.problem import Problem

ADVERSARIAL, RANDOM, CORRELATED = "adversarial", "random", "correlated"
_TIGHT = 0.1  # of a centre's deviation: that of a token about it
_FIRST = 16  # whose position is as long as a token


@dataclass(frozen=True, eq=False)
class Study:
    """What all pieces share."""

    problem: Problem
    radius: float
    clusters: int
    decay: float
    growth: float
    seed: int
    tolerance: float
    times: tuple[float, ...]

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"problem": self.problem.to_dict()}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Study:
        """The study that ``plain`` described."""
        return cls(**plain | {"problem": Problem.from_dict(plain["problem"]), "times": tuple(plain["times"])})

    def bench(self) -> Any:
        """At work on a worker."""
        from vlasov.postprocess.lipschitz.piece import Bench

        return Bench(self)

    def tokens(self, data: str, n: int, replica: int) -> Array:
        """The tokens of a replica, shape (n, d): the same, whatever else is computed."""
        kind = list(DATA).index(data)
        return DATA[data](self, n, np.random.SeedSequence(self.seed, spawn_key=(kind, n, replica)))

    def covariance(self, data: str) -> Array | None:
        """Of tokens whose law is Gaussian; None of others."""
        initial = self.problem.initial
        if data == CORRELATED:
            return np.diag(_power_law(self))
        return initial.covariance if data == RANDOM and initial.kind == "gaussian" else None


def _random(study: Study, n: int, seed: np.random.SeedSequence) -> Array:
    return study.problem.initial.sample(n, "random", seed=seed).points


def _adversarial(study: Study, n: int, seed: np.random.SeedSequence) -> Array:
    return adversarial_tokens(study.problem.attention, study.radius, n)


def _clustered(study: Study, n: int, seed: np.random.SeedSequence) -> Array:
    rng, d = np.random.default_rng(seed), study.problem.dimension
    deviation = math.sqrt(_size(study) / d)
    centres = deviation * rng.normal(size=(study.clusters, d))
    return centres[rng.integers(study.clusters, size=n)] + _TIGHT * deviation * rng.normal(size=(n, d))


def _correlated(study: Study, n: int, seed: np.random.SeedSequence) -> Array:
    rng, d = np.random.default_rng(seed), study.problem.dimension
    return np.sqrt(_power_law(study)) * rng.normal(size=(n, d))


def _positioned(study: Study, n: int, seed: np.random.SeedSequence) -> Array:
    words, directions = (np.random.default_rng(child) for child in seed.spawn(2))
    unit = directions.normal(size=(n, study.problem.dimension))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    lengths = math.sqrt(_size(study)) * (np.arange(1, n + 1) / _FIRST) ** study.growth
    drawn = study.problem.initial.sample(n, "random", seed=int(words.integers(2**32))).points
    return drawn + lengths[:, None] * unit


def _size(study: Study) -> float:
    return float(np.trace(study.problem.initial.covariance))


def _power_law(study: Study) -> Array:
    ranks = np.arange(1, study.problem.dimension + 1) ** -study.decay
    return _size(study) * ranks / ranks.sum()


DATA: dict[str, Callable[[Study, int, np.random.SeedSequence], Array]] = {
    RANDOM: _random,
    ADVERSARIAL: _adversarial,
    "clustered": _clustered,
    CORRELATED: _correlated,
    "positioned": _positioned,
}
