"""Memory that this process can still take: of the machine, of its control groups, and of its own limit."""

from __future__ import annotations

import math
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def available() -> float:
    """Bytes that this process can still take; infinity where the system does not say."""
    virtual, resident = _numbers("/proc/self/statm", r"(\d+) (\d+)") or (0, 0)  # pages
    limits = [limit - mmap.PAGESIZE * resident for limit in _group_limits()]
    return max(0.0, min(_free(), _address_space() - mmap.PAGESIZE * virtual, *limits))


def _free() -> float:
    """Bytes of the machine that are free, or all that it has where it does not say how many are."""
    if free := _numbers("/proc/meminfo", r"MemAvailable: +(\d+) kB"):
        return 1024 * free[0]
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return math.inf


def _group_limits() -> Iterator[float]:
    """Limits of all control groups around this process, version 1 or 2; a container sees its own at the root."""
    yield math.inf
    for controllers, name in re.findall(r"^\d+:(|memory):/(.*)$", _text("/proc/self/cgroup"), re.MULTILINE):
        folder = Path("/sys/fs/cgroup", controllers, name)
        for group in (folder, *folder.parents):
            for file in ("memory.max", "memory.limit_in_bytes"):
                yield from _numbers(str(group / file), r"(\d+)")  # or "max"


def _address_space() -> float:
    """``ulimit -v`` in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _numbers(path: str, pattern: str) -> tuple[int, ...]:
    match = re.search(pattern, _text(path))
    return tuple(map(int, match.groups())) if match else ()


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text()
    return ""
