"""Loops of LayerNorm and MLP over tokens: unit vectors, projections, activations. Memory is passed once.

In the plane coordinates are read from the flat array: with a stride that is written down, loops vectorise.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.memory import table
from vlasov.compiled.pointers import address, call
from vlasov.compiled.threads import share
from vlasov.jit import EXACT, SUMS, kernel

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


@kernel(flags=EXACT, forceinline=True)
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


@kernel(flags=EXACT, forceinline=True)
def _tanh(x):  # type: ignore[no-untyped-def]
    """By e^{-2 |x|}; for small |x|, where that cancels, by x / (1 + q / (3 + q / (5 + ... / 13))) with q = x^2."""
    away, q = abs(x), min(x * x, 1.0)
    power = exp_negative(-2.0 * away)
    top = 135135.0 + q * (17325.0 + q * (378.0 + q))
    bottom = 135135.0 + q * (62370.0 + q * (3150.0 + q * 28.0))
    near = away < 0.5
    result = (x * top if near else (1.0 - power if x > 0.0 else power - 1.0)) / (bottom if near else 1.0 + power)
    return result if x == x else x


@kernel(flags=EXACT, forceinline=True)
def _same(x):  # type: ignore[no-untyped-def]
    return x


@kernel(flags=EXACT, forceinline=True)
def _relu(x):  # type: ignore[no-untyped-def]
    return 0.0 if x < 0.0 else x


_ACTIVATIONS = (_same, _relu, _tanh, _gelu)


@cache
def activation(which: int) -> Any:
    """The kernel that puts s(z) in place of each z of a row; a NaN stays."""
    scalar = _ACTIVATIONS[which]

    @kernel(flags=EXACT)
    def activate(row):  # type: ignore[no-untyped-def]
        for i in range(row.size):
            row[i] = scalar(row[i])

    return activate


@cache
def address_of(which: int) -> int:
    """The same for other kernels: inside their loops it would not be vectorised."""
    return address(activation(which), types.float64[::1])


@kernel(flags=SUMS)
def add_mlp(x, first, bias, second, activate, out):  # type: ignore[no-untyped-def]
    """out[i] += W s(U x_i + b), hidden unit by hidden unit on blocks of tokens; ``activate`` is the address of s."""
    (n, d), (rows, units) = x.shape, second.shape
    points, hidden, result = table(d, BLOCK), table(1, BLOCK)[0], table(rows, BLOCK)
    for start in range(0, n, BLOCK):
        count = min(BLOCK, n - start)
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
            call(activate, (hidden[:count],))
            for k in range(rows):
                w, total = second[k, j], result[k]
                for i in range(count):
                    total[i] += w * hidden[i]
        for i in range(count):
            for k in range(rows):
                out[start + i, k] += result[k, i]


@cache
def add_mlp_in_plane(which: int) -> Any:
    """The kernel that does the same for d = 2 and an even number of hidden units, two at a time, in registers."""
    scalar = _ACTIVATIONS[which]

    @kernel(flags=SUMS)
    def add(x, first, bias, second, out):  # type: ignore[no-untyped-def]
        for start in range(0, len(x), BLOCK):
            count = min(BLOCK, len(x) - start)
            tokens, results = x[start : start + count].reshape(-1), out[start : start + count].reshape(-1)
            for j in range(0, len(bias), 2):
                a, b, shift, c, d = first[j, 0], first[j, 1], bias[j], second[0, j], second[1, j]
                k = j + 1
                e, f, other_shift, g, h = first[k, 0], first[k, 1], bias[k], second[0, k], second[1, k]
                for i in range(count):
                    one = scalar(shift + a * tokens[2 * i] + b * tokens[2 * i + 1])
                    other = scalar(other_shift + e * tokens[2 * i] + f * tokens[2 * i + 1])
                    results[2 * i] += c * one + g * other
                    results[2 * i + 1] += d * one + h * other

    return add


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
    (n, d), inverse = x.shape, table(1, BLOCK)[0]
    flat, flat_out, along, across = x.reshape(-1), out.reshape(-1), scale[0], scale[d - 1]
    begin, stop = share(n, thread, threads)
    for start in range(begin, stop, BLOCK):
        end, fine = min(start + BLOCK, stop), 0
        count = end - start
        tokens, results = flat[d * start : d * end], flat_out[d * start : d * end]
        if d == 2:
            for i in range(count):
                square = tokens[2 * i] * tokens[2 * i] + tokens[2 * i + 1] * tokens[2 * i + 1]
                fine += (square > _SMALL) & (square < _LARGE)
                inverse[i] = 1.0 / math.sqrt(square)
        else:
            for i in range(count):
                square = 0.0
                for k in range(d):
                    square += x[start + i, k] * x[start + i, k]
                fine += (square > _SMALL) & (square < _LARGE)
                inverse[i] = 1.0 / math.sqrt(square)
        if fine == count and d == 2:
            for i in range(count):
                results[2 * i] = along * (tokens[2 * i] * inverse[i])
                results[2 * i + 1] = across * (tokens[2 * i + 1] * inverse[i])
        elif fine == count:
            for i in range(count):
                for k in range(d):
                    out[start + i, k] = scale[k] * (x[start + i, k] * inverse[i])
        else:
            for i in range(start, end):
                _with_care(x, i, scale, out)
                undefined[thread] |= out[i, 0] != out[i, 0]


@kernel(flags=EXACT)
def project(x, scale, velocity):  # type: ignore[no-untyped-def]
    """velocity_i -= D u_i <u_i, D^{-1} velocity_i>, D = diag(scale), u_i the unit vector along D^{-1} x_i."""
    inverse = 1.0 / (scale * scale)
    if len(scale) == 2:  # a loop of its own, which vectorises
        first, second = inverse[0], inverse[1]
        tokens, velocities = x.reshape(-1), velocity.reshape(-1)
        for i in range(len(x)):
            p, q = tokens[2 * i], tokens[2 * i + 1]
            u, v = p * first, q * second
            share_along = (u * velocities[2 * i] + v * velocities[2 * i + 1]) / (u * p + v * q)
            velocities[2 * i] -= p * share_along
            velocities[2 * i + 1] -= q * share_along
        return
    for i in range(len(x)):
        square = along = 0.0
        for k in range(x.shape[1]):
            u = x[i, k] * inverse[k]
            square += u * x[i, k]
            along += u * velocity[i, k]
        for k in range(x.shape[1]):
            velocity[i, k] -= x[i, k] * (along / square)
