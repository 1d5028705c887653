"""Many independent clouds of tokens in one call, with fixed time steps that are the same for all of them.

    x' = Gamma_mu(x),   mu = sum_i w_i delta_{x_i},   one mu for each of b clouds

Steps are chosen once, from an adaptive run, and then kept: what becomes of a cloud does not depend on which others are
moved beside it, nor on the number of threads, to the last bit. The method is DOP853 of order 8 without step control.

Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, section II.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vlasov import messages
from vlasov.checks import Array, finite
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.measures import Particles
from vlasov.patience import Patience
from vlasov.problem import Problem
from vlasov.solvers.ode import dop853, runge_kutta_kernels as kernels
from vlasov.solvers.ode.clouds import Tokens, right_hand_side
from vlasov.solvers.ode.integrate import accuracy_for, inside, segments, size, steps
from vlasov.solvers.ode.runge_kutta import CloudDOP853

_SUMS = [*(kernels.sums(dop853.A[s, :s]) for s in range(dop853.STAGES)), kernels.sums(dop853.B)]
_SAFETY = 0.8  # fixed steps, relative to the shortest that the adaptive run takes

Velocity = Callable[[int, float, Array, Array], None]


@dataclass(frozen=True)
class TimeGrid:
    """Fixed steps: interval i, from cuts[i] to cuts[i + 1], is crossed in counts[i] equal steps."""

    times: tuple[float, ...]  # of outputs, each of them a cut
    cuts: tuple[float, ...]  # increasing, from zero: output times and the times at which parameters jump
    counts: tuple[int, ...]

    @property
    def steps(self) -> int:
        """All steps together."""
        return sum(self.counts)

    @property
    def evaluations(self) -> list[float]:
        """The times at which ``march`` asks for velocities, one after the other."""
        pieces = zip(pairwise(self.cuts), self.counts, strict=True)
        return [
            inside(left + (number + share) * (right - left) / count, left, right)
            for (left, right), count in pieces
            for number in range(count)
            for share in dop853.C.tolist()
        ]

    def refined(self, factor: int) -> TimeGrid:
        """The same times with so many steps in place of each."""
        return TimeGrid(self.times, self.cuts, tuple(factor * count for count in self.counts))


def march(velocity: Velocity, start: Array, grid: TimeGrid) -> Array:
    """The clouds at the grid's output times: (b, n, d) -> (times, b, n, d).

    Parameters
    ----------
    velocity
        Called with (k, t, x, out): writes the velocities of all clouds x (b, n, d) at time t into out. k counts the
        calls, so that a flow that was recorded can be replayed.
    start
        Clouds at time zero, shape (b, n, d).
    """
    b, size = len(start), start[0].size
    y, trial = np.array(start).reshape(b, size), np.empty((b, size))
    stages = np.empty((b, dop853.STAGES, size))
    outputs, called, times = [y.copy()] if grid.times[0] == 0.0 else [], 0, grid.evaluations
    for (left, right), count in zip(pairwise(grid.cuts), grid.counts, strict=True):
        h = (right - left) / count
        for number in range(count):
            for s in range(dop853.STAGES):
                if s > 0:
                    _combine(y, stages, _SUMS[s], h, trial)
                x = trial if s else y
                _check_finite(x, start.shape[1], times[called])
                velocity(called, times[called], x.reshape(start.shape), stages[:, s].reshape(start.shape))
                called += 1
            _combine(y, stages, _SUMS[-1], h, trial)
            y, trial = trial, y
            _check_finite(y, start.shape[1], left + (number + 1) * h)
        if right in grid.times:
            outputs.append(y.copy())
    return np.stack(outputs).reshape(len(outputs), *start.shape)


def _check_finite(x: Array, tokens: int, t: float) -> None:
    if not finite(x):
        raise SolverError(messages.NON_FINITE_CLOUD(tokens=tokens, time=t))


def _combine(y: Array, stages: Array, sums: kernels.Sums, h: float, out: Array) -> None:
    """Cloud by cloud, so that sums are grouped alike wherever a cloud stands."""
    weights, nothing = h * sums.coefficients, (kernels.NOWHERE, *kernels.NO_ERRORS)
    for cloud in range(len(y)):
        kernels.combine(y[cloud], stages[cloud], sums.stages, weights, out[cloud], *nothing, 0, 1)


def systems(flow: Flow, weights: Array, places: Array | None = None) -> Velocity:
    """The velocity of b interacting clouds with these weights (n,), and places (b, n) under masks, for ``march``."""
    if places is not None:
        return _placed(flow, [Particles(np.zeros((len(s), flow.dimension)), weights, s) for s in places])
    tokens = _tokens(flow, weights)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        flow.velocity_of_systems(tokens, x, x, t, out)

    return velocity


def _placed(flow: Flow, clouds: list[Particles]) -> Velocity:
    """Of clouds whose tokens stand each in an order of its own."""

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        for b, (cloud, points, result) in enumerate(zip(clouds, x, out, strict=True)):
            flow.velocity(cloud.moved(points), points, t, out=result, system=b)

    return velocity


def passive(flow: Flow, weights: Array, track: Array) -> Velocity:
    """The velocity of b clouds that follow others and do not act on them, for ``march``.

    Parameters
    ----------
    weights, track
        Of the nodes that act: weights (n,), and places (calls, n, d) in the order in which ``march`` calls.
    """
    nodes = _tokens(flow, weights)

    def velocity(k: int, t: float, x: Array, out: Array) -> None:
        flow.velocity_of_systems(nodes, np.broadcast_to(track[k], (len(x), *track[k].shape)), x, t, out)

    return velocity


def _tokens(flow: Flow, weights: Array) -> Particles:
    """A measure with these weights, whose places do not matter."""
    return Particles(np.zeros((len(weights), flow.dimension)), weights)


def choose_steps(
    problem: Problem, cloud: Particles, times: tuple[float, ...], *, tolerance: float, patience: Patience | None = None
) -> TimeGrid:
    """Steps a little shorter than those of an adaptive run of this cloud, at this local error per step."""
    cuts = sorted({0.0, *times, *(edge for _, edge in segments(problem.block.breakpoints, times[-1]))})
    cuts = [cut for cut in cuts if cut <= times[-1]]
    flow, y, counts = problem.flow(tolerance=accuracy_for(tolerance)), cloud.points.ravel(), []
    if patience is not None:
        flow.patience = patience
    scale = tolerance * size(cloud)
    for left, right in pairwise(cuts):
        rhs = right_hand_side(Tokens(cloud, flow), (left, right))
        lengths = []
        for step in steps(rhs, (left, right), y, rtol=tolerance, atol=scale, stepper=CloudDOP853):
            lengths.append(step.t - step.t_old)
            y = step.y.copy()
        # The first step is cautious, and the last one is cut off.
        counts.append(math.ceil((right - left) / (_SAFETY * min(lengths[1:-1], default=max(lengths)))))
    return TimeGrid(times, tuple(cuts), tuple(counts))
