"""The exact reduction to Gaussians: mean and covariance of N(alpha, Sigma) by an ODE, in a time that stretches.

    alpha' = b + B alpha,   Sigma' = B Sigma + Sigma B^T,   Gamma(x) = b + B x on N(alpha, Sigma)

Instead of Sigma we integrate a factor F, F' = B F, Sigma = F F^T: it is the flow's own action on a square root, so that
Sigma is symmetric positive semi-definite to the last bit, its rank never changes, and an eigenvalue that collapses by
1e-16 is a singular value that collapses by 1e-8, well inside double precision.

The independent variable is s with ds = sqrt(1/T^2 + |B|^2) dt. Near a blow-up at t*, |B| grows like 1/(t* - t), even
where something larger but harmless hides the growth of F: F grows like an exponential in s, and t(s) converges to t*
like one; the singularity is never stepped into. Where stability alone holds these steps back, LSODA goes on in t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.measures import Gaussian
from vlasov.solvers.ode import stiff
from vlasov.solvers.ode.integrate import Explicit, inside, norm, segments, steps

_WORTH_A_CHANGE = 300  # more stiff steps than these are left to LSODA
_FIRST = 0.01  # step, in s, in which F changes by no more than this share
_SHORT, _BEGINNING = 0.5, 100  # in s, and for how many steps careful runs keep it
MomentsAt = Callable[[float], tuple[Array, Array]]


class Advance(NamedTuple):
    """After an accepted step: the time reached, |B| there, mean and covariance inside the step, the segment's end."""

    t: float
    rate: float
    at: MomentsAt
    end: float


def advance(
    flow: Flow, initial: Gaussian, horizon: float, tolerance: float, *, careful: bool = False
) -> Iterator[Advance]:
    """Step to the horizon, segment by segment of smooth parameters, with this local error per step.

    Careful runs begin with short steps: at two loose tolerances steps can be the same, and with them all errors.
    """
    system = _System(flow, initial, horizon, tolerance, careful)
    for start, end in segments(flow.breakpoints, horizon):
        yield from system.stretched(start, end)
        if system.y[-1] < end:
            yield from system.implicit(start, end)


class _System:
    """The state (alpha, F, t) and its derivatives."""

    def __init__(self, flow: Flow, initial: Gaussian, horizon: float, tolerance: float, careful: bool) -> None:
        self._careful = careful
        self._flow, self._horizon, self._rtol, self._taken = flow, horizon, tolerance, 0
        state = np.column_stack([initial.mean, initial.factor])
        self._d, self._size = len(state), state.size
        self.y = np.append(state, 0.0)
        # Absolute errors are measured against the initial sizes, far below them: collapsing directions stay accurate.
        scale = 1.0 / max(1.0 / horizon, self._velocity(0.0, self.y)[1])  # of time: far below the horizon for collapses
        sizes = np.full(state.shape, norm(initial.factor) or 1.0)
        sizes[:, 0] = norm(initial.mean) or 1.0
        self._atol = tolerance * 1e-6 * np.append(sizes, scale)

    def stretched(self, start: float, end: float) -> Iterator[Advance]:
        """Explicit steps in s, to the end or until they are stiff."""

        def rhs(_: float, y: Array) -> Array:
            derivative, rate = self._velocity(inside(y[-1], start, end), y)
            return derivative / (math.hypot(1.0 / self._horizon, rate) if rate < math.inf else math.nan)

        watch = stiff.StiffnessWatch()
        how: dict[str, Any] = {
            "rtol": self._rtol,
            "atol": self._atol,
            "taken": self._taken,
            "clock": lambda _, y: float(y[-1]),
        }
        longest, first = (_SHORT, _FIRST / 2) if self._careful else (np.inf, _FIRST)
        stepper = partial(Explicit, max_step=longest, first_step=first)
        for number, step in enumerate(steps(rhs, (0.0, np.inf), self.y, stepper=stepper, **how), start=1):
            self._taken += 1
            if number == _BEGINNING:
                step.max_step = np.inf
            state, before = _StateAt(step), float(self.y[-1])
            reached = float(min(step.y[-1], end))
            self.y = np.append(state(reached)[:-1], reached)
            rate = self._velocity(inside(reached, start, end), self.y)[1]
            yield Advance(reached, rate, partial(self._inside, self.y, state), end)
            if reached == end:
                return
            if watch.sees(step) and end - reached > _WORTH_A_CHANGE * (reached - before):
                return

    def implicit(self, start: float, end: float) -> Iterator[Advance]:
        """Steps of LSODA in t, from where the others have stopped to the end."""
        now = float(self.y[-1])

        def rhs(t: float, y: Array) -> Array:
            return self._velocity(inside(t, start, end), y)[0][:-1]

        how: dict[str, Any] = {
            "rtol": max(stiff.LOOSER * self._rtol, stiff.TIGHTEST),
            "atol": self._atol[:-1],
            "taken": self._taken,
        }
        for step in steps(rhs, (now, end), self.y[:-1], stepper=stiff.Implicit, **how):
            self._taken += 1
            self.y = np.append(step.y, step.t)
            rate = self._velocity(inside(step.t, start, end), self.y)[1]
            yield Advance(float(step.t), rate, partial(self._inside, self.y, step.dense_output()), end)

    def _inside(self, last: Array, at: Callable[[float], Array], time: float) -> tuple[Array, Array]:
        """Mean and covariance at a time inside a step that ended in ``last``; at its end they stay right later on."""
        state = self._matrix(last if time == last[-1] else at(time))
        return state[:, 0], state[:, 1:] @ state[:, 1:].T

    def _matrix(self, y: Array) -> Array:
        """The columns of alpha and F, shape (d, 1 + rank); y may come without t."""
        return y[: self._size].reshape(self._d, -1)

    def _velocity(self, t: float, y: Array) -> tuple[Array, float]:
        """The derivative of (alpha, F, t) in t, and |B|.

        Every microsecond counts here; ``dot`` takes a third of what ``@`` does for such matrices.
        """
        state = self._matrix(y)
        factor = state[:, 1:]
        found = self._flow.affine(Gaussian.trusted(mean=state[:, 0], covariance=factor.dot(factor.T)), t)
        assert found is not None  # see check
        b, slope = found
        derivative = np.empty(self._size + 1)
        derivative[-1] = 1.0
        columns = self._matrix(derivative)
        slope.dot(state, out=columns)
        columns[:, 0] += b
        return derivative, norm(slope)


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
