"""Densities on uniform grids: sums over all cells, at targets anywhere, without interpolating the sources.

    Z(xi) = sum_i m_i e^{<xi, y_i>} / prod_k sinhc(xi_k h_k / 2),   m = grad log Z,   y_i centres of cells of widths h

The averages of a smooth density over all cells are point values of the same density smoothed by a cell, and sums of
these are integrals to spectral accuracy. Smoothing multiplies Z by prod_k sinhc(xi_k h_k / 2), which is taken back:
a Gaussian's mean is exact to 1e-14 for h <= sigma / 2, to 1e-8 for h = sigma.

For d = 2, 3, Z on a tensor grid of tilts is a product with a small matrix along each axis; targets interpolate:

    m_ij  --E_1-->  --E_2-->  Z at nodes  --stencils-->  Z, grad Z at xi = A x,     E_k = (e^{xi y} / sinhc(xi h / 2))

For d = 1, cells of the grid are the nodes of ``line``: there, tilts have no limit.

``grid`` calls it, for densities. It wins from a few targets on, because cells need not be spread to nodes; the range of
the tilts is cut into blocks where exponentials would overflow.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import product

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import multiply
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import line, nodes
from vlasov.tilting.grid import Grid
from vlasov.tilting.lattice.plan import LatticePlan, LinePlan, Plan, plan
from vlasov.tilting.line import transform
from vlasov.tilting.nodes import Nodes
from vlasov.tilting.results import Head, Request, Sums
from vlasov.tilting.uniform import tilted_interval

__all__ = ["Plan", "evaluate", "plan"]


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
    if isinstance(plan, LinePlan):
        sums = _on_line(grid.masses, float(grid.widths[0]), plan, workspace, request.log_mass)
        found = line.interpolate(plan, sums, x, head, request, workspace, out)
    else:
        cells, one = _Cells(grid, plan, request, workspace), math.prod(plan.blocks) == 1
        whole = cells.at_nodes(plan.centre).read if one else partial(_block_by_block, cells)
        found = whole(x, head, request, out)
    return found._replace(method="lattice")


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
    groups_of_nodes = transform.Nodes(positions, weights.ravel(), scales, places.size)
    sums = line.log_derivatives(tilts, groups_of_nodes, plan.threads, workspace, log_mass=log_mass)
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


def _block_by_block(cells: _Cells, x: Array, head: Head, request: Request, out: Array | None) -> Sums:
    """The same for targets whose range is cut into blocks: those of each block together."""
    plan, (m, d), mass_error = cells.plan, x.shape, cells.plan.mass_error
    centre, width, blocks = np.array(plan.centre), np.array(plan.width), np.array(plan.blocks)
    first, step = centre - (blocks - 1) * width, 2 * np.where(width > 0, width, 1.0)
    where = np.clip(np.rint((x @ head.A.T - first) / step).astype(np.int64), 0, blocks - 1)
    number = np.ravel_multi_index(tuple(where.T), plan.blocks)
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(blocks.prod() + 1))
    mean = np.empty((m, len(head.V))) if out is None else out
    log_mass = np.empty(m) if request.log_mass else None
    covariance = np.empty((m, d, d)) if request.covariance else None
    for block, index in enumerate(product(*(range(b) for b in plan.blocks))):
        chosen = order[ends[block] : ends[block + 1]]
        if chosen.size:
            at_nodes = cells.at_nodes(tuple(first + step * np.array(index)))
            sums = at_nodes.read(x[chosen], head, request)
            mass_error = max(mass_error, sums.mass_error)
            for whole, part in ((mean, sums.mean), (log_mass, sums.log_mass), (covariance, sums.covariance)):
                if whole is not None:
                    whole[chosen] = part
    return Sums(mean, log_mass, covariance, "lattice", plan.error_bound, mass_error)


class _Cells:
    """The cells that carry mass, from which Z at the nodes of any block of tilts is made."""

    def __init__(self, grid: Grid, plan: LatticePlan, request: Request, workspace: Workspace) -> None:
        masses, lower, widths, _ = grid
        self.plan, self.workspace, self.widths = plan, workspace, widths
        self.scratch = nodes.scratch(plan, request, workspace)
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

    def at_nodes(self, middle: tuple[float, ...]) -> Nodes:
        """Z at the nodes of the block of tilts around ``middle``."""
        plan, workspace, counts, shift = self.plan, self.workspace, self.plan.nodes, 0.0
        grid, places = self.masses, self.places
        if plan.tilted:
            grid, places, shift = self._tilted_masses(middle)
        for axis, count in enumerate(counts):
            offsets = (np.arange(count) - (count - 1) / 2) * (plan.kappa / self.radius[axis])
            tilts = middle[axis] + offsets
            exponents = np.multiply.outer(offsets if plan.tilted else tilts, places[axis])
            if plan.smooth:
                log_cell = tilted_interval(self.widths[axis] / 2, tilts)[0]
                shift -= log_cell[count // 2]  # far from zero tilt, all of it would underflow
                exponents -= (log_cell - log_cell[count // 2])[:, None]
            matrix = np.exp(exponents, out=exponents)
            before, after = math.prod(counts[:axis]), math.prod(grid.shape[axis + 1 :])
            out = workspace.array(f"lattice.nodes{axis % 2}", (before, count, after))
            if axis == len(counts) - 1:
                transposed = np.ascontiguousarray(matrix.T)[None, None]
                multiply(grid.reshape(before, -1), transposed, out.reshape(1, before, count), plan.threads)
            else:
                multiply(matrix, grid.reshape(1, before, -1, after), out, plan.threads)
            grid = out.reshape(*counts[: axis + 1], *grid.shape[axis + 1 :])
        inverse_step = [r / plan.kappa for r in self.radius.tolist()]
        stencils = nodes.stencils(plan, middle, inverse_step, (math.inf,) * len(middle))
        return Nodes(plan, stencils, self.scratch, grid.reshape(-1), shift, self.middle, self.radius)

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
