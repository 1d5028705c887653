"""Steps an ODE with SciPy's DOP853 between the times at which parameters jump, and sees blow-up coming.

Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, section II.5 (order 8, adaptive).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import DOP853

from vlasov.checks import Array
from vlasov.errors import NonFiniteState, SolverError

Rhs = Callable[[float, Array], Array]
ORDER = 8  # of the steps; dense output between them has order 7


def segments(breakpoints: Array, end: float) -> list[tuple[float, float]]:
    """[0, end] cut at the times where a parameter jumps."""
    cuts = [0.0, *(t for t in breakpoints.tolist() if 0.0 < t < end), end]
    return list(itertools.pairwise(cuts))


def inside(t: float, start: float, end: float) -> float:
    """t, kept where parameters have the values of the segment [start, end): its end belongs to the next one."""
    return min(max(t, start), float(np.nextafter(end, start)))


def steps(
    rhs: Rhs, start: float, y: Array, end: float, *, rtol: float | Array, atol: float | Array
) -> Iterator[DOP853]:
    """Yield the integrator after each accepted step from ``start`` to ``end``, which may be infinite."""
    # Trial steps may overflow close to a blow-up; they are rejected, and a state that stays bad is reported below.
    with np.errstate(all="ignore"):
        if not np.isfinite(rhs(start, y)).all():
            raise NonFiniteState(0, start, 0.0)
        method = DOP853(rhs, start, y, end, rtol=rtol, atol=atol)
    for number in itertools.count(1):
        before, dt = method.t, method.h_abs
        with np.errstate(all="ignore"):
            message = method.step()
        if method.status == "failed":
            if np.isfinite(rhs(before, method.y)).all() and np.isfinite(rhs(before + method.h_abs, method.y)).all():
                raise SolverError(f"step {number} at t = {before:.12g}: {message} Loosen the tolerance.")
            raise NonFiniteState(number, before, dt)
        yield method
        if method.status == "finished":
            return


@dataclass
class BlowUpWatch:
    """Foresees y -> infinity at t*, from the growth rate r = |y'|/|y|.

    Where y ~ (t* - t)^{-p}, 1/r = (t* - t)/p falls on a straight line to zero: the secant through two steps finds t*.
    In exponential growth 1/r stays constant, and the secant never meets zero.

    Attributes
    ----------
    horizon
        A blow-up after this time does not count.
    resolution
        Fraction of t that may be left before t* when the blow-up is called.
    """

    horizon: float
    resolution: float = 1e-9
    time: float = field(default=np.nan, init=False)
    _last: tuple[float, float] | None = field(default=None, init=False)

    def sees(self, t: float, rate: float) -> bool:
        """Take in one accepted step; true when the end is near, then ``time`` holds t*."""
        last, self._last = self._last, (t, 1.0 / rate if rate > 0 else np.inf)
        if last is None or not self._last[1] < last[1] < np.inf:
            return False
        remaining = self._last[1] * (t - last[0]) / (last[1] - self._last[1])
        if remaining < self.resolution * t and t + remaining <= self.horizon:
            self.time = t + remaining
        return bool(np.isfinite(self.time))


def growth_rate(y: Array, derivative: Array) -> float:
    """|y'| / |y| in the Euclidean norm; zero for y = 0."""
    size = float(np.linalg.norm(y))
    return float(np.linalg.norm(derivative)) / size if size > 0 else 0.0
