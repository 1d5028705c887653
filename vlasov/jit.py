"""Numba's flags, each with its reason, in one place; and compilation that works without a writable cache.

How kernels are compiled is said in ``vlasov.lean``; a Numba that it does not know does it its own way, for longer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

# GNU OpenMP spins while it waits: two contending thread pools then cost more than the work.
# It must stand before the first parallel call of the process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from vlasov.cache import keep
from vlasov.checks import integer
from vlasov.errors import InputError

try:
    from vlasov import lean
except (ImportError, AttributeError):  # a Numba without names that it needs
    LEAN = False
else:
    LEAN = lean.serves()

# Sums may be reordered and fused, so that loops vectorise; NaN and infinity keep their meaning (no nnan, no ninf).
SUMS = frozenset({"contract", "reassoc", "nsz"})
# Fused multiply-add only: for code that rounds on purpose and must not be reassociated.
EXACT = frozenset({"contract"})


def kernel(
    *, flags: frozenset[str] = EXACT, alone: bool = False, forceinline: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with our flags; compiled code is cached on disk where a folder can be written.

    ``error_model="numpy"`` turns division by zero into inf or NaN, as in NumPy, and lets loops vectorise. ``alone``:
    what other kernels take in is optimised before, for loops that the vectoriser would not know again among others.
    ``forceinline``: callers take it in however long it is, since loops around a call do not vectorise.
    """
    options = {"nopython": True, "fastmath": set(flags), "error_model": "numpy", "nogil": True, "boundscheck": False}
    options["no_cfunc_wrapper"] = True  # only for functions that are handed over
    if forceinline:
        options["forceinline"] = True

    def compile_lazily(function: Callable[..., Any]) -> Any:
        name = _name(function, (*sorted(flags), alone, forceinline))
        if "<locals>" in function.__qualname__:  # machine code is found by this name: closures must not share one
            function.__qualname__ += "_" + name[-16:]
        if LEAN:
            return lean.Kernel(function, options, name, alone=alone)
        compiled = CPUDispatcher(function, {}, options)
        compiled.name = name
        keep(compiled, name)
        return compiled

    return compile_lazily


def _name(function: Callable[..., Any], options: tuple[Any, ...] = (), known: tuple[int, ...] = ()) -> str:
    """The same in every process until something is edited that the compiled code depends on, in whatever file.

    Where a function stands, with a hash of its code, of the state of its file, and of the constants and kernels that it
    reads, closes over, or finds in modules. ``known``: functions that lead to it.
    """
    code = function.__code__
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    read = [function.__globals__.get(name) for name in code.co_names]
    inside = [getattr(value, name, None) for value in read if isinstance(value, ModuleType) for name in code.co_names]
    constants = [_constant(value, (*known, id(function))) for value in (*closed, *read, *inside)]
    content = repr((_state(code.co_filename), code.co_code, code.co_consts, options, LEAN, constants))
    return f"{function.__module__}.{function.__qualname__}:{hashlib.sha256(content.encode()).hexdigest()}"


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:  # a cell of a notebook
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _constant(value: Any, known: tuple[int, ...]) -> Any:
    """What compiled code takes from a value: numbers, texts and arrays themselves, kernels by their names.

    Of an intrinsic, the state of its file, and of ``files`` that it says it is made from.
    """
    if isinstance(value, tuple):
        return [_constant(part, known) for part in value]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(written := getattr(value, "_defn", None), FunctionType):
        return [_state(path) for path in (written.__code__.co_filename, *getattr(written, "files", ()))]
    if isinstance(value, Dispatcher) and not hasattr(value, "name"):  # by somebody else, or a copy from elsewhere
        return _name(value.py_func, known=known) if id(value.py_func) not in known else ""
    return value if isinstance(value, int | float | complex | str | np.generic) else getattr(value, "name", "")


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None: as many as NUMBA_NUM_THREADS allows, all cores if it is not set.

    Results do not depend on it, to the last bit. Small problems use one thread whatever is set. BLAS has threads of its
    own (OPENBLAS_NUM_THREADS; the command line takes one, since they spin while they wait): derivatives in many
    dimensions, and norms of them, depend on those by rounding errors.

    Parameters
    ----------
    count
        At least one, or None.

    Examples
    --------
    >>> vl.set_threads(1)
    >>> vl.set_threads(None)  # all again
    """
    most = numba.config.NUMBA_NUM_THREADS
    if count is not None and integer(count, "threads", least=1) > most:
        raise InputError(f"is {count} but this process may use {most}; set NUMBA_NUM_THREADS first", "threads")
    numba.set_num_threads(most if count is None else count)
