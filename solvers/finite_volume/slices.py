"""Slices of a text: the laws at a few places, from which what a token sees of all before it is known spectrally.

Under Sinkhorn attention, whose potentials need a measure with positive weights, in second order.

    Z_s(xi) = sum_b w_b Z_b(xi) + int_e^s Z_tau(xi) dtau,   log Z_tau(xi) ~ sum_j l_j(u) log Z_j(xi),  tau = e + h u^2

Laws are smooth along each piece [e, e + h] of a ``Sequence``, so that few Gauss nodes in u say all: with Lagrange's
polynomials l_j prefixes are integrals by Gauss nodes, too. Squares put more of them where a law begins, and where
tokens change within a layer from seeing what was before to seeing their own law. Logarithms keep prefixes positive
however far slices are apart; and means are still grad log Z. Tokens of the first law see that law only: one slice holds
all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vlasov.attention import Attention, Linear
from vlasov.attention.unnormalised import Summed
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.measures import Measure, Mixture, Particles, Sequence as Ordered
from vlasov.measures.base import Tiltable
from vlasov.measures.mixture import united
from vlasov.measures.polynomials import gauss, lagrange
from vlasov.tilting import Request, Tilted

_EPS = float(np.finfo(float).eps)


class View(NamedTuple):
    """What is seen from a slice: a mixture with these ``shares``.

    They are those of the slices of laws before it, and of laws inside its own, whose log Z are ``rows`` times those of
    its slices.
    """

    shares: Array
    rows: Array

    @property
    def signed(self) -> Array:
        """What is seen of each slice by sums that are linear in the law; some of these weights may be negative."""
        return np.concatenate([self.shares[: self.before], self.shares[self.before :] @ self.rows])

    @property
    def before(self) -> int:
        """How many slices there are of laws before it."""
        return len(self.shares) - len(self.rows)


class Slices(NamedTuple):
    """Of a text, in their order.

    Attributes
    ----------
    laws
        Of which law of the sequence, (n,).
    weights, places
        Masses, and where in [0, 1] the law is that of the slice, (n,).
    views
        What is seen from each.
    masses
        What is seen from each of each, (n, n), by laws that are constant across slices: positive, of second order.
    """

    laws: list[int]
    weights: Array
    places: Array
    views: list[View]
    masses: Array

    def seen(self, k: int, parts: Sequence[Measure], kind: type[Seen] | None = None) -> Measure:
        """The law of what slice k sees, given those of all slices."""
        view = self.views[k]
        count = len(view.shares)
        if count == 1:
            return parts[0]
        masses = self.masses[k, :count] / self.masses[k].sum()
        known = {"components": tuple(parts[:count]), "weights": view.signed, "view": view, "masses": masses}
        return (kind or Seen).trusted(**known)

    def weights_for(self, attention: Attention) -> Array:
        """What is seen from each of each, (n, n): spectral where velocities are linear in the law, else ``masses``."""
        if not isinstance(attention, Linear | Summed):
            return self.masses
        rows = [mass.sum() * view.signed for view, mass in zip(self.views, self.masses, strict=True)]
        return np.array([np.pad(row, (0, len(rows) - row.size)) for row in rows])


class Seen(Mixture):
    """A law as it is seen from a slice; sums that are linear have signed weights."""

    view: View
    masses: Array

    @property
    def _present(self) -> list[tuple[float, Measure]]:
        return list(zip(self.weights.tolist(), self.components, strict=True))

    def points_for(self, tilt: float) -> Particles:
        """Those of all slices by positive weights."""
        return Mixture.trusted(components=self.components, weights=self.masses).points_for(tilt)

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        return self.reweighted(None).tilted(xi, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        return _Interpolated(self.felt(quadratic), self.view)

    def felt(self, quadratic: Array | None) -> Sequence[Tiltable]:
        """e^{-<y, P y>} mu of each slice."""
        return [part.reweighted(quadratic) for part in self.components]


class _Interpolated(NamedTuple):
    """The mixture of a view."""

    parts: Sequence[Tiltable]
    view: View

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        found = [part.tilted(xi, request, workspace=workspace) for part in self.parts]
        before, own = found[: self.view.before], found[self.view.before :]
        return united(self.view.shares, before + [_between(own, row) for row in self.view.rows])


def _between(slices: Sequence[Tilted], row: Array) -> Tilted:
    """log Z = sum_j row_j log Z_j, and what follows of its derivatives."""
    sizes, logs = np.abs(row), np.array([part.log_mass for part in slices])
    covariances = [part.covariance for part in slices if part.covariance is not None]
    rounding = len(row) * _EPS * float(np.einsum("c,cm->m", sizes, np.abs(logs)).max(initial=0.0))
    return replace(
        slices[0],
        log_mass=np.einsum("c,cm->m", row, logs),
        mean=np.einsum("c,cmk->mk", row, np.array([part.mean for part in slices])),
        covariance=np.einsum("c,cmkl->mkl", row, np.array(covariances)) if len(covariances) == len(row) else None,
        error_bound=float(sizes @ [part.error_bound for part in slices]),
        mass_error=float(sizes @ [part.mass_error for part in slices]) + rounding,
    )


def slices(sequence: Ordered, count: int) -> Slices:
    """So many of each law but the first, at squares of Gauss nodes."""
    nodes, unit = gauss(count)
    inside, inner = nodes**2, 2 * nodes * unit
    prefixes = [(square * inner, lagrange(nodes, node * nodes)) for node, square in zip(nodes, inside, strict=True)]
    laws, weights, places = [0], [float(sequence.weights[0])], [float(sequence.weights[0]) / 2]
    views, masses = [View(np.ones(1), np.ones((1, 1)))], [np.array(weights)]
    total = 1 + count * (len(sequence.measures) - 1)
    for c, (start, width) in enumerate(zip(sequence.edges[1:-1], sequence.weights[1:], strict=True), start=1):
        own = width * inner
        for i, (shares, rows) in enumerate(prefixes):
            seen = np.concatenate([weights, width * shares])
            views.append(View(seen / seen.sum(), rows))
            masses.append(np.concatenate([weights, own[:i], [width * inside[i] - own[:i].sum()]]))
        laws += [c] * count
        weights += own.tolist()
        places += (start + width * inside).tolist()
    square = np.array([np.pad(mass, (0, total - mass.size)) for mass in masses])
    return Slices(laws, np.array(weights), np.array(places), views, square)
