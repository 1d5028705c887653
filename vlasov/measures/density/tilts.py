"""Tilted means of a density on a uniform grid, in the coordinates z of its frame x = o + M z.

    int e^{<xi, y> - <y, P y>} drho(y) = e^{<xi, o> - <o, P o>} int e^{<M^T (xi - 2 P o), z> - <z, M^T P M z>} drho(z)

Without P, cell averages are summed and the smoothing by a cell is taken back (see ``vlasov.tilting.lattice``). With P,
point values times e^{-<z, M^T P M z>} are new masses of Diracs. Around the middle x_c of the targets, so that no factor
overflows, and no digits are lost far from zero:

    M^T (A x - 2 P o) = M^T A (x - x_c) + M^T (A (x_c - o) + (A - 2 P) o)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from vlasov import tilting
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import How
from vlasov.tilting import Field, Head, Request, Tilted
from vlasov.tilting.results import Sums
from vlasov.tilting.uniform import tilted_interval

if TYPE_CHECKING:
    from vlasov.measures.density import Density

_EPS = float(np.finfo(float).eps)
_ROUNDING = 8 * _EPS  # of each term of an exponent
_LARGEST_EXPONENT = 300.0  # masses below e^-700 of the largest vanish, which must not matter at any target


class _Sources(NamedTuple):
    """What is summed: masses of the cells, e^{<M^T A x, z>} at targets x, and what log Z is to be increased by.

    ``exponents`` are those that the masses already contain, None for none; ``far``: of too wide a range for masses,
    which may have vanished; ``rounding``: of exponents and scale.
    """

    masses: Array
    x: Array
    smooth: bool
    log_scale: float
    exponents: Array | None
    far: bool
    rounding: float


class Cells(NamedTuple):
    """The cells of a density, reweighted by e^{-<y, P y>} if P is given: what tilts and averages are sums over."""

    density: Density
    quadratic: Array | None

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        origin, identity = self.density.origin, np.eye(self.density.dimension)
        head = Head(identity, identity, self.quadratic)
        sums = self._sums(xi, head, request._replace(log_mass=True), workspace or Workspace(), None)
        assert sums.log_mass is not None
        shift = xi @ origin
        return Tilted(
            log_mass=sums.log_mass + shift,
            mean=origin + sums.mean,
            covariance=None if sums.covariance is None else _congruent(sums.covariance, self.density.matrix),
            method=sums.method,
            error_bound=self._bound(identity, sums.error_bound) + _EPS * float(np.abs(origin).sum()),
            mass_error=sums.mass_error + _EPS * len(origin) * float(np.abs(shift).max(initial=0.0)),
        )

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Unpack[How]) -> Field:
        """As ``Measure.average``: V (m_z + origin - about), with the mean m_z in the frame."""
        sums = self._sums(x, head, request, how.get("workspace") or Workspace(), how.get("out"))
        bound, about = self._bound(head.V, sums.error_bound), how.get("about")
        away = self.density.origin if about is None else self.density.origin - about
        if away.any():
            np.add(sums.mean, head.V @ away, out=sums.mean)
            bound += _EPS * float(np.abs(head.V).sum(axis=0) @ np.abs(away))
        return Field(sums.mean, sums.method, bound)

    def _sums(self, x: Array, head: Head, request: Request, workspace: Workspace, out: Array | None) -> Sums:
        """log Z of rho / mass without <A x, o>, V M m and C, with the mean m and covariance C in z, at tilts A x."""
        from vlasov.tilting import grid

        density = self.density
        check_evaluable(density)
        cells, in_frame = density.grid, Head(density.matrix.T @ head.A, head.V @ density.matrix)
        sources = (
            _plain(density, x) if self.quadratic is None else _reweighted(density, x, head.A, self.quadratic, workspace)
        )
        sums = None
        if not sources.far:
            lattice = grid.Grid(sources.masses, cells.lower, cells.steps, sources.smooth)
            sums = grid.evaluate(lattice, sources.x, in_frame, request, workspace=workspace, out=out)
        if sums is None:
            sums = _over_points(density, sources, in_frame, request, workspace)
        if out is not None and sums.mean is not out:
            np.copyto(out, sums.mean)
            sums = sums._replace(mean=out)
        sums = sums._replace(mass_error=sums.mass_error + sources.rounding)
        if self.quadratic is not None:  # wrong weights move the mean by no more than the grid is long
            sums = sums._replace(error_bound=sums.error_bound + sources.rounding * _length(density))
        return sums if sums.log_mass is None else sums._replace(log_mass=sums.log_mass + sources.log_scale)

    def _bound(self, values: Array, in_frame: float) -> float:
        return float(np.linalg.norm(values @ self.density.matrix, 2)) * in_frame


def check_evaluable(density: Density) -> None:
    """Refuse grids that are not uniform."""
    if not all(density.uniform):
        axis = density.uniform.index(False)
        raise InputError(
            "is not evenly spaced but a velocity needs a uniform grid; use density.on_grid(uniform_edges)",
            f"edges[{axis}]",
        )


def _plain(density: Density, x: Array) -> _Sources:
    log_scale = math.log(density.grid.steps.prod()) - math.log(density.mass)
    rounding = _ROUNDING * (1 + abs(log_scale) + abs(math.log(density.mass)))
    return _Sources(density.values, x, bool(density.smoothing.any()), log_scale, None, far=False, rounding=rounding)


def _reweighted(density: Density, x: Array, matrix: Array, quadratic: Array, workspace: Workspace) -> _Sources:
    """Point values times e^{<tilt, z> - <z, M^T P M z> - shift}, for the tilt at the middle of the targets."""
    from vlasov.tilting.boxes import box

    frame, origin, grid = density.matrix, density.origin, density.grid
    low, high = box(x, np.eye(len(origin)), 1) if len(x) else (origin, origin)
    middle = low / 2 + high / 2
    tilt = frame.T @ (matrix @ (middle - origin) + (matrix - 2 * quadratic) @ origin)
    inner = frame.T @ quadratic @ frame
    d, shape = len(origin), density.values.shape
    places = [center.reshape([-1 if l == k else 1 for l in range(d)]) for k, center in enumerate(grid.centers)]
    exponents = workspace.array("density.exponents", shape)
    exponents[...] = 0.0
    for k in range(d):
        exponents += places[k] * (tilt[k] - inner[k, k] * places[k])
        for l in range(k):
            term = workspace.array("density.masses", np.broadcast_shapes(places[k].shape, places[l].shape))
            exponents -= np.multiply((inner[k, l] + inner[l, k]) * places[k], places[l], out=term)
    points = density.point_values
    carrying = points > 0
    shift = float(exponents.max(where=carrying, initial=-np.inf))
    spread = shift - float(exponents.min(where=carrying, initial=np.inf))
    exponents -= shift
    masses = workspace.array("density.masses", shape)
    np.exp(np.minimum(exponents, 0.0, out=masses), out=masses)
    masses *= points
    reach = np.abs(frame.T @ matrix) @ (high - middle) @ (grid.steps * shape)
    far = bool(spread > _LARGEST_EXPONENT and reach > 2 * _LARGEST_EXPONENT)
    log_scale = math.log(grid.steps.prod()) - math.log(density.mass) + shift - float(origin @ quadratic @ origin)
    ends = np.array([np.abs(axis).max() for axis in density.edges])
    away = np.abs(origin)
    terms = (
        ends @ (np.abs(frame.T @ matrix) @ np.abs(middle - origin) + np.abs(inner) @ ends)
        + away @ np.abs(quadratic) @ away
    )
    terms += ends @ (np.abs(frame.T @ (matrix - 2 * quadratic)) @ away)
    rounding = _ROUNDING * (1 + abs(log_scale) + abs(shift) + float(terms))
    return _Sources(masses, x - middle, False, log_scale, exponents, far, rounding)


def _length(density: Density) -> float:
    """The diagonal of the grid, in z."""
    return float(np.linalg.norm(density.grid.steps * density.values.shape))


def _over_points(density: Density, sources: _Sources, head: Head, request: Request, workspace: Workspace) -> Sums:
    """The same with cells as points: all pairs, or ``laplace``."""
    from vlasov.compiled.products import map_rows

    carrying, points = density.carrying
    weights = sources.masses if sources.exponents is None else density.point_values
    logs = np.log(weights[carrying])
    if sources.exponents is not None:
        logs += sources.exponents[carrying]
    xi = map_rows(sources.x, head.A)
    request = request._replace(method="auto") if request.method == "lattice" else request
    found = tilting.tilt(points, logs, xi, request, workspace=workspace)
    log_mass, mean, second = found.log_mass, found.mean, found.covariance
    rounding = _ROUNDING * (1 + float(np.abs(logs).max(initial=0.0)))
    if sources.smooth:
        log_cell, cell_mean, cell_variance = tilted_interval(density.smoothing / 2, xi)
        log_mass, mean = log_mass - log_cell.sum(axis=1), mean - cell_mean
        rounding += _ROUNDING * float(np.abs(log_cell).sum(axis=1).max(initial=0.0))
        second = None if second is None else second - cell_variance[:, :, None] * np.eye(xi.shape[1])
    return Sums(map_rows(mean, head.V), log_mass, second, found.method, found.error_bound, found.mass_error + rounding)


def _congruent(matrices: Array, frame: Array) -> Array:
    """M C M^T for each C (n, d, d), as one linear map: small products one by one take ten times as long."""
    from vlasov.compiled.products import map_rows

    pairs = np.asarray(np.kron(frame, frame), dtype=np.float64)
    return map_rows(matrices.reshape(len(matrices), -1), pairs, threads=1).reshape(matrices.shape)
