"""Column potentials of earlier clouds of a run: its next velocity starts from where they lead.

    g ~ g_0 + sum_k c_k (g_k - g_0),   c = argmin |phi - phi_0 - sum_k c_k (phi_k - phi_0)|

phi: exponents <A x, y> among some tokens, with their squares and cubes, which potentials depend on smoothly. So stages
of a Runge-Kutta step count as what they are, not as points in time, and what is fitted is right to the third order.
What is found from there is as good as from anywhere: only the number of half-steps depends on it, and what errors are
left below the tolerance.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.scaling.anderson import Ring
from vlasov.scaling.sums import Sums

_KEPT = 13  # clouds: the stages of a step, so that one taken back is begun again with what is known
_MOST = 50_000_000  # numbers in potentials, but for the last two
_TOKENS = 32  # whose exponents stand for all
_NEW = 1e-10  # of |phi|: what is left of a difference beside those before, without which it tells nothing
_FAR = 1000.0  # times differences of potentials are at most extrapolated, which multiplies their errors


class Warm:
    """Potentials of n tokens at the last clouds, and the differences of the last iteration."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._times: list[float] = []
        self._known: list[tuple[Array, Array]] = []
        self._scale = 0.0

    def add(self, t: float, sums: Sums, g: Array) -> None:
        """Remember the potential of the points at time t."""
        kept = max(2, min(_KEPT, _MOST // len(g)))
        self._known = [*self._known[1 - kept :], (self._features(sums), g)]
        self._times = [*self._times[1 - kept :], t]

    def serves(self, n: int, t: float, breakpoints: Array) -> bool:
        """Whether it is of as many tokens, and no parameter jumps in between."""
        if not self._known or len(self._known[-1][1]) != n:
            return False
        times = [*self._times, t]
        return not ((breakpoints > min(times)) & (breakpoints <= max(times))).any()

    def at(self, sums: Sums) -> Array:
        """Where the potentials of what is known lead: that of the last cloud, and differences from it."""
        (origin, last), *others = reversed(self._known)
        found = np.copy(last)
        for c, (_, g) in zip(_combination(self._features(sums) - origin, origin, others), others, strict=True):
            if c:
                found += c * (g - last)
        return found

    def _features(self, sums: Sums) -> Array:
        some = np.ascontiguousarray(sums.points[:: -(-len(sums.points) // _TOKENS)])
        exponents = np.einsum("ik,jk->ij", map_rows(some, sums.matrix), some).ravel()
        self._scale = self._scale or float(np.abs(exponents).max()) or 1.0
        exponents /= self._scale
        return np.concatenate([exponents, exponents**2, exponents**3])


def _combination(wanted: Array, origin: Array, others: list[tuple[Array, Array]]) -> Array:
    """Coefficients of the least squares, by Gram and Schmidt from the latest on; zero where nothing is new."""
    total = found = np.zeros(len(others))
    least = _NEW * float(np.linalg.norm(origin))
    basis: list[tuple[Array, Array]] = []
    for k, (features, _) in enumerate(others):
        rest, made_of = features - origin, np.eye(len(others))[k]
        for axis, its in 2 * basis:  # twice, for orthogonality to the last digits
            along = np.einsum("i,i->", axis, rest)
            rest, made_of = rest - along * axis, made_of - along * its
        size = float(np.linalg.norm(rest))
        if not size > least:
            continue
        axis, its = rest / size, made_of / size
        basis.append((axis, its))
        total = total + np.einsum("i,i->", axis, wanted) * its
        found = total if np.abs(total).sum() <= _FAR else found
    return found
