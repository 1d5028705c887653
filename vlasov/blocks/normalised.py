"""Measures whose tokens LayerNorm has put onto an ellipsoid: what a post-norm problem begins with."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from vlasov.blocks.layer_norm import LayerNorm
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Measure, Particles, Sequence
from vlasov.measures.base import Cube

_SEEN = 2**16  # quasi-random points by which moments are known, to a few 1e-5


@dataclass(frozen=True, eq=False)
class Normalised(Measure):
    """LN#mu at time zero, for a measure mu that is no cloud of particles.

    Samples and nodes are those of mu, put onto the ellipsoid. Mean and covariance are those of 65,536 points.
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

    @cached_property
    def _seen(self) -> Particles:
        return self.measure.sample(_SEEN, "sobol", seed=1)

    @property
    def mean(self) -> Array:
        return self._cloud.mean

    @property
    def covariance(self) -> Array:
        return self._cloud.covariance

    @cached_property
    def _cloud(self) -> Particles:
        return on_ellipsoid(self._seen, self.layer_norm)

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
        return on_ellipsoid(self.measure.quadrature(nodes), self.layer_norm)

    def _drawn(self, n: int, cube: Cube) -> Particles:
        return on_ellipsoid(self.measure._drawn(n, cube), self.layer_norm)


def on_ellipsoid(cloud: Particles, layer_norm: LayerNorm) -> Particles:
    """The same weights and places at LN(x_i)."""
    points = layer_norm.of(cloud.points, field="initial.points")
    points.setflags(write=False)
    return cloud.moved(points)


def normalised(measure: Measure, layer_norm: LayerNorm) -> Measure:
    """LN#mu: particles as such, laws along a sequence one by one."""
    if isinstance(measure, Particles):
        return on_ellipsoid(measure, layer_norm)
    if isinstance(measure, Sequence):
        laws: Several[Measure] = [normalised(law, layer_norm) for law in measure.measures]
        return Sequence(laws, measure.edges)
    return Normalised(measure, layer_norm)
