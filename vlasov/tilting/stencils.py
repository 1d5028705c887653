"""Exponentially fitted interpolation on uniform nodes: the stencils of the fast methods.

    e^{zt} ~ sum_a w_a(t) e^{z x_a},   x_a = a - (p-1)/2,   a = 0 ... p-1,   |t| <= 1/2,   |z| <= kappa

The p weights belong to the p nodes around a point that lies at t from the middle of its cell (steps of length 1):

    nodes    o-------o-------o---+---o-------o-------o        p = 6
    x_a    -5/2    -3/2    -1/2  t  1/2     3/2     5/2

They are exact for z at p Chebyshev points of [-kappa, kappa], where Lagrange's weights are exact for polynomials only:
the same cost, an error that is 2^(p-1) times smaller. As functions of t they are polynomials of degree p - 1.

Interpolated in both variables, e^{xi y} with |xi| <= Q, |y| <= R and S = Q R takes steps kappa / R and kappa / Q.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array

ORDERS = (8, 12, 16)  # p: multiples of four, for the processor's vectors
# Steps of 2^(1/4): a better fit to the tolerance would save 9 % of the nodes on average, and cost a table each.
KAPPAS = tuple(2.0 ** (k / 4) for k in range(2, -18, -1))
DIGITS = 70  # the equations' condition number reaches 1e45


class Errors(NamedTuple):
    """What interpolation may do to e^{zt}, relative to e^{zt}, for |t| <= 1/2 and |z| <= kappa; r = 0, 1, 2.

    Attributes
    ----------
    value, slope, curvature
        Bounds on the error of the r-th derivative in t, divided by kappa^r.
    growth
        Bounds on sum_a |w_a^(r)(t)| e^{z (x_a - t)}: by how much rounding errors grow.
    """

    value: float
    slope: float
    curvature: float
    growth: tuple[float, float, float]


@cache
def table(order: int, kappa: float) -> Array:
    """Coefficients (p, p): entry [j, a] belongs to t^j in w_a(t). Takes 2 to 10 ms, once."""
    with localcontext() as context:
        context.prec = DIGITS
        chebyshev = chebyshev_points(order)
        exponents = [Decimal(kappa) * c for c in chebyshev]
        middle = Decimal(order - 1) / 2
        nodal = [[(z * (a - middle)).exp() for a in range(order)] for z in exponents]
        return coefficients(nodal, [[(z * c / 2).exp() for c in chebyshev] for z in exponents])


def chebyshev_points(order: int) -> list[Decimal]:
    """Doubles close to them serve as well as the points themselves, and are exact."""
    return [Decimal(math.cos(math.pi * (2 * k + 1) / (2 * order))) for k in range(order)]


def coefficients(nodal: list[list[Decimal]], wanted: list[list[Decimal]]) -> Array:
    """A table (p, p) from values of p functions at the nodes and at half the Chebyshev points, t in [-1/2, 1/2]."""
    order = len(nodal)
    weights = _solve(nodal, wanted)  # of node a, at offset k
    powers = [[(c / 2) ** j for j in range(order)] for c in chebyshev_points(order)]
    result = _solve(powers, [list(row) for row in zip(*weights, strict=True)])
    return np.array([[float(entry) for entry in row] for row in result])


def _solve(matrix: list[list[Decimal]], right: list[list[Decimal]]) -> list[list[Decimal]]:
    """Gaussian elimination without pivots: the matrices here are totally positive up to signs."""
    n = len(matrix)
    rows = [a + b for a, b in zip(matrix, right, strict=True)]
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i][k:] = [x - factor * y for x, y in zip(rows[i][k:], rows[k][k:], strict=True)]
    solution: list[list[Decimal]] = [[] for _ in range(n)]
    for k in reversed(range(n)):
        known = [rows[k][j] for j in range(k + 1, n)]
        solution[k] = [
            (b - sum(f * solution[j][c] for f, j in zip(known, range(k + 1, n), strict=True))) / rows[k][k]
            for c, b in enumerate(rows[k][n:])
        ]
    return solution


# Of each order, for r = 0, 1, 2: 2^{1-p} / p! max_t |pi^(r)(t)|, and max_t sum_a |l_a^(r)(t)| for Lagrange's weights l.
_NODAL = {
    8: (8.34465e-06, 2.79018e-05, 7.82073e-05),
    12: (2.68919e-08, 8.80738e-08, 2.56469e-07),
    16: (9.14469e-11, 2.96402e-10, 8.79712e-10),
}
_LAGRANGE = {8: (1.48828, 2.69638, 6.04444), 12: (1.62361, 2.9489, 6.82667), 16: (1.71838, 3.14805, 7.26779)}


@cache
def errors(order: int, kappa: float) -> Errors:
    r"""Bounds in closed form, at most a few per cent above the suprema for kappa <= 1 (17 % at kappa = sqrt 2).

        |d^r/dt^r (e^{zt} - ...)| <= 2^{1-p} kappa^p / p! max_t |pi^(r)(t)|,   pi(t) = prod_a (t - x_a)

    This is the error of Chebyshev interpolation in z; e^{kappa/2} in the slope allows for e^{zt} inside the cell.
    """
    nodal, lagrange = _NODAL[order], _LAGRANGE[order]
    scale = 1.01 * kappa**order
    bend = order * kappa * kappa
    return Errors(
        value=scale * nodal[0],
        slope=scale * nodal[1] * math.exp(kappa / 2) / kappa,
        curvature=scale * nodal[2] / (kappa * kappa),
        growth=(
            lagrange[0] * math.exp(bend / 16),
            lagrange[1] * math.exp(bend / 14 + kappa / 2),
            lagrange[2] * math.exp(bend / 14 + kappa / 4),
        ),
    )


def errors_on_both_sides(order: int, kappa: float, size: float, most: float = 0.1) -> Errors | None:
    r"""What becomes of e^{xi y} with |xi| <= Q, |y| <= R, Q R = S = ``size``, interpolated in xi and in y.

    ``value`` bounds the relative error, ``slope`` and ``curvature`` that of the derivatives in xi divided by R and R^2.
    With the errors e_r of ``errors``, the relative error is exactly

        K - 1 = e_0(z, s) + e_0(z', t) + sum_k (kappa^2 / S)^k / k! d_z^k e_0(z, s) d_z'^k e_0(z', t)

    and e_0 is in z nearly a multiple of the Chebyshev polynomial T_p(z / kappa), whose derivatives are largest at the
    ends. None where the sum is more than ``most``: stencils overhang the boxes by p/2 kappa / S of their widths, which
    is too far. Beyond a tenth T_{p+1} counts too, by less than the square of the sum (``test_stencils`` looks at all
    orders).
    """
    derivatives, squares = _chebyshev_derivatives(order)
    one = errors(order, kappa)
    cross = 0.0
    for square in reversed(squares):
        cross = cross / size + square
    cross *= one.value
    if cross > most:
        return None
    if cross > 0.1:
        cross += cross * cross
    first, second = derivatives[1] / size, derivatives[2] / (size * size)
    low, steep, bent = one.growth
    return Errors(
        value=one.value * (2 + cross),
        slope=one.slope * (1 + cross) + one.value * (1 + first),
        curvature=one.curvature * (1 + cross) + one.value * (1 + 2 * first + second),
        growth=(low * low, low * steep, low * bent),
    )


def mixed_error(order: int, kappa: float, size: float) -> float | None:
    r"""A bound on the error of d/dxi d/dy e^{xi y}, interpolated in both, relative to Q R e^{xi y}; S = ``size``.

    Of the first two terms of ``errors_on_both_sides`` one derivative is taken of the stencil, as in ``slope``, the
    other of a function that is in z nearly a polynomial of degree p + 1, by Markov's inequality. What the cross terms
    add is below the margin of the bound while their sum is small.
    """
    both = errors_on_both_sides(order, kappa, size)
    if both is None:
        return None
    one, markov = errors(order, kappa), (order + 1) ** 2 / size
    cross = both.value / one.value - 2
    return 2 * one.slope * (1 + markov) * (1 + cross * (1 + markov))


@cache
def _chebyshev_derivatives(order: int) -> tuple[list[float], list[float]]:
    """T_p^(k)(1) and its square over k!, for k = 0 ... p."""
    values = [1.0]
    for k in range(order):
        values.append(values[-1] * (order**2 - k**2) / (2 * k + 1))
    return values, [value**2 / math.factorial(k) for k, value in enumerate(values)]
