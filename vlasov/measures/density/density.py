"""Densities on tensor grids in an affine frame: cell averages, as the finite-volume solver holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import How, Measure, Tiltable
from vlasov.measures.density.grid import TensorGrid, checked_frame, extreme_corners, overlaps, rosenblatt, tensor_edges
from vlasov.measures.density.moments import CellMoments
from vlasov.measures.density.tilts import Cells, check_evaluable
from vlasov.summing import Kernel, KernelSums
from vlasov.tilting import Field, Head, Request, Tilted

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.interpolate import NdBSpline

    from vlasov.measures.particles import Particles


@dataclass(frozen=True, eq=False)
class Density(Measure, kind="density"):
    r"""Cell averages of a density rho on a tensor grid, which may lie in an affine frame.

        x = origin + matrix z,   rho_x(x) = rho(z) / |det matrix|,   rho_i = (1 / |cell_i|) int_{cell_i} rho(z) dz

    The total mass need not be one (a finite-volume run loses a little); mean, covariance, tilts and samples are those
    of rho / mass. A ``Problem`` divides rho by a mass that is off by more than 1 %, with a warning. ``edges``,
    ``widths``, ``centers`` and ``volumes`` are those of cells in z; all else speaks of x.

    How averages are read depends on the axis:

    - Uniform axis: averages of a smooth density. Sums over cell centres are spectrally accurate integrals of rho
      smoothed by a cell; taking the smoothing back gives Sheppard's correction, variance = sum rho_i z_i^2 - h^2 / 12.
      It is left out, on all axes, where the covariance would not stay positive semi-definite, that is, where the grid
      does not resolve the density: cells then count as Diracs at their centres.
    - Non-uniform axis: a piecewise constant density, variance = sum rho_i (z_i^2 + h_i^2 / 12).

    A velocity over a density has a bound that speaks of sums: how far they are off as sums over what the cells hold.
    What cells do not resolve of a measure (one cell or more per deviation; jumps) no bound speaks of: an attention sees
    the density that the averages have. The errors that a finite-volume run tells of itself hold both.

    ``on_grid``, ``cumulative`` and samples take rho constant in each cell on every axis; so does ``density`` where the
    averages are not those of a smooth density.

    Parameters
    ----------
    values
        rho_i >= 0, one axis for each of the d dimensions.
    edges
        For each axis, strictly increasing, one more than there are cells; for d = 1, a flat list will do.
    origin, matrix
        The frame, shapes (d,) and (d, d), invertible; zero and the identity if not given, and then z = x.

    Examples
    --------
    Cells of unequal width with one density are the uniform measure, here on [0, 6], whose variance is 3:

    >>> rho = vl.Density([1 / 6, 1 / 6, 1 / 6], edges=[0.0, 1.0, 3.0, 6.0])
    >>> rho.mean.round(12), rho.covariance.round(12)
    (array([3.]), array([[3.]]))

    Cells of one width hold averages of something smooth. Its variance comes out as it is, not larger by h^2 / 12:

    >>> vl.Gaussian(0.0, 1.0).on_grid([np.linspace(-8.0, 8.0, 33)]).covariance.round(9)
    array([[1.]])
    """

    values: Array
    edges: Sequence[Array]
    _: KW_ONLY
    origin: Array = None  # type: ignore[assignment]  # None is replaced by zero
    matrix: Array = None  # type: ignore[assignment]  # None is replaced by the identity

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(
            self,
            values: ArrayLike,
            edges: Sequence[ArrayLike],
            *,
            origin: ArrayLike | None = None,
            matrix: ArrayLike | None = None,
        ) -> None: ...

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
        origin, matrix = checked_frame(self.origin, self.matrix, values.ndim)
        self._set(values=values, edges=edges, origin=origin, matrix=matrix)

    def moved(self, values: Array, origin: Array, matrix: Array) -> Self:
        """Other averages on the same grid in another frame; unchecked, for inner loops."""
        return type(self).trusted(values=values, edges=self.edges, origin=origin, matrix=matrix, grid=self.grid)

    @property
    def dimension(self) -> int:
        return self.values.ndim

    @cached_property
    def grid(self) -> TensorGrid:
        """The cells, shared by all densities that were ``moved`` from one."""
        return TensorGrid(self.edges)

    @property
    def widths(self) -> tuple[Array, ...]:
        """h, one array for each axis."""
        return self.grid.widths

    @property
    def centers(self) -> tuple[Array, ...]:
        """Middles of the cells in z, one array for each axis."""
        return self.grid.centers

    @property
    def volumes(self) -> Array:
        """Of the cells in z, with the shape of ``values``."""
        return self.grid.volumes

    @property
    def uniform(self) -> tuple[bool, ...]:
        """Whether all cells along an axis are equally wide, for each axis."""
        return self.grid.uniform

    # Moments

    @cached_property
    def _moments(self) -> CellMoments:
        return CellMoments(self.values, self.grid)

    @property
    def covariance_of_steps(self) -> Array:
        """The covariance of the piecewise constant density, which cells of another grid are averages of."""
        return self.matrix @ self._moments.covariance_of_steps @ self.matrix.T

    @property
    def mass(self) -> float:
        """The integral of rho."""
        return self._moments.mass

    @cached_property
    def mean(self) -> Array:
        return self.origin + self.matrix @ self._moments.mean

    @cached_property
    def covariance(self) -> Array:
        """Of the centres, with the corrections that the class describes."""
        covariance = self.matrix @ self._moments.covariance @ self.matrix.T
        return covariance / 2 + covariance.T / 2

    @property
    def smoothing(self) -> Array:
        """Widths of the cells that smooth the density, zero along axes without Sheppard's correction; shape (d,)."""
        return self._moments.smoothing

    @cached_property
    def support_radius(self) -> float:
        """The largest |x| in the cells that carry mass."""
        return float(np.sqrt(np.square(self.carrying_corners).sum(axis=1).max()))

    @property
    def support_box(self) -> tuple[Array, Array]:
        return self.carrying_corners.min(axis=0), self.carrying_corners.max(axis=0)

    @cached_property
    def carrying_corners(self) -> Array:
        """Points x, shape (n, d), whose convex hull is that of the cells that carry mass."""
        return self._from_frame(extreme_corners(self.values, self.edges))

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Density | None:
        """Another frame."""
        a, b = self._affine(matrix, shift)
        try:
            return Density(self.values, self.edges, origin=a @ self.origin + b, matrix=a @ self.matrix)
        except InputError:
            return None  # flattened: no density

    def _from_frame(self, z: Array) -> Array:
        return self.origin + z @ self.matrix.T

    def density(self, x: ArrayLike) -> Array:
        """That of the smooth density behind the averages, of order 5, or the average over the cell that holds x.

        0 outside the grid. Jumps stay where they are.
        """
        points = np.asarray(np.linalg.solve(self.matrix, (self.at(x) - self.origin).T).T, dtype=np.float64)
        inside = np.logical_and.reduce([(a[0] <= z) & (z <= a[-1]) for a, z in zip(self.edges, points.T, strict=True)])
        found = np.zeros(len(points))
        found[inside] = self._steps(points[inside]) if self._spline is None else self._spline(points[inside])
        return np.maximum(found, 0.0) / abs(np.linalg.det(self.matrix))

    def _steps(self, points: Array) -> Array:
        pairs = zip(self.edges, points.T, strict=True)
        return self.values[tuple((np.searchsorted(a, z, side="right") - 1).clip(0, a.size - 2) for a, z in pairs)]

    @cached_property
    def _spline(self) -> NdBSpline | None:
        """Through the averages; None where they jump."""
        from vlasov.measures.density import regrid

        smooth = all(self.uniform) and self.smoothing.any() and regrid.looks_drawable(self.values, self.edges)
        return regrid.smooth_density(self.values, self.edges) if smooth else None

    # Tilts

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """Sums over the cells' centres: see ``vlasov.measures.density.tilts``."""
        return Cells(self, None).tilted(xi, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        """Point values of the density times e^{-<y, P y>}, as they are needed."""
        return self if quadratic is None else Cells(self, quadratic)

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Unpack[How]) -> Field:
        return Cells(self, head.P).average(x, head, request, **how)

    def _summed(self, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
        """Sums over the cells' centres, with point values of the density: spectrally accurate where k is smooth."""
        from vlasov.measures.density.kernel_sums import over_cells

        return over_cells(self, xi, kernel, request, workspace)

    def points_for(self, tilt: float) -> Particles:
        """Centres of the cells that carry mass, with point values for weights: sums are spectrally accurate."""
        from vlasov.measures.density.point_values import at_centers
        from vlasov.measures.particles import Particles

        check_evaluable(self)
        cells, points = self.carrying
        return Particles(self._from_frame(points), at_centers(self, tails=True)[cells])

    @cached_property
    def point_values(self) -> Array:
        """rho at the centres of the cells; the averages where the grid does not resolve the density."""
        if not self.smoothing.any():
            return self.values
        from vlasov.measures.density.point_values import point_values

        return point_values(self.values)

    @cached_property
    def carrying(self) -> tuple[tuple[NDArray[np.int64], ...], Array]:
        """Indices and centres z, shape (n, d), of the cells that carry mass."""
        cells = np.nonzero(self.values)
        return cells, np.stack([center[index] for center, index in zip(self.centers, cells, strict=True)], axis=1)

    # Samples and cells

    def from_cube(self, u: Array) -> Array:
        """Axis by axis of the frame, the inverse of the conditional distributions (Rosenblatt)."""
        backwards = self.dimension == 1 and self.matrix[0, 0] < 0  # on the line, quantiles increase
        return self._from_frame(rosenblatt(self._masses, self.grid, 1 - u if backwards else u))

    @property
    def _masses(self) -> Array:
        return self.values * self.volumes

    def cumulative(self, x: Array) -> Array:
        masses = np.concatenate([[0.0], np.cumsum(self._masses)])
        below = np.interp((x - self.origin) / self.matrix[0, 0], self.edges[0], masses / masses[-1])
        return below if self.matrix[0, 0] > 0 else 1 - below

    def quadrature(self, nodes: int) -> Particles:
        """The centres of the cells that carry mass, whatever ``nodes``: averages know no finer."""
        from vlasov.measures.particles import Particles

        cells, points = self.carrying
        return Particles(self._from_frame(points), self._masses[cells])

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Those of the piecewise constant density: overlaps of cells, axis by axis."""
        forward, cells = self._in_frame(axes)
        return overlaps(self.values, self.edges, cells)[forward]

    @cached_property
    def looks_smooth(self) -> bool:
        """Whether the averages are those of a density that a smooth curve goes through and that fades at the edges."""
        from vlasov.measures.density.regrid import looks_smooth

        return all(self.uniform) and bool(self.smoothing.any()) and looks_smooth(self.values, self.edges)

    def smooth_cell_masses(self, axes: Sequence[Array]) -> Array:
        """``cell_masses`` of the smooth density behind the averages, of order 5 at least."""
        from vlasov.measures.density.regrid import smooth_masses

        forward, cells = self._in_frame(axes)
        return np.maximum(smooth_masses(self.values, self.edges, cells)[forward], 0.0)

    def _in_frame(self, axes: Sequence[Array]) -> tuple[tuple[slice, ...], list[Array]]:
        """The edges of other cells in coordinates z, increasing; and how to put their masses back in order."""
        scales = np.diag(self.matrix)
        if not np.array_equal(self.matrix, np.diag(scales)):
            raise InputError(
                "is not diagonal, so that cells of two grids overlap askew; use density.sample(n).on_grid(edges)",
                "matrix",
            )
        forward = tuple(slice(None, None, 1 if scale > 0 else -1) for scale in scales)
        mapped = [(a - o) / s for a, o, s in zip(axes, self.origin, scales, strict=True)]
        return forward, [axis[along] for axis, along in zip(mapped, forward, strict=True)]
