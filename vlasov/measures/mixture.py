"""Mixtures: weighted sums of any measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, some
from vlasov.measures.base import Measure, Tiltable
from vlasov.measures.kernel_sums import mixed
from vlasov.summing import Kernel, KernelSums
from vlasov.tilting import Request, Tilted

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles


@dataclass(frozen=True, eq=False)
class Mixture(Measure, kind="mixture"):
    """mu = sum_c w_c mu_c.

    Parameters
    ----------
    components
        Measures mu_c on the same R^d, of any kind.
    weights
        w_c >= 0, one for each component, normalised to sum to one; equal if not given.

    Examples
    --------
    The variance of a mixture is that within its components and that between them:

    >>> mu = vl.Mixture([vl.Gaussian(-1.0, 0.5), vl.Gaussian(3.0, 0.5)], weights=[3, 1])
    >>> mu.mean, mu.covariance
    (array([0.]), array([[3.5]]))
    """

    components: Sequence[Measure]
    weights: Array = None  # type: ignore[assignment]  # None is replaced by equal weights

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, components: Sequence[Measure], weights: ArrayLike | None = None) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.components, Sequence) or isinstance(self.components, str):
            raise InputError(f"has type {type(self.components).__name__}; give a list of measures", "components")
        components = checks.items(self.components, "components")
        if not components:
            raise InputError("is empty; give at least one measure", "components")
        for c, component in enumerate(components):
            if not isinstance(component, Measure):
                given = f"has type {type(component).__name__} where a measure is needed"
                raise InputError(f"{given}; the order is Mixture(components, weights)", f"components[{c}]")
            if component.dimension != components[0].dimension:
                raise InputError(
                    f"has d = {component.dimension} but components[0] has {components[0].dimension}; make them agree",
                    f"components[{c}]",
                )
        self._set(components=components, weights=checks.weights(self.weights, "weights", count=len(components)))

    @property
    def dimension(self) -> int:
        return self.components[0].dimension

    @property
    def cube_dimension(self) -> int:
        """For d > 1, one coordinate picks the component."""
        return 1 if self.dimension == 1 else 1 + max(component.cube_dimension for component in self.components)

    @cached_property
    def mean(self) -> Array:
        return self.weights @ self._means

    @cached_property
    def covariance(self) -> Array:
        """sum_c w_c (C_c + (m_c - m)(m_c - m)^T)."""
        spread = self._means - self.mean
        within = np.tensordot(self.weights, [component.covariance for component in self.components], axes=1)
        return within + spread.T @ (self.weights[:, None] * spread)

    @cached_property
    def _means(self) -> Array:
        return np.array([component.mean for component in self.components])

    @cached_property
    def support_radius(self) -> float:
        return max(component.support_radius for _, component in self._present)

    @cached_property
    def support_box(self) -> tuple[Array, Array]:
        return _around([component.support_box for _, component in self._present])

    def box(self, deviations: float) -> tuple[Array, Array]:
        return _around([component.box(deviations) for _, component in self._present])

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Mixture | None:
        """The mixture of the components' images, if all have one."""
        images = [component.image(matrix, shift) for component in self.components]
        present = [image for image in images if image is not None]
        return Mixture(present, self.weights) if len(present) == len(images) else None

    @property
    def _present(self) -> list[tuple[float, Measure]]:
        """Weights and components, without those of weight zero."""
        return [(float(w), c) for w, c in zip(self.weights, self.components, strict=True) if w > 0]

    def density(self, x: ArrayLike) -> Array:
        points = self.at(x)
        parts = (w / component.mass * component.density(points) for w, component in self._present)
        return sum(parts, np.zeros(len(points)))

    def seen_by(self, x: Array, s: ArrayLike | None) -> Array | None:
        for c, component in enumerate(self.components):
            if component.ordered:
                sentence = f"is {some(component.kind)} with places in a sequence, of which a mixture has none"
                raise InputError(f"{sentence}; give all tokens as vl.Particles(..., s=...)", f"components[{c}]")
        return None

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        return Mixed(self._present).tilted(xi, request, workspace=workspace)

    def _summed(self, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
        """The sum over components, and of the bounds on their errors."""
        return mixed([(w, part.summed(xi, kernel, request, workspace=workspace)) for w, part in self._present])

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        return Mixed([(w, component.reweighted(quadratic)) for w, component in self._present])

    def from_cube(self, u: Array) -> Array:
        if self.dimension == 1:
            return self._quantile(u)
        return self._by_component(u, np.searchsorted(np.cumsum(self.weights)[:-1], u[:, 0], side="right"))

    def _by_component(self, u: Array, picked: NDArray[np.int64]) -> Array:
        """Points from those of a cube, of which the first coordinate has picked the components."""
        result = np.empty((len(u), self.dimension))
        for c, component in enumerate(self.components):
            mine = np.flatnonzero(picked == c)
            points = component.from_cube(u.take(mine, axis=0)[:, 1 : 1 + component.cube_dimension])
            for k in range(self.dimension):  # three times as fast as rows at once
                result[mine, k] = points[:, k]
        return result

    def _quantile(self, u: Array) -> Array:
        """The smallest x with F(x) >= u, between the components' quantiles: (n, 1) -> (n, 1).

        Bisection over the ordered set of floating-point numbers: 64 steps end at neighbours, whatever the scale, so
        that atoms are met exactly and gaps do no harm.
        """
        quantiles = np.array([component.from_cube(u)[:, 0] for _, component in self._present])
        below, above = _rank(np.nextafter(quantiles.min(axis=0), -np.inf)), _rank(quantiles.max(axis=0))
        while (open_ := below < above - 1).any():
            middle = np.where(open_, (below >> 1) + (above >> 1) + (below & above & 1), above)
            reached = self.cumulative(_unrank(middle)[:, None])[:, 0] >= u[:, 0]
            above = np.where(reached, middle, above)
            below = np.where(reached, below, middle)
        return _unrank(above)[:, None]

    def cumulative(self, x: Array) -> Array:
        return sum((w * component.cumulative(x) for w, component in self._present), np.zeros_like(x))

    def quadrature(self, nodes: int) -> Particles:
        """The union of the components' nodes."""
        return self._united([component.quadrature(nodes) for _, component in self._present])

    def points_for(self, tilt: float) -> Particles:
        return self._united([component.points_for(tilt) for _, component in self._present])

    def _united(self, parts: Sequence[Particles]) -> Particles:
        from vlasov.measures.particles import Particles

        weights = [w * part.weights for (w, _), part in zip(self._present, parts, strict=True)]
        return Particles(np.concatenate([part.points for part in parts]), np.concatenate(weights))

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        masses = np.zeros([axis.size - 1 for axis in axes])
        for c, (weight, component) in enumerate(zip(self.weights, self.components, strict=True)):
            if weight > 0:
                try:
                    masses += weight / component.mass * component.cell_masses(axes)
                except InputError as mistake:
                    raise mistake.inside(f"components[{c}]") from None
        return masses


def _around(boxes: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The smallest box that holds all of them."""
    return np.min([lower for lower, _ in boxes], axis=0), np.max([upper for _, upper in boxes], axis=0)


class Mixed(NamedTuple):
    """sum_c w_c mu_c of what can be tilted, with weights that need not sum to one; each a number, or one per tilt."""

    parts: Sequence[tuple[float | Array, Tiltable]]

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """Z = sum_c w_c Z_c: the tilted mixture is the mixture of the tilted components with weights w_c Z_c / Z."""
        weights, parts = zip(
            *((w, part.tilted(xi, request, workspace=workspace)) for w, part in self.parts), strict=True
        )
        return united(weights, parts)


def united(weights: Sequence[float | Array] | Array, parts: Sequence[Tilted]) -> Tilted:
    """The mixture sum_c w_c mu_c of measures that are tilted already."""
    with np.errstate(divide="ignore"):
        log_masses = np.array([np.log(w) + part.log_mass for w, part in zip(weights, parts, strict=True)])
    largest = log_masses.max(axis=0)
    shares = np.exp(log_masses - largest)
    total = shares.sum(axis=0)
    shares /= total
    log_mass = largest + np.log(total)
    means = np.array([part.mean for part in parts])
    mean = np.einsum("cm,cmk->mk", shares, means)
    away = means - mean
    spread = None
    covariances = [part.covariance for part in parts if part.covariance is not None]
    if len(covariances) == len(parts):
        within = np.array(covariances)
        spread = np.einsum("cm,cmkl->mkl", shares, within) + np.einsum("cm,cmk,cml->mkl", shares, away, away)
    # The shares are as wrong as the exponents: errors e_c of these move the mean by sum_c s_c e_c (m_c - m).
    counting = np.abs(log_masses[np.isfinite(log_masses)])
    rounding = 4 * float(np.finfo(float).eps * (1 + counting).max(initial=0.0))
    mass_error = rounding + max(part.mass_error for part in parts)
    distances = np.sqrt(np.einsum("cmk,cmk->cm", away, away))
    lever = float(np.einsum("cm,cm->m", shares, distances).max(initial=0.0))
    return Tilted(
        log_mass=log_mass,
        mean=mean,
        covariance=spread,
        method=" + ".join(sorted({method for part in parts for method in part.method.split(" + ")})),
        error_bound=max(part.error_bound for part in parts) + mass_error * lever,
        mass_error=mass_error,
    )


_LOWEST = np.iinfo(np.int64).min


def _rank(x: Array) -> NDArray[np.int64]:
    """Integers in the order of the floating-point numbers; neighbours differ by one."""
    bits = np.ascontiguousarray(x).view(np.int64)
    return np.where(bits >= 0, bits, _LOWEST - bits)


def _unrank(rank: NDArray[np.int64]) -> Array:
    return np.where(rank >= 0, rank, _LOWEST - rank).view(np.float64)
