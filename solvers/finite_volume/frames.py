"""The frames of all parts together: one that moves as it likes, or several that move in each other's field.

    c_a' = Gamma(m_a) + B_a (c_a - m_a) + S_a (g_a - K_a b_a),   S_a' = B_a S_a + S_a K_a,   B_a = D Gamma(m_a)

The velocity that several frames follow is that of the mixture of the Gaussians N(m_a, S_a C_a S_a^T), whose parts have
the moments of the parts of the density: near each of them it is almost affine if they are narrow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.solvers.finite_volume.frame import Affine, Drift, Frame, Moments, Place, through
from vlasov.solvers.finite_volume.twin import linearised
from vlasov.solvers.finite_volume.velocity_kernels import LEVELS
from vlasov.solvers.ode.integrate import inside, norm

_TOLERANCE = 1e-12  # of paths: shares of parts are as exact as their exponents, and those are large


class Frames(ABC):
    """The frames of all parts, on one segment of smooth parameters."""

    @abstractmethod
    def closures(self, t: float, places: Sequence[Place]) -> list[Affine]:
        """For each part v and W with Gamma(c + S z) - u ~ v + W z; u = ``Flow.base``."""

    @abstractmethod
    def path(self, t: float, end: float, places: Sequence[Place], drifts: Sequence[Drift]) -> Paths:
        """Where the frames are from t to ``end``, from their places at t."""

    @abstractmethod
    def rates(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> list[float]:
        """|S^{-1} S'| of each."""

    @abstractmethod
    def astray(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> float:
        """By how much a closure of compact data misses the slope that the fit sees, relative to that slope."""

    @abstractmethod
    def followed(self, fit: Affine) -> Affine:
        """What of a part's fit g + K (z - b) its path takes away."""

    @abstractmethod
    def outgrown(self, strength: float, pull: float) -> bool:
        """Whether other closures are better, at tilts of this ``strength`` over a standard deviation.

        ``pull`` is the tilt that is common to all.
        """

    @abstractmethod
    def renewed(self, references: Sequence[Moments], strength: float, pull: float) -> Frames:
        """These frames with the closures that are best for these moments and tilts."""

    @abstractmethod
    def explicit(self, t: float) -> float:
        """The longest step that follows the mean explicitly."""

    @abstractmethod
    def inside(self, t: float) -> float:
        """t, kept where parameters have the values of this segment."""

    @abstractmethod
    def values(self, t: float) -> Array:
        """V, on this segment."""


Places = list[Place]  # one for each part
Paths = Callable[[float], Places]  # in time


class OneFrame(Frames):
    """The only one."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def closures(self, t: float, places: Sequence[Place]) -> list[Affine]:
        return [self._frame.closure(t, places[0])]

    def path(self, t: float, end: float, places: Sequence[Place], drifts: Sequence[Drift]) -> Paths:
        alone = self._frame.path(t, end, places[0], drifts[0])
        return lambda time: [alone(time)]

    def rates(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> list[float]:
        return [self._frame.rate(t, places[0], drifts[0])]

    def astray(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> float:
        return self._frame.astray(t, places[0], drifts[0])

    def followed(self, fit: Affine) -> Affine:
        return self._frame.followed(fit)

    def outgrown(self, strength: float, pull: float) -> bool:
        return self._frame.outgrown(strength, pull)

    def renewed(self, references: Sequence[Moments], strength: float, pull: float) -> OneFrame:
        return OneFrame(self._frame.renewed(references[0], strength, pull))

    def explicit(self, t: float) -> float:
        return self._frame.explicit(t)

    def inside(self, t: float) -> float:
        return self._frame.inside(t)

    def values(self, t: float) -> Array:
        return self._frame.values(t)


class _Model(NamedTuple):
    """Gamma(x) ~ velocity + slope (x - mean) near the mean of each part, shapes (n, d), (n, d, d), (n, d)."""

    mean: Array
    velocity: Array
    slope: Array


class ManyFrames(Frames):
    """Each follows its part in the velocity of a mixture of Gaussians, see above.

    Parameters
    ----------
    weights
        Of the parts; or of those that each part sees, (n, n).
    references
        Moments b and C of the parts when the closures were made.
    """

    def __init__(self, flow: Flow, segment: tuple[float, float], weights: Array, references: Sequence[Moments]) -> None:
        self._flow, self._segment, self._weights = flow, segment, weights
        self._b = np.array([moments.b for moments in references])
        self._C = np.array([moments.C for moments in references])

    def closures(self, t: float, places: Sequence[Place]) -> list[Affine]:
        origins, matrices = _stacked(places)
        mean, velocity, slope = self._model(t, origins, matrices)
        constants = velocity + np.einsum("nkl,nl->nk", slope, origins - mean)
        bases = [self._flow.base(origin, self.inside(t)) for origin in origins]
        return [Affine(v - u, w) for v, u, w in zip(constants, bases, slope @ matrices, strict=True)]

    def path(self, t: float, end: float, places: Sequence[Place], drifts: Sequence[Drift]) -> Paths:
        origins, matrices = _stacked(places)
        count, d = origins.shape
        drift = _together(drifts, t, end)

        def rhs(t: float, y: Array) -> Array:
            return np.concatenate([part.ravel() for part in self._derivative(t, *_unpacked(y, count, d), drift(t))])

        y = np.concatenate([origins.ravel(), matrices.ravel()])
        sizes = np.repeat([max(norm(matrix), 1e-300) for matrix in matrices], d * d)
        atol = _TOLERANCE * np.concatenate([np.full(count * d, norm(y)), sizes])
        state = through(rhs, t, end, y, rtol=_TOLERANCE, atol=atol)
        return lambda time: [Place(c, s) for c, s in zip(*_unpacked(state(time), count, d), strict=True)]

    def rates(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> list[float]:
        origins, matrices = _stacked(places)
        inner = np.linalg.solve(matrices, self._model(t, origins, matrices).slope @ matrices)
        return [norm(w + drift.slope) for w, drift in zip(inner, drifts, strict=True)]

    def astray(self, t: float, places: Sequence[Place], drifts: Sequence[Affine]) -> float:
        return 0.0

    def followed(self, fit: Affine) -> Affine:
        return fit

    def outgrown(self, strength: float, pull: float) -> bool:
        return False

    def renewed(self, references: Sequence[Moments], strength: float, pull: float) -> ManyFrames:
        return ManyFrames(self._flow, self._segment, self._weights, references)

    def explicit(self, t: float) -> float:
        return math.inf

    def inside(self, t: float) -> float:
        return inside(t, *self._segment)

    def values(self, t: float) -> Array:
        return self._flow.values(self.inside(t))

    def _model(self, t: float, origins: Array, matrices: Array) -> _Model:
        means = origins + np.einsum("nkl,nl->nk", matrices, self._b)
        covariances = matrices @ self._C @ matrices.swapaxes(1, 2)
        time, masses = self.inside(t), self._weights
        if masses.ndim == 1:
            return _Model(means, *linearised(self._flow, masses, means, covariances, time))
        velocities, slopes = np.empty_like(means), np.empty_like(covariances)
        for k, mass in enumerate(masses):
            seen = mass != 0
            found = linearised(self._flow, mass[seen] / mass.sum(), means[seen], covariances[seen], time)
            own = int(seen[:k].sum())
            velocities[k], slopes[k] = found[0][own], found[1][own]
        return _Model(means, velocities, slopes)

    def _derivative(self, t: float, origins: Array, matrices: Array, drift: Affine) -> tuple[Array, Array]:
        mean, velocity, slope = self._model(t, origins, matrices)
        constants, corrections = drift
        moved = np.einsum("nkl,nl->nk", slope, origins - mean) + np.einsum("nkl,nl->nk", matrices, constants)
        return velocity + moved, slope @ matrices + matrices @ corrections


def _together(drifts: Sequence[Drift], start: float, end: float) -> Drift:
    """All drifts as one, stacked: polynomials in time of degree below ``LEVELS``, known by as many of their values."""
    shares = np.linspace(0.0, 1.0, LEVELS)
    samples = [[drift(start + share * (end - start)) for drift in drifts] for share in shares]
    inverse = np.linalg.inv(np.vander(shares, increasing=True))
    constants, slopes = (
        np.tensordot(inverse, np.array([[affine[k] for affine in row] for row in samples]), axes=1) for k in range(2)
    )

    def drift(t: float) -> Affine:
        powers = ((t - start) / (end - start)) ** np.arange(LEVELS)
        return Affine(np.tensordot(powers, constants, axes=1), np.tensordot(powers, slopes, axes=1))

    return drift


def _stacked(places: Sequence[Place]) -> tuple[Array, Array]:
    return np.array([place.origin for place in places]), np.array([place.matrix for place in places])


def _unpacked(y: Array, count: int, d: int) -> tuple[Array, Array]:
    return y[: count * d].reshape(count, d), y[count * d :].reshape(count, d, d)
