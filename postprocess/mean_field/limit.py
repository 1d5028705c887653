"""The limit of a mean-field study: mu(t) by a reference solution, which is refined until its own error is known.

d_t mu + div(mu Gamma_mu) = 0   by the Gaussian equations, by quadrature or quantile nodes, or by finite volumes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.measures import Particles, Sequence as Ordered
from vlasov.patience import Patience
from vlasov.postprocess.mean_field.choice import Choice, kind_of, ladder as numbers_of_nodes
from vlasov.postprocess.mean_field.flows import FlowMap, by_densities, by_gaussians, by_nodes
from vlasov.problem import Problem
from vlasov.solvers.ode import texts
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.progress import reached
from vlasov.solvers.replicas import choose_steps, march, systems

QUANTITIES = ("flow", "mean", "covariance", "velocity")
_OF_TEXTS = 1e-4  # tolerance of nodes along a text, which are dear: tokens by the thousand err by a hundred times more
_MOST_STEPS = 1000
_STALLED, _PATIENCE = 0.5, 2  # refinements that leave more than this of the change are of no use
_PROBES = 32  # points at which velocities are compared
_WITNESSES = 256  # tokens by which two references are compared
_FOLLOWED = {"gaussian": by_gaussians, "finite-volume": by_densities, "quadrature": by_nodes, "quantile": by_nodes}


def _patience() -> Patience:
    """Return the patience of somebody who has asked for a study."""
    remedies = ("lower {n}", "loosen the {tolerance}", "shorten the {times}")
    return Patience(remedies=remedies, what="the limit of the study")


@dataclass(frozen=True, eq=False)
class Limit:
    """mu at the output times, and the flow to them.

    Attributes
    ----------
    means, covariances
        Shapes (times, d) and (times, d, d).
    probes, velocities
        Fixed points (m, d), and Gamma_mu there, shape (times, m, d); under masks for a token that sees all.
    flow
        X_t' = Gamma_{mu(t)}(X_t): where clouds that are not felt by mu are at the output times. What becomes of a
        cloud does not depend on the others.
    """

    problem: Problem
    choice: Choice
    means: Array
    covariances: Array
    probes: Array
    velocities: Array
    accuracy: float
    flow: FlowMap
    patience: Patience


def choose(problem: Problem, times: tuple[float, ...], *, reference: str, tolerance: float) -> tuple[Limit, Array]:
    """Return the limit, and estimates of its errors at the output times, shape (4, times), in the order of QUANTITIES.

    Nodes are added until a witness flow, moments and velocities change by less than the tolerance, relative to the
    size of the measure, or until more nodes do not help; then steps are halved likewise. The last of both changes make
    the estimate.
    """
    kind, patience = kind_of(texts.without_mask(problem), reference), _patience()
    rough = problem.drawn_from.sample(_WITNESSES, "sobol", seed=0)
    try:
        grid = choose_steps(problem, rough, times, tolerance=tolerance, patience=patience)
    except SolverError as error:
        raise SolverError(
            f"{len(rough)} tokens cannot be followed to t = {times[-1]:g}; if they blow up, choose earlier times "
            f"({error})"
        ) from None
    nodes, *more = numbers_of_nodes(texts.without_mask(problem), kind)
    first = solve(problem, Choice(kind, nodes, grid), tolerance=tolerance, patience=patience)
    ladder = [first.choice._replace(nodes=nodes) for nodes in more]
    text = problem.attention.causal and isinstance(problem.start, Ordered)
    _, limit, in_nodes = _refined(first, ladder, rough, tolerance, max(tolerance, _OF_TEXTS) if text else tolerance)
    halvings = range(1, 2 + int(math.log2(max(1.0, _MOST_STEPS / grid.steps))))
    ladder = [limit.choice._replace(grid=grid.refined(2**k)) for k in halvings]
    limit, _, in_time = _refined(limit, ladder, rough, tolerance, 10 * tolerance)  # halved steps only show the error
    return limit, in_nodes + in_time


def _refined(
    first: Limit, ladder: list[Choice], witnesses: Particles, tolerance: float, enough: float
) -> tuple[Limit, Limit, Array]:
    """Return two neighbours in a ladder that hardly differ, or no less than those before, and their change."""
    before, limit, change = first, first, np.zeros((len(QUANTITIES), len(first.means)))
    last, stalled = math.inf, 0
    for choice in ladder:
        nodes = f"{choice.nodes} nodes an axis, " if choice.nodes else ""
        reached(f"the limit by {nodes}{choice.grid.steps} steps", 0.0)  # how many more it takes is not known
        finer = solve(first.problem, choice, tolerance=tolerance, patience=first.patience)
        change, size = _difference(limit, finer, witnesses), _size(finer)
        before, limit = limit, finer
        relative = float((change / np.stack([size, size, np.ones_like(size), size])).max())
        stalled = stalled + 1 if relative > _STALLED * last else 0
        if stalled == _PATIENCE or not relative < math.inf:
            before = first
            break
        if relative < enough:
            break
        last = relative
    return before, limit, change


def _size(limit: Limit) -> Array:
    """Return the root of the second moment, at each time."""
    return np.sqrt(np.trace(limit.covariances, axis1=1, axis2=2) + np.square(limit.means).sum(axis=1))


def solve(problem: Problem, choice: Choice, *, tolerance: float, patience: Patience | None = None) -> Limit:
    """Return the limit by a reference that has been chosen."""
    patience = patience or _patience()
    accuracy, times, whole = accuracy_for(tolerance), choice.grid.times, problem
    problem = texts.without_mask(problem)
    moving = Flow(problem.block.unmasked, tolerance=accuracy)  # the last token of a sequence sees all
    probes = problem.start.sample(_PROBES, "sobol", seed=1).points
    states, flow = _FOLLOWED[choice.kind](problem, choice, accuracy, patience)
    if times[0] == 0.0 and choice.kind == "quadrature" and problem.smooth:  # the law is known where it begins
        states = [problem.start, *states[1:]]
    moving.patience = patience
    if choice.kind == "gaussian":
        fields = [moving.affine(state, t) for state, t in zip(states, times, strict=True)]
        velocities = [b + probes @ slope.T for b, slope in fields]  # type: ignore[misc]
    else:
        velocities = [moving.velocity(state, probes, t).values for state, t in zip(states, times, strict=True)]
    moments = np.stack([state.mean for state in states]), np.stack([state.covariance for state in states])
    return Limit(whole, choice, *moments, probes, np.stack(velocities), accuracy, flow, patience)


def stacked(clouds: Sequence[Particles]) -> tuple[Array, Array | None]:
    """Return points (b, n, d) and places (b, n) of clouds of equal size."""
    places = [cloud.s for cloud in clouds if cloud.s is not None]
    return np.stack([cloud.points for cloud in clouds]), np.stack(places) if places else None


def _difference(a: Limit, b: Limit, witnesses: Particles) -> Array:
    """Return how far two references are apart, shape (4, times)."""
    spread = np.linalg.norm(b.covariances, axis=(1, 2))
    start, places = stacked([witnesses])
    rows: list[Any] = [
        np.linalg.norm(a.flow(start, places) - b.flow(start, places), axis=3).max(axis=(1, 2)),
        np.linalg.norm(a.means - b.means, axis=1),
        np.linalg.norm(a.covariances - b.covariances, axis=(1, 2)) / np.where(spread > 0, spread, 1.0),
        np.linalg.norm(a.velocities - b.velocities, axis=2).max(axis=1),
    ]
    if a.choice.grid != b.choice.grid:  # interacting tokens feel the steps too, and a Gaussian's limit hardly does
        seen = places if a.problem.attention.causal else None
        together = a.problem.flow(tolerance=a.accuracy)
        together.patience = a.patience
        moving = systems(together, witnesses.weights, seen)
        ends = [march(moving, start, limit.choice.grid)[:, 0] for limit in (a, b)]
        rows[0] = np.maximum(rows[0], np.linalg.norm(ends[0] - ends[1], axis=2).max(axis=1))
    return np.stack(rows)
