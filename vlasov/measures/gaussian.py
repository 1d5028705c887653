"""Gaussian measures: closed under every tilt, the source of the exact references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import Measure, Tiltable
from vlasov.summing import Kernel, KernelSums
from vlasov.tilting import Request, Tilted

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles

_LARGE = 1e15  # condition numbers from here on leave no digit
_RANK = 1e-14  # eigenvalues below this fraction of the largest count as zero


@dataclass(frozen=True, eq=False)
class Gaussian(Measure, kind="gaussian"):
    """N(mean, covariance); the covariance may be singular.

    Parameters
    ----------
    mean
        Shape (d,); a number for d = 1.
    covariance
        Symmetric positive semi-definite, shape (d, d); a number for d = 1.

    Examples
    --------
    Tilted by e^{<xi, y>} it is N(m + Sigma xi, Sigma); velocities under softmax are such means:

    >>> mu = vl.Gaussian([1.0, 0.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> mu.tilted(np.array([[1.0, 0.0]])).mean
    array([[3., 1.]])
    """

    mean: Array
    covariance: Array

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        mean = checks.vector(self.mean, "mean")
        self._set(mean=mean, covariance=checks.covariance(self.covariance, "covariance", dimension=mean.size))

    @property
    def dimension(self) -> int:
        return self.mean.size

    @cached_property
    def factor(self) -> Array:
        """F with F F^T = covariance, shape (d, rank): scaled eigenvectors, the largest first."""
        values, vectors = np.linalg.eigh(self.covariance)
        keep = values > _RANK * max(values[-1], np.finfo(float).tiny)
        # Signs are fixed so that the factor, and with it every sample, does not depend on the LAPACK at hand.
        vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(values.size)] < 0, -1.0, 1.0)
        return (vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]

    @property
    def support_radius(self) -> float:
        """Infinity, but for a Dirac."""
        return math.inf if self.factor.size else float(np.linalg.norm(self.mean))

    @property
    def support_box(self) -> tuple[Array, Array]:
        """All of space, but for axes without variance."""
        reach = np.where(np.diag(self.covariance) > 0, math.inf, 0.0)
        return self.mean - reach, self.mean + reach

    def box(self, deviations: float) -> tuple[Array, Array]:
        reach = deviations * np.sqrt(np.diag(self.covariance))
        return self.mean - reach, self.mean + reach

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Gaussian:
        """N(A m + b, A C A^T)."""
        a, b = self._affine(matrix, shift)
        covariance = a @ self.covariance @ a.T
        return Gaussian(a @ self.mean + b, covariance / 2 + covariance.T / 2)

    def density(self, x: ArrayLike) -> Array:
        if self.factor.shape[1] < self.dimension:
            raise InputError("is singular, so that there is no density; sample particles instead", "covariance")
        standard = np.linalg.solve(self.factor, (self.at(x) - self.mean).T)
        scale = math.sqrt(2 * math.pi) ** self.dimension * abs(np.linalg.det(self.factor))
        return np.exp(-0.5 * (standard**2).sum(axis=0)) / scale

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """Closed form: N(alpha + Sigma xi, Sigma), log Z = <xi, alpha> + <xi, Sigma xi> / 2."""
        shift = xi @ self.covariance
        size, entries = np.abs(xi), np.abs(self.covariance)
        moves = size @ entries
        terms = (size * (np.abs(self.mean) + moves / 2)).sum(axis=1)  # they may cancel, but for their rounding errors
        unit = float(np.finfo(float).eps) * (self.dimension + 1)
        return Tilted(
            log_mass=xi @ self.mean + 0.5 * (xi * shift).sum(axis=1),
            mean=self.mean + shift,
            covariance=np.broadcast_to(self.covariance, (len(xi), *self.covariance.shape))
            if request.covariance
            else None,
            method="closed form",
            error_bound=unit * float(np.linalg.norm(np.abs(self.mean) + moves, axis=1).max(initial=0.0)),
            mass_error=2 * unit * float(terms.max(initial=0.0)),
        )

    def _summed(self, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
        """E[k(u)] alpha + E[k'(u)] Sigma xi with u ~ N(<xi, alpha>, <xi, Sigma xi>): integrals on the line."""
        from vlasov.measures.kernel_sums import of_gaussian

        return of_gaussian(self.mean, self.covariance, xi, kernel, request)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        """Closed form: Z N(G alpha, G Sigma), G = (I + 2 Sigma P)^{-1}, Z = det(G)^{1/2} e^{-<alpha, P G alpha>}."""
        if quadratic is None:
            return self
        inverse, (mean, covariance) = self._inverse_under(quadratic), self.moments_under(quadratic)
        log_det, exponent = 0.5 * float(np.linalg.slogdet(inverse)[1]), float(self.mean @ quadratic @ mean)
        error = 4 * self.dimension * float(np.finfo(float).eps) * float(np.linalg.cond(inverse))
        terms = 1 + abs(log_det) + float(np.abs(self.mean) @ np.abs(quadratic) @ np.abs(mean))
        shrunk = Gaussian.trusted(mean=mean, covariance=covariance)
        return Scaled(shrunk, -log_det - exponent, error, error * terms)

    def moments_under(self, quadratic: Array | None) -> tuple[Array, Array]:
        """Mean G alpha and covariance G Sigma of the normalised e^{-<y, P y>} mu, which is Gaussian too."""
        if quadratic is None:
            return self.mean, self.covariance
        inverse = self._inverse_under(quadratic)
        both = np.asarray(np.linalg.solve(inverse, np.column_stack([self.covariance, self.mean])), dtype=np.float64)
        return both[:, -1], (both[:, :-1] + both[:, :-1].T) / 2

    def _inverse_under(self, quadratic: Array) -> Array:
        """G^{-1} = I + 2 Sigma P, where rounding leaves a digit of it."""
        inverse = np.asarray(np.eye(self.dimension) + 2 * self.covariance @ quadratic, dtype=np.float64)
        sizes = np.abs(inverse).max(axis=1, keepdims=True)  # elimination does not mind rows in units of their own
        if sizes.max() > _LARGE and not np.linalg.cond(inverse / sizes) < _LARGE:
            raise InputError(
                "is so wide along directions that P = K^T K does not see alike that rounding leaves no digit of "
                "I + 2 Sigma P; choose other units of x, or another K",
                "covariance",
            )
        return inverse

    def from_cube(self, u: Array) -> Array:
        from scipy.special import ndtri

        from vlasov.compiled.products import map_rows

        points = map_rows(ndtri(u[:, : self.factor.shape[1]]), self.factor, threads=1)
        points += self.mean
        return points

    def cumulative(self, x: Array) -> Array:
        from scipy.special import ndtr

        return ndtr((x - self.mean) / self.factor) if self.factor.size else np.where(x >= self.mean, 1.0, 0.0)

    def quadrature(self, nodes: int) -> Particles:
        """Gauss-Hermite nodes along the principal axes that carry variance."""
        from vlasov.measures.particles import Particles
        from vlasov.measures.quadrature import hermite, tensor

        standard, weights = tensor([hermite(nodes)] * self.factor.shape[1])
        return Particles(self.mean + standard @ self.factor.T, weights)

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Products of error functions, or quadrature of the conditional ones to 1e-12."""
        from vlasov.measures.cell_averages import gaussian_masses

        return gaussian_masses(self, axes)


class Scaled(NamedTuple):
    """A Gaussian times e^{log_mass}, with the relative error of its moments and the error of log_mass."""

    measure: Gaussian
    log_mass: float
    error: float
    mass_error: float

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        tilted = self.measure.tilted(xi, request, workspace=workspace)
        far = float(np.sqrt(np.square(xi).sum(axis=1)).max(initial=0.0))
        moment = self.error * (np.linalg.norm(self.measure.mean) + np.linalg.norm(self.measure.covariance) * far)
        return replace(
            tilted,
            log_mass=self.log_mass + tilted.log_mass,
            error_bound=tilted.error_bound + float(moment),
            mass_error=tilted.mass_error + self.mass_error + float(moment) * far,
        )
