"""Densities on uniform grids: sums over all cells, at targets anywhere, without interpolating the sources.

    Z(xi) = sum_i m_i e^{<xi, y_i>} / prod_k sinhc(xi_k h_k / 2),   m = grad log Z,   y_i centres of cells of widths h

The averages of a smooth density over all cells are point values of the same density smoothed by a cell, and sums of
these are integrals to spectral accuracy. Smoothing multiplies Z by prod_k sinhc(xi_k h_k / 2), which is taken back:
a Gaussian's mean is exact to 1e-14 for h <= sigma / 2, to 1e-8 for h = sigma.

For d = 2, 3, Z on a tensor grid of tilts is a product with a small matrix along each axis; targets interpolate:

    m_ij  --E_1-->  --E_2-->  Z at nodes  --stencils-->  Z, grad Z at xi = A x,     E_k = (e^{xi y} / sinhc(xi h / 2))

For d = 1, cells of the grid are the nodes of ``line``: there, tilts have no limit.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import multiply
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import line
from vlasov.tilting.grid import Grid
from vlasov.tilting.laplace import kernels
from vlasov.tilting.lattice.plan import LinePlan, NodesPlan, Plan, plan
from vlasov.tilting.line import transform
from vlasov.tilting.results import Head, Request, Sums
from vlasov.tilting.stencils import table
from vlasov.tilting.uniform import tilted_interval

__all__ = ["Plan", "evaluate", "plan"]

Parts = tuple[Array, Array | None, Array | None]  # V m, log Z, covariance


def evaluate(
    grid: Grid, x: Array, head: Head, plan: Plan, request: Request, workspace: Workspace, out: Array | None = None
) -> Sums:
    """V m, log Z and the covariance at the tilts A x.

    Parameters
    ----------
    x
        Shape (m, d).
    plan
        For this grid, these targets and ``request``, from ``plan``.
    out
        Memory for V m, shape (m, k).
    """
    x, head = plain(x), Head(plain(head.A), plain(head.V))
    if isinstance(plan, LinePlan):
        parts = _line(grid, x, head, plan, request, workspace, out)
    else:
        parts = _blocks(grid, x, head, plan, request, workspace, out)
    return Sums(*parts, "lattice", plan.error_bound, plan.mass_error)


def _line(
    grid: Grid, x: Array, head: Head, plan: LinePlan, request: Request, workspace: Workspace, out: Array | None
) -> Parts:
    sums = _on_line(grid.masses, float(grid.widths[0]), plan, workspace, request.log_mass)
    log_mass, mean, variance = line.interpolate(
        plan.tilts, sums, x, head, plan.threads, workspace, log_mass=request.log_mass, covariance=request.covariance,
        out=out,
    )  # fmt: skip
    return mean, log_mass, variance


def _blocks(
    grid: Grid, x: Array, head: Head, plan: NodesPlan, request: Request, workspace: Workspace, out: Array | None
) -> Parts:
    nodes = _Nodes(grid, plan, workspace)
    if math.prod(plan.blocks) == 1:
        return nodes.evaluate(plan.centre, x, head, request, out)
    return _block_by_block(nodes, plan, x, head, request, out)


def _on_line(masses: Array, h: float, plan: LinePlan, workspace: Workspace, log_mass: bool) -> Array:
    """log Z, m and m' at Chebyshev points of cells of tilts, as ``line.log_derivatives``."""
    tilts, size = plan.tilts, plan.group
    groups = -(-masses.size // size)
    weights = workspace.array("lattice.weights", (groups, size))
    weights.ravel()[: masses.size] = masses
    weights.ravel()[masses.size :] = 0.0
    totals = weights.sum(axis=1)
    weights /= np.where(totals > 0, totals, 1.0)[:, None]
    places = (2 * np.arange(size) + 1 - size) * h / 2
    middles = ((2 * np.arange(groups) + 1) * size - masses.size) * h / 2
    if plan.folded:
        nodes = workspace.array("lattice.folded", (1, groups, transform.NODES))
        multiply(weights, _folding(size)[None, None], nodes, plan.threads)
        places, weights = transform.chebyshev_points(transform.NODES) * (size * h / 2), nodes[0]
    with np.errstate(divide="ignore"):
        scales = np.log(totals)
    positions = (np.add.outer(middles, places) / tilts.radius).ravel()
    sums = line.log_derivatives(
        tilts, positions, weights.ravel(), scales, places.size, plan.threads, workspace, log_mass=log_mass
    )
    if plan.smooth:
        log_cell, mean, variance = tilted_interval(np.array(h / 2), line.points(tilts))
        if log_mass:
            sums[0] -= log_cell
        sums[1] -= mean / tilts.radius
        sums[2] -= variance / tilts.radius**2
    return sums


@lru_cache(maxsize=32)
def _folding(size: int) -> Array:
    """From the weights of the cells of a group to those of its nodes."""
    return transform.to_nodes((2 * np.arange(size) + 1 - size) / size)


def _block_by_block(nodes: _Nodes, plan: NodesPlan, x: Array, head: Head, request: Request, out: Array | None) -> Parts:
    """The same for targets whose range is cut into blocks: those of each block together."""
    centre, width, blocks = np.array(plan.centre), np.array(plan.width), np.array(plan.blocks)
    first, step = centre - (blocks - 1) * width, 2 * np.where(width > 0, width, 1.0)
    where = np.clip(np.rint((x @ head.A.T - first) / step).astype(np.int64), 0, blocks - 1)
    number = np.ravel_multi_index(tuple(where.T), plan.blocks)
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(blocks.prod() + 1))
    m, d = x.shape
    mean = np.empty((m, len(head.V))) if out is None else out
    log_mass, covariance = np.empty(m if request.log_mass else 0), np.empty((m if request.covariance else 0, d, d))
    for block, index in enumerate(product(*(range(b) for b in plan.blocks))):
        chosen = order[ends[block] : ends[block + 1]]
        if chosen.size:
            parts = nodes.evaluate(tuple(first + step * np.array(index)), x[chosen], head, request)
            for whole, part in zip((mean, log_mass, covariance), parts, strict=True):
                if part is not None:
                    whole[chosen] = part
    return mean, log_mass if request.log_mass else None, covariance if request.covariance else None


class _Nodes:
    """The cells that carry mass, and Z at the nodes of a block of tilts."""

    def __init__(self, grid: Grid, plan: NodesPlan, workspace: Workspace) -> None:
        masses, lower, widths, _ = grid
        self.plan, self.workspace, self.widths = plan, workspace, widths
        self.radius = np.array(masses.shape) * widths / 2
        self.middle = lower + self.radius
        box = _box(masses)
        self.masses = _contiguous(masses[box], workspace)
        self.places = [
            (2 * np.arange(along.start, along.stop) + 1 - count) * (h / 2)
            for along, count, h in zip(box, masses.shape, widths, strict=True)
        ]
        self.logs: Array | None = None
        if plan.tilted:
            with np.errstate(divide="ignore"):
                self.logs = np.log(self.masses, out=workspace.array("lattice.logs", self.masses.shape))

    def evaluate(
        self, middle: tuple[float, ...], x: Array, head: Head, request: Request, out: Array | None = None
    ) -> Parts:
        """The results at targets in the block of tilts around ``middle``."""
        grid, shift = self._at_nodes(middle)
        plan, workspace, (m, d), covariance = self.plan, self.workspace, x.shape, request.covariance
        matrix, values = head.A, head.V
        result = (
            np.empty((m, len(values))) if out is None else out,
            np.empty(m if request.log_mass else 0),
            np.empty((m, d, d) if covariance else (0, 0, 0)),
        )
        rows = d + 1 + d + (d * (d + 1) // 2 if covariance else 0)
        bins = (grid.size >> plan.coarsening) + 2 if plan.coarsening >= 0 else 0
        scratch = (
            workspace.array("lattice.floats", (plan.threads, rows, plan.chunk)),
            workspace.array("lattice.integers", (plan.threads, 2, plan.chunk), np.int64),
            workspace.array("lattice.bins", (plan.threads, bins), np.int64),
        )
        axes = np.array([middle, self.radius / plan.kappa, plan.cells, [math.inf] * d])
        strides = tuple(math.prod(plan.nodes[k + 1 :]) for k in range(d))
        in_threads(
            plan.threads, kernels.gather(plan.order, 2 if covariance else 1),
            x, matrix, axes, strides, table(plan.order, plan.kappa), plan.coarsening, grid, self.middle, values, shift,
            self.middle @ matrix, *result, *scratch,
        )  # fmt: skip
        return result[0], result[1] if request.log_mass else None, result[2] if covariance else None

    def _at_nodes(self, middle: tuple[float, ...]) -> tuple[Array, float]:
        """Z e^{-<xi, y_c>} at the nodes around ``middle``, flat, and what to add to its logarithm."""
        plan, workspace, nodes = self.plan, self.workspace, self.plan.nodes
        grid, places, shift = self._tilted_masses(middle) if plan.tilted else (self.masses, self.places, 0.0)
        for axis, count in enumerate(nodes):
            offsets = (np.arange(count) - (count - 1) / 2) * (plan.kappa / self.radius[axis])
            tilts = middle[axis] + offsets
            exponents = np.multiply.outer(offsets if plan.tilted else tilts, places[axis])
            if plan.smooth:
                log_cell = tilted_interval(self.widths[axis] / 2, tilts)[0]
                shift -= log_cell[count // 2]  # far from zero tilt, all of it would underflow
                exponents -= (log_cell - log_cell[count // 2])[:, None]
            matrix = np.exp(exponents, out=exponents)
            before, after = math.prod(nodes[:axis]), math.prod(grid.shape[axis + 1 :])
            out = workspace.array(f"lattice.nodes{axis % 2}", (before, count, after))
            if axis == len(nodes) - 1:
                transposed = np.ascontiguousarray(matrix.T)[None, None]
                multiply(grid.reshape(before, -1), transposed, out.reshape(1, before, count), plan.threads)
            else:
                multiply(matrix, grid.reshape(1, before, -1, after), out, plan.threads)
            grid = out.reshape(*nodes[: axis + 1], *grid.shape[axis + 1 :])
        return grid.reshape(-1), shift

    def _tilted_masses(self, middle: tuple[float, ...]) -> tuple[Array, list[Array], float]:
        """m_i e^{<xi, y_i - y_c> - shift} for xi = ``middle``, in cells where it counts; their places; the shift."""
        assert self.logs is not None
        d = self.masses.ndim
        grid = self.workspace.array("lattice.tilted", self.masses.shape)
        np.copyto(grid, self.logs)
        for axis, (tilt, places) in enumerate(zip(middle, self.places, strict=True)):
            grid += (tilt * places).reshape([-1 if k == axis else 1 for k in range(d)])
        shift = float(grid.max())
        grid -= shift
        np.exp(grid, out=grid)
        box = _box(grid)
        return grid[box], [places[along] for places, along in zip(self.places, box, strict=True)], shift


def _contiguous(masses: Array, workspace: Workspace) -> Array:
    """The same numbers for compiled loops, in scratch memory where they are a part of an array."""
    if not masses.flags.c_contiguous:
        part = workspace.array("lattice.masses", masses.shape)
        np.copyto(part, masses)
        return part
    return plain(masses)


def _box(masses: Array) -> tuple[slice, ...]:
    """The smallest box of cells that holds all the mass."""
    box = []
    for axis in range(masses.ndim):
        carrying = np.flatnonzero(masses.any(axis=tuple(k for k in range(masses.ndim) if k != axis)))
        box.append(slice(int(carrying[0]), int(carrying[-1]) + 1) if carrying.size else slice(0, 1))
    return tuple(box)
