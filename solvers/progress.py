"""A progress bar on the terminal: simulated time, steps and rate, only for what takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vlasov.solvers.record import Report

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE = 1.0  # seconds before a bar is worth its place


def silent(reached: float, steps: int) -> None:
    """Report nothing."""


@contextmanager
def progress_bar(horizon: float, console: Console | None = None) -> Iterator[Report]:
    """A ``Report`` that draws a bar on the console (standard error), where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    columns = (
        TextColumn("t = {task.completed:.4g} of {task.total:.4g}"),
        BarColumn(),
        TextColumn("{task.fields[steps]} steps, {task.fields[rate]:.3g} per second"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("run", total=horizon, steps=0, rate=0.0)
    began = time.perf_counter()

    def report(reached: float, steps: int) -> None:
        elapsed = time.perf_counter() - began
        if elapsed > _PATIENCE:
            bar.start()
            bar.update(task, completed=reached, steps=steps, rate=steps / elapsed)

    try:
        yield report
    finally:
        bar.stop()
