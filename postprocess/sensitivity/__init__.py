"""The exact sensitivity of the whole flow: how much a small change of the tokens can grow, and by which directions.

    h' = J(t) h along a solution,   growth(t) = sup |h(t)| / |h(0)| = |M(t)|,   |h|^2 = sum_i w_i |h_i|^2
    growth <= exp int lambda <= exp int |J|,   lambda = largest eigenvalue of the symmetric part of J

``tokens`` chooses the tokens, ``path`` has the steps with their derivatives, ``growth`` asks Lanczos, ``show`` has
panels and tables.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from vlasov import checks, messages
from vlasov.cases.solving import CaseLike
from vlasov.checks import Array
from vlasov.compiled.blas import one_thread_of_blas
from vlasov.errors import InputError, SlowRunWarning, warn
from vlasov.kinds import NUMBA, SCIPY, SINGULAR_VALUE, SMOOTHNESS, STEPS, Kind
from vlasov.measures import Gaussian, Particles
from vlasov.patience import LONG, Patience
from vlasov.postprocess.sensitivity import cost, growth, show
from vlasov.postprocess.sensitivity.path import Path
from vlasov.postprocess.sensitivity.tangency import Tangency
from vlasov.postprocess.sensitivity.tokens import LIMIT, Start, before_blow_up, choose_tokens, followed, kink, outputs
from vlasov.remedies import with_remedy
from vlasov.solvers.dataset import labels, provenance
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.progress import about, part

FEW = 8  # tokens: what they carry alone is theirs, not the limit's
_TOLERANCES, _LOOSER = (1e-4, 1e-6, 1e-8), 100.0  # of the looks; of the first, beside a tolerance that is asked for
_ENOUGH = 1e-3  # relative difference of two looks after which no finer one is needed
_OF_GROWTH = 0.7  # of the time of a look, about
_UNKNOWN = 0.1  # tolerance where nodes cannot tell the growth
_FINEST = 4.0  # predicted seconds that a finer look may take
_NOTABLE = 1e-2  # relative error from which on ``doubt`` says so
_REMEDIES = ("lower {n}", "ask for fewer {times}", "take {rates=False}", "take {check=False}")
_NAMES = {
    "growth": "largest growth of a small change, |h(t)| / |h(0)|",
    "growth_error": "estimated error of the growth",
    "log_logarithmic_norm": "integral of the largest eigenvalue of the symmetric part of J",
    "log_norm": "integral of |J|",
    "rates_error": "estimated error of the two integrals",
    "participation": "share of the measure that carries the growth",
    "carriers": "number of tokens that carry the growth",
    "sample": "whether so few tokens carry it that the number is this sample's, not the limit's",
    "direction": "the change at the first time that grows most, of length one",
    "response": "what becomes of it, divided by the growth",
    "position": "token positions",
    "weight": "token weights",
}

SENSITIVITY = Kind(
    "sensitivity",
    'what vl.sensitivity returned or "vlasov sensitivity" wrote',
    title="How much small changes grow",
    variables=_NAMES,
    panels=show.panels,
    tables=show.tables,
    notes=show.notes,
    cites=(SMOOTHNESS, *SINGULAR_VALUE, STEPS, SCIPY, NUMBA),
)


@dataclass(frozen=True)
class Options:
    """Options of ``sensitivity``, which explains them."""

    times: ArrayLike | None = None
    n: int | None = None
    sampling: str = "auto"
    seed: int = 0
    tolerance: float | None = None
    rates: bool = True
    check: bool = True

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            checks.number(self.tolerance, "tolerance", above=1e-13, below=1e-2)
        checks.flag(self.rates, "rates")
        checks.flag(self.check, "check")


def sensitivity(
    problem: CaseLike | xr.Dataset,
    *,
    times: ArrayLike | None = None,
    n: int | None = None,
    sampling: str = "auto",
    seed: int = 0,
    tolerance: float | None = None,
    rates: bool = True,
    check: bool = True,
) -> xr.Dataset:
    """How much a small change of the tokens can grow along a solution: the local Lipschitz constant of its flow map.

        growth(t) = sup |h(t)| / |h(0)|,   h' = J(t) h,   |h|^2 = sum_i w_i |h_i|^2

    Parameters
    ----------
    problem
        A problem, or a case by its name, its file or as a ``vl.Case``; or a run, of which the tokens are taken if it
        has some. Measures are represented by Gauss nodes with weights in d <= 3, which stand for the limit of many
        tokens, else by a sample. Under masks it is always a sample: no such nodes stand for places in a sequence. Under
        post-norm beta must not move with t: steps are taken in x, on an ellipsoid that stays.
    times
        Output times; by default five from zero to the horizon, or those of the run.
    n, sampling, seed
        Of tokens that stand for the measure, as in ``vl.solve(problem, "particles")``; of a mixture each component has
        so many nodes. "auto" takes Gauss nodes where there are some.
    tolerance
        Relative error of the growth for these tokens, and local error of the flow's steps; by default 1e-6, or 1e-8
        where the growth is not known to 1e-3 by then.
    rates
        Whether to integrate the logarithmic norm and |J|, which bound the growth.
    check
        Whether to look first with fewer nodes and longer steps, to know the error. Without, that of a limit is NaN, and
        that of tokens Lanczos' alone.

    Returns
    -------
    xarray.Dataset
        By time: growth and growth_error; log_logarithmic_norm and log_norm, the integrals of lambda and |J|, with
        rates_error; participation and carriers, how many tokens carry the growth, and sample, whether so few that the
        number is the sample's; direction and response, what grows most and what becomes of it; position and weight. In
        the limit growth is that of the nodes, and NaN where fewer than eight of them carry it, or once a Gaussian has
        become so wide that nodes would never agree; ``doubt`` says so. At a blow-up times end.

    Examples
    --------
    With A = 0 all tokens move by their mean, which grows like e^t:

    >>> problem = vl.Problem(vl.Softmax(A=[[0.0]]), vl.Gaussian(0.0, 1.0), horizon=1.0)
    >>> vl.sensitivity(problem, times=[1.0], rates=False)["growth"].values.round(5)
    array([1.     , 2.71828])
    """
    options = Options(times, n, sampling, seed, tolerance, rates, check)
    work = prepare(problem, options)
    work.announce()
    with one_thread_of_blas():
        return list(work.looks())[-1]


def prepare(problem: CaseLike | xr.Dataset, options: Options) -> Work:
    """Check a problem or a run, and choose tokens, times and tolerances; no work is done."""
    start = choose_tokens(problem, options.n, options.sampling, options.seed)
    _refuse_without_derivative(start)
    times, reason = followed(start, outputs(problem, options.times, start))
    times, blow_up_time = before_blow_up(start, times)
    return Work(start, times, options, reason, blow_up_time)


class _Look(NamedTuple):
    """A path with the growth and the rates along it, and at which times it is of a Gaussian too wide for nodes."""

    path: Path
    tolerance: float
    wide: NDArray[np.bool_]
    growths: list[growth.Growth]
    rates: growth.Rates | None

    def by_time(self, name: str) -> Array:
        """A field of ``Growth`` at all times."""
        return np.array([getattr(at, name) for at in self.growths])


@dataclass(frozen=True)
class Work:
    """A sensitivity before it is computed: what it starts from, its times, and why these may end early."""

    start: Start
    times: Array
    options: Options
    reason: str
    blow_up_time: float

    @property
    def levels(self) -> list[tuple[Particles, float]]:
        """Clouds and tolerances of the looks, ever finer; all after the second are for growth that needs them."""
        clouds, tolerance = self.start.clouds, self.options.tolerance
        tolerances = _TOLERANCES if tolerance is None else (min(tolerance * _LOOSER, 1e-3), tolerance)
        # In the limit the last two looks differ in their nodes, of tokens in their steps.
        count = len(clouds) if self.start.of == LIMIT else len(tolerances)
        levels = [(clouds[min(k, len(clouds) - 1)], tolerances[min(k, len(tolerances) - 1)]) for k in range(count)]
        return levels if self.options.check else levels[1:2]

    def seconds(self) -> float:
        """Return about how long the first two looks take on one thread."""
        return sum(self._first_costs)

    @cached_property
    def _first_costs(self) -> list[float]:
        """Seconds of the first two looks, which are predicted once: steps have to be counted for them."""
        return [self._seconds(*level) for level in self.levels[:2]]

    def announce(self) -> None:
        """Say how long it takes, where that is long."""
        if (expected := self.seconds()) > LONG:
            warn(with_remedy(messages.GROWTH_TAKES_LONG(expected=about(expected)), _REMEDIES), SlowRunWarning)

    def looks(self) -> Iterator[xr.Dataset]:
        """Yield the result after each look; the first one has no error yet."""
        began, before, after, share = clock.perf_counter(), None, None, 0.0
        costs = list(self._first_costs)
        patience = Patience(what="the growth of small changes", remedies=_REMEDIES, told=sum(costs) > LONG)
        for number, level in enumerate(self.levels):
            if number > 1:
                if _agree(self.start, before, after):
                    break
                costs.append(self._seconds(*level))
                if costs[number] > _FINEST:
                    break
            whole = sum(costs) or 1.0  # zero at the first time alone
            with part(share, costs[number] / whole):
                before, after = after, self._look(*level, patience)
            share += costs[number] / whole
            result = _dataset(self.start, after, before)
            result.attrs["wall_seconds"] = clock.perf_counter() - began
            yield result

    def _seconds(self, cloud: Particles, tolerance: float) -> float:
        return cost.seconds(
            self.start.problem, cloud, tolerance, self.times,
            rates=self.options.rates, rough=_wide(self.start, cloud, self.start.first),
        )  # fmt: skip

    def _look(self, cloud: Particles, tolerance: float, patience: Patience) -> _Look:
        problem = self.start.problem
        flow = problem.flow(tolerance=accuracy_for(tolerance))
        flow.patience = patience
        tangency, path = Tangency(problem), Path(cloud, flow, self.times, 0.1 * tolerance)
        wide = _ever_wide(self.start, path)
        of_growth = _OF_GROWTH if self.options.rates else 1.0
        with part(0.0, of_growth):
            growths = growth.growths(path, tangency, np.where(wide, _UNKNOWN, tolerance))
        path.forget()
        rates = None
        if self.options.rates:
            with part(of_growth, 1.0 - of_growth):
                rates = growth.rates(path, tangency, tolerance, limit=self.start.of == LIMIT)
        if self.reason:
            path.cut(len(path.reached), self.reason)
        elif math.isfinite(self.blow_up_time) and path.status == "completed":
            path.status, path.blow_up_time = "blow-up", self.blow_up_time
        return _Look(path, tolerance, wide[: len(growths)], growths, rates)


def _agree(start: Start, coarse: _Look | None, fine: _Look | None) -> bool:
    """Whether the growth is known well enough, or no finer nodes will tell it."""
    if coarse is None or fine is None:
        return True
    value, later = fine.by_time("value"), np.flatnonzero(~fine.wide[1:]) + 1
    few = start.of == LIMIT and (fine.by_time("carriers")[later] < FEW).any()
    return not few and bool((_difference(value, coarse.by_time("value")) <= _ENOUGH * value)[later].all())


def _refuse_without_derivative(start: Start) -> None:
    """Refuse an attention that has no derivative, or states none: a single token shows it."""
    block, tokens = start.problem.block, start.cloud
    if not block.continuous:
        raise InputError(
            f"is {block.kind}, whose velocities jump, so that they have no derivative; take softmax with a "
            "large A instead",
            "attention",
        )
    first = Particles(tokens.points[:1], [1.0], None if tokens.s is None else tokens.s[:1])
    try:
        block.linearised(first, start.first)
    except InputError as mistake:
        if mistake.field == "attention":
            raise


def _dataset(start: Start, first: _Look, second: _Look | None) -> xr.Dataset:
    """Return all results by time; errors are how far a coarser look differs."""
    path, limit = first.path, start.of == LIMIT
    times, value, error = np.array(path.reached), first.by_time("value"), first.by_time("error")
    later = times > times[0]
    few = (first.by_time("carriers") < FEW) & later
    if second is not None:
        # The tolerance is added because two looks may take the same steps, and then do not differ.
        error = error + np.where(later, first.tolerance * value, 0.0) + _difference(value, second.by_time("value"))
    elif limit:
        error = np.where(later, np.nan, error)
    few, wide = few & ~first.wide, first.wide & later
    if limit:
        value = np.where(few | wide, np.nan, value)
    error = np.where(np.isnan(value), np.nan, error)
    by_token = ("time", "particle", "component")
    variables: dict[str, tuple[tuple[str, ...], Any]] = {
        "growth": (("time",), value),
        "growth_error": (("time",), error),
        "participation": (("time",), first.by_time("participation")),
        "carriers": (("time",), first.by_time("carriers")),
        "sample": (("time",), few & (not limit)),
        "direction": (by_token, first.by_time("right")),
        "response": (by_token, first.by_time("left")),
        "position": (by_token, np.array(path.outputs)),
        "weight": (("particle",), path.cloud.weights),
    }
    if (rates := first.rates) is not None:
        difference = np.full(len(times), np.nan)
        if second is not None and second.rates is not None:
            pairs = (rates.logarithmic, second.rates.logarithmic), (rates.norm, second.rates.norm)
            difference = np.maximum(*(_difference(*pair) for pair in pairs))
        variables |= {
            "log_logarithmic_norm": (("time",), rates.logarithmic),
            "log_norm": (("time",), np.fmax(rates.norm, rates.logarithmic)),  # which rounding may exchange
            "rates_error": (("time",), difference + rates.error),
        }
    named = {name: (*values, {"long_name": _NAMES[name], "units": "1"}) for name, values in variables.items()}
    coordinates = {"time": ("time", times, {"long_name": "time", "units": "1"})} | labels(start.problem.dimension)
    coordinates.pop("component_b")
    doubts = [path.reason]
    if (unsure := error > _NOTABLE * value).any():
        what = "other nodes or steps" if limit else "other steps"
        doubts.append(f"from t = {times[unsure][0]:.4g} on {what} give another growth, see growth_error")
    if limit and few.any():
        why = f"fewer than {FEW} nodes carry it, so that it is theirs and not the limit's"
        doubts.append(f"at t = {times[few][0]:.4g} growth is not known: {why}")
    if wide.any():
        why = "J may be unbounded in L^2(mu), as |Sigma^{1/2} A Sigma^{1/2}| > 0.707"
        since = f"from t = {times[first.wide][0]:.4g} on growth is not known"
        doubts.append(f'{since}: {why}, and more nodes find more without end; take tokens, as by sampling="sobol"')
    doubts += [kink(start), *_not_settled(first)]
    attributes = provenance(start.problem, SENSITIVITY) | {
        "solver": start.solver,
        "of": start.of,
        "n": len(path.cloud),
        "steps": len(path.steps),
        "products": sum(at.products for at in first.growths),
        "products_of_rates": rates.products if rates is not None else 0,
        "status": path.status,
        "blow_up_time": path.blow_up_time,
        "doubt": "; ".join(filter(None, doubts)),
    }
    return xr.Dataset(named, coordinates, attributes)


def _difference(first: Array, second: Array) -> Array:
    """|first - second| of two looks; infinite at times that the second did not reach."""
    difference = np.full(len(first), np.inf)
    with np.errstate(invalid="ignore"):
        difference[: len(second)] = np.abs(first[: len(second)] - second[: len(first)])
    return np.where(np.isnan(difference), np.inf, difference)


def _not_settled(look: _Look) -> list[str]:
    """What Lanczos' iteration could not tell to the accuracy that was asked of it."""
    doubts = []
    if unsettled := [t for t, at in zip(look.path.reached, look.growths, strict=True) if not at.converged]:
        doubts.append(f"from t = {unsettled[0]:.4g} on Lanczos' iteration for the growth has not converged")
    if look.rates is not None and not look.rates.converged:
        doubts.append("Lanczos' iteration for the rates has not converged everywhere, so that they may not bound")
    return doubts


def _wide(start: Start, cloud: Particles, t: float) -> bool:
    """Return whether nodes of a Gaussian may never agree: J shifts its Hermite polynomials, unbounded in L^2(mu).

    E h(z + S u) takes e^{<a, z>} of norm e^{|a|^2 / 2} to one of norm e^{|S^T a|^2}, S = Sigma^{1/2} A Sigma^{1/2}.
    """
    if start.of != LIMIT or not isinstance(start.problem.start, Gaussian):
        return False
    values, vectors = np.linalg.eigh(cloud.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return any(np.linalg.norm(root.T @ tilt @ root, 2) > math.sqrt(0.5) for tilt in start.problem.block.tilts(t))


def _ever_wide(start: Start, path: Path) -> NDArray[np.bool_]:
    """Return at which output times the nodes are ``_wide``, or have been."""
    clouds = zip(path.outputs, path.reached, strict=True)
    return np.logical_or.accumulate([_wide(start, path.cloud.moved(x), t) for x, t in clouds])
