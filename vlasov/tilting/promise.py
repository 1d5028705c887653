"""What every fast method is asked, and what it answers: its own plan, or why it will not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from vlasov.checks import Array
from vlasov.tilting.results import Request

Box = tuple[Array, Array]  # lower and upper corners


class Task(NamedTuple):
    """Sums over n sources at m tilts.

    Attributes
    ----------
    sources, targets
        The boxes of the points y and of the tilts xi = A x.
    log_weight_range
        Largest minus smallest log weight, those of zero weights left out; 0 if all weights are equal.
    request
        The mean's error shall be at most tolerance * max R_k, with the half widths R_k of the sources' box, and the
        covariance's, if wanted, tolerance * max R_k^2.
    threads
        So many may be used; they change nothing but the time.
    """

    n: int
    m: int
    sources: Box
    targets: Box
    log_weight_range: float
    request: Request
    threads: int = 1


@dataclass(frozen=True)
class Refusal:
    """A method does not serve a task.

    Attributes
    ----------
    reason
        One clause without a full stop, such as "tables at |xi| R = 3e+06 would need 2000 MB".
    """

    reason: str


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a plan promises, and what it takes.

    Attributes
    ----------
    error_bound, covariance_bound
        On the error of the mean, in the Euclidean norm, and of the covariance, in the spectral norm.
    mass_error
        Bound on the relative error of Z, before its logarithm is rounded.
    memory
        Bytes of workspace.
    seconds
        Estimated, on one thread: what is chosen by it may not depend on the number of threads.
    threads
        How many are used.
    """

    error_bound: float
    covariance_bound: float
    mass_error: float
    memory: float
    seconds: float
    threads: int
