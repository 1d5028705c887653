"""Weighted points about their mean, and the two sums of a half-step each: tilts of them with other weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array, finite
from vlasov.compiled.products import map_rows
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.patience import DEAR, Patience
from vlasov.scaling import gaussian
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
        return float(np.sqrt(np.einsum("nk,nk->n", *2 * (self.points,)).max()))

    @property
    def covariance(self) -> Array:
        """Of the points."""
        return np.einsum("nk,nl->kl", self.weights[:, None] * self.points, self.points)

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

    def lightly(self, points: Array, weights: Array, found: Solution) -> float:
        """The largest share of points that were left out in what they and others see, at potentials found without."""
        y = points - self.centre
        f = self.at(y, found.g).log_mass
        g = self._tilt(self._logs - found.rows.log_mass, map_rows(y, self.matrix.T.copy()), self._request).log_mass
        tilts, logs = (self._row_tilts, map_rows(y, self.matrix)), np.log(weights) - g
        shares = [
            tilt(y, logs, xi, self._request).log_mass - seen
            for xi, seen in zip(tilts, (found.rows.log_mass, f), strict=True)
        ]
        with np.errstate(over="ignore"):
            return float(np.exp(max(share.max() for share in shares)))

    def _tilt(self, logs: Array, xi: Array, request: Request) -> Tilted:
        self.count += 1
        if self._workspace is not None:
            self._workspace.patience.tick("of Sinkhorn's half-steps", self.count)
        return tilt(self.points, logs, xi, request, workspace=self._workspace)

    def tell_if_long(self) -> None:
        """Say before the first sum what so many of them cost, if that is much."""
        n, d = self.points.shape
        patience = Patience() if self._workspace is None else self._workspace.patience
        takes, pairs = by_all_pairs().seconds(n, n, d), True
        if patience.told or _USUAL * takes * patience.velocities < DEAR:
            return
        if not goes_by_all_pairs(n, n, d, self._request.method):
            logs, workspace = self._logs - start(self), self._workspace or Workspace()
            planned = linear_plan(self.points, logs, self._row_tilts, None, self._request, workspace)
            takes, pairs = (planned[1].seconds, False) if planned else (takes, True)
        each = "of Sinkhorn's half-steps, of which a velocity takes tens"
        patience.expect(takes, described(n, n, d, pairs=pairs), each, sums=_USUAL)


def start(sums: Sums) -> Array:
    """The column potential of the Gaussian with the points' covariance."""
    covariance = sums.covariance
    if not np.isfinite(covariance).all():
        raise InputError("are too large for their covariance to be finite; scale them down", "points")
    bent = gaussian.potential(covariance, sums.matrix)
    return 0.5 * np.einsum("nk,nk->n", map_rows(sums.points, bent), sums.points)


def _is_positive(matrix: Array) -> bool:
    """Whether A is symmetric up to rounding, with eigenvalues that are not negative."""
    size = float(np.abs(matrix).max())
    if float(np.abs(matrix - matrix.T).max()) > _ROUNDED * size:
        return False
    return bool(np.linalg.eigvalsh(matrix + matrix.T)[0] >= -_ROUNDED * size)
