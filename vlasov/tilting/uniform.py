"""The uniform measure on [-a, a] tilted by e^{xi y}, in closed form.

    Z = sinh(x) / x,   mean = a L(x),   variance = a^2 L'(x),   with x = a xi and Langevin's L(x) = coth x - 1/x

It is a box along an axis, and a cell that has smoothed a density.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array

_DEPTH = 12  # levels of the continued fraction: 1e-17 for |x| <= 1


def tilted_interval(half_width: Array, xi: Array) -> tuple[Array, Array, Array]:
    """log Z, mean and variance of the uniform measures on [-a, a] tilted by e^{xi y}; shapes as ``xi``, a broadcasts.

    For |x| <= 1 by Lambert's continued fraction L/x = 1 / (3 + x^2 / (5 + x^2 / (7 + ...))), whose terms do not cancel.
    """
    x = np.abs(half_width * xi)
    small, large = np.minimum(x, 1.0), np.maximum(x, 1.0)
    fraction = np.full_like(x, 2.0 * _DEPTH + 1.0)
    for odd in range(2 * _DEPTH - 1, 1, -2):
        fraction = odd + small**2 / fraction
    decay = np.exp(-2 * large)  # coth = (1 + decay) / (1 - decay) cannot overflow
    langevin = np.where(x <= 1, small / fraction, (1 + decay) / (1 - decay) - 1 / large)
    slope = np.where(x <= 1, 1 - langevin**2 - 2 / fraction, (1 / large) ** 2 - 4 * decay / (1 - decay) ** 2)
    small = np.maximum(small, np.finfo(float).tiny)  # sinh(x) / x = 1 at x = 0
    log_mass = np.where(x <= 1, np.log(np.sinh(small) / small), large + np.log1p(-decay) - np.log(2 * large))
    return log_mass, half_width * np.copysign(langevin, xi), half_width**2 * slope
