"""What can go wrong, in words: one sentence for the user's mistakes, step and time for the solver's."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from vlasov import messages

_LONG = 200  # characters of a word that are looked at
_MANY, _NEAREST = 12, 3  # names that are too many for a sentence, and how many of these it names


class InputError(ValueError):
    """A user's mistake: one sentence that names the field, the value and the remedy.

    Parameters
    ----------
    sentence
        What is wrong with the value and what to do instead, without the field's name.
    field
        Dotted path of the field, such as ``initial.covariance``; empty if there is none.

    Examples
    --------
    >>> vl.Ball(-1.0, [0.0, 0.0])
    Traceback (most recent call last):
        ...
    vlasov.errors.InputError: radius: is -1 but must be a finite number > 0
    """

    def __init__(self, sentence: str, field: str = "") -> None:
        # One line, whatever line ends the user's words hold.
        self.sentence, self.field = (" ".join(text.splitlines()) for text in (sentence, field))
        super().__init__(f"{self.field}: {self.sentence}" if self.field else self.sentence)

    def inside(self, parent: str) -> InputError:
        """The same mistake, seen from the object that holds the field."""
        return InputError(self.sentence, ".".join(part for part in (parent, self.field) if part))


class SolverError(RuntimeError):
    """A run that cannot go on; what was computed until then is kept beside the file that ``solve`` was told to write.

    Examples
    --------
    Ten long steps of exponential attention leave the numbers of the machine:

    >>> tokens = vl.Particles([-1.0, 2.0])
    >>> problem = vl.Problem(vl.Exponential(A=[[1.0]]), tokens, horizon=10.0)
    >>> try:
    ...     vl.solve(problem, "layers", depth=10)
    ... except vl.SolverError as error:
    ...     print(error)
    layer 2 of 10, from t = 1: ...
    """


class LateInputError(InputError, SolverError):
    """A user's mistake that shows during a run only, and that no shorter step mends: what was computed is kept."""


class NonFiniteState(SolverError):
    """NaN or infinity appeared in the state."""

    def __init__(self, step: int, time: float, dt: float) -> None:
        self.step, self.time, self.dt = step, time, dt
        super().__init__(messages.NON_FINITE_STATE(step=step, time=time, dt=dt))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step, self.time, self.dt)


class NonFiniteLayer(NonFiniteState):
    """Tokens that are not finite after a layer, which is ``step``; ``dt`` is its step h."""

    def __init__(self, layer: int, count: int, time: float, dt: float) -> None:
        super().__init__(layer, time, dt)
        self.count = count
        self.args = (messages.NON_FINITE_LAYER(layer=layer, count=count, time=time),)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step, self.count, self.time, self.dt)


class SlowRunWarning(UserWarning):
    """A run that will take long, as far as its first steps tell.

    Examples
    --------
    A script that may take its time does not want to be told:

    >>> import warnings
    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.5), horizon=0.5)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", vl.SlowRunWarning)
    ...     print(vl.solve(problem, "gaussian").attrs["status"])
    completed
    """


class AccuracyWarning(UserWarning):
    """A result whose own estimate of its error is large, or whose advice says not to trust it.

    Examples
    --------
    Sixteen random tokens are a poor picture of a Gaussian, and the run says so:

    >>> import warnings
    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.5), horizon=0.5)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", vl.AccuracyWarning)
    ...     run = vl.solve(problem, "particles", n=16, sampling="random")
    >>> said[0].category.__name__
    'AccuracyWarning'
    """


def warn(sentence: str, category: type[Warning]) -> None:
    """Warn at the line of the user's own program that called this package, however deep inside the warning is made."""
    frame = caller = sys._getframe(1)
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "vlasov":
            caller = frame.f_back
        frame = frame.f_back
    names = caller.f_globals
    warnings.warn_explicit(
        sentence, category, caller.f_code.co_filename, caller.f_lineno,
        module=str(names.get("__name__", "<string>")), registry=names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C is behind an error: machine code and its compilers turn it into errors of their own."""
    chain = [error]
    for link in chain:
        chain += [cause for cause in (link.__cause__, link.__context__) if cause is not None and cause not in chain]
    return any(isinstance(link, KeyboardInterrupt) for link in chain)


def short(value: Any) -> str:
    """What a value looks like, on one line of at most 60 characters."""
    try:
        text = repr(value)
    except Exception:  # nested too deeply, an integer of too many digits, or a repr of the user's own
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text[:1000].split())
    return text if len(text) <= 60 else text[:57] + "..."


def some(kind: str) -> str:
    """A kind of measure with its article: "a box", but "particles"."""
    return kind if kind.endswith("s") else f"a {kind}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return 'did you mean "x"?' with the closest known name; else all names, or the nearest of many."""
    names, word = sorted(known), word[:_LONG].lower()
    spelled = {name.lower(): name for name in names}
    if close := difflib.get_close_matches(word, spelled, n=1, cutoff=0.6):
        return f'did you mean "{spelled[close[0]]}"?'
    if len(names) <= _MANY:
        return f"choose one of: {', '.join(names)}."
    nearest = difflib.get_close_matches(word, spelled, n=_NEAREST, cutoff=0.0)
    return f"the nearest of {len(names)} are: {', '.join(spelled[name] for name in nearest)}."


def choose(value: Any, known: Iterable[str], field: str) -> str:
    """``value`` if it is one of the known names, else an InputError that suggests the closest."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        word = value[:_LONG] if isinstance(value, str) else short(value)
        raise InputError(f'"{word}" is not known; {did_you_mean(word, names)}', field)
    return value
