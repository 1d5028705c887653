"""Solves for the column potential: Anderson's steps on r(g), which the dual objective keeps safe.

    f = F(g),   r = S(f) - g,   Phi(g) = int (f + g) dmu

Phi is convex with the gradient 1 - e^r: where a step does not lower it, a plain step g + r from the point before does.
Columns have the masses e^r, exactly; so |r| says what is wrong with the coupling, and nothing else does: velocities
that hardly change may be far off.

Where A is symmetric and not negative, f = g is solved instead by r = (F(g) - g) / 2: a sum less for each iterate, and
plain steps that halve the error whatever the size of A. Columns are then no more than 2 |F(g) - g| off.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, LateInputError
from vlasov.scaling.anderson import Ring
from vlasov.scaling.sums import Sums
from vlasov.tilting import Tilted

_NOISE = 1e-13  # of Phi, relative to 1 + |Phi|
_BETTER = 0.9  # of the residual, which makes up for an objective that does not fall
_WORSE = 10.0  # the same where Phi does not tell
_HOPELESS = 0.1  # by which Phi may rise before the columns are summed; and a tolerance
_SHORTER, _LONGER = 16.0, 4.0
_OF_MARGINAL, _OF_STEP, _OF_BOTH = 4.0, 4.0, 2.0  # how far means may be off, in radii: see ``Solution``


class Solution(NamedTuple):
    r"""Potentials, and what the last rows say.

    Attributes
    ----------
    g
        The column potential of these rows.
    better
        What another step would make of it.
    rows
        f, the rows' means about the centre, and how they were summed.
    marginal
        The largest |log mass| of a column, with the errors of sums.
    deviation, elsewhere
        How far means may be from those at the fixed point, at the points and anywhere, in radii of the points.

    Proved is what Birkhoff says (``contracted``), for any points and any x; it is of use to |A| R^2 = 15 or so. Where A
    is symmetric and not negative, 2 r = (1 + P) (g* - g) to first order, with an inverse that is at most one in L2(mu).
    Else g* - g = (1 - P* P)^{-1} r, and |m - m*| <= R sqrt(<r, (1 - P* P)^{-1} r>) in L2(mu): proved where
    Anderson's step is all of it. That these also hold for the largest |m - m*| at the points is what some thousand
    random clouds say, with a tenth of the first and a fifth of the second; in the second, means of light points may be
    further off, by the root of how much lighter they are.
    """

    g: Array
    better: Array
    rows: Tilted
    marginal: float
    deviation: float
    elsewhere: float


class Goal(NamedTuple):
    """When to stop: the marginals' error that is asked for, the largest that is accepted, and so many half-steps."""

    asked: float
    accepted: float
    most: int

    def limit(self, noise: float) -> float:
        """For |r| as it is summed, with errors up to ``noise``."""
        if noise >= self.accepted:
            remedy = f"ask for {2 * noise:.1g}" if noise < _HOPELESS / 4 else "scale the tokens or A down"
            raise LateInputError(
                f"is {self.accepted:g}, but exponents of this size make errors of {noise:.1g} in sums; {remedy}",
                "tolerance",
            )
        return max(self.asked - noise, min(noise, self.accepted - noise))


class _Iterate(NamedTuple):
    """g, Phi(g), the largest error of a column, the sums of rows, r, and how far errors of sums move it."""

    g: Array
    phi: float
    error: float
    rows: Tilted
    r: Array
    noise: float


def solve(sums: Sums, g: Array, ring: Ring, goal: Goal) -> Solution:
    """Iterate from g until the columns' masses are right; ``ring`` may come from a problem that was similar.

    Steps are g + r + e. Where one does not lower Phi, e is cut to a sixteenth, and to nothing once it is as small as r;
    from then on it is at most four times as long as the last one that was any good.
    """
    base: _Iterate | None = None
    extra, reach, best = np.zeros_like(g), math.inf, math.inf
    while sums.count + 2 <= goal.most:
        now = _look(sums, g, base)
        if now is None:
            if base is None:
                raise InputError("are too large for the exponents <Ax, y> to be finite; scale them down", "points")
            reach = _largest(extra) / _SHORTER
            if reach > base.error / 2:
                extra /= _SHORTER
                g = base.g + base.r + extra
            else:
                reach = max(reach, base.error)
                g, base = base.g + base.r, None
                ring.forget()
            continue
        if base is not None:
            ring.push(now.g - base.g, now.r - base.r)
            reach *= _LONGER
        best = min(best, now.error + now.noise)
        step = ring.step(now.r)
        if now.error <= goal.limit(now.noise):
            return _solution(sums, now, step, goal)
        if float(np.add.reduce(sums.weights * now.r * step)) <= 0:  # uphill
            step = _LONGER * now.r
        extra = step - now.r
        if (size := _largest(extra)) > reach:
            extra *= reach / size
        base, g = now, g + now.r + extra
    raise _unfinished(sums, best, goal)


def truncated(sums: Sums, half_steps: int) -> Solution:
    """What an odd number of half-steps from g = 0 leaves, rows normalised last; no marginal is promised."""
    g = -np.einsum("nk,k->n", sums.points, sums.matrix @ sums.centre)  # zero where points are not about their mean
    rows, noise = sums.rows(g), 0.0
    for _ in range(half_steps // 2):
        columns = sums.columns(rows.log_mass)
        g, noise = columns.log_mass, noise + rows.mass_error + columns.mass_error
        rows = sums.rows(g)
    return Solution(g, g, rows, math.nan, 2 * noise, 2 * noise)


def _look(sums: Sums, g: Array, base: _Iterate | None) -> _Iterate | None:
    """What is at g; None where that is no better than the ``base``."""
    rows = sums.rows(g)
    phi = float(np.add.reduce(sums.weights * (rows.log_mass + g)))
    if not math.isfinite(phi) or (base is not None and phi > base.phi + _HOPELESS):
        return None
    if sums.symmetric:
        r, noise = (rows.log_mass - g) / 2, 2 * rows.mass_error
        r -= np.add.reduce(sums.weights * r)
        error = 4 * _largest(r)
    else:
        columns = sums.columns(rows.log_mass)
        r, noise = columns.log_mass - g, rows.mass_error + columns.mass_error
        error = _largest(r)
        r -= np.add.reduce(sums.weights * r)  # constants change no kernel
    if not math.isfinite(error + noise):
        return None
    if base is not None and error > _BETTER * base.error:
        doubt = _NOISE * (1 + abs(phi)) + rows.mass_error
        if phi > base.phi + doubt or (phi > base.phi - doubt and error > _WORSE * base.error):
            return None
    return _Iterate(g, phi, error, rows, r, noise)


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


def _solution(sums: Sums, found: _Iterate, step: Array, goal: Goal) -> Solution:
    marginal = found.error + found.noise
    proved = contracted(marginal, sums.cross_ratio)
    if sums.symmetric:
        deviation = elsewhere = min(_OF_BOTH * (marginal + _largest(step)), proved)
    else:
        distance = math.sqrt(abs(float(np.add.reduce(sums.weights * found.r * step))))
        spread = 1 / math.sqrt(len(sums.weights) * float(sums.weights.min()))
        away = _OF_MARGINAL * (goal.asked + marginal) + _OF_STEP * distance
        deviation, elsewhere = min(spread * away, proved), proved
    return Solution(found.g, found.g + step, found.rows, marginal, deviation, elsewhere)


def contracted(marginal: float, cross_ratio: float) -> float:
    """How far means anywhere may be off, in radii, with columns off by so much in their logarithm: proved.

    In Hilbert's metric, osc(g - g'), a half-step contracts by tanh(D/4) (Birkhoff), D: ``Sums.cross_ratio``. So
    osc(g - g*) <= osc(r) cosh^2(D/4), osc(r) <= 2 |r|; and weights e^{-g} with 2 tanh(osc/4) more in total variation.
    """
    return 2 * math.tanh(min(marginal * math.cosh(min(cross_ratio / 4, 300.0)) ** 2 / 2, 300.0))


def _unfinished(sums: Sums, best: float, goal: Goal) -> LateInputError:
    size = float(np.linalg.norm(sums.matrix, 2)) * sums.radius**2
    return LateInputError(
        f"is {goal.most}, but so many half-steps of Sinkhorn's iteration leave errors of {best:.2g} in the marginals, "
        f"where {goal.accepted:g} is asked for (|A| R^2 = {size:.3g}); raise it, or the tolerance",
        "max_iterations",
    )
