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
        velocity = passive(self.problem.attention, self.nodes.weights, self.track, accuracy=self.accuracy)
        return march(velocity, clouds, self.grid)


@dataclass(frozen=True, eq=False)
class DensityFlow:
    """``track``: the density at each evaluation of the velocity."""

    problem: Problem
    track: Sequence[Density]
    grid: TimeGrid
    accuracy: float

    def __call__(self, clouds: Array) -> Array:
        first = self.track[0]
        scratch = Density(first.values, first.edges)  # memory for this caller alone

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            density = scratch.moved(self.track[k].values, self.track[k].origin, self.track[k].matrix)
            for cloud, result in zip(x, out, strict=True):
                self.problem.attention.field(density, cloud, t, tolerance=self.accuracy, out=result)

        return march(velocity, clouds, self.grid)
