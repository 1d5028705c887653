"""The limit of a mean-field study: mu(t) by a reference solution, and the flow X_t that it gives to any token.

    X_t' = Gamma_{mu(t)}(X_t),   mu(t) = (X_t)_# mu_0

Tokens are passive: they move with the velocity of the reference nodes, which do not feel them. A Gaussian's flow is
affine and needs no nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Particles
from vlasov.problem import Problem
from vlasov.solvers.gaussian import trusted
from vlasov.solvers.replicas import TimeGrid, choose_steps, march, passive, systems

REFERENCES = ("auto", "gaussian", "quantile", "quadrature")
QUANTITIES = ("flow", "mean", "covariance", "velocity")
_PER_AXIS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # nodes that are tried, one after the other
_MOST_NODES = 60_000
_MOST_STEPS = 10_000
_PROBES = 32  # points at which velocities are compared
_WITNESSES = 256  # tokens by which two references are compared
_FINER = 4  # a Gaussian costs next to nothing: its steps are so much shorter than the clouds'


class Choice(NamedTuple):
    """Which reference: its kind, the nodes per axis (zero for a Gaussian), and the steps of all clouds."""

    kind: str
    nodes: int
    grid: TimeGrid


@dataclass(frozen=True, eq=False)
class Limit:
    """mu at the output times, and the flow to them.

    Attributes
    ----------
    means, covariances
        Shapes (times, d) and (times, d, d).
    probes, velocities
        Fixed points (m, d), and Gamma_mu there, shape (times, m, d).
    """

    problem: Problem
    choice: Choice
    means: Array
    covariances: Array
    probes: Array
    velocities: Array
    accuracy: float
    _nodes: Particles | None  # of the reference, at time zero
    _track: Array  # nodes at each evaluation of the velocity; mean and factor at each output time of a Gaussian

    def flow(self, clouds: Array) -> Array:
        """X_t of clouds (b, m, d) at the output times, shape (times, b, m, d)."""
        if self._nodes is None:
            initial = self.problem.initial
            assert isinstance(initial, Gaussian)
            coordinates = (clouds - initial.mean) @ np.linalg.pinv(initial.factor).T
            moved = [coordinates @ (state[1:] - state[0]) + state[0] for state in self._track[1:]]
            return np.stack([clouds, *moved])
        velocity = passive(self.problem.attention, self._nodes.weights, self._track, accuracy=self.accuracy)
        return march(velocity, clouds, self.choice.grid)


def choose(problem: Problem, times: tuple[float, ...], *, reference: str, tolerance: float) -> tuple[Choice, Array]:
    """The reference, and estimates of its errors at the output times, shape (4, times), in the order of QUANTITIES.

    Nodes are added until a witness flow, moments and velocities change by less than the tolerance, relative to the
    size of the measure; the change by the last of these refinements, and that by steps half as long, are the estimate.
    """
    kind = _kind(problem, reference)
    size = math.sqrt(float(np.trace(problem.initial.covariance)) + float(problem.initial.mean @ problem.initial.mean))
    rough = problem.initial.sample(_WITNESSES, "sobol", seed=0)
    grid = choose_steps(problem, rough, times, tolerance=tolerance)
    if kind == "gaussian":
        choice = Choice(kind, 0, grid)
        return choice, _by_halved_steps(problem, choice, rough, tolerance)
    ladder = _ladder(problem, kind)
    coarse, fine, change = ladder[0], ladder[0], np.full((len(QUANTITIES), len(times)), np.nan)
    for coarse, fine in pairwise(ladder):
        change = _difference(problem, Choice(kind, coarse, grid), Choice(kind, fine, grid), rough, tolerance)
        if change.max() < tolerance * size:
            break
    choice = Choice(kind, fine, grid)
    in_time = _by_halved_steps(problem, choice, rough, tolerance)
    while in_time.max() > 10 * tolerance * size and choice.grid.steps < _MOST_STEPS:
        choice = choice._replace(grid=choice.grid.refined(2))
        in_time = _by_halved_steps(problem, choice, rough, tolerance)
    return choice, change + in_time


def solve(problem: Problem, choice: Choice, *, tolerance: float) -> Limit:
    """The limit by a reference that has been chosen."""
    accuracy, attention = min(1e-10, 1e-2 * tolerance), problem.attention
    probes = problem.initial.sample(_PROBES, "sobol", seed=1).points
    empty = np.empty(0)
    blank = Limit(problem, choice, empty, empty, probes, empty, accuracy, None, empty)
    if choice.kind == "gaussian":
        states = _gaussian_states(problem, choice.grid.refined(_FINER))
        gaussians = [trusted(state[0], _product(state[1:] - state[0])) for state in states]
        affine = [attention.affine(gaussian, t) for gaussian, t in zip(gaussians, choice.grid.times, strict=True)]
        return replace(
            blank,
            means=np.stack([gaussian.mean for gaussian in gaussians]),
            covariances=np.stack([gaussian.covariance for gaussian in gaussians]),
            velocities=np.stack([b + probes @ slope.T for b, slope in affine]),
            _track=states,
        )
    nodes, track = _sample(problem, choice), []
    interacting = systems(attention, nodes.weights, accuracy=accuracy)

    def recorded(k: int, t: float, x: Array, out: Array) -> None:
        track.append(x[0].copy())
        interacting(k, t, x, out)

    clouds = [nodes.moved(points) for points in march(recorded, nodes.points[None], choice.grid)[:, 0]]
    return replace(
        blank,
        means=np.stack([cloud.mean for cloud in clouds]),
        covariances=np.stack([cloud.covariance for cloud in clouds]),
        velocities=np.stack(
            [
                attention.velocity(cloud, probes, t, tolerance=accuracy)
                for cloud, t in zip(clouds, choice.grid.times, strict=True)
            ]
        ),
        _nodes=nodes,
        _track=np.stack(track),
    )


def _kind(problem: Problem, reference: str) -> str:
    initial = problem.initial
    if reference == "auto":
        return "gaussian" if isinstance(initial, Gaussian) else "quadrature"
    if reference == "gaussian" and not isinstance(initial, Gaussian):
        raise InputError(
            f'"gaussian" needs a Gaussian initial measure but this is a {initial.kind}; use "auto"', "reference"
        )
    if reference == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "auto"', "reference")
    return reference


def _ladder(problem: Problem, kind: str) -> list[int]:
    """Numbers of nodes per axis, increasing, as many as memory and patience allow."""
    initial = problem.initial
    if isinstance(initial, Density):
        raise InputError(
            "is known by cell averages only, so that no finer reference exists to say how wrong one is; "
            "study a measure with a formula, or density.sample(n)",
            "initial",
        )
    if isinstance(initial, Particles):
        return [1, 1]  # its nodes are the measure itself
    if kind == "quantile":
        return [256, 1024, 4096, 16384]
    return [
        k for i, k in enumerate(_PER_AXIS) if i < 2 or len(initial.quadrature(1)) * k**problem.dimension <= _MOST_NODES
    ]


def _sample(problem: Problem, choice: Choice) -> Particles:
    if choice.kind == "quantile" and not isinstance(problem.initial, Particles):
        return problem.initial.sample(choice.nodes, "quantile")
    return problem.initial.quadrature(choice.nodes)


def _by_halved_steps(problem: Problem, choice: Choice, cloud: Particles, tolerance: float) -> Array:
    """How far the reference moves, and an interacting cloud, if steps are half as long: shape (4, times)."""
    finer = choice._replace(grid=choice.grid.refined(2))
    interacting = systems(problem.attention, cloud.weights, accuracy=min(1e-10, 1e-2 * tolerance))
    ends = [march(interacting, cloud.points[None], grid)[:, 0] for grid in (choice.grid, finer.grid)]
    change = _difference(problem, choice, finer, cloud, tolerance)
    change[0] = np.maximum(change[0], np.linalg.norm(ends[0] - ends[1], axis=2).max(axis=1))
    return change


def _difference(problem: Problem, one: Choice, other: Choice, witnesses: Particles, tolerance: float) -> Array:
    """How far two references are apart: shape (4, times)."""
    a, b = (solve(problem, choice, tolerance=tolerance) for choice in (one, other))
    spread = np.linalg.norm(b.covariances, axis=(1, 2))
    rows: list[Any] = [
        np.linalg.norm(a.flow(witnesses.points[None]) - b.flow(witnesses.points[None]), axis=3).max(axis=(1, 2)),
        np.linalg.norm(a.means - b.means, axis=1),
        np.linalg.norm(a.covariances - b.covariances, axis=(1, 2)) / spread,
        np.linalg.norm(a.velocities - b.velocities, axis=2).max(axis=1),
    ]
    return np.stack(rows)


def _gaussian_states(problem: Problem, grid: TimeGrid) -> Array:
    """Mean m and m + the columns of a factor of the covariance: all of them move with b + B x; (times, 1 + rank, d)."""
    initial = problem.initial
    assert isinstance(initial, Gaussian)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        state = x[0]
        b, slope = problem.attention.affine(trusted(state[0], _product(state[1:] - state[0])), t)
        out[0] = b + state @ slope.T

    start = np.concatenate([initial.mean[None], initial.mean + initial.factor.T])
    return march(velocity, start[None], grid)[:, 0]


def _product(rows: Array) -> Array:
    """F F^T of the columns of F, given as rows."""
    return rows.T @ rows
