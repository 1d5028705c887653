"""Uniform measures on solids: Box, Ball and Ring (a shell, for d = 3)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import Measure
from vlasov.measures.quadrature import legendre, shell, tensor
from vlasov.summing import KernelSums
from vlasov.tilting import Request, Tilted
from vlasov.tilting.uniform import tilted_interval

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles

_ORTHOGONAL = 1e-12  # relative error of A^T A with which A still counts as a multiple of an orthogonal matrix


@dataclass(frozen=True, eq=False)
class Box(Measure, kind="box"):
    """mu = uniform on prod_k [lower_k, upper_k].

    Parameters
    ----------
    lower, upper
        Opposite corners, shape (d,), lower < upper; numbers for d = 1.

    Examples
    --------
    The variance of each side is its length squared / 12:

    >>> box = vl.Box([0.0, 0.0], [1.0, 2.0])
    >>> box.mean, 12 * np.diag(box.covariance)
    (array([0.5, 1. ]), array([1., 4.]))
    """

    lower: Array
    upper: Array

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        lower = checks.vector(self.lower, "lower")
        upper = checks.vector(self.upper, "upper", length=lower.size)
        empty = np.flatnonzero(~(lower < upper))
        if empty.size:
            k = int(empty[0])
            raise InputError(f"entry {k} is {upper[k]:g} but must be larger than lower, {lower[k]:g}", "upper")
        self._set(lower=lower, upper=upper)

    @property
    def dimension(self) -> int:
        return self.lower.size

    @cached_property
    def mean(self) -> Array:
        return self.lower + self.half_widths

    @cached_property
    def half_widths(self) -> Array:
        """(upper - lower) / 2, shape (d,)."""
        return self.upper / 2 - self.lower / 2

    @cached_property
    def covariance(self) -> Array:
        """diag(half_widths^2 / 3)."""
        return np.diag(self.half_widths**2 / 3)

    @cached_property
    def support_radius(self) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    @property
    def support_box(self) -> tuple[Array, Array]:
        return self.lower, self.upper

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Box | None:
        """A box, if the matrix maps every axis to an axis."""
        a, b = self._affine(matrix, shift)
        if not ((a != 0).sum(axis=0) == 1).all() or not ((a != 0).sum(axis=1) == 1).all():
            return None
        ends = a @ self.lower + b, a @ self.upper + b
        lower, upper = np.minimum(*ends), np.maximum(*ends)
        return Box(lower, upper) if (lower < upper).all() else None

    def density(self, x: ArrayLike) -> Array:
        points = self.at(x)
        inside = ((self.lower <= points) & (points <= self.upper)).all(axis=1)
        return np.where(inside, 1 / np.prod(2 * self.half_widths), 0.0)

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """Closed form, axis by axis."""
        eps = float(np.finfo(float).eps)
        log_mass, mean, variance = tilted_interval(self.half_widths, xi)
        return Tilted(
            log_mass=log_mass.sum(axis=1) + xi @ self.mean,
            mean=self.mean + mean,
            covariance=variance[:, :, None] * np.eye(self.dimension) if request.covariance else None,
            method="closed form",
            error_bound=4 * eps * self.support_radius,
            mass_error=4 * eps * self.dimension * (1 + float(np.abs(xi).max(initial=0.0)) * self.support_radius),
        )

    def _relu_summed(self, xi: Array, request: Request) -> KernelSums:
        from vlasov.measures.solid_sums import over_box

        return over_box(self.lower, self.upper, xi, request)

    def from_cube(self, u: Array) -> Array:
        return self.lower + 2 * self.half_widths * u

    def cumulative(self, x: Array) -> Array:
        return (np.clip(x, self.lower, self.upper) - self.lower) / (2 * self.half_widths)

    def quadrature(self, nodes: int) -> Particles:
        """Gauss-Legendre nodes along each axis."""
        from vlasov.measures.particles import Particles

        unit, weights = tensor([legendre(nodes)] * self.dimension)
        return Particles(self.mean + self.half_widths * unit, weights)

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Products of overlaps."""
        from vlasov.measures.cell_averages import box_masses

        return box_masses(self, axes)


class Shell(Measure):
    """mu = uniform on inner <= |y - center| <= outer."""

    center: Array

    @property
    @abstractmethod
    def radii(self) -> tuple[float, float]:
        """Inner and outer radius."""

    @property
    def dimension(self) -> int:
        return self.center.size

    @property
    def mean(self) -> Array:
        return self.center

    @cached_property
    def covariance(self) -> Array:
        """I E|y|^2 / d with E|y|^2 = d / (d + 2) * (outer^{d+2} - inner^{d+2}) / (outer^d - inner^d)."""
        inner, outer = self.radii
        # Both differences divided by outer - inner, so that a thin ring loses no digits.
        powers = (inner / outer) ** np.arange(self.dimension + 2)
        scale = outer * outer / (self.dimension + 2)  # infinite, where outer**2 would raise
        return np.eye(self.dimension) * (scale * powers.sum() / powers[: self.dimension].sum())

    @cached_property
    def support_radius(self) -> float:
        return float(np.linalg.norm(self.center)) + self.radii[1]

    @property
    def support_box(self) -> tuple[Array, Array]:
        return self.center - self.radii[1], self.center + self.radii[1]

    @abstractmethod
    def _like(self, scale: float, center: Array) -> Shell:
        """The same solid, larger by a factor, elsewhere."""

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Shell | None:
        """The same solid, if the matrix is a multiple of an orthogonal one."""
        a, b = self._affine(matrix, shift)
        scale = float(np.linalg.norm(a, 2))
        if not 0 < scale < math.inf:
            return None
        unit = a / scale  # whose squares neither underflow nor overflow
        skew = np.abs(unit.T @ unit - np.eye(self.dimension)).max()
        return self._like(scale, a @ self.center + b) if skew <= _ORTHOGONAL else None

    @cached_property
    def volume(self) -> float:
        """pi^{d/2} / Gamma(d/2 + 1) * (outer^d - inner^d)."""
        inner, outer = self.radii
        d = self.dimension
        between = (outer - inner) * outer ** (d - 1) * float(((inner / outer) ** np.arange(d)).sum())
        return math.pi ** (d / 2) / math.gamma(d / 2 + 1) * between

    def density(self, x: ArrayLike) -> Array:
        inner, outer = self.radii
        distance = np.linalg.norm(self.at(x) - self.center, axis=1)
        return np.where((inner <= distance) & (distance <= outer), 1 / self.volume, 0.0)

    def _relu_summed(self, xi: Array, request: Request) -> KernelSums:
        from vlasov.measures.solid_sums import over_shell

        return over_shell(self.center, self.radii, xi, request)

    def from_cube(self, u: Array) -> Array:
        """r^d is uniform; the cosine of each polar angle is Beta-distributed; the last angle is uniform."""
        inner, outer = self.radii
        d = self.dimension
        if d == 1:
            side = 2 * u - 1
            return self.center + np.copysign(inner + (outer - inner) * np.abs(side), side)
        thickness = 1 - (inner / outer) ** d
        r = outer * (1 - thickness * (1 - u[:, 0])) ** (1 / d)
        return self.center + r[:, None] * _direction(u[:, 1:])

    def cumulative(self, x: Array) -> Array:
        inner, outer = self.radii
        y = x - self.center
        return 0.5 + 0.5 * np.sign(y) * (np.clip(np.abs(y), inner, outer) - inner) / (outer - inner)

    def quadrature(self, nodes: int) -> Particles:
        """Polar rule: Gauss nodes along the radius and in each polar angle, equispaced ones on the circle."""
        from vlasov.measures.particles import Particles

        points, weights = shell(self.dimension, *self.radii, nodes)
        return Particles(self.center + points, weights)

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Overlaps in closed form for d = 1 and 2, to 1e-12 for d = 3."""
        from vlasov.measures.cell_averages import shell_masses

        return shell_masses(self, axes)


@dataclass(frozen=True, eq=False)
class Ball(Shell, kind="ball"):
    """mu = uniform on |y - center| <= radius.

    Parameters
    ----------
    radius
        Positive. (``support_radius`` is the largest |y|, about the origin.)
    center
        Shape (d,); a number for d = 1.

    Examples
    --------
    The covariance of a ball is R^2 / (d + 2) times the identity:

    >>> vl.Ball(2.0, [1.0, 0.0]).covariance.round(12)
    array([[1., 0.],
           [0., 1.]])
    """

    radius: float
    center: Array

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, radius: float, center: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        radius = _radius(self.radius, "radius", "Ball(radius, center)", above=0.0)
        self._set(radius=radius, center=checks.vector(self.center, "center"))

    @property
    def radii(self) -> tuple[float, float]:
        return 0.0, self.radius

    def _like(self, scale: float, center: Array) -> Ball:
        return Ball(scale * self.radius, center)


@dataclass(frozen=True, eq=False)
class Ring(Shell, kind="ring"):
    """mu = uniform on inner <= |y - center| <= outer: two intervals, a ring, a shell for d = 1, 2, 3.

    Parameters
    ----------
    inner, outer
        0 <= inner < outer.
    center
        Shape (d,); a number for d = 1.

    Examples
    --------
    In the plane the covariance is (inner^2 + outer^2) / 4 times the identity:

    >>> vl.Ring(2.0, 4.0, [0.0, 0.0]).covariance.round(12)
    array([[5., 0.],
           [0., 5.]])
    """

    inner: float
    outer: float
    center: Array

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, inner: float, outer: float, center: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        inner = _radius(self.inner, "inner", "Ring(inner, outer, center)")
        if inner < 0:
            raise InputError(f"is {inner:g} but a radius must not be negative", "inner")
        outer = _radius(self.outer, "outer", "Ring(inner, outer, center)")
        if not inner < outer:
            raise InputError(f"is {outer:g} but must be larger than inner, {inner:g}", "outer")
        self._set(inner=inner, outer=outer, center=checks.vector(self.center, "center"))

    @property
    def radii(self) -> tuple[float, float]:
        return self.inner, self.outer

    def _like(self, scale: float, center: Array) -> Ring:
        return Ring(scale * self.inner, scale * self.outer, center)


def _radius(value: float, field: str, order: str, *, above: float = -math.inf) -> float:
    """A number; whoever gives a list may have another order in mind."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        raise InputError(f"{checks.short(value)} is not a number; the order is {order}", field)
    return checks.number(value, field, above=above)


def _direction(u: Array) -> Array:
    """Uniform on the cube [0, 1]^{d-1} -> uniform on the sphere S^{d-1}: (n, d - 1) -> (n, d)."""
    *polar, last = u.T
    columns, rest = [], np.ones(len(u))
    for k, quantile in enumerate(polar):
        from scipy.special import betaincinv

        # On S^{m-1} the density of t = cos(angle) is (1 - t^2)^{(m-3)/2}: (1 + t) / 2 is Beta((m-1)/2, (m-1)/2).
        half = (len(u.T) - k) / 2
        cosine = 2 * betaincinv(half, half, quantile) - 1
        columns.append(rest * cosine)
        rest = rest * np.sqrt((1 - cosine) * (1 + cosine))
    angle = 2 * math.pi * last
    return np.stack([*columns, rest * np.cos(angle), rest * np.sin(angle)], axis=1)
