"""The derivative of Sinkhorn attention: tilted means whose potentials move with the tokens.

    f_i = log sum_j w_j e^{e_ij - g_j},   g_j = log sum_i w_i e^{e_ij - f_i},   R_ij = w_j e^{e_ij - f_i - g_j}

At the fixed point, with e'_ij what the exponents change by and R* the adjoint of R in L^2(w),

    f' + R g' = a,  g' + R* f' = b,   a_i = sum_j R_ij e'_ij,  b_j = sum_i R*_ji e'_ij:   (1 - R* R) g' = b - R* a

which conjugate gradients solve beside constants, which change no kernel. The transpose solves the same system once and
adds R_ij w_i (z_j - (R z)_i) to the derivative by e_ij. Iterations that stop before are differentiated one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import LateInputError
from vlasov.linearised import rounding
from vlasov.linearised.all_pairs import KEPT, Normalised, Sources
from vlasov.linearised.base import Products, refuse_if_infinite
from vlasov.linearised.factors import Factors, mapped, times
from vlasov.linearised.maps import Maps
from vlasov.measures import Particles
from vlasov.tilting.results import longest

_POLISHED, _STEPS = 1e-15, 4  # of exponents, by which columns may be off; Newton steps
_SOLVED, _MOST, _PATIENT = 1e-15, 1000, 20  # relative residual; steps of conjugate gradients, and of them without gain
_AGAIN = 4  # as much memory as others keep, since a product takes tens of passes over it
_ACCEPTED, _NOTHING = 1e-6, 1e3  # residual; of what exponents are rounded by
_TELLING = 1e-10  # residual: below it is mostly noise, which has eigenvalues of its own
_LOST = 1e6  # what rounding errors have made of a residual


@dataclass
class _Solved:
    """z with (1 - B^T B) z = r beside sqrt(w), |r - (1 - B^T B) z| / |r|, and the least eigenvalue that was seen."""

    z: Array
    residual: float
    gap: float


class DoublyStochastic(Products):
    """J of Sinkhorn attention at its fixed point.

    Parameters
    ----------
    seen
        Which tokens carry weight that counts, (n,): sources.
    g
        Their column potentials about the mean of them.
    """

    def __init__(self, tokens: Particles, factors: Factors, seen: NDArray[np.bool_], g: Array) -> None:
        weights = tokens.weights[seen] / tokens.weights[seen].sum()
        self._points, self._factors, self._maps, self._seen = tokens.points, factors, Maps([factors]), seen
        super().__init__(tokens.points.shape, self._maps.rows)
        self._centre = np.einsum("n,nk->k", weights, tokens.points[seen])
        y = tokens.points - self._centre
        keys, values = mapped(y[seen], factors.key), times(y[seen], factors.value)
        self._weights, self._roots = weights, np.sqrt(weights)
        self._row_weights = np.zeros(len(y))
        self._row_weights[seen] = weights
        self._row_roots = np.sqrt(self._row_weights)
        self._sources = Sources(mapped(y, factors.query), keys, values, np.log(weights))
        self._pairs, self._marginal = self._polished(g)

    def _polished(self, g: Array) -> tuple[Normalised, float]:
        """R with columns as good as sums are, and by how much they are off: Newton's steps (1 - R* R) dg = r."""
        keep, best = len(self._seen) * len(g) <= _AGAIN * KEPT, None
        for _ in range(_STEPS):
            self._pairs = Normalised(self._sources._replace(logs=self._sources.logs - g), keep=keep)
            columns = self._pairs.apply_transpose(self._row_weights[:, None])[:, 0] / self._weights
            r = np.log(columns)
            off = float(np.abs(r - self._weights @ r).max())
            if best is not None and off >= best[1] / 2:
                return best if best[1] <= off else (self._pairs, off)
            best = self._pairs, off
            if off <= _POLISHED:
                break
            g = g + self._solve(r).z
        assert best is not None
        return best

    def _solve(self, r: Array) -> _Solved:
        """(1 - R* R) z = r in L^2(w), by conjugate gradients for (1 - B^T B) (sqrt(w) z) = sqrt(w) r."""

        def operator(v: Array) -> Array:
            rows = self._pairs.apply((v / self._roots)[:, None])
            rows *= (self._row_weights)[:, None]
            return v - self._pairs.apply_transpose(rows)[:, 0] / self._roots

        def free(v: Array) -> Array:
            return v - self._roots * float(self._roots @ v)

        rest = free(self._roots * r)
        z, step, size = np.zeros_like(rest), rest.copy(), float(rest @ rest)
        first, best, since = size, (z, 1.0), 0
        steps, ratios = list[float](), list[float]()
        while len(steps) < _MOST and size > _SOLVED**2 * first and since < _PATIENT:
            image = free(operator(step))
            if (curved := float(step @ image)) <= 0.0:
                break
            z = z + size / curved * step
            rest = rest - size / curved * image
            size, before = float(rest @ rest), size
            step = free(rest + size / before * step)
            if best[1] > _TELLING:
                steps.append(before / curved)
                ratios.append(size / before)
            relative = math.sqrt(size / first)
            best, since = ((z, relative), 0) if relative < best[1] else (best, since + 1)
            if not relative < _LOST * best[1]:
                break
        return _Solved(best[0] / self._roots, best[1] if first > 0 else 0.0, _least(steps, ratios))

    def _solved(self, r: Array) -> Array:
        found = self._solve(r)
        # Of a right side that is nothing but rounding errors nobody can ask for more digits.
        if found.residual > _ACCEPTED and float(np.abs(r).max()) > _POLISHED * _NOTHING:
            raise LateInputError(
                f"is sinkhorn, whose potentials hardly feel each other here: their derivative is known to "
                f"{found.residual:.1g} only; lower A or the radius of the tokens",
                "attention",
            )
        return found.z

    @cached_property
    def error_bound(self) -> float:
        """What samples showed, with a margin, and no proof: the system's least eigenvalue is seen, not bounded."""
        steep = np.sin(np.arange(1.0, len(self._weights) + 1))  # has a part of every eigenvector
        probe = self._solve(steep / self._roots)
        gap, s = max(probe.gap, 1e-300), self._pairs.sources
        eta = rounding.exponents(self._pairs, self._factors, self._points, self._centre) + self._marginal
        plain = rounding.bound(self._pairs, self._factors, self._points, self._centre)
        values = longest(s.values) + longest(self._pairs.means)
        spread = np.sqrt(self._pairs.sizes.columns / (self._weights.min() * len(self._weights)))
        query, key, _, output = map(rounding.norm, self._factors[:4])
        size = output * spread * values * (query * longest(s.keys) + key * longest(s.queries))
        return float(plain + 8 * size / gap * (probe.residual + eta / gap))

    def _tangent(self, h: Array) -> Array:
        queries, keys, values = self._maps.of(h)[0]
        keys, values = keys[self._seen], values[self._seen]
        a, b = np.empty(len(h)), np.zeros(len(keys))
        for rows, _, _, changes in self._pairs.slopes(queries, keys):
            a[rows] = changes.sum(axis=1)
            b += self._row_weights[rows] @ changes
        r = (b - self._pairs.apply_transpose((self._row_weights * a)[:, None])[:, 0]) / self._weights
        return self._maps.out([self._pairs.tangent(queries, keys, values, -self._solved(r))])

    def _adjoint(self, p: Array) -> Array:
        sums = self._maps.before_out(p)[0]
        along = np.einsum("mr,mr->m", sums, self._pairs.means)
        moved = self._pairs.apply_transpose(np.concatenate([sums, along[:, None]], axis=1))
        r = (moved[:, -1] - np.einsum("nr,nr->n", self._pairs.sources.values, moved[:, :-1])) / self._weights
        z = self._solved(r)
        lift = self._row_weights[:, None] * np.stack([np.ones(len(p)), -self._pairs.apply(z[:, None])[:, 0]], axis=1)
        found = self._pairs.adjoint(sums, lift, np.stack([z, np.ones(len(z))], axis=1))
        keys, values = np.zeros((len(p), found.keys.shape[1])), np.zeros((len(p), found.values.shape[1]))
        keys[self._seen], values[self._seen] = found.keys, found.values
        return self._maps.back([(found.queries, keys, values)], self.shape)


class Truncated(Products):
    """J of so many half-steps from g = 0, rows normalised last: each half-step is a softmax of rows or of columns."""

    def __init__(self, tokens: Particles, factors: Factors, half_steps: int) -> None:
        self._points, self._factors, self._maps = tokens.points, factors, Maps([factors])
        super().__init__(tokens.points.shape, self._maps.rows)
        self._centre = tokens.mean
        y = tokens.points - self._centre
        queries, keys = mapped(y, factors.query) + factors.query @ self._centre, mapped(y, factors.key)
        logs, nothing = tokens.log_weights, np.empty((len(y), 0))
        keep = half_steps * len(y) ** 2 <= KEPT
        rows = Sources(queries, keys, nothing, logs)
        columns = Sources(keys, queries, nothing, logs)
        self._steps, potential = list[Normalised](), np.zeros(len(y))
        for step in range(half_steps - 1):
            side = rows if step % 2 == 0 else columns
            self._steps.append(Normalised(side._replace(logs=logs - potential), keep=keep))
            potential = self._steps[-1].log_masses
        last = Sources(queries, keys, times(y, factors.value), logs - potential)
        self._last = Normalised(last, keep=keep)
        refuse_if_infinite(self._last.means)

    @cached_property
    def error_bound(self) -> float:
        """Each half-step may double what the ones before do: potentials are averages of exponents less the last."""
        one = rounding.bound(self._last, self._factors, self._points, self._centre)
        return one * (1 + 2 * len(self._steps)) ** 2

    def _tangent(self, h: Array) -> Array:
        queries, keys, values = self._maps.of(h)[0]
        potential = np.zeros(len(h))
        for index, step in enumerate(self._steps):
            here, there = (queries, keys) if index % 2 == 0 else (keys, queries)
            change = np.empty(len(h))
            for rows, _, _, changes in step.slopes(here, there, -potential):
                change[rows] = changes.sum(axis=1)
            potential = change
        return self._maps.out([self._last.tangent(queries, keys, values, -potential)])

    def _adjoint(self, p: Array) -> Array:
        none = np.zeros((len(p), 1)), np.zeros((len(p), 1))
        found = self._last.adjoint(self._maps.before_out(p)[0], *none)
        queries, keys, change = found.queries, found.keys, -found.logs
        for index, step in reversed(list(enumerate(self._steps))):
            part = step.adjoint(np.empty((len(p), 0)), change[:, None], np.ones((len(p), 1)))
            here, there = (part.queries, part.keys) if index % 2 == 0 else (part.keys, part.queries)
            queries, keys, change = queries + here, keys + there, -part.logs
        return self._maps.back([(queries, keys, found.values)], self.shape)


def _least(steps: list[float], ratios: list[float]) -> float:
    """The least eigenvalue that conjugate gradients have seen, of the Lanczos matrix of their steps."""
    if not steps:
        return 1.0
    a, b = np.asarray(steps), np.asarray(ratios)
    diagonal = 1 / a
    diagonal[1:] += b[:-1] / a[:-1]
    beside = np.sqrt(b[:-1]) / a[:-1]
    return float(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside, -1))[0])
