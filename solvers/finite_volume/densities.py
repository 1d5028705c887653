"""Densities in a frame whose velocities know what the grid cannot hold: Gaussian tails, or a compact support.

Velocities are relative to the frame's origin (see ``Centered``): V (m - c) instead of V m.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from vlasov import tilting
from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.errors import InputError
from vlasov.measures import Density
from vlasov.measures.density import Centered
from vlasov.solvers.finite_volume import tail_kernels as kernels
from vlasov.solvers.finite_volume.hull import Hull
from vlasov.tilting import Field

T = TypeVar("T")


class Defect(NamedTuple):
    """What cell averages of rough data miss of the mean and the covariance, in the frame."""

    mean: Array
    covariance: Array


class Corrected(Density):
    """A density whose moments are those of the measure it stands for, known when the run began.

    Where the frame carries all of the motion, as under linear attention, they stay exact.
    """

    defect: Defect | None = None

    def corrected(self, defect: Defect) -> Self:
        """The same with a defect; in place, for a density that was just ``moved``."""
        object.__setattr__(self, "defect", defect)
        return self

    @cached_property
    def mean(self) -> Array:
        found = super().mean
        return found if self.defect is None else found + self.matrix @ self.defect.mean

    @cached_property
    def covariance(self) -> Array:
        found = super().covariance
        return found if self.defect is None else found + self.matrix @ self.defect.covariance @ self.matrix.T


_FINEST, _FINE, _COARSE = 1e-13, 1e-12, (1e-11, 1e-10)  # tolerances, relative to the grid's half width
# Exponents on the grid, below which velocities are next to affine: what counts is the error of their slope.
_WEAK = 10.0
_FEW_PAIRS = 3e6  # of cells and targets, where all pairs are as fast
# Cells for which all pairs take some ten milliseconds, with ten times less rounding error than sums on a lattice:
# where the covariance grows, so do the errors made before.
_SMALL_GRID = 10_000


class Smooth(Corrected, Centered):
    """A smooth density on its grid; ``absolute``: velocities are V m, as attentions need that are not normalised."""

    absolute: bool = False

    def as_absolute(self, absolute: bool) -> Self:
        """The same with velocities of this kind; in place, for a density that was just ``moved``."""
        object.__setattr__(self, "absolute", absolute)
        return self

    def attend(self, x: Array, matrix: Array, values: Array, *, quadratic: Array | None = None, **how: Any) -> Field:
        evaluate = super().attend
        half = max(float(axis[-1] - axis[0]) / 2 for axis in self.edges)
        weak = float(np.linalg.norm(self.matrix.T @ matrix @ self.matrix, 2)) * half**2 < _WEAK
        field = self._best(len(x), lambda best: evaluate(x, matrix, values, quadratic=quadratic, **how | best), weak)
        if self.absolute:
            np.add(field.values, values @ self.origin, out=field.values)
        return field

    def _best(self, targets: int, evaluate: Callable[[dict[str, Any]], T], weak: bool = False) -> T:
        """The most accurate evaluation that is fast: for many cells, at a cost that does not grow with their square."""
        fine = (_FINEST, _FINE) if weak else (_FINE,)
        if self.values.size * targets <= _FEW_PAIRS:
            return evaluate({"tolerance": fine[0]})
        small = self.values.size <= _SMALL_GRID
        ladder = [(tolerance, "lattice") for tolerance in fine]
        ladder += [(_FINE, "all-pairs")] if small else [(tolerance, "lattice") for tolerance in _COARSE]
        for tolerance, method in ladder:
            with suppress(InputError):  # rounding errors come too close to the tolerance
                return evaluate({"tolerance": tolerance, "method": method})
        return evaluate({"tolerance": _COARSE[-1]})


class GaussianTails(Smooth):
    """Beyond tilts of ``reach`` along each axis, where sums miss the tails, log Z is continued quadratically.

        m(xi) = m(xi_0) + C(xi_0) (xi - xi_0),   xi_0 = xi clipped to |xi_k| <= reach_k

    On a Gaussian this is exact: its tilted covariance does not depend on xi.
    """

    reach: Array

    def reaching(self, reach: Array) -> Self:
        """The same with another reach; in place, for a density that was just ``moved``."""
        object.__setattr__(self, "reach", reach)
        return self

    def attend(self, x: Array, matrix: Array, values: Array, *, quadratic: Array | None = None, **how: Any) -> Field:
        tilts = map_rows(x, self.matrix.T @ matrix, threads=1)
        order = np.empty(len(x), np.int64)
        count = kernels.sort_out(tilts, self.reach, order)
        if quadratic is not None or count == len(x):
            return super().attend(x, matrix, values, quadratic=quadratic, **how)
        within, beyond = order[:count], order[count:]
        out = how.pop("out", None)
        out = np.empty((len(x), len(values))) if out is None else out
        field = super().attend(x.take(within, axis=0), matrix, values, **how)
        kernels.scatter(field.values, within, out)
        clipped = np.empty((beyond.size, self.dimension))
        kernels.clip(tilts, beyond, self.reach, clipped)
        inverse = np.asarray(np.linalg.inv(self.matrix.T), dtype=np.float64)
        inner = map_rows(clipped, inverse, threads=1)
        tilted = self._best(len(inner), lambda best: self.tilted(inner, covariance=True, **best))
        assert tilted.covariance is not None
        base = np.zeros(self.dimension) if self.absolute else self.origin
        kernels.continue_means(tilts, beyond, clipped, inverse, tilted.mean, tilted.covariance, base, values, out)
        return Field(out, field.method, max(field.error_bound, tilted.error_bound))


class Hulled(Centered):
    """Sums over cells whose centres are moved into the convex hull of the true support.

    Mass that numerical diffusion has carried out of the hull would be weighted by e^{<xi, y>} too large.
    """

    hull: Hull

    def within(self, hull: Hull) -> Self:
        """The same with a hull; in place, for a density that was just ``moved``."""
        object.__setattr__(self, "hull", hull)
        return self

    def attend(
        self,
        x: Array,
        matrix: Array,
        values: Array,
        *,
        quadratic: Array | None = None,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
    ) -> Field:
        if quadratic is not None:
            return super().attend(x, matrix, values, quadratic=quadratic, tolerance=tolerance, method=method, out=out)
        carrying = np.flatnonzero(self.values.ravel() > 0)
        with np.errstate(divide="ignore"):
            logs = np.log(self.values.ravel()[carrying])
        head = tilting.Head(self.matrix.T @ matrix, values @ self.matrix)
        return tilting.attend(
            self.hull.clip(carrying), logs, x, [head], tilting.Request(tolerance, method),
            workspace=self._workspace, out=out,
        )  # fmt: skip
