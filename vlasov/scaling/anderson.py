"""Anderson's acceleration of g <- g + r(g): the step that differences of past iterates and residuals suggest.

    step = r - C (dG + dR),   C = argmin |r - C dR|   in L2(mu)

Near the solution it is what GMRES does for (1 - P* P) step = r. Differences stay good for a while as the problem moves.

References: Walker, Ni (2011), doi:10.1137/10078356X; Parks et al. (2006), doi:10.1137/040607277, for moving problems.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.scaling import kernels

_RIDGE = 1e-12  # of the normal equations, scaled to a unit diagonal
_TINY = 1e-300
_WORTH_THREADS = 200_000  # numbers


class Ring:
    """The last ``depth`` differences of iterates and residuals on points with these weights."""

    def __init__(self, depth: int, weights: Array) -> None:
        self.depth, self._weights = depth, weights
        self._used = self._at = 0
        self._dr, self._sum = np.empty((2, depth, len(weights)))
        self._gram = np.empty((depth, depth))

    def forget(self) -> None:
        """Begin anew."""
        self._used = self._at = 0

    def push(self, dg: Array, dr: Array) -> None:
        """Take in what g and r have changed by."""
        i = self._at
        self._dr[i], self._sum[i] = dr, dg + dr
        self._used, self._at = min(self._used + 1, self.depth), (i + 1) % self.depth

    def step(self, r: Array) -> Array:
        """What is to be added to g; r itself while nothing is known."""
        m, out = self._used, np.empty_like(r)
        if m == 0:
            return np.copy(r)
        last = (self._at - 1) % self.depth
        with_last, with_r = self._products(self._dr[last], r)
        self._gram[last, :m] = self._gram[:m, last] = with_last
        scale = 1 / np.sqrt(np.diag(self._gram)[:m] + _TINY)
        normal = self._gram[:m, :m] * scale * scale[:, None] + _RIDGE * np.eye(m)
        coefficients = scale * np.linalg.solve(normal, scale * with_r)
        in_threads(self._threads(), kernels.combine, r, self._sum, coefficients, out)
        return out

    def _products(self, a: Array, b: Array) -> Array:
        """<dR_k, a> and <dR_k, b> in L2(mu)."""
        sums = np.empty((-(-len(a) // kernels.BLOCK), 2, self._used))
        in_threads(self._threads(), kernels.products, self._dr, self._used, self._weights, a, b, sums)
        return np.add.reduce(sums)

    def _threads(self) -> int:
        return get_num_threads() if self._used * len(self._weights) > _WORTH_THREADS else 1
