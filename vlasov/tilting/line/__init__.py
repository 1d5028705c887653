"""Points on the line at linear cost, whatever the tilts.

    Z(xi) = sum_j w_j e^{xi y_j},   m = (log Z)',   |y_j - y_c| <= R

Sources enter by eight moments of each of about 3 |xi| R cells, |xi| the largest tilt. Groups of eight cells become
twenty nodes, whose sums with a tilt are exact. Targets read m from a polynomial, one for each of about 7 Q R cells of
tilts, Q half the width of their range:

    y    |o  oo o|o o  oo|oo o  o|  o   o|   moments sum_j w_j t_j^k in each cell     1 ns for each source
          x  x   x   x   x   x  x   x  x     nodes, exact on polynomials of degree 19
              e^{xi y}, log scales           node pairs that are negligible are left out
    xi   |---|---|---|---|---|---|---|---|   m at Chebyshev points -> powers of t     1 ns for each target

Error bounds hold for all sources: e^{xi y} is interpolated in y, and m is analytic for |Im xi| < pi / 2R. There all
e^{xi (y_j - y_c)} lie in one half plane, Z has no zero, and |m - y_c| <= R / cos(R Im xi).
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.line import kernels, transform
from vlasov.tilting.line.plan import Plan, Tilts, plan
from vlasov.tilting.results import Head, Request, Sums

__all__ = ["Plan", "Prepared", "evaluate", "plan"]


def evaluate(
    points: Array,
    log_weights: Array | None,
    x: Array,
    head: Head,
    plan: Plan,
    request: Request,
    workspace: Workspace,
    out: Array | None = None,
) -> Sums:
    """V m, log Z and the variance at the tilts A x.

    Parameters
    ----------
    points, log_weights
        Shapes (n, 1) and (n,); None: all weights are one.
    x
        Shape (m, 1).
    plan
        For these sources, targets and ``request``, from ``plan``.
    out
        Memory for V m, shape (m, k).
    """
    return Prepared(points, log_weights, plan, request, workspace).read(x, head, request, out)


class Prepared:
    """Sources, summed up: log Z and its derivatives on cells of tilts, to be read at any targets that the plan covers.

    What it holds lasts until the workspace is used again.
    """

    def __init__(
        self, points: Array, log_weights: Array | None, plan: Plan, request: Request, workspace: Workspace
    ) -> None:
        self.plan, self.workspace = plan, workspace
        nodes, weights, scales, top = _nodes(points, log_weights, plan, workspace)
        self.sums = log_derivatives(
            plan.tilts, nodes, weights, scales, transform.NODES, plan.threads, workspace, tilt=plan.tilt,
            log_mass=request.log_mass,
        )  # fmt: skip
        if request.log_mass:
            self.sums[0] += top

    def read(self, x: Array, head: Head, request: Request, out: Array | None = None) -> Sums:
        """What ``evaluate`` returns. Users know the line by the name of its method in d = 2, 3."""
        log_mass, mean, variance = interpolate(
            self.plan.tilts, self.sums, x, head, self.plan.threads, self.workspace, log_mass=request.log_mass,
            covariance=request.covariance, out=out,
        )  # fmt: skip
        return Sums(mean, log_mass, variance, "laplace", self.plan.error_bound, self.plan.mass_error)


def _nodes(
    points: Array, log_weights: Array | None, plan: Plan, workspace: Workspace
) -> tuple[Array, Array, Array, float]:
    """Positions, weights and log scales of nodes that stand for the sources, and a log scale common to all."""
    y, tilts, cells = plain(points[:, 0]), plan.tilts, plan.cells
    logs = np.empty(0) if log_weights is None else plain(log_weights)
    top = float(logs.max()) if logs.size else 0.0
    location = tilts.center - tilts.radius, cells / (2 * tilts.radius), plan.tilt, tilts.center
    levels = np.array([abs(plan.tilt) * tilts.radius])
    if plan.scaled:
        partial = workspace.array("line.levels", (plan.parts, cells))
        in_threads(plan.threads, kernels.cell_levels, y, logs, top, *location, partial)
        levels = partial.max(axis=0)
    moments = workspace.array("line.moments", (plan.parts * plan.copies, cells, transform.MOMENTS))
    weighted = plan.tilt != 0.0 or logs.size > 0
    in_threads(plan.threads, kernels.spread, y, logs, top, *location, levels, weighted, plan.copies, moments)
    groups = cells // transform.MERGED
    nodes, weights = (workspace.array(f"line.{name}", groups * transform.NODES) for name in ("nodes", "weights"))
    scales = workspace.array("line.scales", groups)
    in_threads(plan.threads, transform.nodes, moments, levels, nodes, weights, scales)
    return nodes, weights, scales, top


def log_derivatives(
    tilts: Tilts,
    nodes: Array,
    weights: Array,
    scales: Array,
    size: int,
    threads: int,
    workspace: Workspace,
    *,
    tilt: float = 0.0,
    log_mass: bool = False,
) -> Array:
    """log Z (if asked for), m and m' at the Chebyshev points of all cells of tilts, shape (3, any); R = 1, y_c = 0.

    Nodes lie in [-1, 1] in increasing order, in groups of ``size`` with a log scale each: the log of their mass. Their
    weights hold the factor e^{tilt (y - center)} already.
    """
    result = workspace.array("line.values", (3, tilts.expansions * transform.FINE * transform.ORDER))
    lower, width = (tilts.middle - tilt) * tilts.radius - tilts.half, 2 * tilts.half / tilts.expansions
    # Groups further below are left out. Each changes the mean by at most twice its share of the mass; its nodes'
    # weights, regardless of sign, add up to less than three times its mass, which within an expansion grows by e^{1.2}.
    reach = math.log(20 * scales.size / tilts.negligible)
    in_threads(threads, transform.log_derivatives, nodes, weights, scales, size, lower, width, reach, log_mass, result)
    return result


def interpolate(
    tilts: Tilts,
    sums: Array,
    x: Array,
    head: Head,
    threads: int,
    workspace: Workspace,
    *,
    log_mass: bool,
    covariance: bool,
    out: Array | None,
) -> tuple[Array | None, Array, Array | None]:
    """The results of ``evaluate`` from what ``log_derivatives`` made, in its units."""
    targets, factor = plain(x[:, 0]), float(head.A[0, 0])
    table = workspace.array("line.table", (tilts.expansions * transform.FINE, transform.ORDER))

    def gather(at_points: Array, constant: float = 0.0, slope: float = 0.0, out: Array | None = None) -> Array:
        transform.fit(at_points, table)
        table[:, 0] += constant  # not before: rounding errors of the fit stay relative to R
        result = np.empty(targets.size) if out is None else out
        in_threads(threads, kernels.gather, targets, factor, *_location(tilts), table, slope, result)
        return result

    factors = head.V[:, 0]
    if factors.size == 1 and (out is None or out.flags.c_contiguous):
        scale = float(factors[0])
        mean = gather(scale * tilts.radius * sums[1], scale * tilts.center, out=None if out is None else out[:, 0])
        velocity = mean[:, None] if out is None else out
    else:
        velocity = np.multiply(gather(tilts.radius * sums[1], tilts.center)[:, None], factors, out=out)
    variance = gather(tilts.radius**2 * sums[2])[:, None, None] if covariance else None
    return gather(sums[0], slope=tilts.center * factor) if log_mass else None, velocity, variance


def points(tilts: Tilts) -> Array:
    """The Chebyshev points of all cells of tilts."""
    origin, per_unit = _location(tilts)
    cells = np.arange(tilts.expansions * transform.FINE)[:, None] + 0.5
    return (origin + (cells + transform.chebyshev_points(transform.ORDER) / 2) / per_unit).ravel()


def _location(tilts: Tilts) -> tuple[float, float]:
    """Where cells of tilts begin, and how many there are per unit."""
    origin = tilts.middle - tilts.half / tilts.radius
    return origin, tilts.expansions * transform.FINE * tilts.radius / (2 * tilts.half)
