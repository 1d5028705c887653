"""One piece of a Lipschitz study: |D_X f|_2 at the tokens of one law, one n and one replica, and what bounds it there.

f(X)_i = Gamma_X(x_i). Beside |D_X f|: the largest |x_i|, the attention c that one token receives, how many tokens carry
the direction that grows most, (sum_i |h_i|^2)^2 / sum_i |h_i|^4, and |V| sqrt(max_j #{i: m_i = j}), the limit of large
radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.estimates import attention_received, large_radius_limit
from vlasov.lanczos import largest_singular
from vlasov.measures import Particles
from vlasov.postprocess.lipschitz.data import Study
from vlasov.postprocess.studies.store import Key, Result

_PRODUCTS = 20  # about
_PAIR = 4e-9  # seconds


@dataclass(frozen=True)
class Piece:
    """Tokens of one law."""

    data: str
    n: int
    replica: int

    @property
    def keys(self) -> list[Key]:
        """Of its result."""
        return [(self.data, self.n, self.replica)]

    @property
    def label(self) -> str:
        """For the progress bar."""
        return f"{self.data}, n = {self.n}"


class Bench:
    """A study at work."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def run(self, piece: Piece) -> list[Result]:
        """The results of a piece."""
        tokens = self.study.tokens(piece.data, piece.n, piece.replica)
        with np.errstate(all="ignore"):  # each thread has its own
            return [_measured(self.study.problem.attention, tokens, self.study.tolerance)]

    def cost(self, piece: Piece) -> float:
        """About so many seconds."""
        return 1e-3 + _PRODUCTS * _PAIR * piece.n**2 * self.study.problem.dimension


def _measured(attention: Attention, tokens: Array, tolerance: float) -> Result:
    n = len(tokens)
    cloud = Particles(tokens, s=(np.arange(n) + 0.5) / n if attention.causal else None)
    product = attention.linearised(cloud)
    found = largest_singular(product.tangent, product.adjoint, tokens.shape, tolerance=tolerance)
    squares = np.square(found.right).sum(axis=1)
    try:
        received, limit = float(attention_received(attention, tokens).max()), large_radius_limit(attention, tokens)
    except InputError:  # of several heads
        received, limit = math.nan, math.nan
    return {
        "lipschitz": found.value,
        "error": found.error + product.error_bound,
        "radius": cloud.support_radius,
        "received": received,
        "carriers": float(squares.sum() ** 2 / np.square(squares).sum()),
        "limit": limit,
    }
