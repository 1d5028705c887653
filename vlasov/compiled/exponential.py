"""Exponentials without calls and branches: a scalar one, which LLVM vectorises (it does not with Numba's math.exp).

    2^x = 2^k 2^r,   k the multiple of 1/E nearest to x,   |r| <= 1/(2 E)

Adding 1.5 2^52 / E to x rounds it to k and leaves E k in the last bits of the sum. For E = 1, 2^r is a polynomial, and
k is added to the bits of its exponent. For E = 16, or 32 in single precision, the lowest bits of E k choose among E
powers that fill two registers, which saves four of eleven multiplications; ``lanes`` does so where a processor can.

The rounding must be compiled without reassociation (``EXACT``), which would remove it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from vlasov.jit import EXACT, kernel

LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # high part has 21 trailing zero bits

# 2^r on [-1/2, 1/2] from the highest power, with the least relative error: 3.1e-18, and 1.9e-9 in single precision.
POLYNOMIAL_DOUBLE = (
    4.4352809446103363e-10,
    7.074105626245659e-09,
    1.0178198033328528e-07,
    1.321543308959463e-06,
    1.5252733489960805e-05,
    0.00015403530462514614,
    0.001333355814678995,
    0.009618129107588335,
    0.055504108664819925,
    0.24022650695910155,
    0.6931471805599453,
    1.0,
)
POLYNOMIAL_SINGLE = (
    0.00015345812158740183,
    0.001339993120947414,
    0.009618488956522791,
    0.055503287769976636,
    0.24022646890639573,
    0.6931472057372526,
    1.0000000005541663,
)
# (2^r - 1) / r on [-1/32, 1/32], error of 2^r 7e-18, and on [-1/64, 1/64], 5.3e-8: interpolated at Chebyshev points.
TABLE_DOUBLE = (
    0.0001540375624545771,
    0.001333381881538924,
    0.009618129106525682,
    0.05550410865209357,
    0.24022650695910086,
    0.6931471805599468,
)
TABLE_SINGLE = (0.2402282680963039, 0.6931573437104842)
# 2^r to eleven digits where more are not asked for, on [-1/2, 1/2] and on [-1/32, 1/32], with the least relative error.
POLYNOMIAL_ROUGH = (
    1.3175858176186498e-06,
    1.530973742356987e-05,
    0.00015403851748450507,
    0.0013333452062245417,
    0.009618128542862732,
    0.05550410939341709,
    0.24022650698880368,
    0.6931471805465141,
    0.9999999999997623,
)
TABLE_ROUGH = (
    0.009617941078493583,
    0.055505736251728104,
    0.24022650728043596,
    0.6931471801626149,
    0.9999999999999551,
)
ROUGHNESS = 2.5e-12

# Exponents are clamped so far inside the range of numbers that sums of 2^x, times coordinates, stay finite; what
# reaches the upper end shows that a shift was too small.
RANGE_DOUBLE = (-1000.0, 500.0)
RANGE_SINGLE = (-125.0, 60.0)

_LOWEST, _HIGHEST = RANGE_DOUBLE
_ROUNDER = 1.5 * 2.0**52


@intrinsic
def _times_power(typing_context: Any, p: Any, counter: Any) -> Any:
    """``p`` times 2^k, where k stands in the last bits of ``counter``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, count = (builder.bitcast(value, ir.IntType(64)) for value in arguments)
        scaled = builder.add(bits, builder.shl(count, ir.Constant(ir.IntType(64), 52)))
        return builder.bitcast(scaled, ir.DoubleType())

    return types.float64(types.float64, types.float64), generate


@kernel(flags=EXACT)
def _polynomial(r: float) -> float:
    p = POLYNOMIAL_DOUBLE[0]
    for c in POLYNOMIAL_DOUBLE[1:]:
        p = p * r + c
    return p


@kernel(flags=EXACT)
def exp2(x: float) -> float:
    """2^x, clamped to [2^-1000, 2^500]; exact for integers."""
    x = _LOWEST if x < _LOWEST else x  # a NaN stays
    x = _HIGHEST if x > _HIGHEST else x
    counted = x + _ROUNDER
    return _times_power(_polynomial(x - (counted - _ROUNDER)), counted)


@kernel(flags=EXACT)
def exp_negative(x: float) -> float:
    """e^x for x <= 0, at least e^-708, which is still a normal number.

    2^k e^r with x = k log 2 + r; log 2 stands in two parts, so that k log 2 is exact for large x too.
    """
    x = -708.0 if x < -708.0 else x
    counted = x * LOG2_E + _ROUNDER
    k = counted - _ROUNDER
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    return _times_power(_polynomial(r * LOG2_E), counted)
