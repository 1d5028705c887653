"""Numba's flags, each with its reason, in one place; and compilation that works without a writable cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

# GNU OpenMP spins while it waits: two contending thread pools then cost more than the work.
# It must stand before the first parallel call of the process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba

from vlasov.checks import integer
from vlasov.compiling import CLOCK
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
        name = _name(function)
        if "<locals>" in function.__qualname__:  # machine code is found by this name: closures must not share one
            function.__qualname__ += "_" + name[-16:]
        try:
            compiled = numba.njit(function, cache=True, **options)
        except RuntimeError:  # Numba: no locator available, i.e. no folder for the cache
            CLOCK.kept = False
            compiled = numba.njit(function, cache=False, **options)
        # Numba would draw a name at random, and look for edits in the kernel's own file alone: see ``_name``.
        compiled.name = name
        compiled._set_uuid(compiled.name)
        compiled._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), compiled.name)
        return compiled

    return compile_lazily


def _name(function: Callable[..., Any]) -> str:
    """The same in every process until something is edited that the compiled code depends on, in whatever file.

    Where a function stands, with a hash of its code, of the state of its file, and of the constants and kernels that it
    reads, closes over, or finds in modules.
    """
    code = function.__code__
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    read = [function.__globals__.get(name) for name in code.co_names]
    inside = [getattr(value, name, None) for value in read if isinstance(value, ModuleType) for name in code.co_names]
    content = repr((_state(code.co_filename), code.co_code, code.co_consts, _constant((*closed, *read, *inside))))
    return f"{function.__module__}.{function.__qualname__}:{hashlib.sha256(content.encode()).hexdigest()}"


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:  # a cell of a notebook
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _constant(value: Any) -> Any:
    """What compiled code takes from a value: numbers and texts themselves, kernels by their names."""
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    return value if isinstance(value, int | float | str) else getattr(value, "name", "")


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None: as many as NUMBA_NUM_THREADS allows, all cores if it is not set.

    Results do not depend on it, to the last bit. Small problems use one thread whatever is set.
    """
    most = numba.config.NUMBA_NUM_THREADS
    if count is not None and integer(count, "threads", least=1) > most:
        raise InputError(f"is {count} but this process may use {most}; set NUMBA_NUM_THREADS first", "threads")
    numba.set_num_threads(most if count is None else count)
