"""What a mean-field study is told: its options with their defaults, checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.postprocess.mean_field.choice import REFERENCES
from vlasov.postprocess.mean_field.replica import multiple
from vlasov.postprocess.studies.settings import (
    DETERMINISTIC,
    MOST,
    check_known,
    exact_up_to,
    sampling,
    several,
)
from vlasov.postprocess.transport.exact import MOST_PAIRS
from vlasov.postprocess.wasserstein import checked_order
from vlasov.problem import Problem
from vlasov.solvers.driver import prepare
from vlasov.solvers.ode.integrate import TIGHTEST


class Settings(TypedDict, total=False):
    """Options of a study by keyword; the text begins with what holds if one is not given."""

    replicas: int
    """16. Random repetitions for each n, each with a seed made of (seed, n, replica): its numbers do not depend on what
    else is computed. Samplings without randomness have one."""
    p: float | Sequence[float]
    """(1, 2). Exponents of the distances, at least 1."""
    sampling: str | Sequence[str]
    """"random". How tokens are drawn from the initial measure (``Measure.sample``); several for rates side by side."""
    times: ArrayLike | None
    """Zero and the horizon, or a quarter of the time to a blow-up. Increasing times in [0, horizon], before a blow-up;
    zero is always among them."""
    reference: str
    """"auto". The limit: "gaussian" (exact, affine flow), "quadrature" (Gauss nodes), "quantile" (d = 1), or
    "finite-volume" (d <= 3, less accurate, and the one for a density on a grid)."""
    seed: int
    """0. Makes everything repeatable."""
    exact_up_to: int
    """2048. For d >= 2, the largest n with Wasserstein distances, by exact transport to 4n points of the limit; its
    cost grows like n^2. NaN beyond. For d = 1 there is no limit."""
    tolerance: float
    """1e-8. Local error per time step, relative to the size of the measure."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Checked settings of a study; ``counts`` are replicas by sampling."""

    problem: Problem
    sizes: list[int]
    replicas: int
    counts: dict[str, int]
    p: tuple[float, ...]
    times: list[float]
    reference: str
    seed: int
    exact_up_to: int
    tolerance: float


def checked(problem: Problem, n: int | Sequence[int], settings: Settings) -> Setup:
    """A study's settings, complained about in one sentence."""
    check_known(settings, Settings.__annotations__, "study")
    sizes = sorted({checks.integer(size, "n", least=1) for size in several(n, "n")})
    if sizes[-1] > MOST:
        raise InputError(f"is {sizes[-1]} but at most {MOST:g} tokens can be moved", "n")
    replicas = checks.integer(settings.get("replicas", 16), "replicas", least=1)
    exponents = tuple(checked_order(exponent) for exponent in several(settings.get("p", (1, 2)), "p"))
    samplings = [
        sampling(name, problem) for name in dict.fromkeys(several(settings.get("sampling", "random"), "sampling"))
    ]
    most = exact_up_to(
        settings.get("exact_up_to", 2048), sizes, MOST_PAIRS / multiple(problem.dimension), problem.dimension
    )
    if problem.post_norm is not None and problem.post_norm.moves:
        raise InputError("depends on time, which studies do not follow; give a constant", "problem.layer_norm.beta")
    return Setup(
        problem,
        sizes,
        replicas,
        {name: 1 if name in DETERMINISTIC else replicas for name in samplings},
        exponents,
        _times(problem, settings.get("times")),
        choose(settings.get("reference", "auto"), REFERENCES, "reference"),
        checks.integer(settings.get("seed", 0), "seed", least=0, most=checks.SEEDS),
        most,
        checks.number(settings.get("tolerance", 1e-8), "tolerance", above=TIGHTEST, below=1e-2),
    )


def _times(problem: Problem, times: ArrayLike | None) -> list[float]:
    wanted = [0.0, problem.horizon] if times is None else times
    given: list[float] = prepare(problem, "particles", times=wanted).times.tolist()
    return given if given[0] == 0.0 else [0.0, *given]
