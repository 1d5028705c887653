"""Products with the derivative of tilted means over all pairs in few dimensions: by one pass over the pairs each.

With the mean m_i and the covariance C_i of the sources as tilted at i, both kept,

    S'_i = C_i q'_i + sum_j P_ij [ y'_j + u_ij (y_j - m_i) ],    u_ij = <q_i, y'_j> + l'_j

and its transpose of s, with a_i = <s_i, m_i> and u_ij = <s_i, y_j> - a_i,

    (C_i s_i),   sum_i P_ij u_ij q_i + (sum_i P_ij u_ij) dl_j/dy_j,   sum_i P_ij s_i
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.exponential import LOG2_E, LOG_2
from vlasov.compiled.threads import in_threads
from vlasov.compiled.workspace import Workspace
from vlasov.linearised import kernels
from vlasov.linearised.all_pairs import Cotangent, Sizes, Sources
from vlasov.tilting.all_pairs import covariance as covariance_of, lanes, moments, seconds
from vlasov.tilting.costs import THREADS_ALL_PAIRS

_DEAF, _FEWEST = 0.1, 1024  # seconds that a kernel may take, and targets in a part


class FewDimensions:
    """Tilted means of points that are keys and values at once: what ``all_pairs.Normalised`` answers."""

    def __init__(self, sources: Sources, workspace: Workspace | None = None) -> None:
        self.sources, self._workspace = sources, workspace
        given = sources.keys, sources.logs, sources.queries
        log_masses, self.means, *_ = moments(*given, workspace=workspace)
        assert log_masses is not None
        self._covariances = covariance_of(*given, log_masses, self.means, workspace=workspace)
        self.log_masses = log_masses
        self._carrying = np.isfinite(sources.logs)

    @property
    def terms(self) -> float:
        """As many as are added one by one: in vectors of two or more over a tile, then tiles."""
        n = max(self.sources.keys.shape[0], self.sources.queries.shape[0])
        return kernels.COLUMNS / 2 + n / kernels.COLUMNS + 8

    def tangent(self, queries: Array, keys: Array, values: Array) -> Array:
        """S' from q' and y', which is given twice."""
        s, moved = self.sources, np.where(self._carrying[:, None], keys, 0.0)
        change = np.zeros(len(keys)) if s.slope is None else -np.einsum("nk,nk->n", s.slope, moved)
        sums = self._sums((s.keys, s.logs, moved, change), s.queries, self.log_masses)
        d = s.keys.shape[1]
        result = np.einsum("mkl,ml->mk", self._covariances, queries)
        result += sums[:, 1 : d + 1] + sums[:, d + 1 :] - sums[:, :1] * self.means
        return result

    def adjoint(self, sums: Array) -> Cotangent:
        """The transpose."""
        s = self.sources
        along, d = np.einsum("mk,mk->m", sums, self.means), s.keys.shape[1]
        found = self._sums((s.queries, -self.log_masses, sums, along), s.keys, -s.logs)
        keys, loads = found[:, 1 : d + 1], found[:, 0]
        if s.slope is not None:
            keys = keys + loads[:, None] * s.slope
        return Cotangent(np.einsum("mkl,ml->mk", self._covariances, sums), keys, found[:, d + 1 :], loads)

    @cached_property
    def sizes(self) -> Sizes:
        """Rows sum to one; the largest sum of a column."""
        s, ones = self.sources, np.zeros_like(self.sources.queries)
        ones[:, 0] = 1.0
        given = s.queries, -self.log_masses, ones, np.zeros(len(ones))
        columns = float(self._sums(given, s.keys, -s.logs)[:, s.keys.shape[1] + 1].max())
        return Sizes(1.0, columns, 1.0, columns)

    def _sums(self, sources: tuple[Array, Array, Array, Array], tilts: Array, masses: Array) -> Array:
        """Sums of w u, w u y and w h with w = e^{<tilt, y> + l - mass}, from y, l, h and s; zero at infinite masses."""
        (y, logs, h, change), (m, d) = sources, tilts.shape
        n = len(y)
        columns = min(kernels.COLUMNS, -(-n // lanes.STEP) * lanes.STEP)
        count = -(-n // columns)
        rows = np.zeros((2 * d + 2, count * columns))
        rows[d] = -np.inf
        rows[:d, :n], rows[d, :n], rows[d + 1 : 2 * d + 1, :n], rows[-1, :n] = y.T, logs * LOG2_E, h.T * LOG_2, change
        tiles = np.ascontiguousarray(rows.reshape(2 * d + 2, count, columns).transpose(1, 0, 2))
        finite = np.isfinite(masses)
        masses = np.where(finite, masses, 0.0)
        shifts = np.rint(masses * LOG2_E)
        result, q = np.empty((m, 2 * d + 1)), np.ascontiguousarray(tilts * LOG2_E)
        takes, zeros = 2 * seconds(n, m, d), ((0.0,) * d, (0.0,) * (2 * d + 1))
        threads = get_num_threads() if takes > THREADS_ALL_PAIRS * 1e-9 else 1
        size = max(_FEWEST, -(-m // max(1, math.ceil(takes / (_DEAF * threads)))))
        for first in range(0, m, size):  # between parts Python hears Ctrl-C
            part = slice(first, first + size)
            in_threads(threads, kernels.products, tiles, q[part], shifts[part], result[part], *zeros)
        result *= np.where(finite, np.exp2(shifts - masses * LOG2_E), 0.0)[:, None]
        result[:, d + 1 :] *= LOG2_E
        return result
