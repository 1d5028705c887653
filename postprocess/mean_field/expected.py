"""The slopes in n that the theory expects of the errors of n tokens."""

from __future__ import annotations

import math


def expected_slope(quantity: str, sampling: str, dimension: int, *, p: float = 1.0, masked: bool = False) -> float:
    """Return the theory's slope for compactly supported data, up to logarithms; NaN where there is none.

    Random tokens: -1/2, but for W_p: -1/2 in d = 1 and 2, -1/d beyond, where the support is connected and the density
    bounded below; between two separate clouds W_p falls like n^{-1/(2p)}, as their shares of the tokens scatter.
    Sobol's: -1 for smooth integrals, and with them for all but W_p, which no cloud brings below n^{-1/d}. Quantiles:
    -1 for distances, -2 for smooth integrals. Quadrature's converge faster than any power.

    Under masks with uniform places a token at s sees about n s others, and the first one nobody: (1/n sum_i (n
    s_i)^{-p/2})^{1/p} ~ n^{-1/2} for p < 2, up to a logarithm for p = 2, and n^{-1/p} beyond, which the first tokens
    alone leave. How they change W_p is not known then.
    """
    transport = quantity == "wasserstein"
    slope = {
        "quadrature": -1.0 / dimension if transport else math.nan,
        "quantile": -1.0 if transport else -2.0,
        "sobol": -1.0 / dimension if transport else -1.0,
        "random": -1.0 / max(dimension, 2) if transport else -0.5,
    }[sampling]
    if masked and slope < -1 / p and quantity in ("coupled", "wasserstein"):
        return math.nan if transport else -1 / p
    return slope
