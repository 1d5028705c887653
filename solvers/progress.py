"""Progress bars on the terminal, only for what takes longer than a second: a run by its time, a study by its shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vlasov.solvers.record import Report

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE = 1.0  # seconds before a bar is worth its place
_SPEED_OVER = 600.0  # seconds over which the speed is averaged


def silent(*_: Any) -> None:
    """Report nothing."""


@contextmanager
def progress_bar(horizon: float, console: Console | None = None) -> Iterator[Report]:
    """A function that takes the time reached and the number of steps, and draws both and their rate."""
    from rich.progress import BarColumn, TextColumn

    columns = (
        TextColumn("t = {task.completed:.4g} of {task.total:.4g}"),
        BarColumn(),
        TextColumn("{task.fields[steps]} steps, {task.fields[rate]:.3g} per second"),
    )
    with _bar(horizon, columns, console) as update:
        yield lambda reached, steps: update(reached, lambda elapsed: {"steps": steps, "rate": steps / elapsed})


@contextmanager
def shares_bar(total: float, console: Console | None = None) -> Iterator[Callable[[str, float], None]]:
    """A function that takes what was finished and its share of the total, and draws the sum."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn

    done = 0.0

    def report(label: str, share: float) -> None:
        nonlocal done
        done += share
        update(done, lambda _: {"description": label})

    with _bar(total, (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()), console) as update:
        yield report


@contextmanager
def _bar(total: float, columns: Any, console: Console | None) -> Iterator[Callable[..., None]]:
    """A function of what is completed and of what else to show by the seconds elapsed: on a terminal, else silent."""
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, speed_estimate_period=_SPEED_OVER)
    task, began = bar.add_task("", total=total, steps=0, rate=0.0), time.perf_counter()

    def update(completed: float, shown: Callable[[float], dict[str, Any]]) -> None:
        elapsed = time.perf_counter() - began
        if elapsed > _PATIENCE:
            bar.start()
            bar.update(task, completed=completed, **shown(elapsed))

    try:
        yield update
    finally:
        bar.stop()
