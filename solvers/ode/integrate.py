"""Steps an ODE with SciPy's DOP853 between the times at which parameters jump, and sees blow-up coming.

Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, section II.5 (order 8, adaptive).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import DOP853

from vlasov import messages
from vlasov.checks import Array, finite
from vlasov.errors import InputError, LateInputError, NonFiniteState, SolverError
from vlasov.measures import Particles

Rhs = Callable[..., Array]  # (t, y), and memory for the result where the stepper gives it
TIGHTEST = 1e2 * float(np.finfo(float).eps)  # smallest relative tolerance that DOP853 keeps
RESOLUTION = 1e-9  # fraction of t that may be left before t* when a blow-up is called
AGREEMENT = 0.1  # of the way to a blow-up, by which two secants in a row may differ
_TINY = 1e-200  # squares below may have lost digits to underflow
_TINIEST = 16  # numbers of which Python finds the norm faster than NumPy
_FEW = 1000  # numbers that BLAS sums by one thread
_OVERFLOW = "the velocity overflows"
_HEADROOM = 1e8  # sums over the stages overflow some digits before the state does


def accuracy_for(tolerance: float) -> float:
    """Of velocities: errors of sums stay below what an integrator with this tolerance notices."""
    return min(1e-10, 1e-2 * tolerance)


def segments(breakpoints: Array, end: float) -> list[tuple[float, float]]:
    """[0, end] cut at the times where a parameter jumps."""
    cuts = [0.0, *(t for t in breakpoints.tolist() if 0.0 < t < end), end]
    return list(itertools.pairwise(cuts))


def inside(t: float, start: float, end: float) -> float:
    """t, kept where parameters have the values of the segment [start, end): its end belongs to the next one."""
    return min(max(t, start), math.nextafter(end, start))


class Explicit(DOP853):  # type: ignore[misc]  # SciPy has no types
    """SciPy's DOP853, whose estimate of errors below 1e-160 is 0 / 0, so that it would reject them for ever."""

    def _estimate_error_norm(self, K: Array, h: float, scale: Array) -> float:
        error: float = super()._estimate_error_norm(K, h, scale)
        return 0.0 if math.isnan(error) and np.abs(K / scale).max() < 1 else error


def steps(
    rhs: Rhs,
    span: tuple[float, float],
    y: Array,
    *,
    rtol: float | Array,
    atol: float | Array,
    stepper: Callable[..., Any] = Explicit,
    taken: int = 0,
    clock: Callable[[float, Array], float] = lambda t, y: t,
) -> Iterator[Any]:
    """Yield the integrator after each accepted step.

    Parameters
    ----------
    span
        Start and end, which may be infinite.
    stepper
        ``scipy.integrate.DOP853``, or what has the same attributes and methods and calls rhs(t, y, out).
    taken, clock
        For messages: steps of the run so far, and the simulated time at (t, y).
    """
    (start, end), reason, last = span, "", y  # the first mistake in this step, and the last velocities

    # Trial steps may overflow close to a blow-up; they are rejected, and a state that stays bad is reported below.
    def trial(t: float, y: Array, out: Array | None = None) -> Array:
        nonlocal reason, last
        try:
            velocity = rhs(t, y) if out is None else rhs(t, y, out)
        except LateInputError:
            raise
        except InputError as mistake:  # the state is not finite
            velocity = np.empty_like(y) if out is None else out
            velocity.fill(np.nan)
            reason = reason or (str(mistake) if finite(last) else _OVERFLOW)
        last = velocity
        return velocity

    def why() -> str:
        return "" if finite(last) else reason or _OVERFLOW

    with np.errstate(all="ignore"):
        method = stepper(trial, start, y, end, rtol=rtol, atol=atol)
        if not finite(method.f):
            raise _non_finite(taken + 1, clock(start, y), 0.0, reason or _OVERFLOW)
    if not np.isfinite(method.h_abs):  # DOP853 would try such a step for ever
        raise _non_finite(taken + 1, clock(start, y), float(method.h_abs), why())
    for number in itertools.count(taken + 1):
        with np.errstate(all="ignore"):
            reason, t, y, dt, slope = "", method.t, method.y, method.h_abs, method.f
            message = method.step()
            if method.status == "failed" and not why():
                squares = (slope / (atol + rtol * np.abs(y))) ** 2  # as in the integrator's estimate of the error
                if np.isfinite(_HEADROOM * y).all() and np.isfinite(squares).all():
                    raise SolverError(messages.STEP_FAILED(step=number, time=clock(t, y), reason=message))
            if method.status == "failed" or not finite(method.y):
                raise _non_finite(number, clock(t, y), clock(t + dt, y + dt * slope) - clock(t, y), why())
        yield method
        if method.status == "finished":
            return


def _non_finite(number: int, t: float, dt: float, reason: str) -> NonFiniteState:
    error = NonFiniteState(number, t, dt)
    if reason:
        error.add_note(f"({reason})")
    return error


@dataclass
class BlowUpWatch:
    """Foresees y -> infinity at t*, from the growth rate r = |y'|/|y|.

    Where y ~ (t* - t)^{-p}, 1/r = (t* - t)/p falls on a straight line to zero: the secant through two steps finds t*.
    In exponential growth 1/r stays constant, and the secant never meets zero. Two secants in a row must agree, so that
    a rate that merely jumps is no blow-up.
    """

    horizon: float  # a blow-up after this time does not count
    resolution: float = RESOLUTION
    time: float = field(default=np.nan, init=False)
    foreseen: float = field(default=np.nan, init=False)  # t* by the last secant; NaN if it does not meet zero
    _last: tuple[float, float] = field(default=(np.nan, np.nan), init=False)  # t and 1/r

    def sees(self, t: float, rate: float) -> bool:
        """Take in one accepted step; true when the end is near, then ``time`` holds t*."""
        (before, inverse), self._last = self._last, (t, 1.0 / rate if rate > 0 else np.inf)
        expected, self.foreseen = self.foreseen, np.nan
        if self._last[1] < inverse < np.inf:
            self.foreseen = t + self._last[1] * (t - before) / (inverse - self._last[1])
        agree = abs(self.foreseen - expected) <= AGREEMENT * (expected - before)  # false for NaN
        if agree and self.foreseen - t < self.resolution * t and self.foreseen <= self.horizon:
            self.time = self.foreseen
        return bool(np.isfinite(self.time))


def growth_rate(y: Array, derivative: Array) -> float:
    """|y'| / |y| in the Euclidean norm; zero for y = 0, NaN where it overflows."""
    size, speed = norm(y), norm(derivative)
    rate = speed / size if size > 0 else 0.0
    return rate if np.isfinite(rate) else np.nan


def size(cloud: Particles) -> float:
    """Root mean square of |x|, at least 1e-280: a smaller cloud leaves no room for a tolerance."""
    with np.errstate(all="ignore"):
        square = float(np.trace(cloud.covariance) + cloud.mean @ cloud.mean)
    if _TINY < square < np.inf:
        return math.sqrt(square)
    return max(norm(np.sqrt(cloud.weights)[:, None] * cloud.points), 1e-280)


def norm(y: Array) -> float:
    """Euclidean norm without overflow in the squares."""
    flat = y.ravel()
    if flat.size <= _TINIEST:
        return math.hypot(*flat.tolist())
    with np.errstate(all="ignore"):  # threads of BLAS would change the last bits
        square = float(flat.dot(flat) if flat.size <= _FEW else np.einsum("i,i->", flat, flat))
    if _TINY < square < np.inf:
        return math.sqrt(square)
    largest = float(np.abs(y).max(initial=0.0))
    return largest * float(np.linalg.norm(y / largest)) if 0.0 < largest < np.inf else largest
