"""Time contestants fairly on a machine that others use too; shared by all benchmarks.

Each contestant runs in a fresh process whose environment sets its number of threads. It is warmed up, then repeated for
a given time; the best repetition counts. On one thread that is the one with the least CPU time: on a quiet machine CPU
time is wall time, on a busy one it does not count the others' turns. On several threads it is the least wall time, and
``Timing.cores`` (CPU time / wall time) shows how many cores really worked: less than the threads that were given means
that the machine was busy, or that the contestant does not use them.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_SPAWN = multiprocessing.get_context("spawn")  # fork copies thread pools that no longer work
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_UNSET = ("OPENBLAS_CORETYPE",)  # may name an older core than the one that is there


class Unavailable(Exception):
    """A contestant is not installed here, or not written yet."""


class ChildFailed(RuntimeError):
    """A contestant's process failed; the message holds its traceback."""


@dataclass(frozen=True)
class Timing:
    """Wall and CPU seconds of each repetition."""

    wall: list[float]
    cpu: list[float]

    def best(self, threads: int) -> float:
        """Seconds of the best repetition: CPU time on one thread, wall time on several."""
        return min(self.cpu if threads == 1 else self.wall)

    def median(self, threads: int) -> float:
        """Seconds of the repetition in the middle, measured like ``best``."""
        return sorted(self.cpu if threads == 1 else self.wall)[len(self.wall) // 2]

    @property
    def cores(self) -> float:
        """CPU time / wall time of the repetition with the least wall time."""
        fastest = self.wall.index(min(self.wall))
        return self.cpu[fastest] / self.wall[fastest]

    def __mul__(self, factor: float) -> Timing:
        return Timing([factor * seconds for seconds in self.wall], [factor * seconds for seconds in self.cpu])

    def __add__(self, other: Timing) -> Timing:
        return Timing(self.wall + other.wall, self.cpu + other.cpu)


def clock(threads: int) -> Callable[[], float]:
    """The clock that counts: CPU time on one thread, wall time on several."""
    return time.process_time if threads == 1 else time.perf_counter


def repeat(function: Callable[[], object], *, budget: float, least: int = 3, most: int = 1000) -> Timing:
    """Time a function that is already warm, again and again until ``budget`` seconds are over."""
    wall: list[float] = []
    cpu: list[float] = []
    end = time.perf_counter() + budget
    while len(wall) < least or (len(wall) < most and time.perf_counter() < end):
        began, worked = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - worked)
    return Timing(wall, cpu)


def wait_for_quiet(patience: float, *, idle: float = 0.9, window: float = 0.3) -> None:
    """Return when other processes leave this fraction of all cores idle, or when ``patience`` seconds are over."""
    statistics = Path("/proc/stat")
    end = time.perf_counter() + patience
    while statistics.exists() and time.perf_counter() < end:
        before = _idle_and_all(statistics)
        time.sleep(window)
        after = _idle_and_all(statistics)
        if after[0] - before[0] >= idle * (after[1] - before[1]):
            return


def _idle_and_all(statistics: Path) -> tuple[int, int]:
    ticks = [int(entry) for entry in statistics.read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def in_child(
    function: Callable[..., Any],
    *arguments: Any,
    threads: int,
    environment: Mapping[str, str] | None = None,
    pinned: bool = False,
    limit: float = 900.0,
) -> Any:
    """Return function(*arguments), computed in a fresh process with so many threads.

    Parameters
    ----------
    function
        A function at the top of a module; exceptions come back as ``Unavailable`` or ``ChildFailed``.
    environment
        More variables for the process.
    pinned
        Bind the process to as many cores: for libraries that ignore the variables.
    limit
        Seconds after which the process is stopped.
    """
    receiver, sender = _SPAWN.Pipe(duplex=False)
    cores = threads if pinned else None
    process = _SPAWN.Process(target=_answer, args=(sender, cores, function, arguments), daemon=True)
    with _environment({name: str(threads) for name in _THREADS} | dict(environment or {})):
        process.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            raise ChildFailed(f"{function.__name__} took more than {limit:g} s")
        answer = receiver.recv()
    except EOFError:
        process.join()
        raise ChildFailed(f"{function.__name__} ended with exit code {process.exitcode}") from None
    finally:
        if process.is_alive():
            process.join(5)
            process.kill()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _answer(sender: Connection, cores: int | None, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    try:
        if cores is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        answer = function(*arguments)
    except Unavailable as reason:
        answer = reason
    except Exception:
        answer = ChildFailed(traceback.format_exc())
    sender.send(answer)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({"OMP_WAIT_POLICY": "passive"} | dict(variables))
    for name in _UNSET:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass(frozen=True)
class Check:
    """A demand and what was measured."""

    demand: str
    measured: float
    limit: float
    at_least: bool = True
    unit: str = "times"

    @property
    def passed(self) -> bool:
        """Whether the demand is met."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def __str__(self) -> str:
        word = "pass" if self.passed else "FAIL"
        return f"{word}  {self.demand}: {number(self.measured)} {self.unit} ({self._bound} {number(self.limit)})"

    @property
    def _bound(self) -> str:
        return "at least" if self.at_least else "at most"


@dataclass
class Report:
    """What a job found: a table, demands and remarks; ``raw`` holds the times of all repetitions."""

    title: str
    header: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [self.title, table(self.header, self.rows), *self.notes, *(str(check) for check in self.checks)]
        return "\n".join(part for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """Everything, for the file."""
        content = asdict(self)
        content["checks"] = [asdict(check) | {"passed": check.passed} for check in self.checks]
        return content


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first and the last to the left, those between, mostly numbers, to the right."""
    if not rows:
        return ""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    last = len(header) - 1
    widths = [max(len(line[k]) for line in lines) for k in range(last + 1)]
    text = [
        "  ".join(line[k].ljust(widths[k]) if k in (0, last) else line[k].rjust(widths[k]) for k in range(last + 1))
        for line in lines
    ]
    rule = "-" * len(text[0])
    return "\n".join([rule, *(line.rstrip() for line in text[:1]), rule, *(line.rstrip() for line in text[1:]), rule])


def number(value: float) -> str:
    """Three digits, with commas in large numbers."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    for limit, unit, scale in ((1e-3, "us", 1e6), (1.0, "ms", 1e3), (300.0, "s", 1.0), (3e4, "min", 1 / 60)):
        if value < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{number(value / 3600)} h"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Installed versions, "-" where a package is not installed."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "-"
    return found


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes.

    Linux keeps it per process in VmHWM; ru_maxrss would start from the size of the parent that spawned us.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write results, replacing the file."""
    Path(path).write_text(json.dumps(content, indent=1, default=float) + "\n")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
        flags = next((line for line in lines if line.startswith("flags")), "")
        vectors = next((v for v in ("avx512f", "avx2", "avx") if f" {v}" in flags), "")
        return f"{name} ({vectors})" if vectors else name
    return platform.processor() or platform.machine()
