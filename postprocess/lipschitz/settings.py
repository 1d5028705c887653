"""What may be asked of a Lipschitz study, checked before any work is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import numpy as np

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.estimates import tokens_bound, worst_direction
from vlasov.postprocess.lipschitz.data import ADVERSARIAL, DATA, Study
from vlasov.postprocess.studies import settings as shared
from vlasov.problem import Problem

Value = TypeVar("Value", int, float, str)
_MOST_REPLICAS = 100_000
_DEVIATIONS = 3.0  # that count as the radius of an unbounded measure
_WITHOUT_REPLICAS = (ADVERSARIAL,)


class Settings(TypedDict, total=False):
    """Options of a study by keyword; the text begins with what holds if one is not given."""

    replicas: int
    """8. Random repetitions, each with a seed made of (seed, law, n, replica). Adversarial tokens have one."""
    radius: float | None
    """R of the adversarial tokens: that of the initial measure, at most three deviations beside its mean."""
    clusters: int
    """4. How many clusters the clustered tokens have."""
    decay: float
    """1. Of the spectrum of correlated tokens, k^-decay."""
    growth: float
    """0.25. Of the positions of positioned tokens, (i / 16)^growth."""
    times: float | Sequence[float]
    """(). Of the flow X(0) -> X(t), whose local Lipschitz constant ``vl.sensitivity`` measures too: depths T."""
    seed: int
    """0. Makes everything repeatable."""
    tolerance: float
    """1e-6. Of |D_X f|, relative."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Checked settings of a study."""

    study: Study
    sizes: list[int]
    data: list[str]
    replicas: int

    def replicas_of(self, data: str) -> int:
        """How many there are."""
        return 1 if data in _WITHOUT_REPLICAS else self.replicas


def checked(problem: Problem, n: int | Sequence[int], data: str | Sequence[str] | None, settings: Settings) -> Setup:
    """A study's settings, complained about in one sentence."""
    shared.check_known(settings, Settings.__annotations__, "Lipschitz study")
    if problem.block is not problem.attention:
        raise InputError(
            f"is {problem.block.kind}; the study is of attention alone, without LayerNorm and MLP", "problem"
        )
    tokens_bound(problem.attention, 1.0, 1)  # complains about attentions without these bounds
    sizes = sorted(_once([checks.integer(one, "n", least=2, most=shared.MOST) for one in shared.several(n, "n")], "n"))
    laws = _laws(problem, data)
    if settings.get("radius") is not None and ADVERSARIAL not in laws:
        raise InputError("is that of adversarial tokens, of which there are none here; leave it out", "radius")
    study = Study(
        problem,
        _radius(problem, settings.get("radius")),
        checks.integer(settings.get("clusters", 4), "clusters", least=1, most=10_000),
        checks.number(settings.get("decay", 1.0), "decay"),
        checks.number(settings.get("growth", 0.25), "growth"),
        checks.integer(settings.get("seed", 0), "seed", least=0, most=checks.SEEDS),
        checks.number(settings.get("tolerance", 1e-6), "tolerance", above=1e-12, below=1e-1),
        _times(settings.get("times", ())),
    )
    replicas = checks.integer(settings.get("replicas", 8), "replicas", least=1, most=_MOST_REPLICAS)
    return Setup(study, sizes, laws, replicas)


def _laws(problem: Problem, data: str | Sequence[str] | None) -> list[str]:
    """Those that are asked for, or all that there are for this attention."""
    if data is not None:
        chosen = _once([choose(one, DATA, "data") for one in shared.several(data, "data")], "data")
        if ADVERSARIAL in chosen:
            worst_direction(problem.attention)
        return [one for one in DATA if one in chosen]
    try:
        worst_direction(problem.attention)
    except InputError:
        return [one for one in DATA if one != ADVERSARIAL]
    return list(DATA)


def _times(given: float | Sequence[float]) -> tuple[float, ...]:
    several = (given,) if isinstance(given, int | float | np.number) else checks.items(given, "times")
    return tuple(sorted(_once([checks.number(one, "times", above=0.0) for one in several], "times")))


def _once(values: list[Value], field: str) -> list[Value]:
    """Complain about repetitions, which would look like more than there is."""
    for k, value in enumerate(values):
        if value in values[:k]:
            raise InputError(f"has {checks.short(value)} twice; leave one out", field)
    return values


def _radius(problem: Problem, radius: float | None) -> float:
    if radius is not None:
        return checks.number(radius, "radius", above=0.0)
    initial = problem.initial
    deviations = _DEVIATIONS * math.sqrt(float(np.linalg.eigvalsh(initial.covariance)[-1]))
    found = min(initial.support_radius, float(np.linalg.norm(initial.mean)) + deviations)
    if found == 0:
        raise InputError("is not known from a measure at the origin; give it", "radius")
    return found
