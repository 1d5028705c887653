"""What every fast method answers when it is asked to plan a problem: its own plan, or why it will not do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A method does not serve a problem.

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
        Bound on the relative error of Z.
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
