"""Weighted points about their mean, and the two sums of a half-step each: tilts of them with other weights."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array, finite
from vlasov.compiled.products import map_rows
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.patience import DEAR, Patience
from vlasov.scaling import gaussian, parts
from vlasov.tilting import Request, Tilted, tilt
from vlasov.tilting.choose import by_all_pairs, described, goes_by_all_pairs, linear_plan

if TYPE_CHECKING:
    from vlasov.scaling.solve import Solution

_ROUNDED = 1e-15  # of the largest entry of A
_USUAL = 20  # sums for a velocity


class Sums:
    """Points y about their mean, their weights w, and A: with the tilted sums that make f of g and g of f.

    Parameters
    ----------
    points, weights
        Shapes (n, d) and (n,); positive weights that sum to one.
    matrix
        A.
    request
        Of each sum.

    Attributes
    ----------
    centre
        The mean, which coordinates here leave out.
    count
        How many sums there were.
    symmetric
        Whether A is, and has no negative eigenvalue: both sums are then the same.
    """

    def __init__(
        self, points: Array, weights: Array, matrix: Array, request: Request, workspace: Workspace | None
    ) -> None:
        if not finite(points):
            raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
        self.weights, self.matrix, self.count = weights, matrix, 0
        self.centre = np.einsum("n,nk->k", weights, points)
        self.points = points - self.centre
        self._logs, self._request, self._workspace = np.log(weights), request, workspace
        self.symmetric = _is_positive(matrix)
        self._row_tilts, self._column_tilts = map_rows(self.points, matrix), map_rows(self.points, matrix.T.copy())

    @property
    def radius(self) -> float:
        """The largest |y|, about the mean."""
        scaled = self.points / (self.unit or 1.0)
        return self.unit * float(np.sqrt(np.einsum("nk,nk->n", scaled, scaled).max()))

    @cached_property
    def unit(self) -> float:
        """The largest coordinate: in units of it no square of a small number is lost."""
        return float(np.abs(self.points).max())

    @property
    def cross_ratio(self) -> float:
        """At least the largest <A (x - x'), y - y'>, by the points' widths along the singular vectors of A."""
        rows, sizes, columns = np.linalg.svd(self.matrix)
        widths = [np.ptp(map_rows(self.points, np.ascontiguousarray(axes)), axis=0) for axes in (rows.T, columns)]
        diameter = min(2 * self.radius, float(np.linalg.norm(widths[0])))
        return float(min(sizes @ (widths[0] * widths[1]), sizes[0] * diameter**2)) * (1 + _ROUNDED)

    def rows(self, g: Array) -> Tilted:
        """f = log int e^{<A x, y> - g} dmu(y) at the points x, and the rows' means."""
        return self._tilt(self._logs - g, self._row_tilts, self._request)

    def columns(self, f: Array) -> Tilted:
        """Log int e^{<A x, y> - f} dmu(x) at the points y."""
        return self._tilt(self._logs - f, self._column_tilts, self._request)

    def at(self, x: Array, g: Array, *, covariance: bool = False) -> Tilted:
        """Rows at other x, about the mean."""
        xi = map_rows(x, self.matrix)
        return self._tilt(self._logs - g, xi, self._request._replace(covariance=covariance))

    def lightly(self, points: Array, weights: Array, found: Solution, x: Array | None) -> float:
        """The largest share of points that were left out in what any point or x sees, at potentials found without."""
        y, f, g = points - self.centre, found.rows.log_mass, found.g
        columns, logs = map_rows(y, self.matrix.T.copy()), np.log(weights)
        rows_there, columns_there = self.at(y, g).log_mass, self._tilt(self._logs - f, columns, self._request).log_mass
        seeing = [(self._row_tilts, f), (map_rows(y, self.matrix), rows_there)]
        if x is not None:
            seeing.append((map_rows(x - self.centre, self.matrix), self.at(x - self.centre, g).log_mass))
        ways = [(logs - columns_there, seeing)]
        if not self.symmetric:
            ways.append((logs - rows_there, [(self._column_tilts, g), (columns, columns_there)]))
        shares = [
            (tilt(y, of_them, xi, self._request).log_mass - of_all).max()
            for of_them, seen_by in ways
            for xi, of_all in seen_by
        ]
        with np.errstate(over="ignore"):
            return float(np.exp(max(shares)))

    def _tilt(self, logs: Array, xi: Array, request: Request) -> Tilted:
        self.count += 1
        if self._workspace is not None:
            self._workspace.patience.tick("of Sinkhorn's half-steps", self.count)
        return parts.tilted(self.points, logs, xi, request, self._workspace)

    def tell_if_long(self) -> None:
        """Say before the first sum what so many of them cost, if that is much."""
        (n, d), request = self.points.shape, self._request
        patience = Patience() if self._workspace is None else self._workspace.patience
        takes, pairs = by_all_pairs().seconds(n, n, d), True
        if patience.told or _USUAL * takes * patience.velocities < DEAR:
            return
        if not goes_by_all_pairs(n, n, d, request.method):
            logs, workspace = self._logs - start(self), self._workspace or Workspace()
            planned = linear_plan(self.points, logs, self._row_tilts, None, request, workspace)
            if planned:
                takes, pairs = planned[1].seconds, False
            elif parts.serves(n, n, d, request):
                each_part = parts.parts(self.points, logs, self._row_tilts, request, workspace)
                takes, pairs = sum(part.seconds for part in each_part), False
        each = "of Sinkhorn's half-steps, of which a velocity takes tens"
        patience.expect(takes, described(n, n, d, pairs=pairs), each, sums=_USUAL)


def start(sums: Sums) -> Array:
    """The column potential of the Gaussian with the points' covariance."""
    if sums.unit == 0:
        return np.zeros(len(sums.points))
    scaled, matrix = sums.points / sums.unit, sums.matrix * sums.unit * sums.unit
    if not np.isfinite(matrix).all():
        raise InputError("are too large for their covariance to be finite; scale them down", "points")
    covariance = np.einsum("nk,nl->kl", sums.weights[:, None] * scaled, scaled)
    return 0.5 * np.einsum("nk,nk->n", map_rows(scaled, gaussian.potential(covariance, matrix)), scaled)


def _is_positive(matrix: Array) -> bool:
    """Whether A is symmetric up to rounding, with eigenvalues that are not negative."""
    size = float(np.abs(matrix).max())
    if float(np.abs(matrix - matrix.T).max()) > _ROUNDED * size:
        return False
    return bool(np.linalg.eigvalsh(matrix + matrix.T)[0] >= -_ROUNDED * size)
