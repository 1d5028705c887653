"""The tilted mean at linear cost in few dimensions: a discrete Laplace transform of sources anywhere.

    Z(xi_i) = sum_j w_j e^{<xi_i, y_j>},   m = grad Z / Z,   at all targets xi_i = A x_i

Sources are spread to nodes of a uniform grid; from them Z at the nodes of a second grid is a product of small matrices,
one for each axis; Z and grad Z are interpolated from these at the targets:

    y_j  --stencil-->  nodes  --E = (e^{xi_k y_l})_kl along each axis-->  nodes  --stencil-->  Z, grad Z at xi_i
    n p^d operations          2 * nodes * (nodes per axis)                m p^d operations

With half widths R_k of the sources' box, Q_k of the targets' and S_k = Q_k R_k, an axis needs about 2 S_k / kappa + p
nodes on either side. The boxes are moved to zero first, which multiplies the weights by e^{<xi_c, y - y_c>}.

``choose`` calls it, and ``evaluate`` for several heads at once. It wins from a thousand points on, unless exponents are
large: grids grow like the product of the S_k. Few points far away are left to all pairs (``outliers``). On the line,
``line`` does the same without limits. ``dipoles`` differentiates the sums by the points.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import nodes
from vlasov.tilting.laplace import kernels
from vlasov.tilting.laplace.kernels import Weights
from vlasov.tilting.laplace.outliers import add_outliers, plan_data, tilts
from vlasov.tilting.laplace.plan import Plan, plan
from vlasov.tilting.laplace.transform import transform
from vlasov.tilting.nodes import Nodes
from vlasov.tilting.results import Head, Request, Sums

__all__ = ["Plan", "Prepared", "plan", "plan_data"]

_NOTHING = np.empty(0)
_ZERO = -1e307  # logarithm of the mass of sources without mass


class Prepared:
    """Sources, spread and transformed: Z at the targets' nodes, to be read at any targets that the plan covers.

    What it holds lasts until the workspace is used again.

    Parameters
    ----------
    points, log_weights
        Shapes (n, d) and (n,); None: all weights are one.
    plan
        For these sources, targets and ``request``, from ``plan``.
    """

    def __init__(
        self, points: Array, log_weights: Array | None, plan: Plan, request: Request, workspace: Workspace
    ) -> None:
        self.points, self.log_weights = plain(points), _NOTHING if log_weights is None else plain(log_weights)
        self.plan, self.workspace = plan, workspace
        of_sources, of_targets = ([1 / h for h in step] for step in (plan.source_step, plan.target_step))
        self.sources = nodes.stencils(plan, plan.source_centre, of_sources, plan.source_reach)
        self.targets = nodes.stencils(plan, plan.tilt, of_targets, plan.target_reach)
        self.scratch = nodes.scratch(plan, request, workspace)
        grids, shift = self._spread()
        place = np.array(plan.source_centre), np.array(plan.radius)
        self.nodes = Nodes(plan, self.targets, self.scratch, transform(plan, grids, workspace), shift, *place)

    def _spread(self) -> tuple[Array, float]:
        """Sums over sources at the nodes, (parts, nodes), and the logarithm of their scale."""
        plan, logs, tilt, scratch = self.plan, self.log_weights, np.array(self.plan.tilt), self.scratch
        # Weights are relative to the heaviest before anything is added to their logarithms: nothing is rounded away.
        base = max(float(logs.max()), _ZERO) if logs.size else 0.0
        weights, identity, shift = Weights(logs, base, tilt), np.eye(tilt.size), 0.0
        size = math.prod(plan.nodes)
        if logs.size or any(plan.tilt):
            ends = np.empty((plan.threads, 2, 1))
            in_threads(
                plan.threads, kernels.peak,
                self.points, weights, identity, self.sources.axes, scratch.floats, ends,
            )  # fmt: skip
            shift = max(float(ends[:, 1].max()), _ZERO)
        grids = self.workspace.array("laplace.grids", (plan.parts, size))
        blocks = self.workspace.array("laplace.blocks", (plan.threads, size if plan.flush else 1))
        in_threads(
            plan.threads, kernels.spread_parts, kernels.spread(plan.order, tilt.size),
            self.points, weights, shift, identity, self.sources, plan.flush, grids, blocks, scratch,
        )  # fmt: skip
        return grids, base + shift

    def read(self, x: Array, head: Head, request: Request, out: Array | None = None) -> Sums:
        """V m (into ``out``, unless there are outliers), log Z and the covariance at the tilts A x."""
        if not self.plan.peeled:
            return self.nodes.read(x, head, request, out)._replace(method="laplace")
        bulk = self.nodes.read(x, head._replace(V=np.eye(x.shape[1])), request._replace(log_mass=True))
        sums = add_outliers(bulk, self, plain(x), plain(head.A))
        return sums._replace(mean=tilts(sums.mean, plain(head.V)), method="laplace")
