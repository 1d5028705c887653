"""The order of tokens in a sequence: places s in [0, 1], and who sees whom under a causal mask, s_j <= s_i."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.tilting import Counts

Ranks = NDArray[np.int64] | None  # who comes first, second, ...; None where they stand in that order


def checked_places(value: ArrayLike, count: int, field: str = "s") -> Array:
    """Places in [0, 1], shape (count,); one number serves all."""
    s = checks.array(value, field)
    s = np.full(count, float(s)) if s.ndim == 0 else s
    if s.shape != (count,):
        raise InputError(f"has shape {s.shape} where {(count,)} is needed, a place for each point", field)
    if ((s < 0) | (s > 1)).any():
        worst = int(np.argmax(np.abs(s - 0.5)))
        raise InputError(f"entry {worst} is {s[worst]:g}; places in a sequence lie in [0, 1]", field)
    return s


class Order:
    """Of tokens with places s and weights, both (n,)."""

    def __init__(self, s: Array, weights: Array) -> None:
        self._s, self._weights = s, weights

    @cached_property
    def ranks(self) -> Ranks:
        """Who comes first, second, ...; None where they stand in that order."""
        return None if (np.diff(self._s) >= 0).all() else np.argsort(self._s, kind="stable")

    def sort(self, rows: Array) -> Array:
        """What belongs to the tokens, in their order."""
        return rows if self.ranks is None else rows[self.ranks]

    @cached_property
    def first(self) -> float:
        """The place of the first token that carries weight."""
        return float(self._s[self._weights > 0].min())

    @cached_property
    def own(self) -> tuple[Ranks, Counts]:
        """The order of the tokens, and how many each of them sees in that order."""
        return self.ranks, np.searchsorted(self._sorted, self._sorted, side="right")

    def of(self, s: Array) -> tuple[Ranks, Counts]:
        """The order of targets with places s, and how many tokens each of them sees in that order."""
        ranks = None if (np.diff(s) >= 0).all() else np.argsort(s, kind="stable")
        return ranks, np.searchsorted(self._sorted, s if ranks is None else s[ranks], side="right")

    @cached_property
    def _sorted(self) -> Array:
        return self.sort(self._s)


def in_place(values: Array, ranks: Ranks, out: Array | None) -> Array:
    """Rows that are sorted, back where they came from, into ``out`` if given."""
    if ranks is None:
        if out is None:
            return values
        out[...] = values
        return out
    result = np.empty_like(values) if out is None else out
    result[ranks] = values
    return result
