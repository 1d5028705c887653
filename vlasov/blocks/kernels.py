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

# (z + 3) e^{z^2} erfc(z) / 2 as a polynomial in 1 - 6 / (z + 3) for 0 <= z <= 27.5, from the highest power:
# interpolated at Chebyshev points with 50 digits, error 2e-16.
_SCALED = (
    -1.4695761153677132e-09,
    -6.190524896901924e-10,
    1.8525119637963594e-08,
    2.1104491239782162e-08,
    -1.0795204302706637e-07,
    -2.003309094710308e-07,
    4.926042510351395e-07,
    1.3795184935474043e-06,
    -2.371240737925462e-06,
    -8.73370049140649e-06,
    1.5198006061900503e-05,
    5.3780266308748054e-05,
    -0.00013838870320221144,
    -0.00027415475938295873,
    0.001517030972932095,
    -0.0006062083225449554,
    -0.013413617310280151,
    0.05976388064411148,
    -0.15523363095034895,
    0.29511417855204153,
    -0.44169722658494115,
    0.5370034535441699,
)
_ODD, _EVEN = _SCALED[::2], _SCALED[1::2]  # powers; short enough to be unrolled, and side by side
_MIDDLE = 3.0
_FARTHEST = 38.0  # e^{-x^2 / 2} is no normal number beyond


@kernel(flags=EXACT)
def _gelu(x):  # type: ignore[no-untyped-def]
    """x Phi(x), Phi(-|x|) = e^{-x^2 / 2} e^{z^2} erfc(z) / 2 with z = |x| / sqrt(2): a few ulps, in the tail too."""
    away = abs(x)
    away = _FARTHEST if away > _FARTHEST else away
    inverse = 1.0 / (away * _ROOT + _MIDDLE)
    s = 1.0 - 2.0 * _MIDDLE * inverse
    even, odd, square = _EVEN[0], _ODD[0], s * s
    for c in _EVEN[1:]:
        even = even * square + c
    for c in _ODD[1:]:
        odd = odd * square + c
    tail = exp_negative(-0.5 * away * away) * (even + s * odd) * inverse
    return x * (1.0 - tail if x > 0.0 else tail)


@kernel(flags=EXACT)
def _tanh(x):  # type: ignore[no-untyped-def]
    """By e^{-2 |x|}; for small |x|, where that cancels, by x / (1 + q / (3 + q / (5 + ... / 13))) with q = x^2."""
    away, q = abs(x), min(x * x, 1.0)
    power = exp_negative(-2.0 * away)
    top = 135135.0 + q * (17325.0 + q * (378.0 + q))
    bottom = 135135.0 + q * (62370.0 + q * (3150.0 + q * 28.0))
    near = away < 0.5
    result = (x * top if near else (1.0 - power if x > 0.0 else power - 1.0)) / (bottom if near else 1.0 + power)
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
        if d == 2:
            for i in range(count):
                points[0, i], points[1, i] = x[start + i, 0], x[start + i, 1]
        else:
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
        if rows == 2:
            for i in range(count):
                out[start + i, 0] += result[0, i]
                out[start + i, 1] += result[1, i]
        else:
            for i in range(count):
                for k in range(rows):
                    out[start + i, k] += result[k, i]


@kernel(flags=EXACT)
def _with_care(x, i, scale, out):  # type: ignore[no-untyped-def]
    """The same for one point, whose squares have no digits, or overflow; NaN at the origin."""
    largest, square = 0.0, 0.0
    for k in range(x.shape[1]):
        largest = max(largest, abs(x[i, k]))
    unit = 2.0 ** (-np.floor(np.log2(largest)) / 2.0) if 0.0 < largest < np.inf else np.nan
    for k in range(x.shape[1]):
        square += (x[i, k] * unit * unit) ** 2
    for k in range(x.shape[1]):
        out[i, k] = scale[k] * (x[i, k] * unit * unit / math.sqrt(square))


@kernel(flags=EXACT)
def normalise(x, scale, out, undefined, thread, threads):  # type: ignore[no-untyped-def]
    """out_i = scale x_i / |x_i|, of which the origin has none: NaN. ``out`` may be x.

    ``undefined`` (threads,): whether this thread has met the origin, or what is no number.
    """
    undefined[thread] = False
    (n, d), squares = x.shape, table(1, BLOCK)[0]
    begin, stop = share(n, thread, threads)
    for start in range(begin, stop, BLOCK):
        end, least, most, total = min(start + BLOCK, stop), np.inf, 0.0, 0.0
        count = end - start
        if d == 2:
            for i in range(count):
                squares[i] = x[start + i, 0] * x[start + i, 0] + x[start + i, 1] * x[start + i, 1]
        else:
            for i in range(count):
                squares[i] = 0.0
                for k in range(d):
                    squares[i] += x[start + i, k] * x[start + i, k]
        for i in range(count):
            least, most = min(least, squares[i]), max(most, squares[i])
            total += squares[i]
        if least > _SMALL and most < _LARGE and total == total:  # comparisons pass over a NaN
            for i in range(count):
                squares[i] = 1.0 / math.sqrt(squares[i])
            if d == 2:
                for i in range(count):
                    out[start + i, 0] = scale[0] * (x[start + i, 0] * squares[i])
                    out[start + i, 1] = scale[1] * (x[start + i, 1] * squares[i])
            else:
                for i in range(count):
                    for k in range(d):
                        out[start + i, k] = scale[k] * (x[start + i, k] * squares[i])
        else:
            for i in range(start, end):
                _with_care(x, i, scale, out)
                undefined[thread] |= out[i, 0] != out[i, 0]


@kernel(flags=EXACT)
def project(x, scale, velocity, thread, threads):  # type: ignore[no-untyped-def]
    """velocity_i -= D u_i <u_i, D^{-1} velocity_i>, D = diag(scale), u_i the unit vector along D^{-1} x_i."""
    begin, stop = share(len(x), thread, threads)
    inverse = 1.0 / (scale * scale)
    if len(scale) == 2:  # a loop of its own, which vectorises
        first, second = inverse[0], inverse[1]
        for i in range(begin, stop):
            p, q = x[i, 0], x[i, 1]
            u, v = p * first, q * second
            share_along = (u * velocity[i, 0] + v * velocity[i, 1]) / (u * p + v * q)
            velocity[i, 0] -= p * share_along
            velocity[i, 1] -= q * share_along
        return
    for i in range(begin, stop):
        square = along = 0.0
        for k in range(x.shape[1]):
            u = x[i, k] * inverse[k]
            square += u * x[i, k]
            along += u * velocity[i, k]
        for k in range(x.shape[1]):
            velocity[i, k] -= x[i, k] * (along / square)
