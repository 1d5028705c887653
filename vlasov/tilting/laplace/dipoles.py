"""Products with the derivative of V m(A y_i) by all points y_j at linear cost: one field of dipoles for each product.

    D(xi) = sum_j W_j (<h_j, grad_y> + <h_j, s_j>) e^{<xi, y>} at y_j
        (J h)_i = V [(grad D - D m_i) / Z_i + C_i A h_i]                      at xi_i = A y_i

    B(y) = sum_i 1 / Z_i (<q_i, grad_xi> - <q_i, m_i>) e^{<xi, y>} at xi_i,   q = V^T p
        (J^T p)_j = W_j [grad B + B s_j] + A^T C_j q_j                        at y_j

Coordinates and means are those about the plan's centres, s_j is the tilt plus the slope of log w at y_j, and W_j, Z_i
are those that ``Prepared`` sums. Derivatives by the points are taken of the stencils: both products are transposes of
each other, and J is the derivative of the interpolated velocity, whatever the tolerance. Pairs of which one is beyond
the plan's reach are summed one by one (``dipole_pairs``).
"""

from __future__ import annotations

import math
from threading import Lock

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import all_pairs, node_kernels, nodes
from vlasov.tilting.laplace import Prepared, dipole_kernels, kernels
from vlasov.tilting.laplace.dipole_kernels import Own, Side
from vlasov.tilting.laplace.dipole_pairs import Ends, Indices, add_pairs
from vlasov.tilting.laplace.outliers import outside, tilts
from vlasov.tilting.laplace.plan import LARGEST_EXPONENT, Plan
from vlasov.tilting.laplace.transform import transform
from vlasov.tilting.nodes import Nodes
from vlasov.tilting.results import Head, Request

_NOTHING, _NO_COLUMNS = np.empty(0), 0
_MOST = 3  # rows of V that the kernels take
_SPARE = 60.0  # of exponents: for the size of h and p, and of sums of many


class Products:
    """J and its transpose at points that are sources and targets both. It uses the workspace and keeps none of it.

    Parameters
    ----------
    points, log_weights
        Shapes (n, d) and (n,); None: all weights are one.
    head
        A and V; P is in the log weights already.
    bend
        P + P^T, so that log weights have the slope -(P + P^T) y; None for zero.
    plan
        For these sources and targets, with the covariance.
    """

    def __init__(
        self,
        points: Array,
        log_weights: Array | None,
        head: Head,
        bend: Array | None,
        plan: Plan,
        workspace: Workspace,
    ) -> None:
        self.plan, self.workspace, points = plan, workspace, plain(points)
        self._turn = Lock()  # products of several threads take turns in the workspace
        self.matrix, self.values = plain(head.A), plain(head.V)
        self.d = points.shape[1]
        self._request = Request(log_mass=plan.peeled, covariance=True)
        prepared = Prepared(points, log_weights, plan, self._request, workspace)
        tilt, identity = np.array(plan.tilt), np.eye(self.d)
        logs = _logs(points, log_weights, plan, prepared.nodes.shift)
        slopes = np.empty((self.d, _NO_COLUMNS)) if bend is None else tilt[:, None] - _rows(points, bend)
        far = self._far(prepared) if plan.peeled else None
        scales = _NOTHING if logs is None else np.exp(logs)
        if far is None:
            kept = self._kept(prepared)
        else:
            kept, target_logs = self._kept_with_outliers(prepared)
            source_logs = np.zeros(len(points)) if logs is None else logs
            self.ends = (
                Ends(_rows(points - plan.source_centre, identity), slopes_of(slopes, tilt, len(points)), source_logs),
                Ends(_rows(points, self.matrix) - tilt[:, None], kept[1 : 1 + self.d].copy(), target_logs),
            )
            kept[0, far[1]] = 0.0
            if scales.size:
                scales[far[0]] = 0.0
        self.far, self.covariance = far, kept[1 + self.d :]
        self.sources = Side(points, identity, prepared.sources, scales, slopes, tilt)
        self.targets = Side(points, self.matrix, prepared.targets, kept[0], kept[1 : 1 + self.d], np.zeros(self.d))

    @property
    def in_range(self) -> bool:
        """Whether the transpose's sums, over nodes where no source may be, stay finite."""
        plan, scales = self.plan, self.targets.scales
        reach = sum(
            ((cells + plan.order) / 2 - 1) ** 2 * s * t
            for cells, s, t in zip(plan.cells, plan.source_step, plan.target_step, strict=True)
        )
        largest, least = float(scales.max()), float(scales.min())
        if not (least >= 0 and math.isfinite(largest) and math.isfinite(float(self.covariance.sum()))):
            return False
        return reach + math.log(max(largest, 1.0)) + _SPARE < LARGEST_EXPONENT

    def tangent(self, h: Array) -> Array:
        """J h, shapes (n, d) -> (n, k)."""
        values = self.values if len(self.values) <= _MOST else np.eye(self.d)
        h, own = plain(h), Own(values, values, self.matrix, self.covariance)
        with self._turn:
            result = self._read(self.targets, self._field(self.sources, h, np.eye(self.d)), h, own)
        if self.far is not None:
            (sources, targets), (far_sources, far_targets) = self.ends, self.far
            far = far_targets, far_sources
            add_pairs(targets, sources, far, h, values, self.plan.threads, result)
        return result if values is self.values else map_rows(result, self.values)

    def adjoint(self, p: Array) -> Array:
        """J^T p, shapes (n, k) -> (n, d)."""
        values = np.ascontiguousarray(self.values.T)
        if len(self.values) > _MOST:
            p, values = map_rows(p, values), np.eye(self.d)
        p, identity = plain(p), np.eye(self.d)
        own = Own(identity, np.ascontiguousarray(self.matrix.T), values, self.covariance)
        with self._turn:
            result = self._read(self.sources, self._field(self.targets, p, values), p, own)
        if self.far is not None:
            add_pairs(*self.ends, self.far, map_rows(p, values), identity, self.plan.threads, result)
        return result

    def heaviest_column(self) -> float:
        """max_j sum_i P_ij of the softmax matrix P, whose rows sum to one: |P|_2 is at most its root."""
        with self._turn:
            sums = self._columns()
        return math.exp(float(sums.max()))

    def _columns(self) -> Array:
        """The logarithms of the columns' sums."""
        grids, blocks, scratch = self._memory()
        masses = kernels.Weights(_NOTHING, 0.0, np.zeros(self.d), self.targets.scales)
        in_threads(
            self.plan.threads, kernels.spread_parts, kernels.spread(self.plan.order, self.d),
            self.targets.points, masses, 0.0, self.matrix, self.targets.stencils, self.plan.flush,
            grids, blocks, scratch,
        )  # fmt: skip
        grid, nowhere = transform(self.plan, grids, self.workspace), np.zeros(self.d)
        at_nodes = Nodes(self.plan, self.sources.stencils, scratch, grid, 0.0, nowhere, np.array(self.plan.radius))
        nothing = Head(np.eye(self.d), np.zeros((1, self.d)))
        sums = at_nodes.read(self.sources.points, nothing, Request(log_mass=True)).log_mass
        assert sums is not None
        if self.far is not None:
            return self._columns_with_outliers(sums)
        if self.sources.scales.size:
            with np.errstate(divide="ignore"):
                sums += np.log(self.sources.scales)
        return sums

    def _columns_with_outliers(self, sums: Array) -> Array:
        assert self.far is not None
        (far_sources, far_targets), (sources, targets) = self.far, self.ends
        xi, y = targets.places.T, sources.places.T

        def log_masses(some: Indices, at: Array) -> Array:
            found = all_pairs.moments(xi[some], targets.logs[some], at, workspace=self.workspace).log_mass
            assert found is not None
            return found

        sums[far_sources] = -np.inf  # beyond the reach they hold anything
        if len(far_targets):
            sums = np.logaddexp(sums, log_masses(far_targets, y))
        if len(far_sources):
            sums[far_sources] = log_masses(np.arange(len(xi)), y[far_sources])
        total: Array = sums + sources.logs
        return total

    def _field(self, side: Side, vectors: Array, matrix: Array) -> Array:
        """What ``matrix`` times the vectors of one side make, at the nodes of the other."""
        grids, blocks, scratch = self._memory()
        in_threads(
            self.plan.threads, dipole_kernels.spread_dipoles, dipole_kernels.spread(self.plan.order, self.d),
            side, vectors, matrix, self.plan.flush, grids, blocks, scratch,
        )  # fmt: skip
        return transform(self.plan, grids, self.workspace)

    def _read(self, side: Side, field: Array, vectors: Array, own: Own) -> Array:
        result, gather = np.empty((len(vectors), len(own.values))), node_kernels.gather(self.plan.order, 1, self.d)
        in_threads(
            self.plan.threads, dipole_kernels.gather_dipoles, gather,
            side, vectors, own, field, result, self._memory()[2],
        )  # fmt: skip
        return result

    def _memory(self) -> tuple[Array, Array, node_kernels.Scratch]:
        """Grids, blocks and scratch memory, as ``Prepared`` has them."""
        plan, size = self.plan, math.prod(self.plan.nodes)
        grids = self.workspace.array("laplace.grids", (plan.parts, size))
        blocks = self.workspace.array("laplace.blocks", (plan.threads, size if plan.flush else 1))
        return grids, blocks, nodes.scratch(plan, self._request, self.workspace, least=4 * self.d + 1)

    def _kept(self, prepared: Prepared) -> Array:
        """Rows 1 / Z, -m and C, (1 + d + d (d + 1) / 2, n)."""
        d, (_, _, scratch) = self.d, self._memory()
        nothing = np.empty((d, 0)), np.zeros(d)
        side = Side(prepared.points, self.matrix, prepared.targets, _NOTHING, *nothing)
        kept = np.empty((1 + d + d * (d + 1) // 2, len(prepared.points)))
        gather = node_kernels.gather(self.plan.order, 2, d)
        in_threads(
            self.plan.threads, dipole_kernels.keep_moments, gather, side, prepared.nodes.grid, kept, scratch
        )  # fmt: skip
        return kept

    def _kept_with_outliers(self, prepared: Prepared) -> tuple[Array, Array]:
        """The same over all sources, at all targets; and log 1 / Z."""
        d, plan, x = self.d, self.plan, prepared.points
        sums = prepared.read(x, Head(self.matrix, np.eye(d)), self._request)
        assert sums.log_mass is not None
        assert sums.covariance is not None
        at_centre = _rows(x, self.matrix).T @ np.array(plan.source_centre)
        above, below = np.triu_indices(d)
        logs = prepared.nodes.shift + at_centre - sums.log_mass
        with np.errstate(over="ignore"):  # targets beyond the reach
            scales = np.exp(logs)
        means = np.array(plan.source_centre)[:, None] - sums.mean.T
        return np.concatenate([scales[None], means, sums.covariance[:, above, below].T]), logs

    def _far(self, prepared: Prepared) -> tuple[Indices, Indices]:
        """Sources and targets beyond the reach."""
        points, workspace = prepared.points, self.workspace
        sources = outside(points, np.eye(self.d), prepared.sources.axes, workspace)
        return sources, outside(points, self.matrix, prepared.targets.axes, workspace)


def slopes_of(slopes: Array, slope: Array, n: int) -> Array:
    """Slopes at all points, (d, n)."""
    return slopes if slopes.shape[1] else np.repeat(slope[:, None], n, axis=1)


def _rows(points: Array, matrix: Array) -> Array:
    """The matrix times all points, a row for each coordinate, (k, n)."""
    return np.ascontiguousarray(tilts(plain(points), plain(matrix)).T)


def _logs(points: Array, log_weights: Array | None, plan: Plan, shift: float) -> Array | None:
    """log W_j, as ``Prepared`` has summed them; None where all are zero."""
    tilt = np.array(plan.tilt)
    if log_weights is None and not tilt.any():
        return None
    logs = _rows(points - plan.source_centre, tilt[None])[0] - shift
    return logs if log_weights is None else logs + log_weights
