"""Who waits for velocities: told once that they take long, before where the costs of sums say so, else meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from vlasov import messages
from vlasov.compiling import CLOCK
from vlasov.errors import SlowRunWarning, warn
from vlasov.remedies import with_remedy

LONG = 10.0  # seconds that nobody waits in silence
_SOON = 0.8  # of these: what is under way now may take as long again
DEAR = 3.0  # seconds of one thread that is alone: others may be at work beside it


def clock() -> float:
    """Seconds from some time on, those of compilation left out."""
    return time.perf_counter() - CLOCK.seconds


@dataclass
class Patience:
    """Of somebody who has asked for one velocity. What is summed does not depend on it.

    Attributes
    ----------
    remedies
        Ways to make it faster, as in ``vlasov.remedies``.
    smaller
        Ways to make each velocity faster, said before the remedies.
    solver
        The solver whose options they name; none for those of the function that was called.
    velocities
        How many are waited for at once, of which the first is told of: those of a step.
    needed
        The same in words, after what one takes.
    what
        What is waited for.
    told
        Whether anything was said; then all that follows is silence.
    """

    remedies: tuple[str, ...] = field(default=("lower {n}", "loosen the {tolerance}"), kw_only=True)
    smaller: tuple[str, ...] = field(default=(), kw_only=True)
    solver: str = field(default="", kw_only=True)
    velocities: float = field(default=1.0, kw_only=True)
    needed: str = field(default="", kw_only=True)
    what: str = field(default="a velocity", kw_only=True)
    told: bool = field(default=False, kw_only=True)
    _since: float = field(default_factory=clock, kw_only=True)  # when the present wait began
    _done: dict[str, int] = field(default_factory=dict, kw_only=True)  # since then, or before

    def expect(self, seconds: float, cause: str, each: str, *, sums: float = 1.0) -> None:
        """Before a velocity of so many sums, each of so many seconds on one thread, whose ``cause`` is a clause."""
        if not self.told and seconds * sums * self.velocities > DEAR:
            sentence = f"{cause}: {seconds:.2g} s on one thread for each {each}{self.needed}"
            self.say(self._with_remedy(sentence))

    def tick(self, what: str, done: int) -> None:
        """Between two of whatever takes long together: so many are done, half-steps for instance."""
        if self.told:
            return
        self._done[what] = done
        if clock() - self._since > _SOON * LONG:
            self.say(self._waiting())

    def say(self, sentence: str) -> None:
        """Once."""
        self.told = True
        warn(sentence, SlowRunWarning)

    def _waiting(self) -> str:
        return self._with_remedy(messages.TAKES_LONG(what=self.what, seconds=clock() - self._since))

    def _with_remedy(self, sentence: str) -> str:
        return with_remedy(sentence, [*self.smaller, *self.remedies], self.solver)
