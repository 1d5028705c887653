"""How long this process has compiled kernels, and a word to who waits for it; ``vlasov.cache`` calls it."""

from __future__ import annotations

import sys
import time

_PATIENCE = 1.0  # seconds of compilation that nobody asks about
_USUAL = "some 10 to 30 s for a solver"  # measured by compile_seconds with an empty cache, on two cores


class Clock:
    """Seconds in which kernels were compiled: Numba compiles one at a time, and inside it those that it calls."""

    def __init__(self) -> None:
        self.seconds, self.kept = 0.0, True  # whether there is a folder for what is compiled
        self._began, self._depth, self._told = 0.0, 0, False

    def begin(self) -> None:
        """Note that the compilation of a kernel begins."""
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Note that the compilation of a kernel ends."""
        self._depth -= 1
        now = time.perf_counter()
        if self._depth == 0:
            self.seconds += now - self._began
        if not self._told and self.seconds + (now - self._began) * (self._depth > 0) > _PATIENCE:
            self._told = True
            self._tell()

    def _tell(self) -> None:
        """One line on a terminal; programs read ``compile_seconds`` in the Dataset."""
        if sys.stderr is not None and sys.stderr.isatty():
            then = "the next run begins at once" if self.kept else 'nowhere to keep it, see "vlasov doctor"'
            print(f"compiling, once, {_USUAL} ({then})", file=sys.stderr, flush=True)


CLOCK = Clock()


class Stopwatch:
    """Seconds since it was made, those of compilation apart."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), CLOCK.seconds

    def read(self) -> tuple[float, float]:
        """Seconds of work and of compilation."""
        compiled = CLOCK.seconds - self._compiled
        return max(time.perf_counter() - self._began - compiled, 0.0), compiled
