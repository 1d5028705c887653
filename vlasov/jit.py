"""Numba's flags, each with its reason, in one place; and compilation that works without a writable cache."""

from __future__ import annotations

import hashlib
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
            compiled = numba.njit(function, cache=True, **options)
        except RuntimeError:  # Numba: no locator available, i.e. no folder for the cache
            compiled = numba.njit(function, cache=False, **options)
        # Numba would draw a name at random, and never find again in the cache what was compiled for this kernel.
        compiled.name = _name(function)
        compiled._set_uuid(compiled.name)
        if function.__closure__:  # which Numba would pickle, random names and all
            compiled._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), compiled.name)
        return compiled

    return compile_lazily


def _name(function: Callable[..., Any]) -> str:
    """The same in every process: where a function stands, with a hash of its code and of the kernels it closes over."""
    code, closed = function.__code__, [cell.cell_contents for cell in function.__closure__ or ()]
    content = repr((code.co_code, code.co_consts, [getattr(value, "name", value) for value in closed]))
    return f"{function.__module__}.{function.__qualname__}:{hashlib.sha256(content.encode()).hexdigest()}"


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None: as many as NUMBA_NUM_THREADS allows, all cores if it is not set.

    Results do not depend on it, to the last bit. Small problems use one thread whatever is set.
    """
    most = numba.config.NUMBA_NUM_THREADS
    if count is not None and integer(count, "threads", least=1) > most:
        raise InputError(f"is {count} but this process may use {most}; set NUMBA_NUM_THREADS first", "threads")
    numba.set_num_threads(most if count is None else count)
