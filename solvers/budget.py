"""How much work a run may be: a number of steps, what those so far lead one to expect, and words while it lasts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from vlasov import messages
from vlasov.errors import SlowRunWarning, SolverError, warn
from vlasov.patience import Patience, clock
from vlasov.remedies import with_remedy

MAX_STEPS = 100_000
# After this share of max_steps, a run that is expected to take so many times max_steps is not waited for.
_EARLY, _STEADY = ((0.02, 10.0), (0.05, 2.0), (0.1, 1.2)), 1.2  # the latter, where the pace does not change
_SHRINKING, _RESOLUTION = 0.5, 1e-9  # of quarters of the steps before a blow-up; share of t* that is left at their end
# Seconds after which a run that has so many to go says so, once: to know its error takes as long again, or twice.
_PATIENCE, _LONG = 5.0, 5.0
_LOOKED_FOR = 6.0  # seconds after the first step after which a run that is done says that its error is still looked for
_ENOUGH, _FEW = 20, 4  # steps from which a pace is read; where they are slow


@dataclass
class Budget(Patience):
    """The steps that a run may take to its horizon; and of who waits for it, the patience with each step."""

    horizon: float = math.inf
    max_steps: int = MAX_STEPS
    remedies: tuple[str, ...] = field(default=("shorten the {horizon}", "loosen the {tolerance}"), kw_only=True)
    _times: list[float] = field(default_factory=lambda: [0.0])  # reached by each step
    _began: float = field(default_factory=lambda: time.perf_counter())
    _compiled: float = math.nan  # when the first step was done, and with it all compilation
    _foretold: bool = False  # how long all of it will take
    _over: bool = False

    def spend(self, t: float, steps: int) -> None:
        """Count a step that reached t; a SolverError where the budget will not do."""
        self._times.append(t)
        self._since = clock()
        if steps == 1:
            self._compiled = time.perf_counter()
        if t >= self.horizon:
            return
        expected = steps + self._remaining()
        early = steps >= _ENOUGH and any(
            steps == int(share * self.max_steps) and expected > (_STEADY if self._steady() else most) * self.max_steps
            for share, most in _EARLY
        )
        if early or steps >= self.max_steps:
            raise SolverError(self._sentence(t, steps, expected))
        self._tell(t, steps, expected)

    def end(self) -> None:
        """The run is over; what follows is how wrong it is."""
        self._over = True

    def look(self) -> None:
        """Another step of an independent answer, after the run, from which it learns its error: it may take longer."""
        seconds = time.perf_counter() - self._compiled
        if not (self.told or self._foretold) and seconds > _LOOKED_FOR:
            self.say(with_remedy(messages.ERROR_TAKES_LONG(seconds=seconds), self.remedies, self.solver))

    def tick(self, what: str, done: int) -> None:
        """After each velocity, of the run or of answers beside it, and in those that take long."""
        if self._over:
            self.look()
        elif not self._foretold:
            super().tick(what, done)

    def _waiting(self) -> str:
        done = ", ".join(f"{count:,} {name}" for name, count in self._done.items())
        steps, seconds, t = len(self._times) - 1, clock() - self._since, self._times[-1]
        return self._with_remedy(
            messages.STEP_TAKES_LONG(time=t, horizon=self.horizon, steps=steps, seconds=seconds, done=done)
        )

    def _remaining(self) -> float:
        """Steps to the horizon at the pace of the last half of those taken, or to a blow-up before it."""
        half, now = self._times[len(self._times) // 2], self._times[-1]
        taken = len(self._times) - 1 - len(self._times) // 2
        return min(taken * (self.horizon - now) / (now - half), self._to_blow_up()) if now > half else math.inf

    def _to_blow_up(self) -> float:
        """Steps to t* = t + l q / (1 - q), where two quarters of them went k and l = q k; infinite if t* is far."""
        quarter, now, (first, last) = len(self._times) // 4, self._times[-1], self._quarters()
        q = last / first if first > 0 else 1.0
        left = last * q / (1 - q) if q < _SHRINKING else math.inf
        if not 0 < left < self.horizon - now:
            return math.inf
        return quarter * max(1.0, math.log(_RESOLUTION * now / left) / math.log(q))

    def _quarters(self) -> tuple[float, float]:
        """How far the quarter of the steps before the last one went, and how far the last."""
        quarter, times = len(self._times) // 4, self._times
        return times[-1 - quarter] - times[-1 - 2 * quarter], times[-1] - times[-1 - quarter]

    def _steady(self) -> bool:
        """Whether the last quarter of the steps went as far as the one before."""
        first, last = self._quarters()
        return abs(last - first) <= 0.05 * first

    def _seconds_left(self, steps: int, expected: float) -> float:
        return (time.perf_counter() - self._compiled) / max(1, steps - 1) * (expected - steps)

    def _sentence(self, t: float, steps: int, expected: float) -> str:
        seconds = time.perf_counter() - self._began
        sentence = messages.STEPS_NEEDED(
            time=t, horizon=self.horizon, steps=steps, seconds=seconds, max_steps=self.max_steps,
            expected=_about(expected), left=_duration(self._seconds_left(steps, expected)),
        )  # fmt: skip
        return with_remedy(sentence, [*self.remedies, "raise {max_steps}"], self.solver)

    def _tell(self, t: float, steps: int, expected: float) -> None:
        seconds = time.perf_counter() - self._began
        if self._foretold or seconds < _PATIENCE or steps < (_ENOUGH if seconds < 2 * _PATIENCE else _FEW):
            return
        left = self._seconds_left(steps, min(expected, self.max_steps))
        if left > _LONG:
            self._foretold = True
            sentence = messages.STEPS_EXPECTED(
                time=t, horizon=self.horizon, steps=steps, seconds=seconds,
                expected=_about(expected), left=_duration(left),
            )  # fmt: skip
            warn(with_remedy(sentence, [*self.remedies, "lower {max_steps}"], self.solver), SlowRunWarning)


def _about(count: float) -> str:
    return f"{count:.2g}" if count >= 1e6 else f"{count:,.0f}"


def _duration(seconds: float) -> str:
    """In the largest unit that fits."""
    for size, name in ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.3g} s"
