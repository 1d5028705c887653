"""Compiled loops in several threads of Python: kernels release the lock, and need not be compiled a second time for it.

A kernel with parallel loops takes 1 to 2 s longer to compile, and is not found in the cache again if it calls another
that was made by a factory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_pool: ThreadPoolExecutor | None = None


def in_threads(count: int, kernel: Callable[..., Any], *arguments: Any) -> None:
    """Call ``kernel(*arguments, thread, count)`` for thread = 0 ... count - 1, side by side; takes about 15 us."""
    others = [_workers().submit(kernel, *arguments, thread, count) for thread in range(1, count)]
    kernel(*arguments, 0, count)
    for other in others:
        other.result()


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="vlasov")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)  # a forked process has none of its parent's threads
