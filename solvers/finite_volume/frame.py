"""Affine frames x = c(t) + S(t) z: in z, the density obeys a conservation law whose velocity a good path makes small.

    d_t f + div_z(f w) = 0,   w(z, t) = S^{-1} (Gamma(c + S z) - c' - S' z)

Each frame knows an affine model of the velocity, in the frame a closure Gamma(c + S z) ~ v + W z; its path subtracts

    S^{-1} c' + S^{-1} S' z = S^{-1} (v + W z) + g + K (z - b)

so that, with the residual r = S^{-1} (Gamma - v - W z), the velocity is w = r - g - K (z - b) whatever c and S are. The
fit over the mass is g = E r, K = Cov(r, z) Cov(z)^{-1}, b = E z. Any path is consistent; on a Gaussian the moving frame
has r = 0, and the scheme is exact.

Between steps r is extrapolated in time, and r is only as smooth as the path is: so the closure depends on c, S and a
reference that stays, and the fit is extrapolated too instead of frozen.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import OdeSolution, solve_ivp

from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.measures import Gaussian
from vlasov.solvers.ode.integrate import inside, norm, steps
from vlasov.solvers.ode.rescaling import Rescaling

_PATH_TOLERANCE = 3e-14
_NOISE = 1e-15  # of the origin, relative to the largest of its coordinates
_MOST_STEPS = 300  # of a path; a step of the run mostly takes a few
_MOST_EVALUATIONS = 5000  # of an implicit path
_TOO_FAST = "frames turn too fast to be followed at t = {:.6g}"
_STRONG = 2.0  # tilt over a standard deviation, beyond which compact data are far from Gaussian
_STIFF = 0.5  # |V| dt beyond which the origin is integrated implicitly


class Place(NamedTuple):
    """x = origin + matrix z."""

    origin: Array
    matrix: Array


class Affine(NamedTuple):
    """z -> constant + slope z."""

    constant: Array
    slope: Array


class Moments(NamedTuple):
    """Of the mass in the frame: b = E z and C = Cov z."""

    b: Array
    C: Array


Drift = Callable[[float], Affine]  # in time
Path = Callable[[float], Place]


class Frame(ABC):
    """How the frame moves on one segment [start, end) of smooth parameters."""

    def __init__(self, flow: Flow, segment: tuple[float, float]) -> None:
        self.flow, self.segment = flow, segment

    @abstractmethod
    def model(self, t: float, place: Place) -> tuple[Array, Array]:
        """beta and B with Gamma(x) ~ beta + B x."""

    def closure(self, t: float, place: Place) -> Affine:
        """v and W with Gamma(c + S z) - u ~ v + W z; u = ``Flow.base``."""
        beta, slope = self.model(t, place)
        return Affine(beta + slope @ place.origin - self.flow.base(place.origin, self.inside(t)), slope @ place.matrix)

    def values(self, t: float) -> Array:
        """V, on this segment."""
        return self.flow.values(self.inside(t))

    @abstractmethod
    def path(self, t: float, end: float, place: Place, drift: Drift) -> Path:
        """Where the frame is from t to ``end``, from its place at t."""

    def followed(self, fit: Affine) -> Affine:
        """What of the fit g + K (z - b) the path takes away."""
        return Affine(np.zeros_like(fit.constant), np.zeros_like(fit.slope))

    def outgrown(self, strength: float, pull: float = 0.0) -> bool:
        """Whether another closure is better, at tilts of this ``strength`` over a standard deviation.

        ``pull`` is the tilt that is common to all.
        """
        return False

    def renewed(self, reference: Moments, strength: float, pull: float = 0.0) -> Frame:
        """This frame with the closure that is best for these moments and tilts."""
        return self

    def rate(self, t: float, place: Place, drift: Affine) -> float:
        """|S^{-1} S'|, which limits the step; zero where the path is exact."""
        return 0.0

    def astray(self, t: float, place: Place, drift: Affine) -> float:
        """By how much the velocity on a Gaussian misses the slope that the fit sees, relative to that slope."""
        return 0.0

    def explicit(self, t: float) -> float:
        """The longest step that follows the mean explicitly, where it relaxes by x' = V x."""
        return math.inf

    def inside(self, t: float) -> float:
        """t, kept where parameters have the values of this segment."""
        return inside(t, *self.segment)


class FixedFrame(Frame):
    """c = 0, S = I: w = Gamma."""

    def model(self, t: float, place: Place) -> tuple[Array, Array]:
        return np.zeros_like(place.origin), np.zeros_like(place.matrix)

    def path(self, t: float, end: float, place: Place, drift: Drift) -> Path:
        return lambda time: place


class RescaledFrame(Frame):
    """c' = V c, S' = V S: what tokens do that see nothing but themselves."""

    def __init__(self, flow: Flow, segment: tuple[float, float], rescaling: Rescaling) -> None:
        super().__init__(flow, segment)
        self._rescaling = rescaling

    def model(self, t: float, place: Place) -> tuple[Array, Array]:
        return np.zeros_like(place.origin), self.values(t)

    def path(self, t: float, end: float, place: Place, drift: Drift) -> Path:
        inverse = np.linalg.inv(self._rescaling.matrix(t))

        def at(time: float) -> Place:
            factor = self._rescaling.matrix(time) @ inverse
            return Place(factor @ place.origin, factor @ place.matrix)

        return at


class MovingFrame(Frame):
    """Follows an affine model Gamma(x) ~ beta + B x, and the fit's correction.

        S' = B S + S K,   c' = beta + B c + S (g - K b)

    The model is the velocity on N(c + S b, S C S^T), b and C of a reference that stays. It grows like the covariance,
    but the velocity of compact data is bounded by |V| R: under strong tilts it is V x, what extreme tokens feel. Where
    Gaussians do not stay Gaussian, or one tilt pulls compact data to an edge, it is what the mean of a cloud without
    extent does, and the fit says the rest.

    Parameters
    ----------
    reference
        Moments of the mass when the closure was made.
    compact
        Whether the data have no Gaussian tails.
    strong, pulled
        Whether the model is V x, or that of a cloud without extent.
    """

    def __init__(
        self,
        flow: Flow,
        segment: tuple[float, float],
        reference: Moments,
        *,
        compact: bool,
        strong: bool = False,
        pulled: bool = False,
    ) -> None:
        super().__init__(flow, segment)
        self._reference, self._strong, self._pulled = reference, strong, pulled
        self._compact = compact and flow.bounded

    def outgrown(self, strength: float, pull: float = 0.0) -> bool:
        return self._kind(strength, pull) != (self._strong, self._pulled)

    def renewed(self, reference: Moments, strength: float, pull: float = 0.0) -> MovingFrame:
        strong, pulled = self._kind(strength, pull)
        return MovingFrame(
            self.flow, self.segment, reference, compact=self._compact, strong=strong, pulled=pulled
        )  # fmt: skip

    def _kind(self, strength: float, pull: float = 0.0) -> tuple[bool, bool]:
        """Whether the model is to be V x, or that of a cloud without extent."""
        strong = self._compact and strength > (_STRONG / 2 if self._strong else _STRONG)
        return strong, self._compact and not strong and pull > (_STRONG / 2 if self._pulled else _STRONG)

    def followed(self, fit: Affine) -> Affine:
        return super().followed(fit) if self._strong else fit

    def rate(self, t: float, place: Place, drift: Affine) -> float:
        _, slope = self.model(t, place)
        return norm(np.linalg.solve(place.matrix, slope @ place.matrix) + drift.slope)

    def astray(self, t: float, place: Place, drift: Affine) -> float:
        if not self._compact or self._strong:
            return 0.0
        _, slope = self.model(t, place)
        seen = slope + place.matrix @ drift.slope @ np.linalg.inv(place.matrix)
        _, told = self._gaussian(t, place)
        return norm(told - seen) / max(norm(seen), 1e-300)

    def path(self, t: float, end: float, place: Place, drift: Drift) -> Path:
        d, shape = len(place.origin), place.matrix.shape
        start, count = np.concatenate([place.origin, place.matrix.ravel()]), itertools.count()

        def rhs(t: float, y: Array) -> Array:
            if next(count) > _MOST_EVALUATIONS:
                raise TooFast(_TOO_FAST.format(t))
            origin, matrix = self._derivative(t, _place(y, d), drift)
            return np.concatenate([origin, matrix.ravel()])

        if end - t <= self.explicit(t):
            # Rounding of the origin's turns is noise beside a small matrix, which keeps its own accuracy.
            atol = np.repeat([_NOISE * norm(start), 1e-3 * _PATH_TOLERANCE * norm(place.matrix)], [d, d * d])
            both = through(rhs, t, end, start, atol=atol)
            return lambda time: _place(both(time), d)
        # The origin obeys c' ~ V c: an implicit method. The matrix is slow, and as accurate as ever.
        solution = solve_ivp(
            rhs, (t, end), start, method="Radau", rtol=1e-9, atol=1e-12 * norm(place.matrix), dense_output=True
        )
        if not solution.success:
            raise SolverError(solution.message)
        origin = solution.sol

        def slow(t: float, y: Array) -> Array:
            return self._derivative(t, Place(origin(t)[:d], y.reshape(shape)), drift)[1].ravel()

        matrix = through(slow, t, end, start[d:])
        return lambda time: Place(origin(time)[:d], matrix(time).reshape(shape))

    def explicit(self, t: float) -> float:
        v = self.values(t)
        decay = max(0.0, -float(np.linalg.eigvalsh(v + v.T)[0]) / 2)  # growth is followed by any method
        speed = decay + norm(v - v.T) / 2
        return _STIFF / speed if speed > 0 else math.inf

    def model(self, t: float, place: Place) -> tuple[Array, Array]:
        if self._strong:
            return np.zeros_like(place.origin), self.values(t)
        if self._pulled:
            mean = place.origin + place.matrix @ self._reference.b
            return self.flow.base(mean, self.inside(t)), np.zeros_like(place.matrix)
        return self._gaussian(t, place)

    def _gaussian(self, t: float, place: Place) -> tuple[Array, Array]:
        """Beta and B on a Gaussian with the moments of the reference."""
        (c, s), (b, covariance) = place, self._reference
        mean = c + s @ b
        found = self.flow.affine(Gaussian.trusted(mean=mean, covariance=s @ covariance @ s.T), self.inside(t))
        return (self.flow.base(mean, self.inside(t)), np.zeros_like(s)) if found is None else found

    def _derivative(self, t: float, place: Place, drift: Drift) -> tuple[Array, Array]:
        c, s = place
        beta, slope = self.model(t, place)
        constant, correction = drift(t)
        return beta + slope @ c + s @ constant, slope @ s + s @ correction


def _place(y: Array, d: int) -> Place:
    return Place(y[:d], y[d:].reshape(d, d))


class TooFast(SolverError):
    """A path takes so many steps that a shorter one is better."""


def through(
    rhs: Callable[[float, Array], Array],
    t: float,
    end: float,
    y: Array,
    *,
    rtol: float = _PATH_TOLERANCE,
    atol: float | Array | None = None,
) -> Callable[[float], Array]:
    """The solution of y' = rhs(t, y) from t to ``end``, as a function of time: a polynomial for each step."""
    times, pieces = [t], []
    atol = 1e-3 * rtol * norm(y) if atol is None else atol
    for step in steps(rhs, (t, end), y, rtol=rtol, atol=atol):
        times.append(step.t)
        pieces.append(step.dense_output())
        if len(pieces) > _MOST_STEPS:
            raise TooFast(_TOO_FAST.format(step.t))
    return OdeSolution(times, pieces)
