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

``choose`` calls it for points in d = 1, under the name "laplace", and ``lattice`` for densities. It wins from a few
hundred points on; other methods of linear cost overflow where exponents reach some hundreds, this one does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.line import kernels, transform
from vlasov.tilting.line.plan import Plan, Tilts, plan
from vlasov.tilting.results import Head, Request, Sums

if TYPE_CHECKING:
    from vlasov.tilting.lattice.plan import LinePlan

__all__ = ["Plan", "Prepared", "plan"]

_EPS = float(np.finfo(float).eps)


class Prepared:
    """Sources, summed up: log Z and its derivatives on cells of tilts, to be read at any targets that the plan covers.

    As in ``laplace``: it lasts until the workspace is used again, and takes (n, 1) points and (n,) log weights or None.
    """

    def __init__(
        self, points: Array, log_weights: Array | None, plan: Plan, request: Request, workspace: Workspace
    ) -> None:
        self.plan, self.workspace = plan, workspace
        nodes, top = _nodes(points, log_weights, plan, workspace)
        self.sums = log_derivatives(
            plan.tilts, nodes, plan.threads, workspace, tilt=plan.tilt, log_mass=request.log_mass
        )
        if request.log_mass:
            self.sums[0] += top

    def read(self, x: Array, head: Head, request: Request, out: Array | None = None) -> Sums:
        """V m, log Z and the variance at the tilts A x. Users know the line by the name of the method in d = 2, 3."""
        found = interpolate(self.plan, self.sums, x, head, request, self.workspace, out)
        return found._replace(method="laplace")


def _nodes(points: Array, log_weights: Array | None, plan: Plan, workspace: Workspace) -> tuple[transform.Nodes, float]:
    """Nodes that stand for the sources, their weights times e^{tilt (y - center)}, and a log scale common to all."""
    y, tilts, count = plain(points[:, 0]), plan.tilts, plan.cells
    logs = np.empty(0) if log_weights is None else plain(log_weights)
    top = float(logs.max()) if logs.size else 0.0
    weights = kernels.Weights(logs, top, plan.tilt, tilts.center)
    cells = kernels.Cells(tilts.center - tilts.radius, count / (2 * tilts.radius))
    levels = np.array([abs(plan.tilt) * tilts.radius])
    if plan.scaled:
        partial = workspace.array("line.levels", (plan.parts, count))
        in_threads(plan.threads, kernels.cell_levels, y, weights, cells, partial)
        levels = partial.max(axis=0)
    moments = workspace.array("line.moments", (plan.parts * plan.copies, count, transform.MOMENTS))
    weighted = plan.tilt != 0.0 or logs.size > 0
    in_threads(plan.threads, kernels.spread, y, weights, cells, levels, weighted, plan.copies, moments)
    groups = count // transform.MERGED
    positions, shares = (workspace.array(f"line.{name}", groups * transform.NODES) for name in ("nodes", "weights"))
    nodes = transform.Nodes(positions, shares, workspace.array("line.scales", groups), transform.NODES)
    in_threads(plan.threads, transform.fill_nodes, moments, levels, nodes)
    return nodes, top


def log_derivatives(
    tilts: Tilts,
    nodes: transform.Nodes,
    threads: int,
    workspace: Workspace,
    *,
    tilt: float = 0.0,
    log_mass: bool = False,
) -> Array:
    """log Z (if asked for), m and m' at the Chebyshev points of all cells of tilts, shape (3, any); R = 1, y_c = 0.

    The nodes' weights hold the factor e^{tilt (y - center)} already.
    """
    result = workspace.array("line.values", (3, tilts.expansions * transform.FINE * transform.ORDER))
    lower, width = (tilts.middle - tilt) * tilts.radius - tilts.half, 2 * tilts.half / tilts.expansions
    # Groups further below are left out. Each changes the mean by at most twice its share of the mass; its nodes'
    # weights, regardless of sign, add up to less than three times its mass, which within an expansion grows by e^{1.2}.
    reach = math.log(20 * nodes.scales.size / tilts.negligible)
    in_threads(threads, transform.log_derivatives, nodes, lower, width, reach, log_mass, result)
    return result


def interpolate(
    plan: Plan | LinePlan,
    sums: Array,
    x: Array,
    head: Head,
    request: Request,
    workspace: Workspace,
    out: Array | None,
) -> Sums:
    """V m, log Z and the variance at the tilts A x, from what ``log_derivatives`` made, in its units."""
    tilts, targets, factor = plan.tilts, plain(x[:, 0]), float(head.A[0, 0])
    table, cells = workspace.array("line.table", (tilts.expansions * transform.FINE, transform.ORDER)), _cells(tilts)

    def gather(at_points: Array, constant: float = 0.0, slope: float = 0.0, out: Array | None = None) -> Array:
        transform.fit(at_points, table)
        table[:, 0] += constant  # not before: rounding errors of the fit stay relative to R
        result = np.empty(targets.size) if out is None else out
        in_threads(plan.threads, kernels.gather, targets, factor, cells, table, slope, result)
        return result

    factors = head.V[:, 0]
    if factors.size == 1 and (out is None or out.flags.c_contiguous):
        scale = float(factors[0])
        mean = gather(scale * tilts.radius * sums[1], scale * tilts.center, out=None if out is None else out[:, 0])
        velocity = mean[:, None] if out is None else out
    else:
        velocity = np.multiply(gather(tilts.radius * sums[1], tilts.center)[:, None], factors, out=out)
    variance = gather(tilts.radius * tilts.radius * sums[2])[:, None, None] if request.covariance else None
    log_mass, mass_error = None, plan.mass_error
    if request.log_mass:
        log_mass = gather(sums[0], slope=tilts.center * factor)
        # The fit rounds eight values, and A x is rounded.
        exponents = abs(factor) * float(np.abs(targets).max(initial=0.0)) * (abs(tilts.center) + tilts.radius)
        mass_error += _EPS * (64 * float(np.abs(sums[0]).max()) + 4 * exponents)
    return Sums(velocity, log_mass, variance, "line", plan.error_bound, mass_error)


def points(tilts: Tilts) -> Array:
    """The Chebyshev points of all cells of tilts."""
    origin, per_unit = _cells(tilts)
    cells = np.arange(tilts.expansions * transform.FINE)[:, None] + 0.5
    return (origin + (cells + transform.chebyshev_points(transform.ORDER) / 2) / per_unit).ravel()


def _cells(tilts: Tilts) -> kernels.Cells:
    """Cells of tilts."""
    origin = tilts.middle - tilts.half / tilts.radius
    return kernels.Cells(origin, tilts.expansions * transform.FINE * tilts.radius / (2 * tilts.half))
