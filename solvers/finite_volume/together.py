"""The densities of all parts as one measure: log Z and the mean of each, with what is known beyond its grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.measures import Density, Mixture
from vlasov.measures.base import Tiltable
from vlasov.measures.mixture import Mixed
from vlasov.solvers.finite_volume.densities import GaussianTails, Smooth
from vlasov.solvers.finite_volume.slices import Seen
from vlasov.tilting import Request, Tilted


class Together(Mixture):
    """A mixture of densities with tails or hulls."""

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        return self.reweighted(None).tilted(xi, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        pairs = zip(self.weights, self.components, strict=True)
        return Mixed([(float(w), Felt(part, quadratic)) for w, part in pairs])  # type: ignore[arg-type]


class SeenTogether(Seen):
    """A law as it is seen from a slice, of densities with tails or hulls."""

    def felt(self, quadratic: Array | None) -> Sequence[Tiltable]:
        return [Felt(part, quadratic) for part in self.components]  # type: ignore[arg-type]


class Felt(NamedTuple):
    """e^{-<y, P y>} mu of a density, as the other parts feel it."""

    density: Density
    quadratic: Array | None

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        density = self.density
        if isinstance(density, GaussianTails) and density.tails is not None:
            return self._continued(density, xi, request, workspace)
        return self._summed(xi, request, workspace)

    def _summed(self, xi: Array, request: Request, workspace: Workspace | None) -> Tilted:
        measure = self.density.reweighted(self.quadratic)

        def by(best: Request) -> Tilted:
            return measure.tilted(xi, best._replace(covariance=request.covariance), workspace=workspace)

        return self.density.best(len(xi), by) if isinstance(self.density, Smooth) else by(request)

    def _continued(self, density: GaussianTails, xi: Array, request: Request, workspace: Workspace | None) -> Tilted:
        """log Z(xi) = log Z(xi_0) + <m(xi_0), xi - xi_0> + <xi - xi_0, C(xi_0) (xi - xi_0)> / 2."""
        assert density.tails is not None
        window, shift = density.window(density.tails, self.quadratic)
        tilts = xi @ density.matrix - shift
        clipped = np.clip(tilts, -window.reach, window.reach)
        beyond = np.flatnonzero(np.logical_or.reduce([a != b for a, b in zip(clipped.T, tilts.T, strict=True)]))
        if not beyond.size:
            return self._summed(xi, request, workspace)
        inner = np.array(xi)
        inner[beyond] = (clipped[beyond] + shift) @ np.linalg.inv(density.matrix)
        found = self._summed(inner, request._replace(covariance=True), workspace)
        assert found.covariance is not None
        step = xi - inner
        moved = np.einsum("nkl,nl->nk", found.covariance, step)
        added = np.einsum("nk,nk->n", found.mean + moved / 2, step)
        covariance = found.covariance if request.covariance else None
        return replace(found, log_mass=found.log_mass + added, mean=found.mean + moved, covariance=covariance)
