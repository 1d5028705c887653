"""The derivative of causal attention whose sums know no prefixes: that of one prefix after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.linearised.all_pairs import KEPT
from vlasov.linearised.base import Linearised, Products
from vlasov.measures import Particles

_MOST_PAIRS = 1e10  # of tokens, prefix by prefix

Prefix = tuple[NDArray[np.int64], NDArray[np.bool_], Linearised]  # who is seen, who of them sees all, and J


class PrefixByPrefix(Products):
    """Rows of J at tokens with places s are those of J at the tokens that they see.

    Those at prefixes are kept where they are small, and else made anew for each product.

    Parameters
    ----------
    at
        The derivative at the tokens of a prefix.
    rows
        Of a velocity.
    """

    def __init__(self, tokens: Particles, at: Callable[[Particles], Linearised], rows: int) -> None:
        super().__init__(tokens.points.shape, rows)
        assert tokens.s is not None
        self._tokens, self._s, self._at = tokens, tokens.s, at
        self._places, counts = np.unique(tokens.s, return_counts=True)
        pairs = float((np.cumsum(counts, dtype=float) ** 2).sum())
        if pairs > _MOST_PAIRS:
            reason = f"is differentiated on {len(counts):,} prefixes of up to {len(tokens):,} tokens one by one"
            raise InputError(
                f"{reason}, which takes too long; lower n, or give tokens in groups of equal s", "attention"
            )
        self._kept = list(self._made()) if pairs <= KEPT else None

    def _made(self) -> Iterator[Prefix]:
        for place in self._places:
            seen = np.flatnonzero(self._s <= place)
            yield seen, self._s[seen] == place, self._at(self._tokens.prefix(float(place)))

    def _prefixes(self) -> Iterator[Prefix]:
        return self._made() if self._kept is None else iter(self._kept)

    @cached_property
    def error_bound(self) -> float:
        """|J~ - J|^2 is at most the sum over the rows of each prefix."""
        return float(np.sqrt(sum(part.error_bound**2 for _, _, part in self._prefixes())))

    def _tangent(self, h: Array) -> Array:
        result = np.empty((len(h), self.rows))
        for seen, last, part in self._prefixes():
            result[seen[last]] = part.tangent(h[seen])[last]
        return result

    def _adjoint(self, p: Array) -> Array:
        result = np.zeros(self.shape)
        for seen, last, part in self._prefixes():
            result[seen] += part.adjoint(np.where(last[:, None], p[seen], 0.0))
        return result
