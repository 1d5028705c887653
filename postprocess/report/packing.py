"""Numbers packed for a page: what a reader sees of them stays exact, and they take a few bits each.

    code(v) = 9 * 10^(k-1) (e - low) + m - 10^(k-1) + 1,     v = m * 10^(e - k + 1) rounded to k digits;  0 below 10^low

These codes are whole numbers that grow like log v, so that their differences along every axis are small where v is
smooth. Differences as zigzag codes, low bytes first, all deflated, in base64: ``assets/1_core.js`` undoes it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array

DIGITS, FLOOR = 4, 8  # digits kept, and decades below the largest value of a time
FEWER = ((4, 6), (3, 6), (3, 4))  # where more would be too much
_PLANES, _TOKEN_PLANES = 3, 4
_TOKEN_DIGITS = 6  # of the largest coordinate of a time
_LEAST = -304  # the power of ten below which all is zero: beyond, powers of ten are no numbers any more


def coded(values: Array, digits: int = DIGITS, floor: int = FLOOR) -> tuple[int, NDArray[np.int32]]:
    """The exponent ``low`` and the codes of values that are not negative."""
    peak, span = float(values.max(initial=0.0)), 10 ** (digits - 1)
    if not peak >= 10.0**_LEAST:
        return 0, np.zeros(values.shape, np.int32)
    low = max(int(np.floor(np.log10(peak))) - floor, _LEAST)
    kept = values >= 10.0**low
    safe = np.where(kept, values, 10.0**low)
    exponent = np.floor(np.log10(safe)).astype(np.int64)
    mantissa = np.rint(safe * 10.0 ** (digits - 1 - exponent)).astype(np.int64)
    return low, np.where(kept, 9 * span * (exponent - low) + mantissa - span + 1, 0).astype(np.int32)


def pack_density(values: Array, digits: int = DIGITS, floor: int = FLOOR) -> dict[str, Any]:
    """One part at one time."""
    low, codes = coded(values, digits, floor)
    for axis in range(codes.ndim):
        codes = np.diff(codes, axis=axis, prepend=np.int32(0))
    return {"low": low, "data": _packed(codes, _PLANES)}


def pack_tokens(positions: Array) -> dict[str, Any]:
    """Positions (time, token, d) as whole numbers of 10^-decimals, with as many decimals at a time as are shown."""
    largest = np.abs(positions).max(axis=(1, 2), initial=0.0)
    powers = [int(np.floor(np.log10(size))) if size >= 10.0**_LEAST else 0 for size in largest]
    decimals = [min(_TOKEN_DIGITS - 1 - power, -_LEAST) for power in powers]
    whole = np.stack([np.rint(x * 10.0**k) for x, k in zip(positions, decimals, strict=True)]).astype(np.int32)
    steps = whole.copy()
    for k in range(1, len(whole)):
        if decimals[k] == decimals[k - 1]:
            steps[k] -= whole[k - 1]
    return {"decimals": decimals, "data": _packed(steps, _TOKEN_PLANES)}


def size_of(packed: Sequence[Sequence[dict[str, Any]]]) -> int:
    """Bytes that packed frames take in a page."""
    return sum(len(part["data"]) for frame in packed for part in frame)


def _packed(values: NDArray[np.int32], planes: int) -> str:
    """Signed numbers as base64 of deflated planes of bytes."""
    codes = ((values << 1) ^ (values >> 31)).astype(np.uint32).ravel()
    raw = b"".join(((codes >> np.uint32(8 * k)) & np.uint32(255)).astype(np.uint8).tobytes() for k in range(planes))
    return base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
