"""How fast L layers approach the flow: errors of the discrete Transformer against L, and the slopes fitted to them.

x <- x + (T/L) Gamma_mu(x), L times,   against   x' = Gamma_mu(x) up to T, from the same tokens: O(1/L)

coupled distance      (sum_i w_i |x_i^L(t) - x_i(t)|^p)^{1/p}
Wasserstein distance  W_p(mu^L(t), mu(t)), of the laws of x, at most the coupled one
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.kinds import NUMBA, SCIPY, STEPS, TRANSPORT, Kind
from vlasov.measures import Particles
from vlasov.postprocess.panels import Panel, Table
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.postprocess.studies.show import error_panel, error_rows, error_table
from vlasov.postprocess.studies.slopes import PARTS, Fit, with_slopes
from vlasov.postprocess.studies.study import Study, option
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.transport.exact import MOST_PAIRS
from vlasov.postprocess.wasserstein import distance
from vlasov.problem import Problem
from vlasov.solvers.layers import MOST
from vlasov.solvers.ode.clouds import Tokens, states
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.particles import Options, coordinates
from vlasov.solvers.sampling import check_own_tokens
from vlasov.solvers.transformer import Stack, alone, states as layered

DEPTHS = (6, 12, 24, 48, 96)  # where none are chosen and no parameter jumps inside a layer
#: Euler's error is C h + D h^2 + ..., and all depths move the same tokens.
_FIT = Fit(bent=True, paired=True, line=1)
_TOKENS = 256
_MOST_TRIED = 1000  # layers
_LOOSER = 100.0  # times the tolerance: the second flow, by which the error of the first is known
_MOST_STEPS, _MOST_PAST_JUMPS = 100_000, 10_000  # the latter where tokens may stick at a jump of velocities
_ABOVE_FLOOR, _ROUNDING = 3.0, 1e-13  # errors closer than this to the flow's own say nothing about a slope
_EXPECTED = -1.0
_SAME = 1e-12  # entries of beta that are one number
_NO_LIMIT = (
    "LayerNorm with a beta that is not one positive number moves tokens in each layer, however short its step: layers "
    "do not approach the flow, and no slope is expected"
)
_ERRORS = {
    "coupled": "distance of tokens to the same tokens moved by the flow",
    "wasserstein": "Wasserstein distance to the flow's tokens",
    "mean_error": "error of the mean",
    "covariance_error": "relative error of the covariance, Frobenius norm",
}
_PANELS = {"Coupled distance": ["coupled"], "Wasserstein distance": ["wasserstein"],
           "Moments": ["mean_error", "covariance_error"]}  # fmt: skip


def _panels(dataset: xr.Dataset) -> list[Panel]:
    rows, t = error_rows(dataset, dataset["depth"].values), float(dataset["time"][-1])
    return [
        error_panel(f"{title} at t = {t:.4g}", "number of layers L", [row for row in rows if row.name in names])
        for title, names in _PANELS.items()
    ]


def _tables(dataset: xr.Dataset) -> list[Table]:
    depths = dataset["depth"].values
    title = f"{dataset.attrs['title']}: L layers against the flow at t = {float(dataset['time'][-1]):g}"
    return [error_table(title, "L", depths, error_rows(dataset, depths))]


def _notes(dataset: xr.Dataset) -> list[str]:
    own, samples = float(dataset["reference_error"].isel(time=-1).max()), dataset.sizes["replica"]
    tokens = f"{dataset.attrs['tokens']:,} tokens" + (f", {samples} samples of them" if samples > 1 else "")
    note = str(dataset.attrs.get("note", ""))
    return [f"{tokens}. The flow's own error is about {own:.1e}.", *([f"{note[0].upper()}{note[1:]}."] if note else [])]


@dataclass(frozen=True, eq=False)
class DepthStudy(Study):
    """L layers of step T/L against the flow x' = Gamma_mu(x) of the same tokens: errors, and their slopes in L.

    Returns
    -------
    xarray.Dataset
        ``coupled``, ``wasserstein`` (depth, replica, time, p); ``mean_error``, ``covariance_error`` (depth, replica,
        time); ``reference_error`` (replica, time), the error of the flow; ``slope``, ``low``, ``high`` (quantity, time,
        p), with ``expected`` by the theory; ``step`` (depth). NaN stands where nothing was computed, such as transport
        beyond ``exact_up_to``, and for slopes where errors are no larger than the flow's own. The attribute ``doubt``
        says where depths avoid jumps of parameters or the study ends before a blow-up, ``note`` where layers do not
        approach the flow.

    Examples
    --------
    The discrete Transformer is Euler's method, of order one: twice as many layers, half the error.

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.2), horizon=1.0)
    >>> study = vl.depth_study(problem, depths=[24, 48, 96], n=16, replicas=2, p=2)
    >>> print(study["slope"].sel(quantity="coupled").values.squeeze().round(1))
    -1.0
    """

    kind: ClassVar = Kind(
        "depth study",
        'what vl.depth_study returned or "vlasov depth" wrote',
        title="How fast L layers approach the flow",
        variables=_ERRORS | PARTS | {
            "reference_error": "largest error of a token of the flow, by a looser tolerance",
            "step": "step of a layer",
            "expected": "slope by the theory",
        },
        panels=_panels,
        tables=_tables,
        notes=_notes,
        cites=(("sander2022", "layers as steps of a flow"), TRANSPORT, STEPS, SCIPY, NUMBA),
    )  # fmt: skip

    depths: int | Sequence[int] | None = option(
        None,
        "Numbers of layers L, 6, 12, 24, 48 and 96 if not given. All jumps of parameters are between layers: other "
        "numbers are refused, and in place of these five the first that fits is doubled four times.",
        check=shared.unless_none(shared.several(shared.whole(least=1, most=MOST), ordered=True)),
        free=True,
    )
    n: int | None = option(
        None,
        "Tokens, 256 if not given; an initial measure of particles is taken as it is, all of it.",
        check=shared.unless_none(shared.whole(least=1, most=shared.MOST)),
    )
    replicas: int = shared.replicas_option(
        8,
        "Random repetitions, each with a seed made of (seed, replica). Samplings without randomness, and an initial "
        "measure of particles, have one.",
    )
    p: float | Sequence[float] = shared.orders_option()
    sampling: str = option("random", "How tokens are drawn: random, sobol, quantile (d = 1) or quadrature.")
    times: ArrayLike | None = option(
        None,
        "Increasing times, each after a layer of every depth; the horizon if not given, or a quarter of the time to a "
        "blow-up.",
    )
    seed: int = shared.seed_option()
    exact_up_to: int = shared.exact_option()
    tolerance: float = shared.tolerance_option(
        1e-11,
        "Local error per step of the flow, relative to the size of the cloud. Errors no larger than what a hundred "
        "times this tolerance changes are left out of slopes.",
    )
    layers: tuple[int, ...] = field(init=False)
    outputs: tuple[float, ...] = field(init=False)
    orders: tuple[float, ...] = field(init=False)
    tokens: int = field(init=False)

    def validate(self) -> None:
        """Choose depths and times; the horizon is earlier where the solution blows up."""
        problem = self.case.problem
        own = len(problem.initial) if isinstance(problem.initial, Particles) else None
        n = (own or _TOKENS) if self.n is None else self.n
        if own is not None:
            check_own_tokens(own, n)
        sampling = shared.check_sampling(self.sampling, problem)
        shared.check_exact(self.exact_up_to, [n], MOST_PAIRS, problem.dimension)
        problem, doubt = before_blow_up(problem, self.times, tokens=True)
        layers, why = _layers(problem, self.depths)
        outputs = _outputs(problem, layers, self.times)
        replicas = 1 if own is not None or sampling in shared.DETERMINISTIC else self.replicas
        self.put(pde=problem, n=n, replicas=replicas, doubt="; ".join(filter(None, [doubt, why])))
        self.put(depths=layers, layers=layers, times=outputs, outputs=outputs, orders=self.p, tokens=n)

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        return {"depth": self.layers, "replica": range(self.replicas)}

    def cost(self, **point: Any) -> float:
        pairs = 5e-9 * self.tokens * min(self.tokens, 2000)
        exact = self.pde.dimension > 1 and self.tokens <= self.exact_up_to
        transport = len(self.orders) * len(self.outputs) * 0.5 * (self.tokens / 2048) ** 2.1 if exact else 0.0
        return 1e-3 + pairs * point["depth"] + transport

    def prepare(self, settled: Any) -> _Flows:
        return _Flows(self)

    def measure(self, prepared: _Flows, **point: Any) -> xr.Dataset:
        return _measured(self, prepared.of(point["replica"]), point["depth"])

    def finish(self, dataset: xr.Dataset, prepared: Any) -> xr.Dataset:
        own = dataset["reference_error"].max("depth")
        floor = _ABOVE_FLOOR * np.maximum(own.max("replica"), _ROUNDING)
        floors = xr.Dataset(dict.fromkeys(_ERRORS, floor))
        dataset = dataset.assign(
            reference_error=own.transpose("replica", "time"),
            step=("depth", self.pde.horizon / np.array(self.layers)),
        )
        dataset["depth"].attrs["long_name"] = "number of layers"
        dataset.attrs["tokens"] = self.tokens
        if not _has_limit(self.pde, self.layers[-1]):
            dataset.attrs["note"] = _NO_LIMIT
        dataset = with_slopes(dataset, list(_ERRORS), "depth", _FIT, floor=floors)
        expected = math.nan if "note" in dataset.attrs else _EXPECTED
        return dataset.assign(expected=xr.full_like(dataset["slope"].isel(time=0, drop=True), expected))


class _Flow(NamedTuple):
    """Tokens at time zero, moved by the flow to the times of a study, (times, n, d), and the errors of these."""

    cloud: Particles
    points: Array
    errors: Array


class _Flows:
    """The flow of each replica, integrated once a worker, and once more by a looser tolerance."""

    def __init__(self, study: DepthStudy) -> None:
        self.study = study
        self._flows: dict[int, _Flow] = {}
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)

    def of(self, replica: int) -> _Flow:
        """Return the flow of a replica."""
        with self._locks[replica]:
            if replica not in self._flows:
                cloud = _sample(self.study, replica)
                tolerance = self.study.tolerance
                fine, rough = (_moved(self.study, cloud, each) for each in (tolerance, _LOOSER * tolerance))
                self._flows[replica] = _Flow(cloud, fine, np.linalg.norm(fine - rough, axis=2).max(axis=1))
            return self._flows[replica]


def _sample(study: DepthStudy, replica: int) -> Particles:
    """Return the tokens of a replica."""
    start = study.pde.start
    if isinstance(start, Particles):
        return start
    seed = np.random.SeedSequence(study.seed, spawn_key=(replica,))
    return study.pde.drawn_from.sample(study.tokens, study.sampling, seed=seed)


def _moved(study: DepthStudy, cloud: Particles, tolerance: float) -> Array:
    """Return the tokens at the output times, shape (times, n, d)."""
    flow = study.pde.flow(tolerance=accuracy_for(tolerance))
    tokens = Tokens(cloud, flow, coordinates(study.pde, Options(), flow))
    jumps = study.pde.jumps_at_origin
    most = _MOST_PAST_JUMPS if jumps else _MOST_STEPS
    remedy = messages.AT_ORIGIN() if jumps else "choose a shorter horizon"
    try:
        track = [moved.points.copy() for moved in states(tokens, study.outputs, tolerance, most)]
    except SolverError as error:
        if jumps:
            raise SolverError(f"{error}; {remedy}") from None
        sentence = f"the flow cannot be followed to t = {study.outputs[-1]:g}; if tokens blow up before, {remedy}"
        raise SolverError(f"{sentence} ({error})") from None
    if len(track) < len(study.outputs):
        raise SolverError(f"the flow takes more than {most:,} steps; {remedy}")
    return np.stack(track)


def _measured(study: DepthStudy, flow: _Flow, depth: int) -> xr.Dataset:
    """Return the errors of one depth against the flow of one replica."""
    weights, problem = flow.cloud.weights, study.pde
    stack = Stack(depth, problem.horizon, problem.block.breakpoints)
    times = stack.layers(np.array(study.outputs)).tolist()
    rows: dict[str, list[Any]] = {name: [] for name in _ERRORS}
    for layer, x in enumerate(layered(problem, stack, flow.cloud, alone(problem).flow())):
        if layer not in times:
            continue
        state, truth = (
            Particles(np.ascontiguousarray(points), weights) for points in (x, flow.points[times.index(layer)])
        )
        gaps = np.linalg.norm(state.points - truth.points, axis=1)
        spread = float(np.linalg.norm(truth.covariance)) or 1.0
        rows["coupled"].append([mean_power(weights, gaps, p) for p in study.orders])
        rows["wasserstein"].append([_distance(study, state, truth, p) for p in study.orders])
        rows["mean_error"].append(float(np.linalg.norm(state.mean - truth.mean)))
        rows["covariance_error"].append(float(np.linalg.norm(state.covariance - truth.covariance)) / spread)
    dims = {"coupled": ("time", "p"), "wasserstein": ("time", "p")}
    variables: dict[str, Any] = {name: (dims.get(name, ("time",)), values) for name, values in rows.items()}
    variables["reference_error"] = ("time", flow.errors)
    return xr.Dataset(variables, {"time": list(study.outputs), "p": np.array(study.p)})


def _distance(study: DepthStudy, state: Particles, truth: Particles, p: float) -> float:
    """Return W_p; NaN where transport is too dear."""
    if state.dimension == 1:
        return distance(state, truth, p, method="quantile").value
    return distance(state, truth, p, method="exact").value if len(state) <= study.exact_up_to else math.nan


def _layers(problem: Problem, depths: Any) -> tuple[tuple[int, ...], str]:
    """Return numbers of layers that have every jump of a parameter between two layers, and why they are not DEPTHS.

    Inside a layer a jump is felt late, by a share of the step that differs from depth to depth.
    """
    layers = DEPTHS if depths is None else tuple(depths)
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
    layers = tuple(first * 2**k for k in range(len(DEPTHS)))
    return layers, f"{reason}, so that depths are {_and(layers)}"


def _jumps_inside(problem: Problem, depth: int) -> list[float]:
    """Return the jumps of parameters that are inside one of so many layers."""
    return Stack(depth, problem.horizon, problem.block.breakpoints).jumps_inside()


def _and(numbers: Sequence[int]) -> str:
    """Return numbers as words, such as 6, 12 and 24."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _outputs(problem: Problem, layers: Sequence[int], times: ArrayLike | None) -> tuple[float, ...]:
    """Return the output times, which must be after a layer of every depth."""
    outputs = shared.checked_times(problem, [problem.horizon] if times is None else times)
    for depth in layers:
        try:
            Stack(depth, problem.horizon, np.zeros(0)).layers(np.array(outputs))
        except InputError as mistake:
            raise InputError(f"{mistake.sentence}, with {depth} layers", "times") from None
    return outputs


def _has_limit(problem: Problem, depth: int) -> bool:
    """Return whether a layer of step zero leaves tokens where they are: LN(D u) = D u, for all unit vectors u."""
    norm = problem.post_norm
    if norm is None:
        return True
    sampled = Stack(depth, problem.horizon, problem.block.breakpoints).sampled if norm.moves else [0.0]
    scales = np.stack([norm.scale(problem.dimension, t) for t in sampled])
    return bool((scales > 0).all() and np.allclose(scales, scales[:, :1], rtol=_SAME, atol=0.0))


depth_study = front(DepthStudy)
