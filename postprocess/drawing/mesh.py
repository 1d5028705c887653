"""Cell averages of a moving frame as a mesh in physical space, and their marginals on a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Density, Mixture
from vlasov.postprocess.averages import averages, box
from vlasov.solvers.dataset import cell_edges

_ON_AXIS = 1e-12  # of the matrix: smaller shears of the frame are rounding
_JOINED = {1: 4096, 2: 320}  # cells along each axis, where several parts are drawn as one density
_PLATEAU = 0.2  # a level within 3 % of which lies more mass than this is a plateau's, where contours are noise


@dataclass(frozen=True)
class Mesh:
    """A density in one or two physical coordinates, constant in the cells of a sheared grid.

    x = origin + matrix w,    w on the tensor grid of the edges, values: the physical density in each cell
    """

    values: Array
    edges: tuple[Array, ...]
    origin: Array
    matrix: Array
    framed: bool = True  # whether the grid is that of a frame, whose edge may be drawn

    def _placed(self, axes: Sequence[Array]) -> Array:
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        return self.origin + grid @ self.matrix.T

    @cached_property
    def corners(self) -> Array:
        """Shape (n + 1, m + 1, 2)."""
        return self._placed(self.edges)

    @cached_property
    def centers(self) -> Array:
        """Shape (n, m, 2)."""
        return self._placed([(axis[1:] + axis[:-1]) / 2 for axis in self.edges])

    @cached_property
    def outline(self) -> Array:
        """The corners of the whole grid, shape (4, 2)."""
        return np.concatenate([self.corners[[0, -1], 0], self.corners[[-1, 0], -1]])

    @cached_property
    def area(self) -> float:
        """Of one cell."""
        return float(np.abs(np.linalg.det(self.matrix)) * np.prod([axis[1] - axis[0] for axis in self.edges]))

    @cached_property
    def masses(self) -> Array:
        """Of the cells; a scheme's tiny negative averages count as nothing."""
        return np.maximum(self.values, 0.0) * self.area

    @cached_property
    def _ranked(self) -> tuple[Array, Array]:
        """Densities that occur, the highest first, and the share of the mass that lies where it is so high."""
        densities = np.sort(self.values[self.values > 0])[::-1]
        mass = np.cumsum(densities)
        return densities, mass / mass[-1]

    def level(self, share: float) -> float:
        """The density above which this share of the mass lies."""
        densities, reached = self._ranked
        return float(densities[min(int(np.searchsorted(reached, share)), densities.size - 1)])

    def contour_levels(self, shares: Sequence[float]) -> list[float]:
        """Increasing levels that enclose these shares of the mass, without those inside a plateau."""
        densities, reached = self._ranked
        kept = set()
        for level in map(self.level, shares):
            high, low = np.searchsorted(-densities, [-1.03 * level, -0.97 * level])
            if reached[min(low, densities.size - 1)] - reached[min(high, densities.size - 1)] < _PLATEAU:
                kept.add(level)
        return sorted(kept)

    def cropped(self, limits: Array) -> Mesh:
        """The part that shows within limits (2, 2), with a cell around it."""
        within = (self.centers >= limits[:, 0]) & (self.centers <= limits[:, 1])
        inside: NDArray[np.bool_] = within[..., 0] & within[..., 1]
        if not inside.any():
            return self
        parts = []
        for axis in range(2):
            held = np.flatnonzero(inside.any(axis=1 - axis))
            parts.append(slice(max(held[0] - 2, 0), min(held[-1] + 3, inside.shape[axis])))
        edges = tuple(axis[part.start : part.stop + 1] for axis, part in zip(self.edges, parts, strict=True))
        return Mesh(self.values[tuple(parts)], edges, self.origin, self.matrix, self.framed)


def mesh(dataset: xr.Dataset, instant: int, plane: Sequence[int], rescaling: Array | None = None) -> Mesh:
    """The density of these components at one output time, for d = 3 a marginal; of Phi^{-1} x if Phi is given."""
    state = dataset[["density", "frame_origin", "frame_matrix"]].isel(time=instant)
    if "part" not in state.dims:
        return _of_part(state, plane, rescaling)
    parts = [_of_part(state.isel(part=k), plane, rescaling) for k in range(state.sizes["part"])]
    return _joined(parts, dataset["part_weight"].values)


def _joined(parts: Sequence[Mesh], weights: Array) -> Mesh:
    """Several meshes on one grid that covers them."""
    densities = [
        Density(np.maximum(m.values, 0.0) * np.abs(np.linalg.det(m.matrix)), m.edges, origin=m.origin, matrix=m.matrix)
        for m in parts
    ]
    whole = Mixture(densities, weights)
    d = whole.dimension
    edges = [np.linspace(a, b, _JOINED[d] + 1) for a, b in zip(*box(whole), strict=True)]
    return Mesh(averages(whole, edges), tuple(edges), np.zeros(d), np.eye(d), framed=False)


def _of_part(state: xr.Dataset, plane: Sequence[int], rescaling: Array | None) -> Mesh:
    values = np.asarray(state["density"].values, dtype=np.float64)
    edges = [cell_edges(np.asarray(state[str(axis)].values, dtype=np.float64)) for axis in state["density"].dims]
    origin, matrix = (np.asarray(state[name].values, dtype=np.float64) for name in ("frame_origin", "frame_matrix"))
    if rescaling is not None:
        origin = np.asarray(np.linalg.solve(rescaling, origin), dtype=np.float64)
        matrix = np.asarray(np.linalg.solve(rescaling, matrix), dtype=np.float64)
    origin, matrix = origin[list(plane)], matrix[list(plane)]
    if values.ndim == 3:
        values, edges, matrix = _projected(values, edges, matrix)
    return Mesh(values / np.abs(np.linalg.det(matrix)), tuple(edges), origin, matrix)


def _projected(values: Array, edges: list[Array], matrix: Array) -> tuple[Array, list[Array], Array]:
    r"""The marginal of f(z), z in R^3, under x = M z with M of shape (2, 3).

        M n = 0, n_k = 1:    x = M' w,    w = z' - n' z_k,    g(w) = int f(w + n' z_k, z_k) dz_k

    where a prime leaves out component k. Slices z_k = const are shifted by n' z_k and summed: exact where the frame's
    axes are aligned with the plane (n' = 0); else a shift by a fraction of a cell is divided between the two nearest
    cells along each axis, which keeps mass and mean and smooths by less than a cell.
    """
    from scipy import ndimage

    null = np.cross(matrix[0], matrix[1])
    widths = np.array([axis[1] - axis[0] for axis in edges])
    k = int(np.argmax(np.abs(null) / widths))
    others = [axis for axis in range(3) if axis != k]
    null = np.where(np.abs(null) <= _ON_AXIS * np.abs(null).max(), 0.0, null) / null[k]
    heights = (edges[k][1:] + edges[k][:-1]) / 2
    shifts = -np.outer(heights, null[others] / widths[others])  # in cells, (slice, 2)
    first = np.floor(shifts.min(axis=0)).astype(int)
    room = np.floor(shifts.max(axis=0)).astype(int) - first + 1
    slices = np.pad(np.moveaxis(values, k, 0), ((0, 0), (0, room[0]), (0, room[1])))
    pairs = zip(slices, shifts - first, strict=True)
    total = sum(ndimage.shift(part, shift, order=1, mode="grid-constant") for part, shift in pairs)
    starts = [edges[axis][0] + offset * widths[axis] for axis, offset in zip(others, first, strict=True)]
    counts = zip(starts, others, slices.shape[1:], strict=True)
    grown = [start + widths[axis] * np.arange(count + 1) for start, axis, count in counts]
    return total * widths[k], grown, matrix[:, others]
