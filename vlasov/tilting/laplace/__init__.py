"""The tilted mean at linear cost in one, two and three dimensions.

    Z(xi_i) = sum_j w_j e^{<xi_i, y_j>},   m = grad Z / Z,   at all targets xi_i = A x_i

Sources are spread to nodes of a uniform grid; from them Z at the nodes of a second grid is a product of small matrices,
one for each axis; Z and grad Z are interpolated from these at the targets:

    y_j  --stencil-->  nodes  --E = (e^{xi_k y_l})_kl along each axis-->  nodes  --stencil-->  Z, grad Z at xi_i
    n p^d operations          2 * nodes * (nodes per axis)                m p^d operations

With half widths R_k of the sources' box, Q_k of the targets' and S_k = Q_k R_k, an axis needs about 2 S_k / kappa + p
nodes on either side. The boxes are moved to zero first, which multiplies the weights by e^{<xi_c, y - y_c>}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import multiply, node_matrix
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import boxes as box_kernels
from vlasov.tilting.laplace import kernels
from vlasov.tilting.laplace.outliers import add_outliers, plan_data, tilts
from vlasov.tilting.laplace.plan import Plan, plan
from vlasov.tilting.results import Head, Request, Sums
from vlasov.tilting.stencils import table

__all__ = ["Plan", "Prepared", "box", "boxes", "evaluate", "plan", "plan_data"]

_NOTHING = np.empty(0)
_WORTH_THREADS = 200_000  # points; to wake a thread takes as long as a few ten thousand of them
_WORTH_PRODUCT_THREADS = 10_000_000  # multiplications
_ZERO = -1e307  # logarithm of the mass of sources without mass


def box(points: Array, matrix: Array, threads: int) -> tuple[Array, Array]:
    """Smallest and largest entries of A x over all points x; A may have any number of rows."""
    rows, threads = len(matrix), threads if len(points) > _WORTH_THREADS else 1
    ends = np.empty((threads, 2, rows))
    in_threads(threads, box_kernels.box, plain(points), plain(matrix), ends)
    return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)


def boxes(points: Array, x: Array, matrices: Sequence[Array | None], threads: int) -> list[tuple[Array, Array]]:
    """The box of the points and, for each matrix A, of A x: in one pass over memory where x are the points."""
    d = points.shape[1]
    factors = [np.eye(d), *(np.eye(d) if matrix is None else matrix for matrix in matrices)]
    groups = [(x, factors)] if x is points else [(points, factors[:1]), (x, factors[1:])]
    found = [box(array, np.concatenate(some), threads) for array, some in groups]
    low, high = (np.concatenate(ends).reshape(-1, d) for ends in zip(*found, strict=True))
    return list(zip(low, high, strict=True))


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
    """V m, log Z and the covariance at the tilts A x; with outliers, ``out`` is not used.

    Parameters
    ----------
    points, log_weights
        Shapes (n, d) and (n,); None: all weights are one.
    x
        Shape (m, d).
    plan
        For these sources, targets and ``request``, from ``plan``.
    out
        Memory for V m, shape (m, k).
    """
    sums = Prepared(points, log_weights, plan, request, workspace)
    if not plan.peeled:
        return sums.read(x, head, request, out)
    x, matrix = plain(x), plain(head.A)
    found = sums.read(x, head._replace(V=np.eye(x.shape[1])), replace(request, log_mass=True))
    assert found.log_mass is not None
    result = found.log_mass, found.mean, np.empty((0, 0, 0)) if found.covariance is None else found.covariance
    add_outliers(sums.points, sums.log_weights, x, matrix, sums.sources, sums.targets, result, workspace)
    return found._replace(mean=tilts(found.mean, plain(head.V)))


class Prepared:
    """Sources, spread and transformed: Z at the targets' nodes, to be read at any targets that the plan covers.

    What it holds lasts until the workspace is used again.
    """

    def __init__(
        self, points: Array, log_weights: Array | None, plan: Plan, request: Request, workspace: Workspace
    ) -> None:
        d, threads, derivatives = len(plan.cells), plan.threads, 2 if request.covariance else 1
        self.points, self.log_weights = plain(points), _NOTHING if log_weights is None else plain(log_weights)
        self.plan, self.workspace, self.derivatives = plan, workspace, derivatives
        self.nodes = plan.nodes
        self.size = math.prod(self.nodes)
        self.strides = tuple(math.prod(self.nodes[k + 1 :]) for k in range(d))
        self.table = table(plan.order, plan.kappa)
        self.sources = np.array(
            [plan.source_centre, [1 / h for h in plan.source_step], plan.cells, plan.source_reach], dtype=float
        )
        self.targets = np.array(
            [plan.tilt, [1 / h for h in plan.target_step], plan.cells, plan.target_reach], dtype=float
        )
        self.tilt = np.array(plan.tilt)
        rows = d + 1 + d + (d * (d + 1) // 2 if derivatives == 2 else 0)  # offsets, Z and its derivatives
        self.floats = workspace.array("laplace.floats", (threads, rows, plan.chunk))
        self.integers = workspace.array("laplace.integers", (threads, 2, plan.chunk), np.int64)
        bins = (self.size >> plan.coarsening) + 2 if plan.coarsening >= 0 else 0
        self.bins = workspace.array("laplace.bins", (threads, bins), np.int64)
        grids, self.shift = self._spread(self.points, self.log_weights)
        self.grid = self._transform(grids)

    def _spread(self, points: Array, log_weights: Array) -> tuple[Array, float]:
        """Sums over sources at the nodes, (parts, nodes), and the logarithm of their scale."""
        plan = self.plan
        # Weights are relative to the heaviest before anything is added to their logarithms: nothing is rounded away.
        base = max(float(log_weights.max()), _ZERO) if log_weights.size else 0.0
        shift = self._largest_exponent(points, log_weights, base) if log_weights.size or any(plan.tilt) else 0.0
        grids = self.workspace.array("laplace.grids", (plan.parts, self.size))
        blocks = self.workspace.array("laplace.blocks", (plan.threads, self.size if plan.flush else 1))
        in_threads(
            plan.threads, kernels.spread(plan.order),
            points, log_weights, base, np.eye(points.shape[1]), self.sources, self.strides, self.tilt, shift,
            self.table, plan.coarsening, plan.flush, grids, blocks, self.floats, self.integers, self.bins,
        )  # fmt: skip
        return grids, base + shift

    def _largest_exponent(self, points: Array, log_weights: Array, base: float) -> float:
        """The largest log w_j - base + <tilt, y_j - y_c>."""
        ends = np.empty((self.plan.threads, 2, 1))
        in_threads(
            self.plan.threads, kernels.peak,
            points, log_weights, base, self.tilt, np.eye(points.shape[1]), self.sources, self.floats, ends,
        )  # fmt: skip
        return max(float(ends[:, 1].max()), _ZERO)

    def _transform(self, grids: Array) -> Array:
        """Z at the targets' nodes, flat: the sum of the grids times E along each axis."""
        plan, nodes = self.plan, self.nodes
        first, second = (self.workspace.array(f"laplace.{name}", self.size) for name in ("first", "second"))
        threads = plan.threads if self.size * max(nodes) > _WORTH_PRODUCT_THREADS else 1
        for axis, count in enumerate(nodes):
            exponentials = self.workspace.array("laplace.exponentials", (count, count))
            node_matrix(plan.target_step[axis], plan.source_step[axis], exponentials)
            if axis == 0:
                multiply(exponentials, grids.reshape(plan.parts, 1, count, -1), first.reshape(1, count, -1), threads)
            elif axis == len(nodes) - 1:  # E is symmetric
                multiply(first.reshape(-1, count), exponentials[None, None], second.reshape(1, -1, count), threads)
                first, second = second, first
            else:
                shape = (nodes[0], count, nodes[2])
                multiply(exponentials, first.reshape(1, *shape), second.reshape(shape), threads)
                first, second = second, first
        return first

    def read(self, x: Array, head: Head, request: Request, out: Array | None = None) -> Sums:
        """What ``evaluate`` returns, without outliers."""
        plan, m, d = self.plan, len(x), x.shape[1]
        matrix, values, centre = plain(head.A), plain(head.V), np.array(plan.source_centre)
        mass = np.empty(m if request.log_mass else 0)
        mean = np.empty((m, len(values))) if out is None else out
        covariance = np.empty((m, d, d) if request.covariance else (0, 0, 0))
        in_threads(
            plan.threads, kernels.gather(plan.order, self.derivatives),
            plain(x), matrix, self.targets, self.strides, self.table, plan.coarsening, self.grid, centre, values,
            self.shift, centre @ matrix, mean, mass, covariance, self.floats, self.integers, self.bins,
        )  # fmt: skip
        return Sums(
            mean,
            mass if request.log_mass else None,
            covariance if request.covariance else None,
            "laplace",
            plan.error_bound,
            plan.mass_error,
        )
