"""Up to which tilts a grid holds Gaussian tails: a window of tilts, also where a quadratic e^{-<z, P z>} joins them.

Tilted by e^{<xi, z> - <z, P z>} a Gaussian stays Gaussian,

    mean = C (Sigma^{-1} m + xi),   C = (Sigma^{-1} + 2 P)^{-1},

and the window holds those xi for which the mean keeps some deviations away from the edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Gaussian, Measure, Mixture

_LEAST_REACH = 0.5  # tilts that every grid holds


class Window(NamedTuple):
    """Tilts with |xi_k - center_k| <= reach_k."""

    center: Array
    reach: Array


class Tails(NamedTuple):
    """Gaussians (c, d) and (c, d, d) whose tails are on a grid [lower, upper], up to ``resolved`` deviations."""

    means: Array
    covariances: Array
    lower: Array
    upper: Array
    resolved: float

    def window(self, quadratic: Array | None = None) -> Window:
        """The tilts that leave all of the Gaussians on the grid, beside e^{-<z, P z>} with P = ``quadratic``."""
        if quadratic is None:
            center, means, spreads = np.zeros(len(self.lower)), self.means, self.covariances
        else:
            center = 2 * quadratic @ self.means.mean(axis=0)
            precisions = np.linalg.inv(self.covariances)
            spreads = np.asarray(np.linalg.inv(precisions + quadratic + quadratic.T), dtype=np.float64)
            pulls = np.einsum("ckl,cl->ck", precisions, self.means) + center
            means = np.einsum("ckl,cl->ck", spreads, pulls)
        deviations = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        room = np.minimum(means - self.lower, self.upper - means) - self.resolved * deviations
        return Window(center, np.maximum((room / np.abs(spreads).sum(axis=2)).min(axis=0), _LEAST_REACH))

    def halved(self, middle: Array) -> Tails:
        """For a frame whose units are twice as long, with its ``middle`` where it was."""
        return self._replace(means=middle + (self.means - middle) / 2, covariances=self.covariances / 4)


def tails(measure: Measure, lower: Array, upper: Array, resolved: float) -> Tails | None:
    """Those of a Gaussian or of a mixture's Gaussian parts on a grid; None where all data are compact."""
    parts = list(_gaussians(measure))
    if not parts:
        return None
    return Tails(
        np.array([part.mean for part in parts]), np.array([part.covariance for part in parts]), lower, upper, resolved
    )


def _gaussians(measure: Measure) -> list[Gaussian]:
    if isinstance(measure, Mixture):
        pairs = zip(measure.weights, measure.components, strict=True)
        return [gaussian for weight, part in pairs if weight > 0 for gaussian in _gaussians(part)]
    return [measure] if isinstance(measure, Gaussian) else []
