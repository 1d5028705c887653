"""Loops of LayerNorm and MLP over tokens: unit vectors, projections, activations. Memory is passed once."""

from __future__ import annotations

import math

import numpy as np

from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.memory import table
from vlasov.compiled.threads import share
from vlasov.jit import EXACT, SUMS, kernel

IDENTITY, RELU, TANH, GELU = range(4)
BLOCK = 256  # tokens at a time: what is made of them stays in the fastest cache
_SMALL, _LARGE = 1e-280, 1e280  # squares between them have all their digits, and their sums are numbers
_ROOT = 1.0 / math.sqrt(2.0)

# (1 + 2 z) e^{z^2} erfc(z) as a polynomial in (z - 3.75) / (z + 3.75) for 0 <= z <= 27.5, from the highest power:
# interpolated at Chebyshev points with 50 digits, error 4e-17.
_SCALED = (
    -2.3753040476186743e-09,
    -7.727235767979867e-10,
    3.285190504744905e-08,
    1.5728734708960965e-08,
    -2.527781196400794e-07,
    -4.7881952579250564e-08,
    1.7483772448749153e-06,
    -9.80313074712996e-07,
    -1.1443182344738672e-05,
    2.2387299147117716e-05,
    5.1648995064347805e-05,
    -0.00029015496872975417,
    0.00029371364519794555,
    0.001755626016319403,
    -0.009746579550129066,
    0.02836227740070735,
    -0.05869339859060613,
    0.09230432116150673,
    -0.10880393014169877,
    0.08227673849011297,
    0.003585415485463536,
    -0.1402405985855467,
    1.2375126308378275,
)
_MIDDLE = 3.75
_FARTHEST = 38.0  # e^{-x^2 / 2} is no normal number beyond


@kernel(flags=EXACT)
def _gelu(x):  # type: ignore[no-untyped-def]
    """x Phi(x), Phi(-|x|) = e^{-x^2 / 2} e^{z^2} erfc(z) / 2 with z = |x| / sqrt(2): a few ulps, in the tail too."""
    away = abs(x)
    away = _FARTHEST if away > _FARTHEST else away
    z = away * _ROOT
    s = (z - _MIDDLE) / (z + _MIDDLE)
    p = _SCALED[0]
    for c in _SCALED[1:]:
        p = p * s + c
    tail = 0.5 * exp_negative(-0.5 * away * away) * p / (1.0 + 2.0 * z)
    return x * (1.0 - tail if x > 0.0 else tail)


@kernel(flags=EXACT)
def _tanh(x):  # type: ignore[no-untyped-def]
    """By e^{-2 |x|}; for small |x|, where that cancels, by the continued fraction x / (1 + x^2 / (3 + x^2 / ...))."""
    away, square = abs(x), x * x
    power = exp_negative(-2.0 * away)
    far = (1.0 - power) / (1.0 + power)
    q = min(square, 1.0)
    near = 13.0
    for odd in (11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        near = odd + q / near
    result = x / near if away < 0.5 else (far if x > 0.0 else -far)
    return result if x == x else x


@kernel(flags=EXACT)
def activate(row, which):  # type: ignore[no-untyped-def]
    """s(z) in place of each z; a NaN stays."""
    if which == RELU:
        for i in range(row.size):
            row[i] = 0.0 if row[i] < 0.0 else row[i]
    elif which == TANH:
        for i in range(row.size):
            row[i] = _tanh(row[i])
    elif which == GELU:
        for i in range(row.size):
            row[i] = _gelu(row[i])


@kernel(flags=SUMS)
def add_mlp(x, first, bias, second, which, out, thread, threads):  # type: ignore[no-untyped-def]
    """out[i] += W s(U x_i + b), hidden unit by hidden unit on blocks of tokens."""
    (n, d), (rows, units) = x.shape, second.shape
    begin, stop = share(n, thread, threads)
    points, hidden, result = table(d, BLOCK), table(1, BLOCK)[0], table(rows, BLOCK)
    for start in range(begin, stop, BLOCK):
        count = min(BLOCK, stop - start)
        for i in range(count):
            for k in range(d):
                points[k, i] = x[start + i, k]
        for k in range(rows):
            for i in range(count):
                result[k, i] = 0.0
        for j in range(units):
            for i in range(count):
                hidden[i] = bias[j]
            for k in range(d):
                u, axis = first[j, k], points[k]
                for i in range(count):
                    hidden[i] += u * axis[i]
            activate(hidden[:count], which)
            for k in range(rows):
                w, total = second[k, j], result[k]
                for i in range(count):
                    total[i] += w * hidden[i]
        for i in range(count):
            for k in range(rows):
                out[start + i, k] += result[k, i]


@kernel(flags=EXACT)
def _length(x, i):  # type: ignore[no-untyped-def]
    """|x_i|, whatever the size of its coordinates."""
    square = 0.0
    for k in range(x.shape[1]):
        square += x[i, k] * x[i, k]
    if _SMALL < square < _LARGE:
        return math.sqrt(square)
    largest = 0.0
    for k in range(x.shape[1]):
        largest = max(largest, abs(x[i, k]))
    if not 0.0 < largest < np.inf:
        return largest if largest == 0.0 else np.nan
    square = 0.0
    for k in range(x.shape[1]):
        square += (x[i, k] / largest) ** 2
    return largest * math.sqrt(square)


@kernel(flags=EXACT)
def normalise(x, scale, out, thread, threads):  # type: ignore[no-untyped-def]
    """out_i = scale x_i / |x_i|, of which the origin has none: NaN. ``out`` may be x."""
    begin, stop = share(len(x), thread, threads)
    for i in range(begin, stop):
        inverse, length = 0.0, _length(x, i)
        if length < 1e-290:  # its inverse may be none
            inverse = 1e290
            length = length * inverse
        for k in range(x.shape[1]):
            value = x[i, k] * inverse if inverse > 0.0 else x[i, k]
            out[i, k] = scale[k] * (value / length)


@kernel(flags=EXACT)
def project(x, scale, velocity, thread, threads):  # type: ignore[no-untyped-def]
    """velocity_i -= D u_i <u_i, D^{-1} velocity_i>, D = diag(scale), u_i the unit vector along D^{-1} x_i."""
    begin, stop = share(len(x), thread, threads)
    for i in range(begin, stop):
        square = along = 0.0
        for k in range(x.shape[1]):
            u = x[i, k] / scale[k]
            square += u * u
            along += u * (velocity[i, k] / scale[k])
        for k in range(x.shape[1]):
            velocity[i, k] -= x[i, k] * (along / square)
