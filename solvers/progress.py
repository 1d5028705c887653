"""Progress on stderr of what takes longer than a second: what is under way, and how long all of it takes.

On a terminal it is one line with a bar, written anew twice a second and erased at the end; elsewhere, as in a file or a
pipe, a line after one second, and the next after three times as long.
"""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from vlasov.solvers.record import Report

MARK = "... "  # begins a line in a pipe, so that programs can tell it from warnings
_PATIENCE = 1.0  # seconds of silence
_REWRITTEN, _SELDOM = 0.5, 3.0  # seconds between lines on a terminal; elsewhere each line waits so many times longer
_TRUSTED = 0.2  # share that is done from which on it alone says how long the rest takes
_GAP = 0.2  # seconds between two stages of one command
_ERASE = "\r\x1b[2K"  # a line of a terminal
_CELLS = 20  # of a bar
_SOLVING = 0.5  # of the time of a run; the rest is for its error

#: Takes what is under way in words, and the share of all work that is done.
Reached = Callable[[str, float], None]


def silent(*_: Any) -> None:
    """Report nothing."""


_reached: ContextVar[Reached] = ContextVar("_reached", default=silent)


def reached(words: str, share: float) -> None:
    """Say what is under way and the share that is done, on the line of the stage around it, if there is one."""
    _reached.get()(words, share)


@contextmanager
def part(done: float, share: float) -> Iterator[None]:
    """Let what is reached inside be a share of a stage, of which so much is done before."""
    outer = _reached.get()
    with _reporting(lambda words, inner: outer(words, done + share * inner)):
        yield


@contextmanager
def _reporting(to: Reached) -> Iterator[None]:
    token = _reached.set(to)
    try:
        yield
    finally:
        _reached.reset(token)


def about(seconds: float) -> str:
    """Return a duration in seconds with few digits, in minutes or hours where it is long."""
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 180 else f"{max(1, seconds):.0f} s"


class _Line:
    """One line about one stage, written by a thread of its own, since reports may come late.

    Stages that follow each other within ``_GAP`` share their silence: it is a command that nobody waits for longer.
    """

    _ended = -math.inf  # when the last stage ended
    _due = _since = 0.0  # when the next line is due; when the silence began

    def __init__(self, what: str, seconds: float, stream: TextIO) -> None:
        self.what, self.words, self.share, self.seconds = what, "", 0.0, seconds
        self._stream, self._bar = stream, stream.isatty()
        self._began = now = time.perf_counter()
        if now - _Line._ended > _GAP:
            _Line._due, _Line._since = now + _PATIENCE, now
        self._done, self._written = threading.Event(), False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def report(self, words: str, share: float) -> None:
        self.words, self.share = words, min(max(share, 0.0), 1.0)

    def text(self, elapsed: float) -> str:
        """Return what is under way, and the seconds so far with those expected in all."""
        what = ": ".join(filter(None, [self.what, self.words]))
        foreseen = self.seconds
        if self.share > 0:
            measured = elapsed / self.share
            trust = 1.0 if math.isnan(foreseen) else min(1.0, self.share / _TRUSTED)
            foreseen = measured * trust + (foreseen * (1 - trust) if trust < 1.0 else 0.0)
        expected = f"{elapsed:.0f} s of about {about(max(foreseen, elapsed))}" if foreseen > 0 else f"{elapsed:.0f} s"
        return f"{what}, {expected}"

    def _write(self) -> None:
        while not self._done.wait(max(0.0, _Line._due - time.perf_counter())):
            now = time.perf_counter()
            text = self.text(now - self._began)
            if self._bar:
                full = round(self.share * _CELLS)
                line = f"[{'#' * full}{'-' * (_CELLS - full)}] {text}"
                self._print(_ERASE + line[: shutil.get_terminal_size().columns - 1])
                _Line._due = now + _REWRITTEN
            else:
                self._print(f"{MARK}{text}\n")
                _Line._due = now + _SELDOM * (now - _Line._since)
            self._written = True

    def _print(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a pipe that nobody reads, or a stream that is closed
            self._done.set()

    def end(self) -> None:
        self._done.set()
        self._thread.join()
        _Line._ended = time.perf_counter()
        if self._bar and self._written:
            self._print(_ERASE)


@contextmanager
def waiting(what: str, *, aloud: bool = True, seconds: float = math.nan) -> Iterator[None]:
    """Say what is waited for, where that takes longer than a second; ``reached`` says inside how far it is.

    ``seconds`` are what it is expected to take, until the share that is done says it better.
    """
    if not aloud or sys.stderr is None:
        with _reporting(silent):
            yield
        return
    line = _Line(what, seconds, sys.stderr)
    try:
        with _reporting(line.report):
            yield
    finally:
        line.end()


@contextmanager
def progress_bar(horizon: float, what: str = "") -> Iterator[Report]:
    """Yield a function that takes the time that a run has reached, and the number of its steps."""
    with waiting(what):
        report = _reached.get()

        def report_step(reached: float, steps: int) -> None:
            then = ", now its error" if reached >= horizon else ""
            report(f"t = {reached:.4g} of {horizon:.4g}, {steps:,} steps{then}", _SOLVING * reached / horizon)

        yield report_step


@contextmanager
def shares_bar(total: float, what: str) -> Iterator[Callable[[str, float], None]]:
    """Yield a function that takes the words of a piece that is done, and its share of the total."""
    done = 0.0

    def report(label: str, share: float) -> None:
        nonlocal done
        done += share
        line(label, done / total)

    with waiting(what):
        line = _reached.get()
        yield report
