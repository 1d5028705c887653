"""Numba's flags, each with its reason, in one place; and compilation that works without a writable cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# GNU OpenMP spins while it waits: two contending thread pools then cost more than the work.
# It must stand before the first parallel call of the process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba

from vlasov.checks import integer
from vlasov.errors import InputError

# Sums may be reordered and fused, so that loops vectorise; NaN and infinity keep their meaning (no nnan, no ninf).
SUMS = frozenset({"contract", "reassoc", "nsz"})
# Fused multiply-add only: for code that rounds on purpose and must not be reassociated.
EXACT = frozenset({"contract"})


def kernel(
    *, flags: frozenset[str] = EXACT, parallel: bool = False, inline: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with our flags; compiled code is cached on disk where a folder can be written.

    ``error_model="numpy"`` turns division by zero into inf or NaN, as in NumPy, and lets loops vectorise.
    """
    options: dict[str, Any] = {"fastmath": set(flags), "error_model": "numpy", "parallel": parallel, "nogil": True}
    if inline:
        options["inline"] = "always"

    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(function, cache=True, **options)
        except RuntimeError:  # Numba: no locator available, i.e. no folder for the cache
            return numba.njit(function, cache=False, **options)

    return compile_lazily


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None: as many as NUMBA_NUM_THREADS allows, all cores if it is not set.

    Results do not depend on it, to the last bit. Small problems use one thread whatever is set.
    """
    most = numba.config.NUMBA_NUM_THREADS
    if count is not None and integer(count, "threads", least=1) > most:
        raise InputError(f"is {count} but this process may use {most}; set NUMBA_NUM_THREADS first", "threads")
    numba.set_num_threads(most if count is None else count)
