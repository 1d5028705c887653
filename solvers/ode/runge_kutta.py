"""DOP853 for long vectors: SciPy's method and step control, with stages summed in one pass over memory.

SciPy's own stepper spends as long on sums over the stages as a million particles spend on their velocity, and its
norms are BLAS sums whose last bits depend on the number of threads. See ``dop853`` for the method and its memory.

Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, sections II.4 and II.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.solvers.ode import dop853, runge_kutta_kernels as kernels
from vlasov.solvers.ode.dop853 import DENSE_ROWS, ORDER, ROWS, SLOPE_ROWS, STAGES, SUM_ROWS, SUMMED

_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0  # step control, as in SciPy
_WORTH_THREADS = 200_000  # numbers; to wake a thread takes as long as to sum a few ten thousand of them
_SUMS = [
    kernels.sums(dop853.A[s:STAGES, :s] if s == SUMMED else dop853.A[s, SUMMED if s > SUMMED else 0 : s])
    for s in range(STAGES)
]  # for each stage, of those before it
_ERRORS = kernels.sums(np.array([np.append(dop853.B, 0.0), dop853.FIFTH, dop853.THIRD]))
_DENSE_SUMS = [kernels.sums(a[:s]) for s, a in enumerate(dop853.A_DENSE, start=STAGES + 1)]
# For the first step: its slope, which stands last; the two slopes; and their difference, twice; nothing is moved.
_FIRST, _LAST = np.eye(STAGES + 1)[[0, STAGES]]
_SLOPE = kernels.sums(_LAST)
_SLOPES = kernels.sums(np.array([0 * _FIRST, _FIRST, _LAST]))
_CHANGES = kernels.sums(np.array([0 * _FIRST, _FIRST - _LAST, _FIRST - _LAST]))
_FAILED = "Required step size is less than spacing between numbers."


class CloudDOP853:
    """Steps y' = f(t, y) from t to the end; the attributes and methods are those of ``scipy.integrate.DOP853``.

    Parameters
    ----------
    rhs
        f(t, y, out) writes the derivative into out.
    t, y, end
        Start, state there, and last time.
    rtol, atol
        Local error per step, in the root mean square over components of error / (atol + rtol |y|).
    settle
        Puts the state at the end of each step back to where states must be, in its own memory.
    """

    def __init__(
        self,
        rhs: Callable[[float, Array, Array], Array],
        t: float,
        y: Array,
        end: float,
        *,
        rtol: float,
        atol: float,
        settle: Callable[[Array], None] | None = None,
    ):
        self._rhs, self._end, self._rtol, self._atol, self._settle = rhs, end, rtol, atol, settle
        self._stages, self._rows = np.empty((ROWS, y.size)), np.arange(ROWS)
        self._trial = np.empty(y.size)
        self.t, self.t_old, self._given = t, t, plain(y)
        self.y = self._y_old = self._given
        rhs(t, self.y, self._stage(STAGES))
        self.status: Literal["running", "finished", "failed"] = "running"
        self.h_abs = self._first_step()

    @property
    def f(self) -> Array:
        """f(t, y) at the present state."""
        return self._stage(0 if self.status == "failed" else STAGES)

    def _stage(self, number: int) -> Array:
        """Memory of a slope: the present step's first, ..., and the one at its end."""
        return self._stages[self._places[number]]

    @property
    def _places(self) -> NDArray[np.int64]:
        return self._rows[SLOPE_ROWS]

    def step(self) -> str | None:
        """Take one accepted step; a message where that is not possible."""
        smallest = 10 * (np.nextafter(self.t, math.inf) - self.t)
        step, rejected = max(self.h_abs, smallest), False
        # The slope at the end of the last step is the first of this one.
        first, last = SLOPE_ROWS[[0, STAGES]]
        self._rows[[first, last]] = self._rows[[last, first]]
        while True:
            if step < smallest:
                self.status = "failed"
                return _FAILED
            new = min(self.t + step, self._end)
            h = new - self.t
            error = self._take(h)
            if error < 1:
                break
            # A NaN shrinks the step too: comparisons with it are false.
            step = h * max(_SHRINK, _SAFETY * error ** (-1 / ORDER) if error < math.inf else 0.0)
            rejected = True
        factor = _GROW if error == 0 else min(_GROW, _SAFETY * error ** (-1 / ORDER))
        self.h_abs = h * (min(1.0, factor) if rejected else factor)
        if self._settle is not None:
            self._settle(self._trial)
        self._rhs(new, self._trial, self._stage(STAGES))
        free = np.empty_like(self.y) if self._y_old is self._given else self._y_old  # what was given is never written
        self._y_old, self.y, self._trial = self.y, self._trial, free
        self.t_old, self.t = self.t, new
        if self.t >= self._end:
            self.status = "finished"
        return None

    def dense_output(self) -> Callable[[float], Array]:
        """The solution inside the last step, of order 7: three more evaluations, once for each step.

        It lasts until the next step, and writes every state into the same memory.
        """
        start, h, places = self.t_old, self.t - self.t_old, self._rows[[*SLOPE_ROWS, *DENSE_ROWS]]
        for extra, (sums, c) in enumerate(zip(_DENSE_SUMS, dop853.C_DENSE, strict=True), start=STAGES + 1):
            _combine(self._y_old, self._stages, places, sums, h, self._trial)
            self._rhs(start + c * h, self._trial, self._stages[places[extra]])
        # The polynomial's coefficients in the slopes; the first three make it meet states and slopes at both ends.
        size, unit = len(places), np.eye(len(places))
        change = np.pad(dop853.B, (0, size - len(dop853.B)))
        rows = [change, unit[0] - change, 2 * change - unit[0] - unit[STAGES], *dop853.DENSE]

        def solution(t: float) -> Array:
            x, total = (t - start) / h, np.zeros(size)
            for i, row in enumerate(reversed(rows)):
                total = (total + row) * (x if i % 2 == 0 else 1 - x)
            _combine(self._y_old, self._stages, places, kernels.sums(total), h, self._trial)
            return self._trial

        return solution

    def _take(self, h: float) -> float:
        """The stages and the trial state of a step h; its error, of which less than one is accepted.

        |h e_5|^2 / sqrt(|e_5|^2 + |e_3|^2 / 100) of the two embedded estimates, section II.10; both leave out the slope
        at the end of the step.
        """
        for s in range(1, STAGES):
            if s < SUMMED:
                _combine(self.y, self._stages, self._places, _SUMS[s], h, self._trial)
            elif s == SUMMED:
                kept = self._rows[SUM_ROWS]
                _combine(self.y, self._stages, self._places, _SUMS[s], h, self._trial, kept)
            else:
                begun = self._stages[kept[s - SUMMED - 1]]
                _combine(begun, self._stages, self._places[SUMMED:], _SUMS[s], h, self._trial)
            self._rhs(self.t + dop853.C[s] * h, self._trial, self._stage(s))
        fifth, third = self._squares(_ERRORS, h)
        if fifth + 0.01 * third == 0:  # also by underflow
            return 0.0
        return float(h * fifth / math.sqrt((fifth + 0.01 * third) * self.y.size))

    def _first_step(self) -> float:
        """A step whose Euler increment is a hundredth of the state, corrected by y'', section II.4."""
        n = self.y.size
        self._stage(0)[:] = self.y
        d0, d1 = np.sqrt(self._squares(_SLOPES) / n).tolist()
        guess = min(0.01 * d0 / d1 if d0 >= 1e-5 and d1 >= 1e-5 else 1e-6, self._end - self.t)
        if guess == 0.0:  # an infinite slope
            return 0.0
        _combine(self.y, self._stages, self._places, _SLOPE, guess, self._trial)
        self._rhs(self.t + guess, self._trial, self._stage(0))
        change = self._squares(_CHANGES)[0]
        largest = max(d1, math.sqrt(change / n) / guess)
        corrected = max(1e-6, 1e-3 * guess) if largest <= 1e-15 else (0.01 / largest) ** (1 / ORDER)
        return min(100 * guess, corrected, self._end - self.t)

    def _squares(self, sums: kernels.Sums, h: float = 0.0) -> Array:
        """|e|^2 of two combinations e of the stages, the last two sums, relative to atol + rtol max(|y|, |trial|).

        The trial state is y and h times the first sum, made in the same pass over memory; without a step it is y.
        """
        parts, weights = np.empty((-(-self.y.size // kernels.BLOCK), 2)), sums.coefficients.copy()
        weights[0] *= h
        in_threads(
            _threads(self.y.size), kernels.combine,
            self.y, self._stages, self._places[sums.stages], weights, self._trial, kernels.NOWHERE,
            np.array([self._atol, self._rtol]), parts,
        )  # fmt: skip
        return np.add.reduce(parts)


def _combine(
    y: Array, stages: Array, places: NDArray[np.int64], sums: kernels.Sums, h: float, out: Array,
    kept: NDArray[np.int64] = kernels.NOWHERE,
) -> None:  # fmt: skip
    """out = y + h sum_j coefficients[j] stages[places[j]]; sums with more rows of coefficients go to rows ``kept``."""
    rows, weights = places[sums.stages], h * sums.coefficients
    in_threads(_threads(y.size), kernels.combine, y, stages, rows, weights, out, kept, *kernels.NO_ERRORS)


def _threads(size: int) -> int:
    return get_num_threads() if size > _WORTH_THREADS else 1
