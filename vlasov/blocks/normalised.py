"""Measures whose tokens LayerNorm has put onto an ellipsoid: what a post-norm problem begins with.

LN#mu has the density int_0^inf r^{d-1} mu(r u) dr on the unit sphere, in directions u = x / |x|
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from vlasov.blocks.layer_norm import LayerNorm
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Measure, Mixture, Particles, Sequence
from vlasov.measures.base import Cube
from vlasov.measures.quadrature import Rule, legendre, sphere

_SEEN = 2**16  # quasi-random points by which moments are known, to a few 1e-5
_MANY = {1: 2, 2: 4096, 3: 8192}  # directions, by which moments are known
_DEVIATIONS = 9.0  # where Gaussians are cut off
_PER_DEVIATION, _FINEST = 4, 400  # Gauss nodes along rays for each deviation of the narrowest part; most deviations
_ON_IT = 1e-9  # relative distance to the ellipsoid
_FOUND = 1e-6  # of the mass may integrals miss


@dataclass(frozen=True, eq=False)
class Normalised(Measure):
    """LN#mu at time zero, for a measure mu that is no cloud of particles.

    Samples are those of mu, put onto the ellipsoid. Nodes are directions, evenly around for d <= 3, where mu has a
    smooth density; else Gauss nodes of mu, which do not see how LayerNorm jumps at the origin. Mean and covariance are
    those of such directions, or of 65,536 points.
    """

    measure: Measure
    layer_norm: LayerNorm

    @property
    def kind(self) -> str:  # type: ignore[override]
        """That of mu."""
        return self.measure.kind

    @property
    def dimension(self) -> int:
        return self.measure.dimension

    @property
    def cube_dimension(self) -> int:
        return self.measure.cube_dimension

    @property
    def mean(self) -> Array:
        return self._cloud.mean

    @property
    def covariance(self) -> Array:
        return self._cloud.covariance

    @cached_property
    def _cloud(self) -> Particles:
        d = self.dimension
        found = self._by_directions(_MANY[d]) if d in _MANY else None
        return found or on_ellipsoid(self.measure.sample(_SEEN, "sobol", seed=1), self.layer_norm)

    @property
    def support_radius(self) -> float:
        return float(np.abs(self.layer_norm.scale(self.dimension)).max())

    @property
    def support_box(self) -> tuple[Array, Array]:
        reach = np.abs(self.layer_norm.scale(self.dimension))
        return -reach, reach

    def density(self, x: ArrayLike) -> Array:
        raise InputError("has no density: LayerNorm puts all tokens onto an ellipsoid", self.kind)

    def from_cube(self, u: Array) -> Array:
        return self.layer_norm.of(self.measure.from_cube(u), field="initial")

    def cumulative(self, x: Array) -> Array:
        raise InputError("has no distribution function under LayerNorm; use measure.sample(n)", self.kind)

    def quadrature(self, nodes: int) -> Particles:
        """So many to the power of d."""
        found = self._by_directions(nodes**self.dimension) if self.dimension in _MANY else None
        return found or on_ellipsoid(self.measure.quadrature(nodes), self.layer_norm)

    @cached_property
    def by_directions(self) -> bool:
        """Whether nodes are directions."""
        return self.dimension in _MANY and self._by_directions(_MANY[self.dimension]) is not None

    def _by_directions(self, count: int) -> Particles | None:
        """About so many; None where integrals along rays do not find the mass, because the density jumps or is none."""
        directions, areas = _directions(self.dimension, count)
        try:
            lower, upper = self.measure.box(_DEVIATIONS)
            narrowest = math.sqrt(max(0.0, *_variances(self.measure)))
        except InputError:
            return None
        reach = float(np.linalg.norm(np.maximum(np.abs(lower), np.abs(upper))))
        if not 0.0 < reach < _FINEST * narrowest:
            return None
        r, weights = legendre(_PER_DEVIATION * math.ceil(reach / narrowest))
        r, weights = reach * (r + 1) / 2, reach * weights
        try:
            values = self.measure.density((r[:, None, None] * directions).reshape(-1, self.dimension))
        except InputError:
            return None
        masses = areas * ((weights * r ** (self.dimension - 1)) @ values.reshape(r.size, -1))
        if abs(float(masses.sum()) - 1) > _FOUND:
            return None
        carrying = masses > 0
        return Particles(directions[carrying] * self.layer_norm.scale(self.dimension), masses[carrying])

    def _drawn(self, n: int, cube: Cube) -> Particles:
        return on_ellipsoid(self.measure._drawn(n, cube), self.layer_norm)


def _variances(measure: Measure) -> list[float]:
    """The least of each part."""
    parts = list(measure.components) if isinstance(measure, Mixture) else [measure]
    return [min(float(np.linalg.eigvalsh(part.covariance)[0]) for part in parts)]


def _directions(dimension: int, count: int) -> Rule:
    """About so many, with the areas of the unit sphere that they stand for."""
    per_axis = {1: 1, 2: count // 2, 3: round(math.sqrt(count / 2))}[dimension]
    points, weights = sphere(dimension, max(1, per_axis))
    return points, weights * (2.0, 2 * math.pi, 4 * math.pi)[dimension - 1]


def on_ellipsoid(cloud: Particles, layer_norm: LayerNorm) -> Particles:
    """The same weights and places at LN(x_i)."""
    points = layer_norm.of(cloud.points, field="initial.points")
    points.setflags(write=False)
    return cloud.moved(points)


def normalised(measure: Measure, layer_norm: LayerNorm) -> Measure:
    """LN#mu: particles as such, laws along a sequence one by one.

    Particles that are on the ellipsoid, as those of a run, are left there: LN would move them where entries of beta are
    not one positive number.
    """
    if isinstance(measure, Particles):
        lengths = np.linalg.norm(measure.points / layer_norm.scale(measure.dimension), axis=1)
        return measure if np.abs(lengths - 1).max() <= _ON_IT else on_ellipsoid(measure, layer_norm)
    if isinstance(measure, Sequence):
        laws: Several[Measure] = [normalised(law, layer_norm) for law in measure.measures]
        return Sequence(laws, measure.edges)
    return Normalised(measure, layer_norm)
