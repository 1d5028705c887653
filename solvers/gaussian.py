"""The exact reduction to Gaussians: mean and covariance of N(alpha, Sigma) by an ODE, in a time that stretches.

    alpha' = b + B alpha,   Sigma' = B Sigma + Sigma B^T,   Gamma(x) = b + B x on N(alpha, Sigma)

Instead of Sigma we integrate a factor F, F' = B F, Sigma = F F^T: it is the flow's own action on a square root, so that
Sigma is symmetric positive semi-definite to the last bit, its rank never changes, and an eigenvalue that collapses by
1e-16 is a singular value that collapses by 1e-8, well inside double precision.

The independent variable is s with ds = sqrt(1/T^2 + |B|^2) dt. Near a blow-up at t*, |B| grows like 1/(t* - t), even
where something larger but harmless hides the growth of F: F grows like an exponential in s, and t(s) converges to t*
like one; the singularity is never stepped into.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, some
from vlasov.measures import Gaussian
from vlasov.problem import Problem
from vlasov.solvers.ode.integrate import TIGHTEST, BlowUpWatch, inside, norm, segments, steps
from vlasov.solvers.record import Record, Snapshot


@dataclass(frozen=True)
class Options:
    """Options of the solver "gaussian".

    Attributes
    ----------
    tolerance
        Local error per step, relative to the mean and to the factor of the covariance.
    """

    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        checks.number(self.tolerance, "tolerance", above=TIGHTEST, below=1e-2)


def check(problem: Problem, options: Options) -> None:
    """Refuse problems without a reduction to Gaussians."""
    if not isinstance(problem.initial, Gaussian):
        raise InputError(
            f'is {some(problem.initial.kind)}, but the solver "gaussian" needs a gaussian; use the solver "particles"',
            "initial",
        )
    with np.errstate(all="ignore"):  # what overflows is reported by the first step
        affine = problem.attention.affine(problem.initial)
    if affine is None:
        raise InputError(
            f'is {problem.attention.kind}, under which Gaussians do not stay Gaussian; use the solver "particles", '
            'or "finite-volume" for d <= 3',
            "attention",
        )


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate the moments of a Gaussian problem into ``record``."""
    initial, horizon = problem.initial, problem.horizon
    flow = record.follow(problem.flow())
    flow.methods.add("affine")
    assert isinstance(initial, Gaussian)
    d, rank = initial.factor.shape
    y = np.concatenate([initial.mean, initial.factor.ravel(), [0.0]])

    def moments(y: Array) -> tuple[Array, Array]:
        factor = y[d:-1].reshape(d, rank)
        return y[:d], factor @ factor.T

    def velocity(t: float, y: Array) -> tuple[Array, float]:
        """The derivative of y in t, and |B|."""
        mean, covariance = moments(y)
        found = flow.affine(Gaussian.trusted(mean=mean, covariance=covariance), t)
        assert found is not None  # see check
        b, slope = found
        derivative = np.concatenate([b + slope @ mean, (slope @ y[d:-1].reshape(d, rank)).ravel(), [1.0]])
        return derivative, norm(slope)

    def snapshot(y: Array) -> Snapshot:
        mean, covariance = moments(y)
        return {"mean": mean, "covariance": covariance, "radius": np.nan, "mass": 1.0}

    # Absolute errors are measured against the initial sizes, far below them: collapsing directions stay accurate.
    sizes = [(d, norm(initial.mean)), (d * rank, norm(initial.factor)), (1, horizon)]
    atol = options.tolerance * 1e-6 * np.concatenate([np.full(count, size or 1.0) for count, size in sizes])
    record.begin(partial(snapshot, y))
    for start, end in segments(flow.breakpoints, horizon):

        def stretched(_: float, y: Array, start: float = start, end: float = end) -> Array:
            derivative, rate = velocity(inside(y[-1], start, end), y)
            return derivative / (np.hypot(1.0 / horizon, rate) if rate < np.inf else np.nan)

        watch = BlowUpWatch(end)  # rates jump with the parameters
        rtol, taken = options.tolerance, record.steps
        for step in steps(stretched, (0.0, np.inf), y, rtol=rtol, atol=atol, taken=taken, clock=_simulated):
            state = _StateAt(step)
            reached = float(min(step.y[-1], end))
            y = np.append(state(reached)[:-1], reached)
            for time in record.due(reached):
                record.add(time, snapshot(state(time)))
            record.step(reached, partial(snapshot, y))
            record.error_estimate += options.tolerance
            if reached == end:
                break
            if watch.sees(reached, velocity(inside(reached, start, end), y)[1]):
                record.status, record.blow_up_time = "blow-up", watch.time
                return
    record.status = "completed"


def _simulated(_: float, y: Array) -> float:
    """T, the last entry of the state."""
    return float(y[-1])


class _StateAt:
    """The state at a time t inside a step in s: t(s) increases, so that t(s) = t has one root."""

    def __init__(self, step: DOP853) -> None:
        self._step = step

    @cached_property
    def _dense(self) -> Callable[[float], Array]:
        return self._step.dense_output()

    def __call__(self, time: float) -> Array:
        if time == self._step.y[-1]:
            return np.array(self._step.y)

        def late(s: float) -> float:
            return float(self._dense(s)[-1] - time)

        start, end = self._step.t_old, self._step.t
        if late(start) >= 0 or late(end) <= 0:  # by rounding
            return self._dense(start if late(start) >= 0 else end)
        return self._dense(brentq(late, start, end, xtol=1e-15 * max(end, 1e-300), rtol=1e-15))
