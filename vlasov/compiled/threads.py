"""Compiled loops in several threads of Python: kernels release the lock, and need not be compiled a second time for it.

A kernel with parallel loops takes 1 to 2 s longer to compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from vlasov.jit import kernel

_PIECE = 65_536  # rows: positions and velocities of tokens in the plane stay in the cache, and calls cost little
_pool: ThreadPoolExecutor | None = None


def in_threads(count: int, function: Callable[..., Any], *arguments: Any) -> None:
    """Call ``function(*arguments, thread, count)`` for thread = 0 ... count - 1, side by side; takes 15 to 70 us."""
    if count == 1:  # which small problems ask for hundreds of times
        function(*arguments, 0, 1)
        return
    others = [_workers().submit(function, *arguments, thread, count) for thread in range(1, count)]
    try:
        function(*arguments, 0, count)
    finally:  # Ctrl-C too leaves nobody behind who still writes
        failures = [other.exception() for other in others]
    for failure in failures:
        if failure is not None:
            raise failure


def in_pieces(count: int, function: Callable[..., Any], *arrays: Any) -> None:
    """Call ``function`` on pieces of arrays of equal length, which stay in the cache from one step to the next."""
    in_threads(count, _pieces, function, arrays)


def _pieces(function: Callable[..., Any], arrays: tuple[Any, ...], thread: int, threads: int) -> None:
    begin, stop = share(len(arrays[0]), thread, threads)
    for start in range(begin, stop, _PIECE):
        end = min(start + _PIECE, stop)
        function(*(array[start:end] for array in arrays))


@kernel()
def share(count, thread, threads):  # type: ignore[no-untyped-def]
    """Where one thread's part of so many tasks begins and ends.

    It is contiguous: what a processor fetches ahead from memory is then for the thread that has asked for it.
    """
    return count * thread // threads, count * (thread + 1) // threads


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="vlasov")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)  # a forked process has none of its parent's threads
