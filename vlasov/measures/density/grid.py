"""Tensor grids and their frames: checked edges, geometry of cells, and what is cut, bounded or inverted over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError

_UNIFORM = 1e-9  # widths that differ by less than this fraction are equal: linspace and arange round
_SINGULAR = 1e-14  # a frame whose least singular value is below this fraction of the largest cannot be inverted


class TensorGrid:
    """Cells between ``edges``, one increasing array for each axis; shared by all densities on them."""

    def __init__(self, edges: Sequence[Array]) -> None:
        self.edges = tuple(edges)

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
        """Products of widths, one axis for each factor."""
        return outer(self.widths)

    @cached_property
    def uniform(self) -> tuple[bool, ...]:
        """Whether all cells along an axis are equally wide, for each axis."""
        return tuple(bool((np.abs(width - width.mean()) <= _UNIFORM * width.mean()).all()) for width in self.widths)

    @cached_property
    def lower(self) -> Array:
        """The lower corner, shape (d,)."""
        return np.array([axis[0] for axis in self.edges])

    @cached_property
    def steps(self) -> Array:
        """Mean widths, shape (d,): those of all cells along uniform axes."""
        return np.array([(axis[-1] - axis[0]) / (axis.size - 1) for axis in self.edges])


def tensor_edges(edges: Any, dimension: int) -> tuple[Array, ...]:
    """Checked edges of a tensor grid, one read-only array for each axis; for d = 1, a flat list will do."""
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str) or getattr(edges, "ndim", 1) == 0:
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


def checked_frame(origin: ArrayLike | None, matrix: ArrayLike | None, d: int) -> tuple[Array, Array]:
    """Origin (d,) and invertible matrix (d, d) of x = origin + matrix z; zero and the identity if not given."""
    place = np.zeros(d) if origin is None else checks.vector(origin, "origin", length=d)
    frame = np.eye(d) if matrix is None else checks.matrix(matrix, "matrix")
    if frame.shape != (d, d):
        raise InputError(f"has shape {frame.shape} where {(d, d)} is needed", "matrix")
    singular = np.linalg.svd(frame, compute_uv=False)
    if not singular[-1] > _SINGULAR * singular[0]:
        raise InputError(
            f"has the singular values {singular[0]:g} and {singular[-1]:g}; a frame must be invertible", "matrix"
        )
    return place, frame


def outer(factors: Sequence[Array]) -> Array:
    """prod_k factors[k][i_k] as an array with one axis for each factor."""
    result = np.ones(())
    for factor in factors:
        result = np.multiply.outer(result, factor)
    return result


def overlaps(values: Array, edges: Sequence[Array], cells: Sequence[Array]) -> Array:
    """Masses in other ``cells`` of the density with constant ``values`` between ``edges``, axis by axis."""
    for k, (old, new) in enumerate(zip(edges, cells, strict=True)):
        common = np.minimum(new[1:, None], old[1:]) - np.maximum(new[:-1, None], old[:-1])
        values = np.moveaxis(np.tensordot(np.maximum(common, 0.0), values, axes=(1, k)), 0, k)
    return values


def rosenblatt(masses: Array, grid: TensorGrid, u: Array) -> Array:
    """Axis by axis, the inverse of the distribution given the cells along the axes before: (n, d) -> (n, d)."""
    result = np.empty((len(u), masses.ndim))
    row = np.zeros(len(u), dtype=np.int64)  # the cells chosen so far, as one number
    for k, (axis, width) in enumerate(zip(grid.edges, grid.widths, strict=True)):
        sums = masses.sum(axis=tuple(range(k + 1, masses.ndim))).reshape(-1, width.size)
        cumulative = np.cumsum(sums, axis=1)
        target = u[:, k] * cumulative[row, -1]
        cell = _search_rows(cumulative, row, target)
        within = 1 - (cumulative[row, cell] - target) / sums[row, cell]
        result[:, k] = axis[cell] + width[cell] * np.clip(within, 0.0, 1.0)
        row = row * width.size + cell
    return result


def extreme_corners(values: Array, edges: Sequence[Array]) -> Array:
    """Corners (n, d) whose convex hull holds all cells that carry mass: along each line of cells, the outermost."""
    carrying = values > 0
    count = carrying.shape[-1]
    lines = tuple(np.argwhere(carrying.any(axis=-1)).T)
    along = carrying[lines].reshape(-1, count)
    ends = [edges[-1][along.argmax(axis=1)], edges[-1][count - along[:, ::-1].argmax(axis=1)]]
    corners = []
    for side in np.ndindex((2,) * values.ndim):
        columns = [axis[index + s] for axis, index, s in zip(edges[:-1], lines, side[:-1], strict=True)]
        corners.append(np.stack([*columns, ends[side[-1]]], axis=1))
    return np.concatenate(corners)


def _search_rows(rows: Array, row: NDArray[np.int64], target: Array) -> NDArray[np.int64]:
    """For each target the first column of its row that reaches it, by bisection; rows do not decrease."""
    low, high = np.zeros_like(row), np.full_like(row, rows.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        reached = rows[row, middle] >= target
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low
