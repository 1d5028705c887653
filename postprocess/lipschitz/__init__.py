"""How rough attention is on n tokens: |D_X f|_2 against n for laws of tokens, with the theory's bounds.

    f(X)_i = Gamma_X(x_i),   slope of log |D_X f|_2 in log n, through geometric means over replicas

Geometric means, and not root mean squares as for errors: among tokens of a Gaussian law |D_X f| has so heavy a tail
over replicas that its square need not have a mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from vlasov import checks, estimates
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError, choose
from vlasov.kinds import NUMBA, SINGULAR_VALUE, SMOOTHNESS, Kind
from vlasov.lipschitz import constant
from vlasov.measures import Particles
from vlasov.postprocess.lipschitz.laws import ADVERSARIAL, LAWS, Laws
from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.postprocess.sensitivity import sensitivity
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.show import end_cells, slope_cells, slope_table, value_curves, value_panel
from vlasov.postprocess.studies.slopes import PARTS, Fit, band, fit_slope, with_slopes
from vlasov.postprocess.studies.study import Study, option
from vlasov.problem import Problem

FIT = Fit("geometric", line=3)
#: Bounds from above, by the names of their variables.
ABOVE = {
    "tokens_bound": "sqrt(3) |V| (|A|^2 R^4 (4 n + 1) + n)^(1/2), or the mean-field bound if that is smaller",
    "column_bound": "|V| ((1 + |A| R^2) sqrt(n) + |A| R^2)",
    "mean_field_bound": "the bound for every n",
    "received_bound": "|V| ((1 + |A| R^2) sqrt(c) + |A| R^2) with the attention c received",
}
_BOUNDS = {
    "tokens_bound": ("theorem, by n", "-"),
    "column_bound": ("ours, by n", "--"),
    "received_bound": ("ours, by attention received", ":"),
    "mean_field_bound": ("for every n", "-."),
    "lower_bound": ("from below", "--"),
}
_SURE = 1e-2  # largest relative error of a value that is kept
_GROWS = 0.45  # slope of the lower bound; beyond e^{2 gamma R^2} tokens it says nothing of larger values
_DEVIATIONS = 3.0  # that count as the radius of an unbounded measure
_PRODUCTS, _STEPS, _PAIR = 20, 100, 4e-9  # about: products of a norm, steps of a flow, seconds of a pair of tokens


def _of_flow(dataset: xr.Dataset, law: str) -> xr.Dataset:
    """Return the slope of the flow's constant to the last time as slopes are named elsewhere."""
    last = dataset.sel(data=law).isel(time=-1)
    return xr.Dataset({part: last[f"growth_{part}"] for part in PARTS})


def _panels(dataset: xr.Dataset) -> list[Panel]:
    laws, sizes, across = list(map(str, dataset["data"].values)), dataset["n"].values, "number of tokens n"
    panels, together = [], []
    for k, law in enumerate(laws):
        here = dataset.sel(data=law)
        curves = value_curves("|D_X f|", sizes, here["lipschitz"].values, here, fit=FIT, colour=k)
        together.append(replace(curves[0], label=law))
        for name, (label, dash) in _BOUNDS.items():
            bound = here[name].values if name == "lower_bound" else band(here[name].values, FIT).mean
            curves.append(Curve(label, sizes, bound, role="bound", dash=dash))
        panels.append(value_panel(law, across, curves))
    if len(laws) > 1:
        panels.append(value_panel("all laws", across, together))
    if "growth" not in dataset:
        return panels
    growth, last = dataset["growth"], float(dataset["time"][-1])
    in_time, in_n = [], []
    for k, law in enumerate(laws):
        means = band(growth.isel(n=-1).sel(data=law).transpose("time", "replica").values, FIT)
        in_time.append(Curve(law, dataset["time"].values, means.mean, means.low, means.high, colour=k, marks=True))
        values = growth.isel(time=-1).sel(data=law).values
        in_n.append(value_curves(law, sizes, values, _of_flow(dataset, law), fit=FIT, colour=k)[0])
    return [
        *panels,
        Panel(f"flow of {int(sizes[-1])} tokens, |D_X φ_t|", "time t", in_time, logy=True),
        value_panel(f"flow to t = {last:g}, |D_X φ_t|", across, in_n),
    ]


def _tables(dataset: xr.Dataset) -> list[Table]:
    sizes, laws, title = dataset["n"].values, list(map(str, dataset["data"].values)), dataset.attrs["title"]
    values, bounds, flow = [], [], []
    for law in laws:
        here = dataset.sel(data=law)
        means = {name: band(here[name].values, FIT).mean for name in ("lipschitz", "received_bound", "tokens_bound")}
        values.append({"tokens": law} | end_cells("n", sizes, means["lipschitz"]) | slope_cells(here))
        above = [means["received_bound"][-1], means["tokens_bound"][-1], here["mean_field_bound"][-1].max()]
        bounds.append([law, float(here["lower_bound"][-1]), *map(float, above)])
        if "growth" in dataset:
            ends = end_cells("n", sizes, band(here["growth"].isel(time=-1).values, FIT).mean)
            flow.append({"tokens": law} | ends | slope_cells(_of_flow(dataset, law)))
    heads = ["tokens", "at least", "by attention received", "by n", "for every n"]
    tables = [
        slope_table(f"{title}: |D_X f| against the number of tokens", values),
        Table(f"Bounds of |D_X f| at n = {int(sizes[-1])}", heads, bounds),
    ]
    return [*tables, slope_table(f"Flow to t = {float(dataset['time'][-1]):g}: |D_X φ_t|", flow)] if flow else tables


def _notes(dataset: xr.Dataset) -> list[str]:
    return ["Values and bounds are geometric means over replicas."]


@dataclass(frozen=True, eq=False)
class LipschitzStudy(Study):
    """|D_X f|_2 against n, f(X)_i = Gamma_X(x_i), for random, adversarial, clustered, correlated, positioned tokens.

    The problem has softmax or L2 attention, masked or not, of one head or several, at t = 0; its initial measure is the
    law of random tokens, and the size of all laws but the adversarial one (``vlasov.postprocess.lipschitz.laws``).

    Returns
    -------
    xarray.Dataset
        ``lipschitz`` = |D_X f|, with its ``error``, the ``radius`` of the tokens, the largest attention ``received`` by
        one token, the ``carriers`` of the direction that grows most, and the ``limit`` of large radius (data, n,
        replica); bounds from above ``tokens_bound``, ``column_bound``, ``mean_field_bound`` and ``received_bound``
        (data, n, replica), and from below ``lower_bound`` (data, n), for adversarial tokens; ``slope``, ``low``,
        ``high``, and ``expected`` by the theory (data). With times also ``growth`` = |D_X phi_t| of the flow phi_t
        (data, n, replica, time), ``growth_slope``, ``growth_low`` and ``growth_high`` (data, time). NaN stands where
        nothing was computed, and for values that may be off by more than a hundredth, which the attribute ``doubt``
        counts.

    Examples
    --------
    Adversarial tokens are as rough as sqrt(n - 1), and so is the bound from below, as long as n is small beside e^32:

    >>> problem = vl.Problem(vl.Softmax(A=[[-1.0]]), vl.Ball(4.0, 0.0), horizon=1.0)
    >>> study = vl.lipschitz_study(problem, n=[17, 65], data="adversarial")
    >>> study["lipschitz"].values[0, :, 0].round(3), study["lower_bound"].values.squeeze().round(3)
    (array([4., 8.]), array([4., 8.]))
    """

    kind: ClassVar = Kind(
        "Lipschitz study",
        'what vl.lipschitz_study returned or "vlasov lipschitz" wrote',
        title="How rough attention is on n tokens",
        variables=ABOVE | PARTS | {
            "lipschitz": "|D_X f|, f(X)_i = Gamma_X(x_i)",
            "error": "how far it may be from that",
            "radius": "largest |x_i|",
            "received": "largest attention that one token receives from all",
            "carriers": "how many tokens carry the direction that grows most",
            "limit": "|V| sqrt(max_j #{i: m_i = j}), the limit of large radius",
            "lower_bound": "|V| sqrt(n - 1) / (1 + (n - 1) e^(-2 gamma R^2))",
            "expected": "slope by the theory, up to logarithms",
            "growth": "|D_X phi_t|, phi_t the flow to a time",
        },
        panels=_panels,
        tables=_tables,
        notes=_notes,
        cites=(SMOOTHNESS, ("kim2021", "tokens at which attention is rough"), *SINGULAR_VALUE, NUMBA),
    )  # fmt: skip

    n: int | Sequence[int] = shared.sizes_option((16, 32, 64, 128, 256, 512), least=2)
    data: str | Sequence[str] | None = option(
        None,
        "Which laws: random, adversarial, clustered, correlated, positioned; all if not given, adversarial tokens "
        "where the attention has any.",
        check=shared.unless_none(shared.several(lambda value, name: choose(value, LAWS, name))),
        free=True,
    )
    replicas: int = shared.replicas_option(
        8, "Random repetitions, each with a seed made of (seed, law, n, replica). Adversarial tokens have one."
    )
    radius: float | None = option(
        None,
        "R of the adversarial tokens: that of the initial measure if not given, at most three deviations beside its "
        "mean.",
        check=shared.unless_none(shared.real(above=0.0)),
    )
    clusters: int = option(4, "How many clusters the clustered tokens have.", check=shared.whole(least=1, most=10_000))
    decay: float = option(1.0, "Of the spectrum of correlated tokens, k^-decay.", check=shared.real())
    growth: float = option(0.25, "Of the positions of positioned tokens, (i / 16)^growth.", check=shared.real())
    times: float | Sequence[float] | None = option(
        None,
        "Times t of the flow X(0) -> X(t), whose local Lipschitz constant is measured too, as by ``vl.sensitivity``.",
        check=shared.unless_none(shared.several(shared.real(), ordered=True)),
    )
    seed: int = shared.seed_option()
    tolerance: float = option(1e-6, "Of |D_X f|, relative.", check=shared.real(above=1e-12, below=1e-1))
    laws: Laws = field(init=False)
    outputs: tuple[float, ...] = field(init=False)

    def validate(self) -> None:
        """Choose laws and radius for the attention and the initial measure."""
        problem = self.pde
        if problem.block is not problem.attention:
            sentence = f"is {problem.block.kind}; the study is of attention alone, without LayerNorm and MLP"
            raise InputError(sentence, "problem")
        estimates.tokens_bound(problem.attention, 1.0, 1)  # complains about attentions without these bounds
        data, usual = _data(problem, self.data), _radius(problem)
        if self.radius not in (None, usual) and ADVERSARIAL not in data:
            raise InputError("is that of adversarial tokens, of which there are none here; leave it out", "radius")
        if usual == 0 and self.radius is None and ADVERSARIAL in data:
            raise InputError("is not known from a measure at the origin; give it", "radius")
        outputs = tuple(checks.number(t, "times", above=0.0) for t in self.times or () if t)  # type: ignore[union-attr]
        radius = self.radius or usual
        laws = Laws(problem, radius, self.clusters, self.decay, self.growth, self.seed)
        self.put(data=data, radius=radius, times=outputs or None, outputs=outputs, laws=laws)

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        return {"data": self.data or (), "n": self.n, "replica": range(self.replicas)}  # type: ignore[dict-item]

    def omits(self, **point: Any) -> bool:
        return point["data"] == ADVERSARIAL and point["replica"] > 0

    def cost(self, **point: Any) -> float:
        product = _PAIR * point["n"] ** 2 * self.pde.dimension
        return 1e-3 + _PRODUCTS * product * (1 + (_STEPS if self.outputs else 0))

    def measure(self, prepared: Any, **point: Any) -> xr.Dataset:
        attention, n = self.pde.attention, point["n"]
        tokens = self.laws.tokens(point["data"], n, point["replica"])
        cloud = Particles(tokens, s=(np.arange(n) + 0.5) / n if attention.causal else None)
        norm, radius = constant(attention, cloud, 0.0, self.tolerance), cloud.support_radius
        try:
            received = float(estimates.attention_received(attention, tokens).max())
            limit = estimates.large_radius_limit(attention, tokens)
        except InputError:  # of several heads
            received = limit = math.nan
        known = math.isfinite(received)
        values: dict[str, Any] = {
            "lipschitz": norm.value,
            "error": norm.error,
            "radius": radius,
            "received": received,
            "carriers": norm.carriers,
            "limit": limit,
            "tokens_bound": estimates.tokens_bound(attention, radius, n),
            "column_bound": estimates.column_bound(attention, radius, n),
            "mean_field_bound": estimates.mean_field_bound(attention, radius),
            "received_bound": estimates.column_bound(attention, radius, received) if known else math.nan,
        }
        if self.outputs:
            values["growth"] = ("time", self._growth(cloud))
        return xr.Dataset(values, {"time": list(self.outputs)} if self.outputs else {})

    def _growth(self, cloud: Particles) -> list[float]:
        """Return the local Lipschitz constant of the flow to each time; NaN where the flow cannot be followed."""
        try:
            flow = self.pde.changed(initial=cloud, horizon=self.outputs[-1])
            run = sensitivity(flow, times=[0.0, *self.outputs], tolerance=self.tolerance, rates=False, check=False)
        except (InputError, SolverError):
            return [math.nan] * len(self.outputs)
        unsure = run["growth_error"] > _SURE * run["growth"]  # without a second look most errors are not known
        values: list[float] = run["growth"].where(~unsure).values[1:].tolist()
        return values + [math.nan] * (len(self.outputs) - len(values))

    def finish(self, dataset: xr.Dataset, prepared: Any) -> xr.Dataset:
        dataset = _without_unsure(dataset)
        sizes = dataset["n"].values.astype(float)
        lower = np.array([[self._lower_bound(law, int(n)) for n in sizes] for law in dataset["data"].values])
        expected = [self._expected(law, sizes, row) for law, row in zip(dataset["data"].values, lower, strict=True)]
        if self.outputs:
            flow = with_slopes(dataset[["growth"]], ["growth"], "n", FIT, quantity="")
            dataset = dataset.assign({f"growth_{part}": flow[part] for part in PARTS})
        dataset = with_slopes(dataset, ["lipschitz"], "n", FIT, quantity="")
        return dataset.assign(lower_bound=(("data", "n"), lower), expected=("data", expected))

    def _lower_bound(self, law: str, n: int) -> float:
        if law != ADVERSARIAL:
            return math.nan
        return estimates.tokens_lower_bound(self.pde.attention, self.laws.radius, n)

    def _expected(self, law: str, sizes: Array, lower: Array) -> float:
        """Return the slope that the theory expects, of adversarial tokens and of those of a Gaussian law."""
        if law == ADVERSARIAL:
            slope = fit_slope(sizes, lower[:, None], FIT)[0]
            return slope if slope > _GROWS else math.nan
        covariance = self.laws.covariance(law)
        if covariance is None:
            return math.nan
        try:
            return estimates.gaussian_exponent(estimates.steepness(self.pde.attention, covariance))
        except InputError:  # of several heads
            return math.nan


def _data(problem: Problem, data: Sequence[str] | None) -> tuple[str, ...]:
    """Return the chosen laws in their order, or all that there are for this attention."""
    try:
        estimates.worst_direction(problem.attention)
    except InputError:
        if data is not None and ADVERSARIAL in data:
            raise
        return tuple(law for law in LAWS if law != ADVERSARIAL and (data is None or law in data))
    return tuple(law for law in LAWS if data is None or law in data)


def _radius(problem: Problem) -> float:
    """Return the radius of the initial measure, at most three deviations beside its mean."""
    initial = problem.initial
    deviations = _DEVIATIONS * math.sqrt(float(np.linalg.eigvalsh(initial.covariance)[-1]))
    return min(initial.support_radius, float(np.linalg.norm(initial.mean)) + deviations)


def _without_unsure(dataset: xr.Dataset) -> xr.Dataset:
    """Return the Dataset with NaN for values that may be off by more than a hundredth; ``doubt`` counts these."""
    value, error, drawn = dataset["lipschitz"], dataset["error"], dataset["radius"].notnull()
    unsure = drawn & ~(error <= _SURE * value)
    lost = dataset["growth"].isnull().any("time") & drawn if "growth" in dataset else xr.zeros_like(drawn)
    counts = {
        "values of |D_X f| may be off by more than a percent of them, and are not known": unsure,
        "values of |D_X f| are zero, which no mean and no exponent here counts": drawn & (value == 0) & (error == 0),
        "flows are not known to all times": lost,
    }
    dataset = dataset.assign({name: dataset[name].where(~unsure) for name in ("lipschitz", "carriers")})
    words = [f"{int(which.sum())} of {int(drawn.sum())} {what}" for what, which in counts.items() if which.any()]
    return dataset.assign_attrs(doubt="; ".join(words)) if words else dataset


lipschitz_study = front(LipschitzStudy)
