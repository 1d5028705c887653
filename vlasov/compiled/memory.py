"""Memory for kernels, each kind compiled once: Numba compiles ``np.empty`` and ``np.zeros`` anew for every caller."""

from __future__ import annotations

import numpy as np

from vlasov.jit import kernel


@kernel()
def numbers(count):  # type: ignore[no-untyped-def]
    """So many numbers."""
    return np.empty(count)


@kernel()
def table(rows, columns):  # type: ignore[no-untyped-def]
    """So many rows of numbers."""
    return np.empty((rows, columns))


@kernel()
def zeroed(rows, columns):  # type: ignore[no-untyped-def]
    """So many rows of zeros."""
    result = table(rows, columns)
    flat = result.reshape(-1)
    for i in range(flat.size):
        flat[i] = 0.0
    return result
