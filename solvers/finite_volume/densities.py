"""Densities in a frame whose velocities know what the grid cannot hold: Gaussian tails, or a compact support."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vlasov import tilting
from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures import Density, Particles
from vlasov.solvers.finite_volume import few_tilts
from vlasov.solvers.finite_volume.grid import points
from vlasov.solvers.finite_volume.hull import Hull
from vlasov.solvers.finite_volume.tails import Tails, Window
from vlasov.tilting import Field, Head, Request, Tilted

T = TypeVar("T")


class Defect(NamedTuple):
    """What cell averages of rough data miss of the mean and the covariance, in the frame."""

    mean: Array
    covariance: Array


class Corrected(Density):
    """A density whose moments are those of the measure it stands for, known when the run began.

    Where the frame carries all of the motion, as under linear attention, they stay exact. What this class and the next
    ones know is given to ``trusted``, as the averages are.
    """

    defect: Defect | None = None

    @cached_property
    def mean(self) -> Array:
        found = super().mean
        return found if self.defect is None else found + self.matrix @ self.defect.mean

    @cached_property
    def covariance(self) -> Array:
        found = super().covariance
        return found if self.defect is None else found + self.matrix @ self.defect.covariance @ self.matrix.T


_FINEST, _FINE, _COARSE = 1e-13, 1e-12, (1e-11, 1e-10)  # tolerances, relative to the grid's half width
# The same on large grids in space, where more digits take three times as long and the scheme errs by far more.
IN_SPACE, LARGE = 1e-10, 100_000
# Exponents on the grid, below which velocities are next to affine: what counts is the error of their slope.
_WEAK = 10.0
_FEW_PAIRS = 3e6  # of cells and targets, where all pairs are as fast
# Cells for which all pairs take some ten milliseconds, with ten times less rounding error than sums on a lattice:
# where the covariance grows, so do the errors made before.
_SMALL_GRID = 10_000
_NOTHING = 1e-20  # of the largest density: what cells below carry has come by diffusion
_IN_HULL = 1e-8  # tolerance where the scheme's own error is a hundred times that of a smooth density, or more
_DEPTHS = (0.5, 0.75, 1.0)  # of the window, where the continuation is held against sums


class Smooth(Corrected):
    """A smooth density on its grid, which chooses accuracy and method itself: errors of velocities grow with time."""

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Any) -> Field:
        evaluate = super().average
        half = max(float(axis[-1] - axis[0]) / 2 for axis in self.edges)
        weak = float(np.linalg.norm(self.matrix.T @ head.A @ self.matrix, 2)) * half * half < _WEAK
        return self.best(len(x), lambda best: evaluate(x, head, best, **how), weak)

    def best(self, targets: int, evaluate: Callable[[Request], T], weak: bool = False) -> T:
        """The most accurate evaluation that is fast: for many cells, at a cost that does not grow with their square."""
        if self.dimension == 3 and self.values.size > LARGE:
            fine: tuple[float, ...] = (IN_SPACE,)
        else:
            fine = (_FINEST, _FINE) if weak else (_FINE,)
        if self.values.size * targets <= _FEW_PAIRS:
            return evaluate(Request(fine[0]))
        small = self.values.size <= _SMALL_GRID
        ladder = [(tolerance, "lattice") for tolerance in fine]
        ladder += [(_FINE, "all-pairs")] if small else [(tolerance, "lattice") for tolerance in _COARSE]
        for tolerance, method in ladder:
            with suppress(InputError):  # rounding errors come too close to the tolerance
                return evaluate(Request(tolerance, method))
        return evaluate(Request(_COARSE[-1]))


class GaussianTails(Smooth):
    """Beyond a window of tilts, where sums miss the tails, log Z is continued quadratically.

        m(xi) = m(xi_0) + C(xi_0) (xi - xi_0),   xi_0 = xi clipped to |xi_k - center_k| <= reach_k

    On a Gaussian this is exact: its tilted covariance does not depend on xi, nor does it beside e^{-<y, P y>}. Without
    tails the sums serve all tilts.
    """

    tails: Tails | None = None

    def average(
        self, x: Array, head: Head, request: Request = Request(), *, about: Array | None = None, **how: Any
    ) -> Field:
        if self.tails is None:
            return super().average(x, head, request, about=about, **how)
        window, shift = self.window(self.tails, head.P)
        tilts = map_rows(x, self.matrix.T @ head.A, threads=1)
        tilts -= shift
        outside = reduce(np.logical_or, (np.abs(tilts[:, k]) > reach for k, reach in enumerate(window.reach)))
        beyond = np.flatnonzero(outside)
        if not beyond.size:
            return super().average(x, head, request, about=about, **how)
        within, far = np.flatnonzero(~outside), tilts.take(beyond, axis=0)
        out = how.pop("out", None)
        out = np.empty((len(x), len(head.V))) if out is None else out
        field = super().average(x.take(within, axis=0), head, request, about=about, **how)
        out[within] = field.values
        edge = far.clip(-window.reach, window.reach)
        inverse = np.asarray(np.linalg.inv(self.matrix.T), dtype=np.float64)
        inner = map_rows(edge + shift, inverse, threads=1)
        measure = self.reweighted(head.P)
        tilted = self.best(len(inner), lambda best: measure.tilted(inner, best._replace(covariance=True), **how))
        assert tilted.covariance is not None
        moved, rest = tilted.mean if about is None else tilted.mean - about, map_rows(far - edge, inverse, threads=1)
        for k in range(self.dimension):
            moved = moved + tilted.covariance[:, :, k] * rest[:, k, None]
        out[beyond] = map_rows(moved, head.V, threads=1)
        return Field(out, field.method, max(field.error_bound, tilted.error_bound))

    def misfit(self, x: Array, head: Head) -> float:
        """How far continued means at x may be off, in units of the frame, as seen from within the window.

        What a continuation from one depth misses at the next falls on the way to the edge; as it has fallen last, it
        goes on beyond, over a distance that grows with that of x.
        """
        assert self.tails is not None
        window, shift = self.window(self.tails, head.P)
        tilts = x @ (self.matrix.T @ head.A).T - shift
        edge = tilts.clip(-window.reach, window.reach)
        far = np.flatnonzero((edge != tilts).any(axis=1))
        if not far.size:
            return 0.0
        tilts, edge = tilts[far], edge[far]
        xi = np.array([depth * edge for depth in _DEPTHS]) + window.center
        means, spreads = self._tilted_in_frame(xi.reshape(-1, self.dimension), head.P)
        means, spreads = means.reshape(xi.shape), spreads.reshape(*xi.shape, self.dimension)
        missed = np.diff(means, axis=0) - np.einsum("lnij,lnj->lni", spreads[:-1], np.diff(xi, axis=0))
        before, last = np.linalg.norm(missed, axis=2)
        growth = np.linalg.norm(tilts - edge, axis=1) / np.linalg.norm((1 - _DEPTHS[1]) * edge, axis=1)
        return float((last * np.minimum(1.0, last / np.maximum(before, 1e-300)) * growth).max())

    def _tilted_in_frame(self, tilts: Array, quadratic: Array | None) -> tuple[Array, Array]:
        """Means and covariances of z under e^{<xi, z> - <z, M^T P M z>}, by sums over averages that carry mass."""
        values = self.values.ravel()
        carrying = values > _NOTHING * float(values.max())
        z, logs = points(self.grid.centers)[carrying], np.log(values[carrying])
        if quadratic is not None:
            logs -= np.einsum("nk,kl,nl->n", z, self.matrix.T @ quadratic @ self.matrix, z)
        return few_tilts.moments(z, logs, tilts)

    def window(self, tails: Tails, quadratic: Array | None) -> tuple[Window, Array]:
        """The window of tilts in the frame, and where M^T A x is in its middle: 2 M^T P o moves with the origin."""
        if quadratic is None:
            window = tails.window()
            return window, window.center
        window = tails.window(self.matrix.T @ quadratic @ self.matrix)
        return window, window.center + self.matrix.T @ (quadratic + quadratic.T) @ self.origin


class InHull(NamedTuple):
    """The cells of a density with their centres moved into the hull, reweighted by e^{-<y, P y>} if P is given.

    As ``Cells`` of ``vlasov.measures.density.tilts``.
    """

    density: Density
    hull: Hull
    quadratic: Array | None

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        origin, matrix = self.density.origin, self.density.matrix
        points, logs = self.sources()
        found = tilting.tilt(points, logs, xi @ matrix, request._replace(log_mass=True), workspace=workspace)
        constant = 0.0 if self.quadratic is None else float(origin @ self.quadratic @ origin)
        return Tilted(
            log_mass=found.log_mass + xi @ origin - constant,
            mean=origin + map_rows(found.mean, matrix),
            covariance=None if found.covariance is None else matrix @ found.covariance @ matrix.T,
            method=found.method,
            error_bound=float(np.linalg.norm(matrix, 2)) * found.error_bound,
            mass_error=found.mass_error,
        )

    def average(
        self,
        x: Array,
        head: Head,
        request: Request = Request(),
        *,
        workspace: Workspace | None = None,
        about: Array | None = None,
        out: Array | None = None,
    ) -> Field:
        """As ``Measure.average``, with the mean in the frame."""
        matrix, (points, logs) = self.density.matrix, self.sources()
        in_frame = Head(matrix.T @ head.A, head.V @ matrix)
        request = request._replace(tolerance=max(request.tolerance, _IN_HULL))
        field = tilting.attend(points, logs, x, (in_frame,), request, workspace=workspace, out=out)
        away = self.density.origin if about is None else self.density.origin - about
        np.add(field.values, head.V @ away, out=field.values)
        return field

    def sources(self) -> tuple[Array, Array]:
        """Centres in the frame, and log masses that sum to one: <y, P y> at y = o + M z, but for <o, P o>."""
        values = self.density.values.ravel()
        carrying = np.flatnonzero(values > _NOTHING * float(values.max()))
        logs, points = np.log(values[carrying] / values[carrying].sum()), self.hull.clip(carrying)
        if self.quadratic is not None:
            origin, matrix, quadratic = self.density.origin, self.density.matrix, self.quadratic
            logs -= np.einsum("nk,kl,nl->n", points, matrix.T @ quadratic @ matrix, points)
            logs -= points @ (matrix.T @ (quadratic + quadratic.T) @ origin)
        return points, logs


class Hulled(Density):
    """Sums over cells whose centres are moved into the convex hull of the true support.

    Mass that numerical diffusion has carried out of the hull would be weighted by e^{<xi, y>} too large.
    """

    hull: Hull

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        return self.reweighted(None).tilted(xi, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> InHull:
        return InHull(self, self.hull, quadratic)

    def points_for(self, tilt: float) -> Particles:
        points, logs = self.reweighted(None).sources()
        return Particles(self.origin + map_rows(points, self.matrix), np.exp(logs))

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Any) -> Field:
        return self.reweighted(head.P).average(x, head, request, **how)
