"""What is asked of a sum with another kernel than the normalised exponential, and what comes back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.tilting.results import longest as longest  # of measures too

KERNELS = ("sigmoid", "relu", "exponential")


class Kernel(NamedTuple):
    """k(z) = 1 / (1 + e^{-z - b}), max(z, 0) or e^z, by its name; only "sigmoid" has a bias b.

    What follows speaks of the first two: sums with "exponential" are those of ``vlasov.tilting``.
    """

    name: str
    bias: float = 0.0

    def slope(self, z: Array) -> Array:
        """k'(z), half of its jump at zero."""
        if self.name == "relu":
            return np.heaviside(z, 0.5)
        return _sigmoid(z + self.bias) * _sigmoid(-z - self.bias)

    def largest(self, reach: float) -> float:
        """Of k(z) for |z| <= reach."""
        return reach if self.name == "relu" else 1.0

    @property
    def steepest(self) -> float:
        """Largest k'."""
        return 1.0 if self.name == "relu" else 0.25


class KernelSums(NamedTuple):
    """S(xi) = int (y, 1) k(<xi, y>) dmu(y) at m targets.

    Attributes
    ----------
    first
        int y k dmu, shape (m, d).
    mass
        int k dmu, shape (m,), or None where ``request.log_mass`` did not ask for it.
    method
        How it was evaluated.
    error_bound
        Bound on the error of each ``first``, in the Euclidean norm.
    mass_error
        Bound on the error of each ``mass``; zero where there is none.
    second
        int y y^T k' dmu, shape (m, d, d): the derivative of ``first`` by xi, or None where ``request.covariance`` did
        not ask for it.
    """

    first: Array
    mass: Array | None
    method: str
    error_bound: float
    mass_error: float = 0.0
    second: Array | None = None


def _sigmoid(z: Array) -> Array:
    decay = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, decay) / (1.0 + decay)
