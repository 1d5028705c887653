"""How errors of solvers fall with their resolution: in the number of cells, and in the number of tokens.

    |mean - m| / s,   |covariance - C|_F / |C|_F,   |rho - rho*|_L1,   the largest over the output times,

with m, C of a reference: the exact reduction where Gaussians stay Gaussian, else tokens at Gauss nodes. |rho -
rho*| is what each run of finite volumes estimates of itself, by densities that Gauss nodes carry along, twice what it
finds where that has no closed form. Errors within three times those of the reference, and rounding, are left out of
slopes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xarray as xr

from vlasov.errors import InputError, SlowRunWarning, SolverError, choose, warn
from vlasov.kinds import NUMBA, SCIPY, STEPS, Kind
from vlasov.measures import SAMPLINGS, Particles
from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.postprocess.studies.show import slope_text, value_curves
from vlasov.postprocess.studies.slopes import PARTS, Fit, expected_slope, rms, with_slopes
from vlasov.postprocess.studies.study import Study, option
from vlasov.solvers import driver
from vlasov.solvers.accuracy import units_of
from vlasov.solvers.finite_volume.partition import chosen
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.references import is_text
from vlasov.solvers.sampling import followed_until, growth_of_means

_CELLS, _FEW_CELLS = (32, 64, 128), (16, 32, 64)  # along each axis; the latter for d = 3 and for texts, in slices
_MOST_NODES = 1000  # Gauss nodes beyond are slow, since they lie far out, and what errs is time steps
_NODES = {1: 128, 2: 50**2}  # Gauss nodes of the reference, by dimension
_MORE, _MOST = 4096, 10_000  # for d > 2; and Sobol tokens in their place where there are too few to each axis
_TOLERANCES = 1e-13, 1e-9  # of the reduction and of Gauss nodes: runs have 1e-8
_FLOOR, _ROUNDING = 3.0, 1e-11  # times the reference's error; what steps in time leave where cells do no harm
_OTHER = 10**6  # number of a replica that no study has
_GROWTH, _LONG = 1.7, 20.0  # of seconds with n, between sums of linear cost and pairs; seconds that are told
_TIMES = 5  # from 0 to the horizon
_GRID = "finite-volume"
_SET_HERE = {_GRID: ("cells",), "particles": ("n", "sampling", "seed")}
_ERRORS = {
    "mean_error": "error of the mean, in standard deviations",
    "covariance_error": "error of the covariance, relative to its Frobenius norm",
    "density_error": "error of the density in L1, as the run estimates it",
}
_HEADS = {"mean_error": "mean / s.d.", "covariance_error": "cov. / norm", "density_error": "density est.",
          "error_estimate": "own estimate", "seconds": "seconds"}  # fmt: skip


def _panels(dataset: xr.Dataset) -> list[Panel]:
    panels = []
    for name in map(str, dataset["solution"].values):
        own = dataset.sel(solution=name)
        own, curves = own.isel(size=own["seconds"].notnull().any("replica").values), list[Curve]()
        for k, error in enumerate(_ERRORS):
            if own[error].notnull().any():
                fitted = own.sel(quantity=error).drop_vars("expected")
                curves += value_curves(error[:-6], own["size"].values, own[error].values, fitted, colour=k)
        estimates = rms(own["error_estimate"].values)
        curves.append(Curve("own estimate", own["size"].values, estimates, role="guide", dash="--"))
        across = "cells along each axis" if name == _GRID else "number of tokens n"
        panels.append(Panel(f"Errors, {name}", across, curves, "relative error", logx=True, logy=True))
    return panels


def _tables(dataset: xr.Dataset) -> list[Table]:
    tables, names = [], dataset["solution"].values.tolist()
    means = (dataset[list(_HEADS)] ** 2).mean("replica") ** 0.5
    for is_grid, title, first in ((True, "finite volumes", ["cells"]), (False, "particles", ["tokens", "n"])):
        heads = {key: head for key, head in _HEADS.items() if is_grid or key != "density_error"}
        rows = [
            [name, int(at["size"]), *(float(at[key]) for key in heads)][is_grid:]
            for name in names if (name == _GRID) is is_grid
            for at in (means.sel(solution=name).isel(size=k) for k in range(dataset.sizes["size"]))
            if at["seconds"].notnull()
        ]  # fmt: skip
        tables += [Table(f"{dataset.attrs['title']}: {title}", [*first, *heads.values()], rows)] if rows else []
    return tables


def _notes(dataset: xr.Dataset) -> list[str]:
    about = dataset.attrs
    reference = (
        f"Errors are the largest over {_TIMES} times, against {about['reference']} (own error {about['floor']:.1e})."
    )
    notes = [reference, *(_order(dataset.sel(solution=name), str(name)) for name in dataset["solution"].values)]
    return [*notes, *([f"{about['note']}."] if about.get("note") else [])]


def _order(own: xr.Dataset, name: str) -> str:
    """Return the observed order of a solution in a sentence."""
    sides = own.assign(slope=-own["slope"], low=-own["high"], high=-own["low"]) if name == _GRID else own
    texts = {error[:-6]: slope_text(sides.sel(quantity=error)) for error in _ERRORS if own[error].notnull().any()}
    orders = [f"{word} {text}" for word, text in texts.items() if text]
    silent = ", ".join(word for word, text in texts.items() if not text)
    expected = float(own["expected"].max())
    theory = f"{abs(expected):g}" if name == _GRID else f"about −{abs(expected):g}"
    what = "observed order in the width of a cell" if name == _GRID else "slope in n"
    parts = [f"{what}: {', '.join(orders)}" + (f"; expected {theory}" if math.isfinite(expected) else "")]
    why = "no power of n" if name in shared.DETERMINISTIC else "at rounding or at the reference's error, no order"
    return f"{name}: {'; '.join([*(parts if orders else []), *([f'{silent}: {why}'] if silent else [])])}."


class _Reference(NamedTuple):
    """Moments at the output times, (times, d) and (times, d, d), as lists; the run's own error, and its name."""

    name: str
    mean: list[Any]
    covariance: list[Any]
    error: float


@dataclass(frozen=True, eq=False)
class Refinement(Study):
    """How errors of finite volumes fall with the number of cells, and those of particles with n: observed orders.

    Returns
    -------
    xarray.Dataset
        ``mean_error``, ``covariance_error``, ``density_error`` (solution, size, replica): the largest over five times
        from 0 to the horizon; ``error_estimate``, the run's own; ``seconds``; ``slope``, ``low``, ``high`` (solution,
        quantity), with ``expected`` by the theory. ``size`` is the number of cells along each axis where the solution
        is "finite-volume", and n where it is a sampling. Slopes are NaN where errors are rounding or within those of
        the reference; of cells, ``low`` and ``high`` are the extremes between neighbouring grids. Attributes:
        ``reference``, ``floor`` (its own error), ``doubt`` where the study ends early, ``note`` on what does not apply.

    Examples
    --------
    In a frame that does not follow the solution a Gaussian crosses cells, by a scheme of order 5:

    >>> problem = vl.Problem(vl.Softmax(A=[[-0.6]], V=[[0.8]]), vl.Gaussian(0.3, 0.5), horizon=1.0)
    >>> options = {"finite-volume": {"frame": "fixed", "extent": 8.0}}
    >>> study = vl.refinement(problem, cells=[128, 256], n=16, replicas=1, options=options)
    >>> print(study["slope"].sel(solution="finite-volume", quantity="density_error").values.round())
    -5.0
    """

    kind: ClassVar = Kind(
        "refinement",
        'what vl.refinement returned or "vlasov compare --refine" wrote',
        title="How errors fall with cells and with tokens",
        variables=_ERRORS | PARTS | {
            "error_estimate": "the run's own estimate of its largest error",
            "size": "number of cells along each axis, or of tokens",
            "seconds": "wall-clock seconds of the run, on one thread",
            "expected": "slope by the theory",
        },
        panels=_panels,
        tables=_tables,
        notes=_notes,
        cites=(STEPS, SCIPY, NUMBA),
    )  # fmt: skip

    solvers: str | Sequence[str] | None = option(
        None,
        "finite-volume, particles or both; those that the case lists, or both, if not given.",
        check=shared.unless_none(shared.several(lambda value, name: choose(value, _SET_HERE, name))),
    )
    cells: int | Sequence[int] | None = option(
        None,
        "Numbers of cells along each axis; 32, 64 and 128 if not given, and 16, 32 and 64 for d = 3 and under masks.",
        check=shared.unless_none(shared.several(shared.whole(least=8), ordered=True)),
    )
    n: int | Sequence[int] = option(
        (100, 1000, 10_000),
        "Numbers of tokens; of Gauss nodes (quadrature) those up to 1000.",
        check=shared.several(shared.whole(least=2, most=shared.MOST), ordered=True),
    )
    sampling: str | Sequence[str] = option(
        ("quadrature", "sobol", "random"),
        "How tokens are drawn.",
        check=shared.several(lambda value, name: choose(value, SAMPLINGS, name)),
        free=True,
        flag="-",
    )
    replicas: int = option(4, "Random repetitions.", check=shared.whole(least=1, most=1000), free=True, flag="-")
    options: Mapping[str, Mapping[str, Any]] | None = option(
        None, "Options of the two solvers, by solver, before those of the case.", flag="-"
    )
    solutions: tuple[str, ...] = field(init=False)
    note: str = field(init=False, default="")

    def validate(self) -> None:
        """Choose sizes and the horizon, and the solvers that apply."""
        problem = self.case.problem
        if isinstance(problem.initial, Particles):
            sentence = f"has {len(problem.initial):,} tokens of its own, so that neither cells nor n can be refined"
            raise InputError(f"{sentence}; give a measure to draw from", "initial")
        problem, doubt = before_blow_up(problem, None, tokens=False)
        if 0 < (end := followed_until(problem)) < problem.horizon:
            problem, doubt = problem.until(end), f"rounding keeps tokens from being followed beyond t = {end:.4g}"
        options = {choose(name, _SET_HERE, "options"): dict(own) for name, own in (self.options or {}).items()}
        for name, own in ((name, self.case.solvers.get(name, {}) | options.get(name, {})) for name in _SET_HERE):
            options[name] = {key: value for key, value in own.items() if key not in _SET_HERE[name]}
        cells = self.cells or (_FEW_CELLS if problem.dimension > 2 or is_text(problem) else _CELLS)
        options = {name: own for name, own in options.items() if own}
        self.put(pde=problem, doubt=doubt, cells=cells, options=options or None)
        solvers = self.solvers or [name for name in _SET_HERE if name in self.case.solvers] or list(_SET_HERE)
        self.put(solvers=tuple(solvers))
        solutions = [*([_GRID] if _GRID in solvers else []), *(self.sampling if "particles" in solvers else [])]
        refused = dict[str, InputError]()
        for name in solutions:
            solver, own = self.task(name, self.sizes(name)[0], 0)
            driver.resolve(solver, own)  # mistakes in options are the user's
            try:
                driver.prepare(problem, solver, options=own)
            except InputError as reason:
                refused[name] = reason
        note = "; ".join(f"{name} does not apply: {reason}" for name, reason in refused.items())
        if len(refused) == len(solutions):
            raise InputError(f"leaves nothing to refine: {note}", "problem")
        self.put(solutions=tuple(name for name in solutions if name not in refused), note=note)

    def sizes(self, solution: str) -> Sequence[int]:
        """Return the sizes of a solution."""
        assert isinstance(self.cells, Sequence)
        assert isinstance(self.n, Sequence)
        nodes = [size for size in self.n if size <= _MOST_NODES] or self.n[:1]
        return self.cells if solution == _GRID else nodes if solution == "quadrature" else self.n

    def task(self, solution: str, size: int, replica: int) -> tuple[str, dict[str, Any]]:
        """Return the solver of a point and its options: one frame for all grids, one rule of moments for all n."""
        solver, problem = _GRID if solution == _GRID else "particles", self.pde
        options = dict((self.options or {}).get(solver, {}))
        if solution == _GRID:
            if not is_text(problem) and problem.dimension <= 3:
                finest = driver.resolve(_GRID, options | {"cells": self.sizes(_GRID)[-1]})[1]
                options["frame"] = chosen(problem.unmasked, finest).frame
            return solver, options | {"cells": size}
        growth = growth_of_means(problem)[1][-1] if problem.post_norm is None else 0.0
        moments = "exact" if growth > self.sizes(solution)[0] ** 0.5 else "sampled"
        seed = int(np.random.SeedSequence(0, spawn_key=(size, replica)).generate_state(1)[0])
        return solver, {"moments": moments} | options | {"n": size, "sampling": solution, "seed": seed}

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        sizes = {size for name in self.solutions for size in self.sizes(name)}
        return {"solution": self.solutions, "size": sorted(sizes), "replica": range(self.replicas)}

    def omits(self, **point: Any) -> bool:
        again = point["replica"] > 0 and point["solution"] in (_GRID, *shared.DETERMINISTIC)
        return again or point["size"] not in self.sizes(point["solution"])

    def cost(self, **point: Any) -> float:
        size = point["size"]
        return 0.1 + (4e-7 * size ** (self.pde.dimension + 1) if point["solution"] == _GRID else 5e-5 * size)

    def prepare(self, settled: Any) -> _Reference:
        if settled is not None:
            return _Reference(**settled)
        self._warn_of_time()
        return _reference(self)

    def _warn_of_time(self) -> None:
        """Warn where the largest clouds take long, by the time of the second largest."""
        drawn = [name for name in self.solutions if name not in (_GRID, *shared.DETERMINISTIC)]
        if not drawn or len(self.sizes(drawn[0])) < 2:
            return
        *_, less, most = self.sizes(drawn[0])
        _solved(self, *self.task(drawn[0], less, 0))  # loads modules
        began = time.process_time()  # all threads will have work
        _solved(self, *self.task(drawn[0], less, 0))
        each = (time.process_time() - began) * (most / less) ** _GROWTH
        count = len(drawn) * self.replicas
        if count * each > _LONG:
            sentence = f"{count} runs of {most:,} tokens take about {each:.2g} s each; lower n, or replicas"
            warn(f"refinement: {sentence}", SlowRunWarning)

    def settled(self, prepared: _Reference) -> dict[str, Any]:
        return prepared._asdict()

    def measure(self, prepared: _Reference, **point: Any) -> xr.Dataset:
        run, units = _solved(self, *self.task(**point)), units_of(self.pde.start)
        states = zip(run["mean"].values, run["covariance"].values, prepared.mean, prepared.covariance, strict=True)
        errors = np.max([units.errors(*map(np.asarray, state)) for state in states], axis=0)
        density = run["density_error"].max(skipna=False) if "density_error" in run else math.nan
        values = [*errors, density, run.attrs["error_estimate"], run.attrs["wall_seconds"]]
        return xr.Dataset(dict(zip(_HEADS, map(float, values), strict=True)))

    def finish(self, dataset: xr.Dataset, prepared: _Reference) -> xr.Dataset:
        least = max(_FLOOR * prepared.error, _ROUNDING)
        floor, parts = xr.Dataset({name: _ROUNDING if name == "density_error" else least for name in _ERRORS}), []
        for name in self.solutions:
            own = dataset.sel(solution=[name])
            theory = math.nan if name == _GRID else expected_slope("mean", name, self.pde.dimension)
            low = floor if name not in shared.DETERMINISTIC else xr.full_like(floor, math.inf)
            fitted = with_slopes(own, list(_ERRORS), "size", Fit(), floor=low)
            if name == _GRID:
                order = SCHEMES[self.task(name, 8, 0)[1].get("reconstruction", "upwind5")].order
                theory = -float(order) if own["density_error"].notnull().any() else math.nan  # where it is smooth
                pairs = [own.sel(size=list(pair)) for pair in pairwise(self.sizes(name))]
                if pairs[1:]:
                    each = [with_slopes(pair, list(_ERRORS), "size", Fit(), floor=floor)["slope"] for pair in pairs]
                    slopes = xr.concat(each, "pair")
                    fitted = fitted.assign(low=slopes.min("pair"), high=slopes.max("pair"))
            parts.append(fitted.assign(expected=xr.full_like(fitted["slope"], theory)))
        attributes = dataset.attrs | {"reference": prepared.name, "floor": prepared.error, "note": self.note}
        return xr.concat(parts, "solution").assign_attrs(attributes)


def _solved(study: Refinement, solver: str, options: dict[str, Any]) -> xr.Dataset:
    """Return a run at the output times; SolverError where it ends before the last of them."""
    run = driver.solve(study.pde, solver, times=np.linspace(0.0, study.pde.horizon, _TIMES), **options)
    if run.attrs["status"] != "completed":
        raise SolverError(f"{solver}: {run.attrs['status']} at t = {float(run['time'][-1]):.4g}, before the horizon")
    return run


def _reference(study: Refinement) -> _Reference:
    """Return the solution that all others are compared with: the first of three that applies."""
    (reduction, tolerance), nodes = _TOLERANCES, _NODES.get(study.pde.dimension, _MORE)
    candidates = [("the exact reduction of Gaussians", "gaussian", {"tolerance": reduction})]
    for sampling, count, label in (("quadrature", nodes, "Gauss nodes"), ("sobol", _MOST, "Sobol tokens")):
        options = study.task(sampling, count, _OTHER)[1] | {"tolerance": tolerance}
        candidates.append((f"{count:,} {label}", "particles", options))
    for name, solver, options in candidates:
        try:
            driver.prepare(study.pde, solver, options=options)
        except InputError:
            continue
        run = _solved(study, solver, options)
        error = max(float(run[moment].max(skipna=False)) for moment in ("mean_error", "covariance_error"))
        return _Reference(name, run["mean"].values.tolist(), run["covariance"].values.tolist(), error)
    raise InputError("has no solution to compare with: neither a reduction nor tokens apply", "problem")


refinement = front(Refinement)
