"""Blow-up on a grid: tokens at the edge that leave every ball before the rest; and how well its time is known."""

from __future__ import annotations

import math

import numpy as np

from vlasov import messages
from vlasov.errors import SolverError
from vlasov.measures import Gaussian
from vlasov.problem import Problem
from vlasov.solvers import gaussian
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.budget import Budget
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record

_RESOLUTION = 1e-7  # of t: in so little of it tokens at the edge would cross the grid
_GROWS, _SAFE = 1.5, 4.0  # errors with time, at least so much like a power of it; and what random problems ask for
_QUICKENED = 1e4  # times their pace when they began: else it is a fast flow


class Escape:
    """Sees the farthest tokens leave every ball at a time when moments are still finite.

    So it is where velocities grow like e^{|x|^2}: the edge of the support follows R' ~ e^{R^2 / 2}, with next to no
    mass. The pace is |R'| / L at the edge, with L half of the grid's width.
    """

    def __init__(self) -> None:
        self._first, self.quickens = math.nan, False

    def sees(self, t: float, pace: float) -> bool:
        """Take in one step; true when the end is near."""
        self._first = pace if math.isnan(self._first) else self._first
        self.quickens = pace > _QUICKENED * self._first
        return self.quickens and pace * t * _RESOLUTION > 1


def tell(problem: Problem, record: Record) -> None:
    """How far off the time of a blow-up may be: by what moments are off beside how fast they grow; and advice."""
    if record.status != "blow-up":
        return
    initial = problem.initial
    exact = isinstance(initial, Gaussian) and problem.block.affine(initial) is not None
    error = _by_reduction(problem, record) if exact else _by_moments(problem, record)
    error = max(error, float(record.attributes["blow_up_time_error"]))
    record.attributes["blow_up_time_error"] = error
    if error > NOTABLE * record.blow_up_time and not record.attributes.get("advice"):
        known = f"known to {error:.1g}" if error < math.inf else "a guess"
        record.attributes["advice"] = messages.BLOW_UP_TIME(known=known)


def _by_reduction(problem: Problem, record: Record) -> float:
    """Beside the exact reduction of a Gaussian that stays one."""
    other = Record(np.zeros(1), silent, Budget(problem.horizon))
    try:
        gaussian.integrate(problem, gaussian.Options(), other)
    except SolverError:
        return math.inf
    return abs(other.blow_up_time - record.blow_up_time) if other.status == "blow-up" else math.inf


def _by_moments(problem: Problem, record: Record) -> float:
    """Their error at the last output, |dM| / M', M = tr C + |m|^2; infinite where no output has seen them grow."""
    times, series = [*([0.0] if record.reached[0] > 0 else []), *record.reached], record.series
    if len(times) < 2:
        return math.inf
    means, covariances = series["mean"], series["covariance"]
    mean, covariance = means[-1], covariances[-1]
    before = (means[-2], covariances[-2]) if len(means) > 1 else (problem.initial.mean, problem.initial.covariance)
    size = float(np.trace(covariance) + mean @ mean)
    rate = math.log(size / float(np.trace(before[1]) + before[0] @ before[0])) / (times[-1] - times[-2])
    spread = math.sqrt(float(np.trace(covariance)))
    of_mean = 2 * float(np.linalg.norm(mean)) * float(series["mean_error"][-1]) * spread
    of_covariance = math.sqrt(mean.size) * float(np.linalg.norm(covariance)) * float(series["covariance_error"][-1])
    off = (of_mean + of_covariance) / size
    unseen = (record.blow_up_time / times[-1]) ** _GROWS  # what no output has seen
    return _SAFE * off * unseen / rate if rate > 0 and off < math.inf else math.inf
