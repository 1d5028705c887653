"""One piece of a Lipschitz study: |D_X f|_2 at the tokens of one law, one n and one replica, and what bounds it there.

f(X)_i = Gamma_X(x_i). Beside |D_X f|: the largest |x_i|, the attention c that one token receives, how many tokens carry
the direction that grows most, |V| sqrt(max_j #{i: m_i = j}), the limit of large radius, and |D_X phi_t| of the flow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.estimates import attention_received, large_radius_limit
from vlasov.lipschitz import constant
from vlasov.measures import Particles
from vlasov.postprocess.lipschitz.data import Study
from vlasov.postprocess.sensitivity import sensitivity
from vlasov.postprocess.studies.store import Key, Result

SURE = 1e-2  # largest error of a value that is told, relative
_PRODUCTS, _STEPS = 20, 100  # about
_PAIR = 4e-9  # seconds


@dataclass(frozen=True)
class Piece:
    """Tokens of one law."""

    data: str
    n: int
    replica: int

    @property
    def keys(self) -> list[Key]:
        """Of its result."""
        return [(self.data, self.n, self.replica)]

    @property
    def label(self) -> str:
        """For the progress bar."""
        return f"{self.data}, n = {self.n}"


class Bench:
    """A study at work."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def run(self, piece: Piece) -> list[Result]:
        """The results of a piece."""
        tokens = self.study.tokens(piece.data, piece.n, piece.replica)
        with np.errstate(all="ignore"):  # each thread has its own
            return [_measured(self.study, tokens)]

    def cost(self, piece: Piece) -> float:
        """About so many seconds."""
        product = _PAIR * piece.n**2 * self.study.problem.dimension
        return 1e-3 + _PRODUCTS * product * (1 + (_STEPS if self.study.times else 0))


def _measured(study: Study, tokens: Array) -> Result:
    attention, n = study.problem.attention, len(tokens)
    cloud = Particles(tokens, s=(np.arange(n) + 0.5) / n if attention.causal else None)
    found = constant(attention, cloud, 0.0, study.tolerance)
    try:
        received, limit = float(attention_received(attention, tokens).max()), large_radius_limit(attention, tokens)
    except InputError:  # of several heads
        received, limit = math.nan, math.nan
    return {
        "lipschitz": found.value,
        "error": found.error,
        "radius": cloud.support_radius,
        "received": received,
        "carriers": found.carriers,
        "limit": limit,
        "growth": _of_flow(study, cloud),
    }


def _of_flow(study: Study, cloud: Particles) -> list[float]:
    """The local Lipschitz constant of the flow to each time; NaN where the flow cannot be followed."""
    if not study.times:
        return []
    try:
        alike = study.problem.changed(initial=cloud, horizon=study.times[-1])
        found = sensitivity(alike, times=[0.0, *study.times], tolerance=study.tolerance, rates=False, check=False)
    except (InputError, SolverError):
        return [math.nan] * len(study.times)
    unsure = found["growth_error"] > SURE * found["growth"]  # without a second look most errors are not known
    values = found["growth"].where(~unsure).values[1:].tolist()
    return values + [math.nan] * (len(study.times) - len(values))
