"""Derivatives of attentions whose velocities are sums over the tokens: tilted means, and sums with other kernels.

    (J h)_i = V [ sum_j P_ij h_j + sum_j P_ij (<A h_i, y_j> + <A x_i - (P + P^T) y_j, h_j>) (y_j - m_i) ]

for Gamma_mu(x) = V m_nu(A x), nu ~ e^{-<y, P y>} mu. Coordinates of tilted means are those about the mean c of the
tokens: a tilt is then A (x - c) + (A - P - P^T) c, and exponents far from the origin keep their digits. Under a mask
all of it is in the order of the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.linearised import rounding
from vlasov.linearised.all_pairs import KEPT, Normalised, Pairs, Sources, Summed
from vlasov.linearised.base import Linearised, Products, Total, refuse_if_infinite
from vlasov.linearised.factors import Factors, mapped, times
from vlasov.linearised.maps import Maps
from vlasov.measures import Particles
from vlasov.summing import Kernel
from vlasov.tilting import Request
from vlasov.tilting.choose import tell_if_long

if TYPE_CHECKING:  # which compiles
    from vlasov.linearised.few_dimensions import FewDimensions

_PAIR, _COLUMN, _LINEAR = 3e-9, 0.3e-9, 3  # seconds of a product by matrices; dimensions that linear cost serves
FEW, WORTH_COMPILING = 5, 200  # dimensions of one pass over the pairs, and tokens from which it is faster


class OfHeads(Products):
    """J of a sum of heads at the tokens, by all pairs.

    Parameters
    ----------
    centre
        c, about which sums are made; they are of the points themselves where it is zero.
    causal
        Whether tokens see those before them only.
    """

    def __init__(
        self,
        tokens: Particles,
        factors: Sequence[Factors],
        pairs: Sequence[Pairs | FewDimensions],
        centre: Array,
        *,
        causal: bool,
    ) -> None:
        self._factors, self._pairs, self._maps, self._centre = factors, pairs, Maps(factors), centre
        super().__init__(tokens.points.shape, self._maps.rows)
        refuse_if_infinite(*(each.means for each in pairs))
        self._points, self._ranks = tokens.points, tokens.order.ranks if causal else None

    @cached_property
    def error_bound(self) -> float:
        """On |J~ - J|_2: see ``rounding``."""
        of_each = zip(self._pairs, self._factors, strict=True)
        return sum(rounding.bound(pairs, factors, self._points, self._centre) for pairs, factors in of_each)

    def _tangent(self, h: Array) -> Array:
        h = self._sorted(h)
        sums = [pairs.tangent(*three) for pairs, three in zip(self._pairs, self._maps.of(h), strict=True)]
        return self._back(self._maps.out(sums))

    def _adjoint(self, p: Array) -> Array:
        p = self._sorted(p)
        parts = [pairs.adjoint(q)[:3] for pairs, q in zip(self._pairs, self._maps.before_out(p), strict=True)]
        return self._back(self._maps.back(parts, self.shape))

    def _sorted(self, rows: Array) -> Array:
        return rows if self._ranks is None else rows[self._ranks]

    def _back(self, rows: Array) -> Array:
        if self._ranks is None:
            return rows
        result = np.empty_like(rows)
        result[self._ranks] = rows
        return result


def tilted_means(
    tokens: Particles,
    factors: Sequence[Factors],
    request: Request,
    workspace: Workspace | None = None,
    *,
    causal: bool = False,
) -> Linearised:
    """J of sum_h W_h m_{nu_h}: at linear cost where that is offered, else by all pairs."""
    if not causal and (found := _at_linear_cost(tokens, factors, request, workspace)) is not None:
        return found
    keep, centre = len(factors) * len(tokens) ** 2 <= KEPT, np.einsum("n,nk->k", tokens.weights, tokens.points)
    _tell_if_long(tokens, sum(len(f.query) for f in factors), workspace)
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = [_of_head(about(tokens, f, centre, causal=causal), keep, workspace) for f in factors]
    return OfHeads(tokens, factors, pairs, centre, causal=causal)


def _of_head(sources: Sources, keep: bool, workspace: Workspace | None) -> Pairs | FewDimensions:
    """By one pass over the pairs in few dimensions, where keys are values; else by products of matrices."""
    n, k = sources.keys.shape
    if sources.seen is None and sources.values is sources.keys and k <= FEW and n >= WORTH_COMPILING:
        from vlasov.linearised.few_dimensions import FewDimensions

        return FewDimensions(sources, workspace)
    return Normalised(sources, keep=keep)


def _tell_if_long(tokens: Particles, width: int, workspace: Workspace | None) -> None:
    """Say what a product costs by all pairs, if that is much."""
    n, d = tokens.points.shape
    tell_if_long(workspace, (n, n, d), (_PAIR + _COLUMN * width) * n * n, pairs=True)


def kernel_sums(
    tokens: Particles, factors: Factors, kernel: Kernel | None, workspace: Workspace | None = None, *, causal: bool
) -> Linearised:
    """J of W sum_j w_j v_j k(<q, k_j>), over the masses of prefixes under a mask; None: k(z) = z."""
    in_order = tokens.order.sort if causal else np.asarray
    y, seen = in_order(tokens.points), tokens.order.own[1] if causal else None
    queries, keys, values = (mapped(y, matrix) for matrix in factors[:3])
    sources = Sources(queries, keys, values, np.zeros(len(y)), seen=seen)
    keep = 2 * len(y) ** 2 <= KEPT
    _tell_if_long(tokens, len(factors.query), workspace)
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = Summed(sources, in_order(tokens.weights), kernel, keep=keep)
    refuse_if_infinite(np.asarray(pairs.sizes))
    return OfHeads(tokens, [factors], [pairs], np.zeros(y.shape[1]), causal=causal)


def about(tokens: Particles, factors: Factors, centre: Array, *, causal: bool = False) -> Sources:
    """Queries, keys and values about c, in the order of the sequence under a mask."""
    points, logs, seen = tokens.points, tokens.log_weights, None
    if causal:
        points, logs, seen = tokens.order.sort(points), tokens.order.sort(logs), tokens.order.own[1]
    y, slope = points - centre, None
    keys, at_centre = mapped(y, factors.key), factors.query @ centre
    if factors.quadratic is not None:
        bend = factors.quadratic + factors.quadratic.T
        at_centre = at_centre - bend @ times(centre, factors.key)
        slope = -(keys @ bend.T)
        logs = logs + 0.5 * np.einsum("nk,nk->n", keys, slope)
    return Sources(mapped(y, factors.query) + at_centre, keys, times(y, factors.value), logs, slope, seen)


def _at_linear_cost(
    tokens: Particles, factors: Sequence[Factors], request: Request, workspace: Workspace | None
) -> Linearised | None:
    """All heads by ``linear_cost``, or None where one of them is not served."""
    few = len(tokens) < WORTH_COMPILING and request.method == "auto"
    if few or tokens.dimension > _LINEAR:
        return None
    from vlasov.linearised.linear_cost import linear_cost  # which compiles

    found: list[tuple[Array | None, Linearised]] = []
    for f in factors:
        each = linear_cost(tokens.points, tokens.unequal_log_weights, f.head(), request, workspace)
        if each is None:
            return None
        found.append((None, each))
    return Total(tokens.points.shape, Maps(factors).rows, found)
