"""The flow X_t of a limit: what becomes of any token that moves with it and is not felt by it.

    X_t' = Gamma_{mu(t)}(X_t),   mu(t) a Gaussian, nodes with weights, or a density on a grid

A flow maps clouds (b, m, d) to where they are at the output times, (times, b, m, d). What becomes of a cloud does not
depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Density, Gaussian, Particles
from vlasov.problem import Problem
from vlasov.solvers.replicas import TimeGrid, march, passive

Flow = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class GaussianFlow:
    """Affine: tokens keep their coordinates along the columns of a factor of the covariance.

    Attributes
    ----------
    states
        The mean m, and m + the columns of the factor, at the output times, shape (times, 1 + rank, d).
    """

    initial: Gaussian
    states: Array

    def __call__(self, clouds: Array) -> Array:
        coordinates = (clouds - self.initial.mean) @ np.linalg.pinv(self.initial.factor).T
        return np.stack([clouds, *(coordinates @ (state[1:] - state[0]) + state[0] for state in self.states[1:])])


@dataclass(frozen=True, eq=False)
class NodesFlow:
    """``track``: where the nodes were, (evaluations, n, d), each time that they were asked for their velocity."""

    problem: Problem
    nodes: Particles
    track: Array
    grid: TimeGrid
    accuracy: float

    def __call__(self, clouds: Array) -> Array:
        velocity = passive(self.problem.flow(tolerance=self.accuracy), self.nodes.weights, self.track)
        return march(velocity, clouds, self.grid)


@dataclass(frozen=True, eq=False)
class DensityFlow:
    """``track``: the density at each evaluation of the velocity."""

    problem: Problem
    track: Sequence[Density]
    grid: TimeGrid
    accuracy: float

    def __call__(self, clouds: Array) -> Array:
        flow = self.problem.flow(tolerance=self.accuracy)

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            for cloud, result in zip(x, out, strict=True):
                flow.velocity(self.track[k], cloud, t, out=result)

        return march(velocity, clouds, self.grid)
