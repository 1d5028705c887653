"""How fast n tokens approach their mean-field limit: errors, replica by replica, and the slopes fitted to them.

    sup_t W_p(mu^n(t), mu(t)) -> 0   and   (1/n sum_i |x_i^n(t) - X_t(x_i(0))|^p)^{1/p} ~ n^{-1/2}

``limit`` refines mu(t) and its flow X_t, by a reference of ``choice``, whose flow is in ``flows``; ``replica`` makes
the errors of some replicas; ``expected`` has the theory's slopes; ``show`` shows them.

Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Fournier and Guillin (2015), *On the rate
of convergence in Wasserstein distance of the empirical measure*.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.kinds import NUMBA, SCIPY, STEPS, TRANSPORT, Kind
from vlasov.measures import SAMPLINGS, Particles
from vlasov.postprocess import stability
from vlasov.postprocess.mean_field import show
from vlasov.postprocess.mean_field.choice import REFERENCES
from vlasov.postprocess.mean_field.limit import QUANTITIES
from vlasov.postprocess.mean_field.replica import Prepared, measured, multiple
from vlasov.postprocess.sensitivity.along import along, left_out
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.postprocess.studies.slopes import PARTS, Fit, expected_slope, with_slopes
from vlasov.postprocess.studies.study import Point, Study, option
from vlasov.postprocess.transport.exact import MOST_PAIRS
from vlasov.problem import Problem
from vlasov.solvers.dataset import labels

_BATCHED_UP_TO, _MOST_TOKENS = 512, 8192  # one batch of all replicas; else batches of so many tokens
_ROUNDING, _ABOVE_FLOOR = 1e-14, 3.0  # errors closer than this to the limit's own say nothing about a slope
_ERRORS = {
    "coupled": "distance of tokens to the same starting points moved by the limit flow",
    "wasserstein": "Wasserstein distance to the limit",
    "mean_error": "error of the mean",
    "covariance_error": "relative error of the covariance, Frobenius norm",
    "velocity_error": "root mean square error of the velocity at probe points",
}
_LOCAL = {
    "log_optimal_growth": "logarithm of the optimal growth of small differences, in the limit",
    "log_logarithmic_norm": "integral of the largest eigenvalue of the symmetric part of J, in the limit",
    "log_norm": "integral of |J|, in the limit",
}
_VARIABLES = {
    **_ERRORS,
    **_LOCAL,
    "radius": "largest distance of a token from the origin",
    "tokens": "number of tokens; quadrature rounds n to a grid",
    "limit_mean": "mean of the limit",
    "limit_covariance": "covariance of the limit",
    "reference_error": "estimated error of the limit: change by the last refinement of nodes and of time steps",
    "transport_bias": "relative excess at time 0 of W_p over that to four times as many points of the limit",
    "growth": "largest ratio over replicas of W_p at a time to that at 0",
    "a_posteriori_estimate": "a-posteriori estimate of W_p / W_p(0), the same for every p",
    "a_priori_bound": "a-priori bound of W_p / W_p(0), the same for every p",
    "expected": "slope by the theory",
}
_DIMS = ("sampling", "n", "replica", "quantity", "reference_quantity", "time", "p")


@dataclass(frozen=True, eq=False)
class MeanFieldStudy(Study):
    """n tokens, x_i' = Gamma_{mu^n}(x_i), against their limit, X_t' = Gamma_{mu(t)}(X_t): errors and slopes in n.

    Returns
    -------
    xarray.Dataset
        ``coupled``, ``wasserstein`` (sampling, n, replica, time, p); ``mean_error``, ``covariance_error``,
        ``velocity_error`` (sampling, n, replica, time): |m_n - m|, |C_n - C| / |C| (Frobenius), root mean square of
        |Gamma_n - Gamma| over probe points; ``slope``, ``low``, ``high`` (sampling, quantity, time, p), with
        ``expected`` by the theory; ``limit_mean``, ``limit_covariance``, ``reference_error`` of the limit; ``growth``
        (sampling, n, time, p), the largest W_p(t) / W_p(0), with ``a_priori_bound`` (time) and
        ``a_posteriori_estimate``; ``transport_bias`` (n, p), ``tokens`` (sampling, n), ``radius``. NaN stands where
        nothing was computed: replicas beyond the one of a sampling without randomness, transport beyond
        ``exact_up_to``, bias and estimate but for few replicas of small n. The attribute ``doubt`` says where a blow-up
        ends the study, ``measured`` what is measured under masks.

    Examples
    --------
    Each token errs like n^{-1/2} against the same token in the limit:

    >>> problem = vl.Problem(vl.Softmax(A=[[-1.0]]), vl.Gaussian(0.0, 1.0), horizon=0.5)
    >>> study = vl.mean_field_study(problem, n=[16, 64, 256], replicas=32, p=2, times=[0.5])
    >>> print(study["slope"].sel(quantity="coupled").isel(time=-1).values.squeeze().round(1))
    -0.5
    """

    kind: ClassVar = Kind(
        "study",
        'what vl.mean_field_study returned or "vlasov converge" wrote',
        title="How fast n tokens approach the limit",
        variables=_VARIABLES | PARTS,
        panels=show.panels,
        tables=show.tables,
        notes=show.notes,
        cites=(
            ("fournier2015", "the rate of empirical measures in Wasserstein distance"), TRANSPORT,
            ("efron1981", "intervals of slopes, by the jackknife over replicas"), STEPS, SCIPY, NUMBA,
        ),
    )  # fmt: skip

    n: int | Sequence[int] = shared.sizes_option((64, 256, 1024, 4096))
    replicas: int = shared.replicas_option(
        16,
        "Random repetitions for each n, each with a seed of its own. Samplings without randomness have one.",
    )
    p: float | Sequence[float] = shared.orders_option()
    sampling: str | Sequence[str] = option(
        "random",
        "How tokens are drawn: random, sobol, quantile (d = 1) or quadrature; several for slopes side by side.",
        check=shared.several(lambda value, name: choose(value, SAMPLINGS, name)),
        free=True,
    )
    times: ArrayLike | None = option(
        None,
        "Increasing times in [0, horizon], before a blow-up; zero is always among them. The horizon if not given, or a "
        "quarter of the time to a blow-up.",
    )
    reference: str = option(
        "auto",
        "The limit: gaussian (exact, affine flow), quadrature (Gauss nodes), quantile (d = 1), finite-volume (d <= 3, "
        "less accurate, and the only one for a density on a grid), or auto.",
        check=lambda value, name: choose(value, REFERENCES, name),
    )
    seed: int = shared.seed_option()
    exact_up_to: int = shared.exact_option()
    tolerance: float = shared.tolerance_option(1e-8, "Local error per time step, relative to the size of the measure.")
    local: bool | None = option(
        None,
        "Add how much small changes grow at most in the limit, see ``vl.sensitivity``; by default where that is "
        "predicted to take under two seconds.",
        check=lambda value, name: None if value is None else checks.flag(value, name),
        free=True,
    )
    sizes: tuple[int, ...] = field(init=False)
    samplings: tuple[str, ...] = field(init=False)
    orders: tuple[float, ...] = field(init=False)
    outputs: tuple[float, ...] = field(init=False)

    def validate(self) -> None:
        """Check samplings and transport, and choose times; the horizon is earlier where the solution blows up."""
        problem = self.case.problem
        if problem.post_norm is not None and problem.post_norm.moves:
            raise InputError("depends on time, which studies do not follow; give a constant", "problem.layer_norm.beta")
        self.put(sizes=self.n, samplings=self.sampling, orders=self.p)
        for name in self.samplings:
            shared.check_sampling(name, problem)
        shared.check_exact(self.exact_up_to, self.sizes, MOST_PAIRS / multiple(problem.dimension), problem.dimension)
        problem, doubt = before_blow_up(problem, self.times, tokens=False)
        times = shared.checked_times(problem, [problem.horizon] if self.times is None else self.times)
        times = times if times[0] == 0.0 else (0.0, *times)
        self.put(pde=problem, doubt=doubt, times=times, outputs=times)

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        return {"sampling": self.samplings, "n": self.sizes, "replica": range(self.replicas)}

    def omits(self, **point: Any) -> bool:
        return point["sampling"] in shared.DETERMINISTIC and point["replica"] > 0

    def together(self, **point: Any) -> Hashable:
        n = point["n"]
        batch = 0 if n <= _BATCHED_UP_TO else point["replica"] // max(1, _MOST_TOKENS // n)
        return point["sampling"], n, batch

    def prepare(self, settled: Any) -> Prepared:
        return Prepared(self, settled)

    def settled(self, prepared: Prepared) -> Any:
        return {"choice": prepared.limit.choice.plain(), "errors": prepared.errors.tolist()}

    def measure_all(self, prepared: Prepared, points: Sequence[Point]) -> list[xr.Dataset]:
        sampling, n = points[0]["sampling"], points[0]["n"]
        return measured(self, prepared, sampling, n, [point["replica"] for point in points])

    def cost(self, **point: Any) -> float:
        n, outputs = point["n"], len(self.outputs)
        exact = self.pde.dimension > 1 and n <= self.exact_up_to
        transport = len(self.orders) * outputs * 1.7 * (n / 2048) ** 2.1 if exact else 0.0
        return 1e-3 + 1e-4 * n * outputs + transport

    def finish(self, dataset: xr.Dataset, prepared: Prepared) -> xr.Dataset:
        limit, choice = prepared.limit, prepared.limit.choice
        dataset = self._with_growth(dataset.assign(
            tokens=dataset["tokens"].max("replica").fillna(dataset["n"]).astype(np.int64),
            limit_mean=(("time", "component"), limit.means),
            limit_covariance=(("time", "component", "component_b"), limit.covariances),
            reference_error=(("reference_quantity", "time"), prepared.errors),
        ).assign_coords(reference_quantity=list(QUANTITIES), **labels(self.pde.dimension)))  # fmt: skip
        dataset.attrs |= {
            "reference": choice.kind,
            "reference_nodes_per_axis": choice.nodes,
            "steps": choice.grid.steps,
            "step_cuts": json.dumps(choice.grid.cuts),
            "step_counts": json.dumps(choice.grid.counts),
            "points_per_token": multiple(self.pde.dimension),
        } | (_of_masks(self.pde) if self.pde.attention.causal else {})
        dataset = self._with_slopes(dataset).transpose(*_DIMS, ...)
        reason = left_out([self.pde], dataset["time"].values) if self.local is None else ""
        if reason:
            return dataset.assign_attrs(left_out=reason)
        return dataset if self.local is False else with_local(dataset, self.pde, aloud=self.progress)

    def _with_growth(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return the Dataset with ratios W_p(t) / W_p(0), their a-priori bound, and the bias of W_p(0)."""
        start = dataset["wasserstein"].isel(time=0, drop=True)
        coarse, finer = start.where(dataset["finer"].notnull()), dataset["finer"]
        across, causal = ("sampling", "replica"), self.pde.attention.causal
        radius = self.pde.start.support_radius
        compact = math.isfinite(radius)
        radius = radius if compact else float(dataset["radius"].isel(time=0).max())
        with np.errstate(over="ignore"):
            bounds = np.exp(stability.a_priori(self.pde, radius, np.asarray(self.outputs)))
        dataset.attrs |= {"support_radius": radius, "support": "compact" if compact else "radius of the tokens drawn"}
        return dataset.drop_vars("finer").assign(
            transport_bias=(coarse - finer).mean(across) / finer.mean(across),
            # Tokens that are the limit say nothing of growth.
            growth=(dataset["wasserstein"] / start.where(start > 0)).max("replica"),
            # The theory's bound under masks is for the same places on both sides.
            a_priori_bound=("time", np.full_like(bounds, np.nan) if causal else bounds),
        )

    def _with_slopes(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return the Dataset with slopes in the number of tokens, and those that the theory expects."""
        own = dataset["reference_error"].where(np.isfinite(dataset["reference_error"]), 0.0)
        own = _ABOVE_FLOOR * own.clip(min=_ROUNDING)
        parts = zip(_ERRORS, ("flow", *QUANTITIES), strict=True)
        floors = xr.Dataset({name: own.sel(reference_quantity=part, drop=True) for name, part in parts})
        dataset = with_slopes(dataset, list(_ERRORS), "n", Fit(), sizes=dataset["tokens"], floor=floors)
        masked, d = bool(dataset.attrs.get("places")), self.pde.dimension
        slopes = [
            [[expected_slope(name, sampling, d, p=p, masked=masked) for p in self.orders] for name in _ERRORS]
            for sampling in self.samplings
        ]
        return dataset.assign(expected=(("sampling", "quantity", "p"), slopes))


def with_local(dataset: xr.Dataset, problem: Problem, *, aloud: bool = False) -> xr.Dataset:
    """Return a study with the growth of small changes along its limit, as far as it is known; ``local_doubt`` says why.

    Without any numbers it has none of these variables.
    """
    known = along(problem, dataset["time"].values, aloud=aloud)
    dataset = dataset.assign_attrs(local_doubt=known.doubt)
    logarithms = np.log(known.growth), known.logarithmic, known.norm
    if np.isnan(known.growth).all():
        return dataset
    return dataset.assign({name: ("time", values) for name, values in zip(_LOCAL, logarithms, strict=True)})


def _of_masks(problem: Problem) -> dict[str, str]:
    """Return attributes that say what is measured where tokens have places in a sequence."""
    own = isinstance(problem.start, Particles)
    places = "those of the tokens that are drawn" if own else "uniform"
    text = (
        f"tokens with places s in a sequence, {places}; coupled: each beside its own path, which sees the limit up to "
        "s; wasserstein: laws of x alone; velocity_error: for a token that sees all"
    )
    return {"measured": text} if own else {"measured": text, "places": places}


mean_field_study = front(MeanFieldStudy)
