"""How large and how smooth velocities are: the constants behind the theory's estimates, for measures in a ball.

Sums of tilted means have, with phi_x(y) = <A x, y> - <y, P y> on the ball of radius R, |x| <= R,

    Gamma_mu(x) - Gamma_nu(x) = V int (y - m_nu) e^{phi_x} d(mu - nu) / int e^{phi_x} dmu,
    |grad phi_x| <= (|A| + 2 |P|) R,   sup phi_x - inf phi_x <= (2 |A| + |P|) R^2 for P >= 0

which is where the exponentials come from. Under Sinkhorn attention phi_x(y) = <A x, y> - g(y), and |grad g| <= |A| R.
With s = |A| R^2 the kernel's values e^{phi_x - f} lie between e^{-4s} and e^{4s}, a measure that moves by W_1 moves
either potential by 4 |A| R e^{8s} W_1 at most if the other one is kept, and half-steps contract what is left by
tanh s (Birkhoff; oscillations of <A x, y> over two pairs are at most 4 s). So g moves by 4 |A| R e^{8s} / (1 - tanh s),
and a mean by R / 2 times that. This bound is our own; it is finite, and far from sharp.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3, for softmax; for the others the same
lines, with their own gradients and oscillations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.tilting import Head

_LARGEST = 700.0  # exponents of numbers


class Regularity(NamedTuple):
    """Constants that hold for all measures mu, nu in the ball of radius R, and all |x| <= R.

    Attributes
    ----------
    velocity, slope
        |Gamma_mu(x)|, |D Gamma_mu(x)| at most.
    rate
        L with d/dt W_p(mu, nu) <= L W_p(mu, nu).
    """

    velocity: float
    slope: float
    rate: float

    def behind(self, output: float) -> Regularity:
        """That of W Gamma, |W| = ``output``."""
        return Regularity(*(output * constant for constant in self))


def add_up(parts: Iterable[Regularity]) -> Regularity:
    """That of a sum of velocities."""
    return Regularity(*(math.fsum(constants) for constants in zip(*parts, strict=True)))


def of_head(head: Head, radius: float) -> Regularity:
    """|V| R, |V| |A| R^2 and |V| (1 + 3 |A| R^2 + 4 |P| R^2) e^{(2 |A| + |P|) R^2}."""
    size, tilt = norm(head.V), norm(head.A) * radius * radius
    bend = 0.0 if head.P is None else norm(head.P) * radius * radius
    return Regularity(size * radius, size * tilt, size * (1 + 3 * tilt + 4 * bend) * power(2 * tilt + bend))


def doubly_stochastic(values: Array, matrix: Array, radius: float) -> Regularity:
    """|V| R, |V| s and |V| (s + (1 + 4 s) e^{4s} + s e^{8s} (1 + e^{2s})) with s = |A| R^2."""
    size, tilt = norm(values), norm(matrix) * radius * radius
    moved = (1 + 4 * tilt) * power(4 * tilt) + tilt * (power(8 * tilt) + power(10 * tilt))
    return Regularity(size * radius, size * tilt, size * (tilt + moved))


def power(exponent: float) -> float:
    """e^exponent, infinity where it overflows."""
    return math.exp(exponent) if exponent < _LARGEST else math.inf


def norm(matrix: Array) -> float:
    """The spectral norm."""
    return float(np.linalg.norm(matrix, 2))
