"""Progress on the terminal, only of what takes longer than a second: a run by its time, a study by its shares.

What has no measure of how far it is says what is waited for.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vlasov.solvers.record import Report

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE = 1.0  # seconds before a bar is worth its place
_LONGER = 2.0  # seconds from which on they are told
_ERASE = "\x1b[2K\r"  # a line of a terminal
_SPEED_OVER = 600.0  # seconds over which the speed is averaged


def silent(*_: Any) -> None:
    """Report nothing."""


@contextmanager
def waiting(what: str, *, aloud: bool = True) -> Iterator[None]:
    """Say on a terminal what is waited for, where that takes longer than a second; nothing is left of it."""
    if not aloud or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    told, done, began = threading.Event(), threading.Event(), time.perf_counter()

    def tell() -> None:
        while not done.wait(1.0 if told.is_set() else _PATIENCE):
            elapsed = time.perf_counter() - began
            seconds = f" {elapsed:.0f} s" if elapsed > _LONGER else ""
            told.set()
            print(f"{what} ...{seconds}", end="\r", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        if told.is_set():
            print(_ERASE, end="", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(horizon: float, console: Console | None = None, what: str = "") -> Iterator[Report]:
    """A function that takes the time reached and the number of steps, and draws both and their rate, after ``what``."""
    from rich.progress import BarColumn, TextColumn

    columns = (
        *([TextColumn("{task.fields[what]}")] if what else []),
        TextColumn("t = {task.completed:.4g} of {task.total:.4g}"),
        BarColumn(),
        TextColumn("{task.fields[steps]} steps, {task.fields[rate]:.3g} per second"),
    )
    with _bar(horizon, columns, console, what) as update:
        yield lambda reached, steps: update(reached, lambda elapsed: {"steps": steps, "rate": steps / elapsed})


@contextmanager
def shares_bar(
    total: float, console: Console | None = None, what: str = "the first of them"
) -> Iterator[Callable[[str, float], None]]:
    """A function that takes what was finished and its share of the total, and draws the sum; first ``what``."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn

    done = 0.0

    def report(label: str, share: float) -> None:
        nonlocal done
        done += share
        update(done, lambda _: {"description": label})

    with _bar(total, (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()), console, what) as update:
        yield report


@contextmanager
def _bar(total: float, columns: Any, console: Console | None, what: str) -> Iterator[Callable[..., None]]:
    """A function of what is completed and of what else to show by the seconds elapsed: on a terminal, else silent."""
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    # FORCE_COLOR makes rich take a notebook or a file for a terminal; a bar would be drawn into what they keep.
    seen = console is not None or (sys.stderr is not None and sys.stderr.isatty())
    console = console or Console(stderr=True)
    if not (seen and console.is_terminal):
        yield silent
        return
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, speed_estimate_period=_SPEED_OVER)
    task, began = bar.add_task(what, total=total, steps=0, rate=0.0, what=what), time.perf_counter()
    starter = threading.Timer(_PATIENCE, bar.start)  # also where the first report comes late
    starter.daemon = True
    starter.start()

    def update(completed: float, shown: Callable[[float], dict[str, Any]]) -> None:
        elapsed = time.perf_counter() - began
        if elapsed > _PATIENCE:
            bar.start()
            bar.update(task, completed=completed, **shown(elapsed))

    try:
        yield update
    finally:
        starter.cancel()
        starter.join()
        bar.stop()
