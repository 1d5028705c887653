"""Densities on tensor grids: cell averages, as the finite-volume solver holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.base import Measure
from vlasov.measures.uniform import tilted_interval
from vlasov.tilting import Field, Tilted, Workspace

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles
    from vlasov.tilting.grid import Sums

_UNIFORM = 1e-9  # widths that differ by less than this fraction are equal: linspace and arange round


@dataclass(frozen=True, eq=False)
class Density(Measure, kind="density"):
    r"""Cell averages of a density rho on a tensor grid.

        rho_i = (1 / |cell_i|) int_{cell_i} rho(y) dy

    The total mass need not be one (a finite-volume run loses a little); mean, covariance, tilts and samples are those
    of rho / mass.

    How averages are read depends on the axis:

    - Uniform axis: averages of a smooth density. Sums over cell centres are spectrally accurate integrals of rho
      smoothed by a cell; taking the smoothing back gives Sheppard's correction, variance = sum rho_i y_i^2 - h^2 / 12.
      It is left out, on all axes, where the covariance would not stay positive semi-definite, that is, where the grid
      does not resolve the density: cells then count as Diracs at their centres.
    - Non-uniform axis: a piecewise constant density, variance = sum rho_i (y_i^2 + h_i^2 / 12).

    ``density``, ``on_grid``, ``cumulative`` and samples take rho constant in each cell on every axis.

    Parameters
    ----------
    values
        rho_i >= 0, one axis for each of the d dimensions.
    edges
        For each axis, strictly increasing, one more than there are cells; for d = 1, a flat list will do.
    """

    values: Array
    edges: Sequence[Array]

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, values: ArrayLike, edges: Sequence[ArrayLike]) -> None: ...

    def __post_init__(self) -> None:
        values = checks.array(self.values, "values")
        edges = tensor_edges(self.edges, max(1, values.ndim))
        cells = tuple(axis.size - 1 for axis in edges)
        if values.shape != cells:
            raise InputError(f"has shape {values.shape} where the edges make {cells} cells", "values")
        if (values < 0).any():
            worst = np.unravel_index(int(np.argmin(values)), cells)
            where = [int(i) for i in worst]
            raise InputError(f"entry {where} is {values[worst]:g}; a density must not be negative", "values")
        if not values.any():
            raise InputError("are all zero; at least one must be positive", "values")
        self._set(values=values, edges=edges)

    @property
    def dimension(self) -> int:
        return self.values.ndim

    @cached_property
    def widths(self) -> tuple[Array, ...]:
        """h, one array for each axis."""
        return tuple(np.diff(axis) for axis in self.edges)

    @cached_property
    def centers(self) -> tuple[Array, ...]:
        """Middles of the cells, one array for each axis."""
        return tuple(axis[:-1] + width / 2 for axis, width in zip(self.edges, self.widths, strict=True))

    @cached_property
    def volumes(self) -> Array:
        """Of the cells, with the shape of ``values``."""
        return outer(self.widths)

    @cached_property
    def mass(self) -> float:
        """The integral of rho."""
        return float(self._masses.sum())

    @cached_property
    def _masses(self) -> Array:
        return self.values * self.volumes

    @cached_property
    def uniform(self) -> tuple[bool, ...]:
        """Whether all cells along an axis are equally wide, for each axis."""
        return tuple(bool((np.abs(width - width.mean()) <= _UNIFORM * width.mean()).all()) for width in self.widths)

    def _marginal(self, *axes: int) -> Array:
        """Masses summed over all other axes, relative to the total mass."""
        others = tuple(k for k in range(self.dimension) if k not in axes)
        return self._masses.sum(axis=others) / self.mass

    @cached_property
    def mean(self) -> Array:
        return np.array([self._marginal(k) @ center for k, center in enumerate(self.centers)])

    @cached_property
    def covariance(self) -> Array:
        """Of the centres, with the corrections that the class describes."""
        inside_cells = np.array(
            [
                0.0 if uniform else float(self._marginal(k) @ width**2)
                for k, (uniform, width) in enumerate(zip(self.uniform, self.widths, strict=True))
            ]
        )
        return self._covariance_of_centers + np.diag((inside_cells - self._smoothing**2) / 12)

    @cached_property
    def _covariance_of_centers(self) -> Array:
        away = [center - mean for center, mean in zip(self.centers, self.mean, strict=True)]
        result = np.empty((self.dimension, self.dimension))
        for k in range(self.dimension):
            result[k, k] = self._marginal(k) @ away[k] ** 2
            for l in range(k):
                result[k, l] = result[l, k] = away[l] @ self._marginal(l, k) @ away[k]
        return result

    @cached_property
    def _smoothing(self) -> Array:
        """Widths of the cells that smooth the density, zero along axes without Sheppard's correction; shape (d,)."""
        pairs = zip(self.uniform, self.widths, strict=True)
        widths = np.array([width.mean() if uniform else 0.0 for uniform, width in pairs])
        corrected = self._covariance_of_centers - np.diag(widths**2 / 12)
        return widths if np.linalg.eigvalsh(corrected)[0] >= 0 else np.zeros(self.dimension)

    @cached_property
    def support_radius(self) -> float:
        """The largest |x| in the cells that carry mass."""
        farthest = [np.maximum(np.abs(axis[:-1]), np.abs(axis[1:])) ** 2 for axis in self.edges]
        squares = sum(np.ix_(*farthest), np.zeros(()))
        return float(np.sqrt(squares[self.values > 0].max()))

    def density(self, x: ArrayLike) -> Array:
        """The value of the cell that holds x, 0 outside the grid."""
        points = self.at(x)
        inside = np.ones(len(points), dtype=bool)
        cells = []
        for axis, coordinate in zip(self.edges, points.T, strict=True):
            inside &= (axis[0] <= coordinate) & (coordinate <= axis[-1])
            cells.append(np.clip(np.searchsorted(axis, coordinate, side="right") - 1, 0, axis.size - 2))
        return np.where(inside, self.values[tuple(cells)], 0.0)

    def tilted(
        self,
        xi: Array,
        *,
        quadratic: Array | None = None,
        covariance: bool = False,
        tolerance: float = 1e-10,
        method: str = "auto",
    ) -> Tilted:
        """Sums over the cells' centres, the smoothing by a cell taken back: Z / prod_k sinhc(xi_k h_k / 2)."""
        self._check_evaluable(quadratic)
        sums = self._sums(xi, None, None, tolerance, method, log_mass=True, covariance=covariance)
        if sums is not None:
            assert sums.log_mass is not None
            return Tilted(
                sums.log_mass - math.log(self.mass), sums.mean, sums.covariance, sums.method, sums.error_bound
            )
        particles = self._particles.tilted(xi, covariance=covariance, tolerance=tolerance, method=method)
        log_cell, cell_mean, cell_variance = tilted_interval(self._smoothing / 2, xi)
        return Tilted(
            log_mass=particles.log_mass - log_cell.sum(axis=1),
            mean=particles.mean - cell_mean,
            covariance=None
            if particles.covariance is None
            else particles.covariance - cell_variance[:, :, None] * np.eye(self.dimension),
            method=particles.method,
            error_bound=particles.error_bound,
        )

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
        self._check_evaluable(quadratic)
        sums = self._sums(x, matrix, values, tolerance, method, out=out)
        if sums is None:
            return super().attend(x, matrix, values, tolerance=tolerance, method=method, out=out)
        if out is not None and sums.mean is not out:
            np.copyto(out, sums.mean)
        return Field(sums.mean, sums.method, float(np.linalg.norm(values, 2)) * sums.error_bound)

    def _check_evaluable(self, quadratic: Array | None) -> None:
        if quadratic is not None:
            raise InputError("cannot enter L2 attention as a grid density yet; use density.sample(n)", self.kind)
        if not all(self.uniform):
            axis = self.uniform.index(False)
            raise InputError(
                "is not evenly spaced but a velocity needs a uniform grid; use density.on_grid(uniform_edges)",
                f"edges[{axis}]",
            )

    def _sums(
        self, x: Array, matrix: Array | None, values: Array | None, tolerance: float, method: str, **wanted: Any
    ) -> Sums | None:
        from vlasov.tilting import grid

        cells = grid.Grid(
            masses=self._masses,
            lower=np.array([axis[0] for axis in self.edges]),
            widths=np.array([(axis[-1] - axis[0]) / (axis.size - 1) for axis in self.edges]),
            smooth=bool(self._smoothing.any()),
        )
        return grid.evaluate(
            cells, x, matrix, values, tolerance=tolerance, method=method, workspace=self._workspace, **wanted
        )

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace()

    def from_cube(self, u: Array) -> Array:
        """Axis by axis, the inverse of the distribution given the cells along the axes before (Rosenblatt)."""
        result = np.empty((len(u), self.dimension))
        row = np.zeros(len(u), dtype=np.int64)  # the cells chosen so far, as one number
        for k, (axis, width) in enumerate(zip(self.edges, self.widths, strict=True)):
            masses = self._masses.sum(axis=tuple(range(k + 1, self.dimension))).reshape(-1, width.size)
            cumulative = np.cumsum(masses, axis=1)
            target = u[:, k] * cumulative[row, -1]
            cell = _search_rows(cumulative, row, target)
            within = 1 - (cumulative[row, cell] - target) / masses[row, cell]
            result[:, k] = axis[cell] + width[cell] * np.clip(within, 0.0, 1.0)
            row = row * width.size + cell
        return result

    def cumulative(self, x: Array) -> Array:
        masses = np.concatenate([[0.0], np.cumsum(self._masses)])
        return np.interp(x, self.edges[0], masses / masses[-1])

    def quadrature(self, nodes: int) -> Particles:
        """The centres of the cells that carry mass, whatever ``nodes``: averages know no finer."""
        return self._particles

    @cached_property
    def _particles(self) -> Particles:
        from vlasov.measures.particles import Particles

        carrying = np.nonzero(self._masses)
        points = np.stack([center[cells] for center, cells in zip(self.centers, carrying, strict=True)], axis=1)
        return Particles(points, self._masses[carrying])

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Those of the piecewise constant density: overlaps of cells, axis by axis."""
        masses = self.values
        for k, (old, new) in enumerate(zip(self.edges, axes, strict=True)):
            overlaps = np.minimum(new[1:, None], old[1:]) - np.maximum(new[:-1, None], old[:-1])
            masses = np.moveaxis(np.tensordot(np.maximum(overlaps, 0.0), masses, axes=(1, k)), 0, k)
        return masses


def tensor_edges(edges: Any, dimension: int) -> tuple[Array, ...]:
    """Checked edges of a tensor grid, one read-only array for each axis; for d = 1, a flat list will do."""
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str):
        raise InputError(f"is {edges!r}; give one array of edges for each axis", "edges")
    if dimension == 1 and len(edges) > 1:
        edges = [edges]
    if len(edges) != dimension:
        raise InputError(f"has {len(edges)} axes but d = {dimension}; give one array for each axis", "edges")
    axes = tuple(checks.array(axis, f"edges[{k}]", shape=(None,)) for k, axis in enumerate(edges))
    for k, axis in enumerate(axes):
        if axis.size < 2:
            raise InputError(f"has {axis.size} entries; one cell needs two edges", f"edges[{k}]")
        steps = np.diff(axis)
        if not (steps > 0).all():
            i = int(np.argmin(steps > 0))
            raise InputError(
                f"entry {i + 1} is {axis[i + 1]:g} after {axis[i]:g}; edges must increase strictly", f"edges[{k}]"
            )
        axis.setflags(write=False)
    return axes


def outer(factors: Sequence[Array]) -> Array:
    """prod_k factors[k][i_k] as an array with one axis for each factor."""
    result = np.ones(())
    for factor in factors:
        result = np.multiply.outer(result, factor)
    return result


def _search_rows(rows: Array, row: NDArray[np.int64], target: Array) -> NDArray[np.int64]:
    """For each target the first column of its row that reaches it, by bisection; rows do not decrease."""
    low, high = np.zeros_like(row), np.full_like(row, rows.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        reached = rows[row, middle] >= target
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low
