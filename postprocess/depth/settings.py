"""What may be asked of a depth study, checked before any work is done."""

from __future__ import annotations

import math
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
from vlasov.solvers.sampling import check_own_tokens
from vlasov.solvers.transformer import Stack

DEPTHS = (6, 12, 24, 48, 96)  # where none are given and no parameter jumps inside a layer
_MOST_REPLICAS = 100_000
_TOKENS = 256
_MOST_TRIED = 1000  # layers


class Settings(TypedDict, total=False):
    """Options of a study by keyword; the text begins with what holds if one is not given."""

    n: int | None
    """256. Tokens; an initial measure of particles is taken as it is, all of it."""
    replicas: int
    """8. Random repetitions, each with a seed made of (seed, replica): its numbers do not depend on what else is
    computed. Samplings without randomness, and given particles, have one."""
    p: float | Sequence[float]
    """(1, 2). Exponents of the distances, at least 1."""
    sampling: str
    """"random". How tokens are drawn from the initial measure (``Measure.sample``)."""
    times: ArrayLike | None
    """The horizon, or a quarter of the time to a blow-up. Increasing times after a layer of every depth."""
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
    """Checked settings of a study; ``exact`` is ``exact_up_to``, ``doubt`` says why depths are unusual."""

    depths: list[int]
    n: int
    replicas: int
    p: tuple[float, ...]
    sampling: str
    times: tuple[float, ...]
    seed: int
    exact: int
    tolerance: float
    doubt: str


def checked(problem: Problem, depths: int | Sequence[int] | None, settings: Settings) -> Setup:
    """Return a study's settings, or complain about them in one sentence."""
    shared.check_known(settings, Settings.__annotations__, "depth study")
    layers, doubt = _depths(problem, depths)
    own = len(problem.initial) if isinstance(problem.initial, Particles) else None
    n = settings.get("n")
    n = checks.integer((own or _TOKENS) if n is None else n, "n", least=1, most=shared.MOST)
    if own is not None:
        check_own_tokens(own, n)
    sampling = shared.sampling(settings.get("sampling", "random"), problem)
    replicas = checks.integer(settings.get("replicas", 8), "replicas", least=1, most=_MOST_REPLICAS)
    return Setup(
        layers,
        n,
        1 if own is not None or sampling in shared.DETERMINISTIC else replicas,
        tuple(checked_order(exponent) for exponent in shared.several(settings.get("p", (1, 2)), "p")),
        sampling,
        _times(problem, layers, settings.get("times")),
        checks.integer(settings.get("seed", 0), "seed", least=0, most=checks.SEEDS),
        shared.exact_up_to(settings.get("exact_up_to", 2048), [n], MOST_PAIRS, problem.dimension),
        checks.number(settings.get("tolerance", 1e-11), "tolerance", above=TIGHTEST, below=1e-2),
        doubt,
    )


def _depths(problem: Problem, depths: int | Sequence[int] | None) -> tuple[list[int], str]:
    """Return numbers of layers that have every jump of a parameter between two layers, and why they are not DEPTHS.

    Inside a layer a jump is felt late, by a share of the step that differs from depth to depth.
    """
    several = DEPTHS if depths is None else shared.several(depths, "depths")
    layers = sorted({checks.integer(depth, "depths", least=1, most=MOST) for depth in several})
    wrong = [depth for depth in layers if _jumps_inside(problem, depth)]
    if not wrong:
        return layers, ""
    where = f"at t = {_jumps_inside(problem, wrong[0])[0]:g}" + (f" with {wrong[0]}" if wrong[1:] else "")
    reason = f"with {_and(wrong)} layers a parameter jumps inside a layer, {where}"
    least = next((count for count in range(1, _MOST_TRIED + 1) if not _jumps_inside(problem, count)), None)
    if least is None:
        remedy = f"edges of vl.Piecewise are between layers for no number up to {_MOST_TRIED:,}; round them"
        raise InputError(f"are {_and(layers)}, but {reason}; {remedy}", "depths")
    if depths is not None:
        raise InputError(f"are {_and(layers)}, but {reason}; choose multiples of {least}", "depths")
    first = least * math.ceil(DEPTHS[0] / least)
    layers = [first * 2**k for k in range(len(DEPTHS))]
    return layers, f"{reason}, so that depths are {_and(layers)}"


def _jumps_inside(problem: Problem, depth: int) -> list[float]:
    """Return the jumps of parameters that are inside one of so many layers."""
    return Stack(depth, problem.horizon, problem.block.breakpoints).jumps_inside()


def _and(numbers: Sequence[int]) -> str:
    """Return numbers as words, such as 6, 12 and 24."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _times(problem: Problem, depths: list[int], times: ArrayLike | None) -> tuple[float, ...]:
    outputs = [problem.horizon] if times is None else times
    wanted = prepare(problem, "particles", times=outputs).times
    for depth in depths:
        try:
            Stack(depth, problem.horizon, np.zeros(0)).layers(wanted)
        except InputError as mistake:
            raise InputError(f"{mistake.sentence}, with {depth} layers", "times") from None
    return tuple(wanted.tolist())
