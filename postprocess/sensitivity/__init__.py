"""The exact sensitivity of the whole flow: how much a small change of the tokens can grow, and by which directions.

    h' = J(t) h along a solution,   growth(t) = sup |h(t)| / |h(0)| = |M(t)|,   |h|^2 = sum_i w_i |h_i|^2
    growth <= exp int lambda <= exp int |J|,   lambda = largest eigenvalue of the symmetric part of J

``tokens`` says of which tokens, ``path`` has the steps with their derivatives, ``growth`` asks Lanczos, ``edge`` is
what single tokens suffer, ``moments`` the same for Gaussians by their own equations. ``show`` has its panels.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.cases.solving import CaseLike
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.kinds import NUMBA, SCIPY, SINGULAR_VALUE, SMOOTHNESS, STEPS, Kind
from vlasov.measures import Gaussian, Particles
from vlasov.patience import Patience
from vlasov.postprocess.sensitivity import edge as edges, growth, moments, show
from vlasov.postprocess.sensitivity.path import Path
from vlasov.postprocess.sensitivity.tangency import Tangency
from vlasov.postprocess.sensitivity.tokens import LIMIT, Start, before_blow_up, followed, kink, outputs, start
from vlasov.solvers.dataset import labels, provenance
from vlasov.solvers.ode.integrate import accuracy_for

FEW = 8  # tokens: what they carry alone is theirs, not the limit's
_LOOSER = 100.0  # the tolerance of the second look
_TOLD = 1e-2  # relative error that is told as a doubt
_REMEDIES = ("lower {n}", "ask for fewer {times}", "loosen the {tolerance}", "take {rates=False}", "take {check=False}")
_NAMES = {
    "growth": "largest growth of a small change, |h(t)| / |h(0)|",
    "growth_error": "estimated error of the growth",
    "growth_of_nodes": "the same of these tokens or nodes alone",
    "edge": "largest growth for one token in the given field, |D phi_t(x)|",
    "log_logarithmic_norm": "integral of the largest eigenvalue of the symmetric part of J",
    "log_norm": "integral of |J|",
    "rates_error": "estimated error of the two integrals",
    "participation": "share of the measure that carries the growth",
    "carriers": "number of tokens that carry the growth",
    "sample": "whether so few tokens carry it that the number is this sample's, not the limit's",
    "edge_place": "where the token of the edge begins",
    "direction": "the change at the first time that grows most, of length one",
    "response": "what becomes of it, divided by the growth",
    "position": "token positions",
    "weight": "token weights",
    "log_moment_norm": "integral of the largest rate of growth among Gaussians",
    "moment_growth": "largest growth among Gaussians, in the metric of Bures",
    "moment_growth_error": "estimated error of the growth among Gaussians",
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


def sensitivity(
    problem: CaseLike | xr.Dataset,
    *,
    times: ArrayLike | None = None,
    n: int | None = None,
    sampling: str = "auto",
    seed: int = 0,
    tolerance: float = 1e-8,
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
        Relative error of the growth for these tokens, and local error of the flow's steps.
    rates
        Whether to integrate the logarithmic norm and |J|, which bound the growth.
    check
        Whether to look again, with other nodes and steps, to know the error. Without, that of a limit is NaN, and that
        of tokens Lanczos' alone.

    Returns
    -------
    xarray.Dataset
        By time: growth and growth_error; edge, the largest |D phi_t(x)| over tokens, in the limit over all x, and
        edge_place; log_logarithmic_norm and log_norm, the integrals of lambda and |J|, with rates_error; participation
        and carriers, how many tokens carry the growth, and sample, whether so few that the number is the sample's;
        direction and response, what grows most and what becomes of it; position and weight. In the limit the growth is
        at least the edge, and is the edge where few nodes carry growth_of_nodes. For Gaussians that stay Gaussian also
        moment_growth with its error, and log_moment_norm, the logarithm of its bound. At a blow-up times end. Where a
        Gaussian is so wide that nodes would never agree, growth is NaN, and ``doubt`` says why.

    Examples
    --------
    With A = 0 all tokens move by their mean, which grows like e^t; a token by itself changes nothing:

    >>> problem = vl.Problem(vl.Softmax(A=[[0.0]]), vl.Gaussian(0.0, 1.0), horizon=1.0)
    >>> found = vl.sensitivity(problem, times=[1.0], rates=False)
    >>> found["growth"].values.round(5), found["edge"].values.round(5)
    (array([1.     , 2.71828]), array([1., 1.]))
    """
    options: dict[str, Any] = {"tolerance": tolerance, "rates": rates, "check": check}
    return list(looks(problem, times=times, n=n, sampling=sampling, seed=seed, **options))[-1]


def looks(
    problem: CaseLike | xr.Dataset,
    *,
    times: ArrayLike | None = None,
    n: int | None = None,
    sampling: str = "auto",
    seed: int = 0,
    tolerance: float = 1e-8,
    rates: bool = True,
    check: bool = True,
) -> Iterator[xr.Dataset]:
    """The result of ``sensitivity`` before it is checked, if it will be, and then with its errors: its last."""
    tolerance = checks.number(tolerance, "tolerance", above=1e-13, below=1e-2)
    rates, check = checks.flag(rates, "rates"), checks.flag(check, "check")
    began = clock.perf_counter()
    begun = start(problem, n, sampling, seed)
    _check(begun)
    at, reason = followed(begun, outputs(problem, times, begun))
    at, blow_up_time = before_blow_up(begun, at)
    among, patience = _among(begun, at), Patience(what="the growth of small changes", remedies=_REMEDIES)
    whole = _found(begun, begun.cloud, at, tolerance, among, rates=rates, patience=patience)
    if reason:
        whole.path.cut(len(whole.path.reached), reason)
    elif math.isfinite(blow_up_time) and whole.path.status == "completed":
        whole.path.status, whole.path.blow_up_time = "blow-up", blow_up_time
    again = None
    if check and len(whole.path.reached) > 1:
        other = begun.cloud if begun.fewer is None else begun.fewer
        looser = min(tolerance * _LOOSER, 1e-3)
        yield _dataset(begun, whole, None)
        again = _found(begun, other, np.array(whole.path.reached), looser, among, rates=rates, patience=patience)
    result = _dataset(begun, whole, again)
    result.attrs["wall_seconds"] = clock.perf_counter() - began
    yield result


class _Found(NamedTuple):
    """One look: a path, and what was found along it."""

    path: Path
    growths: list[growth.Growth]
    edge: edges.Edge
    rates: growth.Rates | None
    among: moments.Among | None  # Gaussians
    limit: bool

    @property
    def values(self) -> tuple[Array, Array]:
        """The growth at each time; and how far that of nodes is from it, where few of them carry theirs.

        Single points and, for Gaussians, affine changes are among all changes.
        """
        nodes = np.array([one.value for one in self.growths])
        if not self.limit:
            return nodes, np.zeros_like(nodes)
        least = self.edge.value if self.among is None else np.fmax(self.edge.value, self.among.growth)
        few = np.array([one.carriers < FEW for one in self.growths]) & (np.arange(len(nodes)) > 0)
        return np.where(few, least, np.fmax(nodes, least)), np.where(few, np.abs(nodes - least), 0.0)

    @property
    def integrals(self) -> tuple[Array, Array, Array] | None:
        """Of lambda and |J|; and by how much nodes alone would have missed that they bound the growth."""
        if self.rates is None:
            return None
        first = np.fmax(self.rates.logarithmic, np.log(self.values[0])) if self.limit else self.rates.logarithmic
        return first, np.fmax(self.rates.norm, first), first - self.rates.logarithmic


def _among(begun: Start, times: Array) -> moments.Among | None:
    """Growth among Gaussians, where these nodes stand for one from the beginning on."""
    if begun.of != LIMIT or begun.first != 0.0:
        return None
    return moments.growth(begun.problem, times)


def _found(
    begun: Start, cloud: Particles, times: Array, tolerance: float, among: moments.Among | None,
    *, rates: bool, patience: Patience,
) -> _Found:  # fmt: skip
    flow, limit = begun.problem.flow(tolerance=accuracy_for(tolerance)), begun.of == LIMIT
    flow.patience = patience
    tangency, path = Tangency(begun.problem), Path(cloud, flow, times, 0.1 * tolerance)
    found = growth.growths(path, tangency, tolerance)
    path.forget()
    edge = edges.of_limit(path, tangency, begun.problem.start) if limit else edges.of_tokens(path, tangency)
    rated = growth.rates(path, tangency, limit=limit) if rates else None
    if among is not None:
        among = moments.Among(*(one[: len(path.reached)] for one in among))
        edge = edge._replace(value=np.where(np.isnan(among.edge), edge.value, among.edge))
    return _Found(path, found, edge, rated, among, limit)


def _check(begun: Start) -> None:
    """Refuse an attention that has no derivative, or says none: one token tells."""
    block, tokens = begun.problem.block, begun.cloud
    if not block.continuous:
        raise InputError(
            f"is {block.kind}, whose velocities jump, so that they have no derivative; take softmax with a "
            "large A instead",
            "attention",
        )
    first = Particles(tokens.points[:1], [1.0], None if tokens.s is None else tokens.s[:1])
    try:
        block.linearised(first, begun.first)
    except InputError as mistake:
        if mistake.field == "attention":
            raise


def _dataset(begun: Start, whole: _Found, again: _Found | None) -> xr.Dataset:
    """Everything by time, with errors by the second look."""
    path, count = whole.path, len(whole.path.reached)
    times, (value, few) = np.array(path.reached), whole.values
    nodes = np.array([one.value for one in whole.growths])
    error = np.array([one.error for one in whole.growths]) + few
    carriers = np.array([one.carriers for one in whole.growths])
    if again is not None:
        error = error + _apart(value, again.values[0])
    elif whole.limit:
        error = np.where(times > times[0], np.nan, error)
    if tails := _tails(begun) if count > 1 else "":
        value, error = (np.where(times > times[0], np.nan, one) for one in (value, error))
    variables: dict[str, tuple[tuple[str, ...], Any]] = {
        "growth": (("time",), value),
        "growth_error": (("time",), error),
        "growth_of_nodes": (("time",), nodes),
        "edge": (("time",), whole.edge.value),
        "edge_place": (("time", "component"), whole.edge.place),
        "participation": (("time",), np.array([one.participation for one in whole.growths])),
        "carriers": (("time",), carriers),
        "sample": (("time",), (carriers < FEW) & (times > times[0]) & (not whole.limit)),
        "direction": (("time", "particle", "component"), np.array([one.right for one in whole.growths])),
        "response": (("time", "particle", "component"), np.array([one.left for one in whole.growths])),
        "position": (("time", "particle", "component"), np.array(path.outputs)),
        "weight": (("particle",), path.cloud.weights),
    }
    if (rated := whole.integrals) is not None and whole.rates is not None:
        other = None if again is None else again.integrals
        apart = [np.full(count, np.nan)] if other is None else [_apart(rated[k], other[k]) for k in (0, 1)]
        variables |= {
            "log_logarithmic_norm": (("time",), rated[0]),
            "log_norm": (("time",), rated[1]),
            "rates_error": (("time",), np.maximum.reduce(apart) + rated[2] + whole.rates.error),
        }
    if whole.among is not None:
        variables["moment_growth"] = (("time",), whole.among.growth)
        variables["moment_growth_error"] = (("time",), whole.among.error)
        variables["log_moment_norm"] = (("time",), moments.exponent(begun.problem, times))
    named = {name: (*held, {"long_name": _NAMES[name], "units": "1"}) for name, held in variables.items()}
    coordinates = {"time": ("time", times, {"long_name": "time", "units": "1"})} | labels(begun.problem.dimension)
    coordinates.pop("component_b")
    return xr.Dataset(named, coordinates, _attributes(begun, whole, error > _TOLD * value, tails))


def _apart(one: Array, other: Array) -> Array:
    """How far a second look is from the first; infinite where it did not come so far."""
    found = np.full(len(one), np.inf)
    with np.errstate(invalid="ignore"):
        found[: len(other)] = np.abs(one[: len(other)] - other[: len(one)])
    return np.where(np.isnan(found), np.inf, found)


def _attributes(begun: Start, whole: _Found, unsure: NDArray[np.bool_], tails: str) -> dict[str, Any]:
    """Of what this is, how it was found, and why it may not be right."""
    path, doubt = whole.path, whole.path.reason
    if unsure.any():
        since = path.reached[int(unsure.argmax())]
        words = "other nodes or steps give another growth" if begun.of == LIMIT else "other steps give another growth"
        doubt = "; ".join(filter(None, [doubt, f"from t = {since:.4g} on {words}, see growth_error"]))
    doubt = "; ".join(filter(None, [doubt, tails, kink(begun), *_not_settled(whole)]))
    products = sum(one.products for one in whole.growths)
    return provenance(begun.problem, SENSITIVITY) | {
        "solver": begun.solver,
        "of": begun.of,
        "n": len(path.cloud),
        "steps": len(path.steps),
        "products": products,
        "products_of_rates": whole.rates.products if whole.rates is not None else 0,
        "status": path.status,
        "blow_up_time": path.blow_up_time,
        "doubt": doubt,
    }


def _not_settled(whole: _Found) -> list[str]:
    """What Lanczos' iteration could not tell to the accuracy that was asked of it."""
    said = []
    if unsettled := [t for t, one in zip(whole.path.reached, whole.growths, strict=True) if not one.converged]:
        said.append(f"from t = {unsettled[0]:.4g} on Lanczos' iteration for the growth has not converged")
    if whole.rates is not None and not whole.rates.converged:
        said.append("Lanczos' iteration for the rates has not converged everywhere, so that they may not bound")
    return said


def _tails(begun: Start) -> str:
    """Why nodes of a Gaussian may never agree: J shifts its Hermite polynomials, which has no bound in L^2(mu).

    E h(z + S u) takes e^{<a, z>} of norm e^{|a|^2 / 2} to one of norm e^{|S^T a|^2}, S = Sigma^{1/2} A Sigma^{1/2}.
    """
    initial = begun.problem.start
    if begun.of != LIMIT or not isinstance(initial, Gaussian):
        return ""
    tilts = [np.linalg.norm(initial.covariance @ tilt, 2) for tilt in begun.problem.block.tilts(0.0)]
    if max(tilts, default=0.0) <= math.sqrt(0.5):
        return ""
    return (
        "growth is not known: J may be unbounded in L^2(mu), as |Sigma^{1/2} A Sigma^{1/2}| > 0.707, and more nodes "
        "find more without end; look at moment_growth, or take tokens"
    )
