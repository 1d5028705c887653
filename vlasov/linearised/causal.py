"""The derivative of causal attention whose sums know no prefixes: that of one prefix after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.linearised.base import Linearised, Products
from vlasov.measures import Particles


class PrefixByPrefix(Products):
    """Rows of J at tokens with places s are those of J at the tokens that they see.

    Parameters
    ----------
    at
        The derivative at the tokens of a prefix, made when it is needed.
    rows
        Of a velocity.
    """

    def __init__(self, tokens: Particles, at: Callable[[Particles], Linearised], rows: int) -> None:
        assert tokens.s is not None
        super().__init__(tokens.points.shape, rows)
        self._prefixes = list[tuple[NDArray[np.int64], NDArray[np.bool_], Linearised]]()
        for place in np.unique(tokens.s):
            seen = np.flatnonzero(tokens.s <= place)
            last = tokens.s[seen] == place
            self._prefixes.append((seen, last, at(tokens.prefix(float(place)))))

    @cached_property
    def error_bound(self) -> float:
        """|J~ - J|^2 is at most the sum over the rows of each prefix."""
        return float(np.sqrt(sum(part.error_bound**2 for _, _, part in self._prefixes)))

    def _tangent(self, h: Array) -> Array:
        result = np.empty((len(h), self.rows))
        for seen, last, part in self._prefixes:
            result[seen[last]] = part.tangent(h[seen])[last]
        return result

    def _adjoint(self, p: Array) -> Array:
        result = np.zeros(self.shape)
        for seen, last, part in self._prefixes:
            result[seen] += part.adjoint(np.where(last[:, None], p[seen], 0.0))
        return result
