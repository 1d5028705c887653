"""Z at the nodes of a uniform grid of tilts, read at any targets: what ``laplace`` and ``lattice`` have in common.

    Z at nodes  --stencils-->  Z, grad Z at xi = A x  -->  m = grad Z / Z,     m p^d operations for m targets

They differ in how Z gets to the nodes: from points by stencils, or from all cells of a lattice. Here are the error
bounds of interpolation, the search for the widest steps that keep the tolerance, and ``read``.

The error of the mean along axis k, relative to R_k, is at most e_1 + d e_0 (relative errors of the interpolated
exponentials and of their derivatives, see ``stencils``): with weights p_j ~ w_j e^{<xi, y_j>}

    m~ - m = sum_j p_j (1 + e_0j) (y_j - m + R e_1j - m e_0j) / sum_j p_j (1 + e_0j),   sum_j p_j |y_j - m| <= R
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import node_kernels
from vlasov.tilting.boxes import box
from vlasov.tilting.node_kernels import NodeValues, Results, Scratch, Stencils
from vlasov.tilting.promise import Box, Promise
from vlasov.tilting.results import Head, Request, Sums
from vlasov.tilting.stencils import KAPPAS, Errors, errors, table

UNIT = 2.0**-53  # rounding error of one operation
MOST_BYTES = 1e9
_CHUNK, _SORTED_CHUNK = 1024, 16384  # points at a time: in the first, or in the second level of the cache
_SORTED_NODES = 100_000  # in three dimensions, grids beyond the second level of the cache are visited in order
_FEW = 4096  # points that are not worth sorting


@dataclass(frozen=True, kw_only=True)
class NodesPlan(Promise):
    """Nodes of tilts, and how targets pass over them.

    Attributes
    ----------
    order, kappa
        Of the stencils.
    cells
        Along each axis; there are p - 1 more nodes.
    chunk, coarsening
        So many points are treated at a time, sorted by the index of their cell over 2^coarsening; -1: not sorted.
    """

    order: int
    kappa: float
    cells: tuple[int, ...]
    chunk: int
    coarsening: int

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Along each axis."""
        return tuple(cells + self.order - 1 for cells in self.cells)


@dataclass
class Ranges:
    """Sources in y_c +- R (``centre``, ``radius``), tilts in xi_c +- Q (``tilt``, ``width``), and what is asked for.

    Attributes
    ----------
    norm
        |R|.
    rounding
        Of y_c + (m - y_c).
    budget
        How large errors of the mean may be, in units of |R|: what rounding of the result leaves of the tolerance.
    second_budget
        The same for the covariance, in units of |R|^2.
    """

    centre: list[float]
    radius: list[float]
    tilt: list[float]
    width: list[float]
    request: Request
    norm: float = field(init=False)
    rounding: float = field(init=False)
    budget: float = field(init=False)
    second_budget: float = field(init=False)

    def __post_init__(self) -> None:
        self.norm, away, tolerance = math.hypot(*self.radius), math.hypot(*self.centre), self.request.tolerance
        self.rounding = 2 * UNIT * (away + self.norm)
        allowed = tolerance * max(self.radius)
        # An error that rounding hides anyway is always allowed.
        hidden = min(self.rounding, tolerance * away / 8)
        self.budget = min(max(allowed - self.rounding, allowed / 2, hidden) / self.norm, 0.01)
        scale = max(self.radius) / self.norm
        self.second_budget = tolerance * scale * scale if self.request.covariance else math.inf


class Bounds(NamedTuple):
    """On errors of the mean, of the covariance and of Z, in units of |R|, |R|^2 and Z."""

    mean: float
    covariance: float
    mass: float


def middle(box: Box) -> tuple[list[float], list[float]]:
    """Centre and half widths; a margin of a few units of the last place keeps the corners inside."""
    ends = list(zip(box[0].tolist(), box[1].tolist(), strict=True))
    return [a + (b - a) / 2 for a, b in ends], [(b - a) / 2 * (1 + 1e-14) for a, b in ends]


def bounds(found: Errors, kappa: float, d: int, at_nodes: float, smooth: float) -> Bounds:
    """Bounds from the errors of interpolation and from rounding: of Z at the nodes, and what varies slowly.

    Rounding errors of Z at the nodes are independent of each other, and interpolation takes differences of them.
    """
    low, steep, bent = found.growth
    value, at_nodes = d * found.value, at_nodes * low ** (d - 1)
    share = max(1 - value, 0.5)
    mean = (found.slope + value) / share + at_nodes * steep / kappa + smooth
    second = (max(found.curvature, 2 * found.slope) + value) / share
    second += at_nodes * max(bent, steep**2 / low) / kappa**2 + 2 * mean + smooth
    return Bounds(mean, second, value / share + at_nodes * low + smooth)


def possible_steps(order: int, ranges: Ranges) -> Iterator[tuple[float, Errors]]:
    """Ever narrower steps kappa with the errors of interpolation in one variable, where these alone keep the budget."""
    budget, second = ranges.budget, ranges.second_budget
    for step in _steps(order):
        if step[1].slope <= budget and step[1].curvature <= second:
            yield step


@cache
def _steps(order: int) -> tuple[tuple[float, Errors], ...]:
    return tuple((kappa, errors(order, kappa)) for kappa in KAPPAS)


def chunk_of(size: int, d: int, points: int) -> tuple[int, bool]:
    """How many of so many points pass over a grid of so many nodes at a time, and whether they are worth sorting."""
    worth = d == 3 and size > _SORTED_NODES and points > _FEW
    return _SORTED_CHUNK if worth else _CHUNK, worth


def coarsening(size: int, chunk: int) -> int:
    """Half as many bins as there are points in a chunk, or fewer."""
    return (2 * size // chunk).bit_length()


def stencils(
    plan: NodesPlan, centre: Sequence[float], inverse_step: Sequence[float], reach: Sequence[float]
) -> Stencils:
    """The plan's stencils on a grid in this place."""
    counts = plan.nodes
    strides = tuple(math.prod(counts[k + 1 :]) for k in range(len(counts)))
    axes = np.array([centre, inverse_step, plan.cells, reach], dtype=float)
    return Stencils(axes, strides, table(plan.order, plan.kappa), plan.coarsening)


def scratch(plan: NodesPlan, request: Request, workspace: Workspace, *, least: int = 0) -> Scratch:
    """Memory for one chunk in each thread: offsets, Z and its derivatives; at ``least`` so many rows."""
    d, threads, chunk = len(plan.cells), plan.threads, plan.chunk
    rows = max(d + 1 + d + (d * (d + 1) // 2 if request.covariance else 0), least)
    bins = (math.prod(plan.nodes) >> plan.coarsening) + 2 if plan.coarsening >= 0 else 0
    return Scratch(
        workspace.array("nodes.floats", (threads, rows, chunk)),
        workspace.array("nodes.integers", (threads, 2, chunk), np.int64),
        workspace.array("nodes.bins", (threads, bins), np.int64),
    )


class Nodes(NamedTuple):
    """Z e^{-<xi, centre> - shift} at the nodes of a plan, flat, of sources in centre +- radius."""

    plan: NodesPlan
    stencils: Stencils
    scratch: Scratch
    grid: Array
    shift: float
    centre: Array
    radius: Array

    def read(self, x: Array, head: Head, request: Request, out: Array | None = None) -> Sums:
        """V m, log Z and the covariance at the tilts A x, where they are asked for."""
        plan, (m, d), derivatives = self.plan, x.shape, 2 if request.covariance else 1
        x, matrix, values = plain(x), plain(head.A), plain(head.V)
        results = Results(
            np.empty((m, len(values))) if out is None else out,
            np.empty(m if request.log_mass else 0),
            np.empty((m, d, d) if request.covariance else (0, 0, 0)),
        )
        at_nodes = NodeValues(self.grid, self.shift, self.centre, self.centre @ matrix)
        in_threads(
            plan.threads, node_kernels.gather_chunks, node_kernels.gather(plan.order, derivatives, len(plan.nodes)),
            x, matrix, self.stencils, at_nodes, values, results, self.scratch,
        )  # fmt: skip
        return Sums(
            results.velocity,
            results.log_mass if request.log_mass else None,
            results.covariance if request.covariance else None,
            method="",
            error_bound=plan.error_bound,
            mass_error=plan.mass_error + (self._rounding(x, matrix) if request.log_mass else 0.0),
        )

    def _rounding(self, x: Array, matrix: Array) -> float:
        """Of log Z = log of the mass on the grid + shift + <A x, centre>, and of A x in it."""
        low, high = box(x, np.eye(x.shape[1]), 1)  # NumPy takes forty times as long for three columns
        farthest = np.maximum(np.maximum(high, -low), 0.0)
        terms = float((np.abs(self.centre) + self.radius) @ np.abs(matrix) @ farthest)
        with np.errstate(divide="ignore"):
            logs = np.abs(np.log(np.abs([self.grid.min(), self.grid.max()])))
        return UNIT * (4 * (float(logs.max()) + abs(self.shift) + 1) + (3 * len(matrix) + 6) * terms)
