"""What may be asked of a depth study, checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.errors import InputError
from vlasov.measures import Particles
from vlasov.postprocess.studies import settings as shared
from vlasov.postprocess.transport.exact import MOST_PAIRS
from vlasov.postprocess.wasserstein import checked_order
from vlasov.problem import Problem
from vlasov.solvers.driver import prepare
from vlasov.solvers.layers import MOST
from vlasov.solvers.ode.integrate import TIGHTEST
from vlasov.solvers.transformer import Stack

_MOST_REPLICAS = 100_000


class Settings(TypedDict, total=False):
    """Options of a study by keyword; the text begins with what holds if one is not given."""

    n: int
    """256. Tokens; an initial measure of particles is taken as it is."""
    replicas: int
    """8. Random repetitions, each with a seed made of (seed, replica): its numbers do not depend on what else is
    computed. Samplings without randomness, and given particles, have one."""
    p: float | Sequence[float]
    """(1, 2). Exponents of the distances, at least 1."""
    sampling: str
    """"random". How tokens are drawn from the initial measure (``Measure.sample``)."""
    times: ArrayLike | None
    """The horizon. Increasing times after a layer of every depth."""
    seed: int
    """0. Makes everything repeatable."""
    exact_up_to: int
    """2048. For d >= 2, the largest n with Wasserstein distances, by exact transport; its cost grows like n^2. NaN
    beyond. For d = 1 there is no limit."""
    tolerance: float
    """1e-11. Local error per step of the flow, relative to the size of the cloud. Errors no larger than what a hundred
    times this tolerance changes are left out of slopes."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Checked settings of a study; ``exact`` is ``exact_up_to``."""

    depths: list[int]
    n: int
    replicas: int
    p: tuple[float, ...]
    sampling: str
    times: tuple[float, ...]
    seed: int
    exact: int
    tolerance: float


def checked(problem: Problem, depths: int | Sequence[int], settings: Settings) -> Setup:
    """A study's settings, complained about in one sentence."""
    shared.check_problem(problem)
    shared.check_known(settings, Settings.__annotations__, "depth study")
    layers = sorted({checks.integer(depth, "depths", least=1, most=MOST) for depth in shared.several(depths, "depths")})
    given = isinstance(problem.initial, Particles)
    n = checks.integer(settings.get("n", 256), "n", least=1, most=shared.MOST)
    n = len(problem.initial) if isinstance(problem.initial, Particles) else n
    sampling = shared.sampling(settings.get("sampling", "random"), problem)
    replicas = checks.integer(settings.get("replicas", 8), "replicas", least=1, most=_MOST_REPLICAS)
    return Setup(
        layers,
        n,
        1 if given or sampling in shared.DETERMINISTIC else replicas,
        tuple(checked_order(exponent) for exponent in shared.several(settings.get("p", (1, 2)), "p")),
        sampling,
        _times(problem, layers, settings.get("times")),
        checks.integer(settings.get("seed", 0), "seed", least=0, most=checks.SEEDS),
        shared.exact_up_to(settings.get("exact_up_to", 2048), [n], MOST_PAIRS, problem.dimension),
        checks.number(settings.get("tolerance", 1e-11), "tolerance", above=TIGHTEST, below=1e-2),
    )


def _times(problem: Problem, depths: list[int], times: ArrayLike | None) -> tuple[float, ...]:
    outputs = [problem.horizon] if times is None else times
    wanted = prepare(problem, "particles", times=outputs, options={"n": 1}).times
    for depth in depths:
        try:
            Stack(depth, problem.horizon, np.zeros(0)).layers(wanted)
        except InputError as mistake:
            raise InputError(f"{mistake.sentence}, with {depth} layers", "times") from None
    return tuple(wanted.tolist())
