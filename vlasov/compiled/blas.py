"""One thread of BLAS, where bits must not depend on how many there are, or pieces are computed side by side.

BLAS sums in an order that depends on how many threads it has, and its threads would wait for those of other pieces: a
study of 600 tokens in d = 8 took forty times as long. How many it has is the process's: the first who comes in sets
it, and the last who leaves sets it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

_lock, _inside = Lock(), list[threadpool_limits]()


@contextmanager
def one_thread_of_blas() -> Iterator[None]:
    """Within it, in all threads of the process."""
    import scipy.linalg  # noqa: F401  # its BLAS is another one than NumPy's, and must be loaded to hear of it

    with _lock:
        _inside.append(threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            last = _inside.pop()  # the last one left is the first that came, who knows what there was before
            if not _inside:
                last.restore_original_limits()
