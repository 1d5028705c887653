"""How errors of solvers fall with their resolution: in the number of cells, and in the number of tokens.

    |mean - m| / s,   |covariance - C|_F / |C|_F,   |rho - rho*|_L1,   the largest over the output times,

with m, C of a reference: the exact reduction where Gaussians stay Gaussian, else tokens at Gauss nodes. rho* is carried
along Gauss nodes by each run of finite volumes itself, or is the Gaussian's. Slopes are those of log error in log cells
and in log n; what is within three times the reference's own error, or is rounding, is left out of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xarray as xr

from vlasov.errors import InputError, SolverError, choose
from vlasov.kinds import NUMBA, SCIPY, STEPS, Kind
from vlasov.measures import SAMPLINGS, Particles
from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.postprocess.studies.show import slope_text, value_curves
from vlasov.postprocess.studies.slopes import PARTS, Fit, rms, with_slopes
from vlasov.postprocess.studies.study import Study, option
from vlasov.solvers import driver
from vlasov.solvers.accuracy import units_of
from vlasov.solvers.finite_volume.partition import chosen
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.references import is_text
from vlasov.solvers.sampling import followed_until

_CELLS = {1: (32, 64, 128), 2: (32, 64, 128), 3: (16, 32, 64)}  # by dimension, along each axis
_NODES = {1: 128, 2: 50, 3: 16}  # Gauss nodes of the reference along each axis, at most _MOST in all
_MOST = 10_000
_TOLERANCES = 1e-13, 1e-9  # of the reduction and of Gauss nodes: runs have 1e-8
_FLOOR, _ROUNDING = 3.0, 1e-11  # times the reference's error; and what tolerances in time leave where cells do no harm
_TIMES = 5  # from 0 to the horizon
_GRID = "finite-volume"
_SIZES = {_GRID: ("cells",), "particles": ("n", "sampling", "seed")}  # options that the study sets itself
_THEORY = {"random": -0.5, "sobol": -1.0}  # slopes in n
_UNITS = {"mean": "mean / s.d.", "covariance": "cov. / norm", "density": "density, L1"}
_ERRORS = {
    "mean_error": "error of the mean, in standard deviations",
    "covariance_error": "error of the covariance, relative to its Frobenius norm",
    "density_error": "error of the density in L1, by densities carried along Gauss nodes or in closed form",
}
_ESTIMATES = {
    "mean_estimate": "the run's own estimate of the error of its mean",
    "covariance_estimate": "the run's own estimate of the error of its covariance",
}


def _panels(dataset: xr.Dataset) -> list[Panel]:
    return [_panel(dataset.sel(solution=name), str(name)) for name in dataset["solution"].values]


def _panel(own: xr.Dataset, name: str) -> Panel:
    """Return the errors of one solution against its sizes, its own estimates dashed."""
    curves, sizes = list[Curve](), own["size"].values
    for k, quantity in enumerate(_ERRORS):
        errors = own[quantity].values
        kept, word = np.isfinite(errors).any(axis=1), quantity.removesuffix("_error")
        if kept.any():
            curves += value_curves(word, sizes[kept], errors[kept], own.sel(quantity=quantity), colour=k)
        if (estimate := f"{word}_estimate") in own and kept.any():
            estimates = rms(own[estimate].values[kept])
            curves.append(Curve(f"{word}, own estimate", sizes[kept], estimates, dash="--", colour=k))
    curves = [curve for curve in curves if curve.role == "data"]
    title, across = ("Finite volumes", "cells along each axis") if name == _GRID else (f"Tokens, {name}", "n")
    return Panel(title, across, curves, "relative error", logx=True, logy=True, note="Dashed: the runs' own estimates.")


def _tables(dataset: xr.Dataset) -> list[Table]:
    title, names = dataset.attrs["title"], dataset["solution"].values.tolist()
    grids, clouds = [name for name in names if name == _GRID], [name for name in names if name != _GRID]
    words = [word for word in _UNITS if f"{word}_estimate" in dataset]
    heads = [*(_UNITS[word] for word in words), "own estimate", "seconds"]
    tables = []
    if grids:
        rows = [[size, *row] for _, size, row in _rows(dataset, grids, list(_UNITS))]
        tables.append(Table(f"{title}: finite volumes", ["cells", *_UNITS.values(), *heads[-2:]], rows))
    if clouds:
        rows = [[name, size, *row] for name, size, row in _rows(dataset, clouds, words)]
        tables.append(Table(f"{title}: particles", ["tokens", "n", *heads], rows))
    return tables


def _rows(dataset: xr.Dataset, names: Sequence[str], words: Sequence[str]) -> list[tuple[str, int, list[float]]]:
    """Return solution, size, and errors with the larger own estimate and the seconds, over all replicas."""
    rows = []
    for name in names:
        own = dataset.sel(solution=name)
        for k in np.flatnonzero(np.isfinite(own["seconds"].values).any(axis=1)):
            at = own.isel(size=k)
            errors = [float(rms(at[f"{word}_error"].values)) for word in words]
            estimate = max(float(rms(at[estimate].values)) for estimate in _ESTIMATES)
            rows.append((name, int(at["size"]), [*errors, estimate, float(np.nanmean(at["seconds"].values))]))
    return rows


def _notes(dataset: xr.Dataset) -> list[str]:
    about = dataset.attrs
    notes = [f"Errors are the largest over {_TIMES} times, against {about['reference']}, whose own errors are "
             f"{about['reference_mean']:.1e} (mean) and {about['reference_covariance']:.1e} (covariance)."]  # fmt: skip
    notes += [_order(dataset.sel(solution=name), str(name)) for name in dataset["solution"].values]
    return [*notes, *([f"{about['note']}."] if about.get("note") else [])]


def _order(own: xr.Dataset, name: str) -> str:
    """Return the observed order of a solution in a sentence."""
    if name == "quadrature":
        return "quadrature: no order; errors fall faster than any power of n until time steps are what errs."
    orders, silent = [], []
    for quantity in _ERRORS:
        word, fitted = quantity.removesuffix("_error"), own.sel(quantity=quantity)
        if text := slope_text(fitted * (-1 if name == _GRID else 1)):
            orders.append(f"{text} ({word})")
        elif np.isfinite(own[quantity].values).any():
            silent.append(word)
    sign, expected = (-1 if name == _GRID else 1), float(own["expected"].max())
    head = "observed order in the width of a cell" if name == _GRID else "errors fall like n^p with p ="
    theory = f"; expected {sign * expected:g}".replace("-", "−") if math.isfinite(expected) else ""
    sentences = [f"{head} {', '.join(orders)}{theory}"] if orders else []
    if silent:
        sentences.append(f"{' and '.join(silent)} without an order: at rounding, or at the error of the reference")
    return f"{name}: {'; '.join(sentences)}."


class _Reference(NamedTuple):
    """Moments at the output times, (times, d) and (times, d, d), as lists; the run's own errors, and its name."""

    name: str
    mean: list[Any]
    covariance: list[Any]
    mean_error: float
    covariance_error: float


@dataclass(frozen=True, eq=False)
class Refinement(Study):
    """How errors of finite volumes fall with the number of cells, and of particles with n: the observed orders.

    Returns
    -------
    xarray.Dataset
        ``mean_error``, ``covariance_error``, ``density_error`` (solution, size, replica): the largest over five times
        from 0 to the horizon, in standard deviations, in norms of the covariance and in L1; ``mean_estimate``,
        ``covariance_estimate``: what the run itself estimates; ``seconds``; ``slope``, ``low``, ``high`` (solution,
        quantity), with ``expected`` by the theory. ``size`` is the number of cells along each axis where the solution
        is "finite-volume", and n where it is how tokens are drawn; NaN elsewhere. Slopes are NaN where errors are
        rounding or within those of the reference, which the attributes name. The attribute ``doubt`` says where a
        blow-up ends the study, ``note`` which solver does not apply.

    Examples
    --------
    In a frame that does not follow the solution a Gaussian crosses cells, by a scheme of order 5:

    >>> problem = vl.Problem(vl.Softmax(A=[[-0.6]], V=[[0.8]]), vl.Gaussian(0.3, 0.5), horizon=1.0)
    >>> options = {"finite-volume": {"frame": "fixed", "extent": 8.0}}
    >>> study = vl.refinement(problem, cells=[128, 256], n=16, replicas=1, options=options)
    >>> order = -study["slope"].sel(solution="finite-volume", quantity="density_error")
    >>> print(order.values.round())
    5.0
    """

    kind: ClassVar = Kind(
        "refinement",
        'what vl.refinement returned or "vlasov compare --refine" wrote',
        title="How errors fall with cells and with tokens",
        variables=_ERRORS | _ESTIMATES | PARTS | {
            "size": "number of cells along each axis, or of tokens",
            "seconds": "wall-clock time of the run, on one thread",
            "expected": "slope by the theory",
        },
        panels=_panels,
        tables=_tables,
        notes=_notes,
        cites=(STEPS, SCIPY, NUMBA),
    )  # fmt: skip

    cells: int | Sequence[int] | None = option(
        None,
        "Numbers of cells along each axis; 32, 64 and 128 if not given, and 16, 32 and 64 for d = 3.",
        check=shared.unless_none(shared.several(shared.whole(least=8), ordered=True)),
        free=True,
    )
    n: int | Sequence[int] = shared.sizes_option((100, 1000, 10_000))
    sampling: str | Sequence[str] = option(
        ("quadrature", "sobol", "random"),
        "How tokens are drawn.",
        check=shared.several(lambda value, name: choose(value, SAMPLINGS, name)),
        flag="-",
    )
    replicas: int = option(
        4, "Random repetitions of samplings that have some.", check=shared.whole(least=1), free=True, flag="-"
    )
    options: Mapping[str, Mapping[str, Any]] | None = option(
        None, "Options of the two solvers, by solver, before those of the case.", flag="-"
    )
    solutions: tuple[str, ...] = field(init=False)
    note: str = field(init=False, default="")

    def validate(self) -> None:
        """Choose sizes and the horizon; find the solvers that apply."""
        problem = self.case.problem
        if isinstance(problem.initial, Particles):
            sentence = f"has {len(problem.initial):,} tokens of its own: neither cells nor n can be refined"
            raise InputError(f"{sentence}; give a measure with a density", "initial")
        extra = {choose(name, _SIZES, "options"): dict(own) for name, own in (self.options or {}).items()}
        problem, doubt = before_blow_up(problem, None, tokens=False)
        if 0 < (end := followed_until(problem)) < problem.horizon:
            problem, doubt = problem.until(end), f"rounding keeps tokens from being followed beyond t = {end:.4g}"
        self.put(pde=problem, doubt=doubt, cells=self.cells or _CELLS.get(problem.dimension, _CELLS[3]))
        merged = {name: self.case.solvers.get(name, {}) | extra.get(name, {}) for name in _SIZES}
        own = {name: {key: value for key, value in merged[name].items() if key not in _SIZES[name]} for name in _SIZES}
        self.put(options={name: options for name, options in own.items() if options} or None)
        applying, refused = list[str](), dict[str, str]()
        for solution in (_GRID, *self.sampling):
            solver, chosen_options = self.task(solution, min(self.cells if solution == _GRID else self.n), 0)
            driver.resolve(solver, chosen_options)  # mistakes in options are the user's
            try:
                driver.prepare(problem, solver, options=chosen_options)
                applying.append(solution)
            except InputError as reason:
                refused[solution] = str(reason)
        note = "; ".join(f"{solution} does not apply: {reason}" for solution, reason in refused.items())
        if not applying:
            raise InputError(f"leaves nothing to refine: {note}", "problem")
        self.put(solutions=tuple(applying), note=note)

    def task(self, solution: str, size: int, replica: int) -> tuple[str, dict[str, Any]]:
        """Return the solver of a point, and its options."""
        if solution != _GRID:
            seed = int(np.random.SeedSequence(0, spawn_key=(size, replica)).generate_state(1)[0])
            return "particles", self._own("particles") | {"n": size, "sampling": solution, "seed": seed}
        options = self._own(_GRID) | {"cells": size}
        if not is_text(self.pde) and self.pde.dimension in _CELLS:  # one frame, that of the finest grid, for all
            finest = driver.resolve(_GRID, options | {"cells": max(self.cells or ())})[1]
            options["frame"] = chosen(self.pde.unmasked, finest).frame
        return _GRID, options

    def _own(self, solver: str) -> dict[str, Any]:
        return dict((self.options or {}).get(solver, {}))

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        sizes = {*(self.cells if _GRID in self.solutions else ()), *(self.n if self.solutions != (_GRID,) else ())}
        return {"solution": self.solutions, "size": sorted(sizes), "replica": range(self.replicas)}

    def omits(self, **point: Any) -> bool:
        name = point["solution"]
        once = name == _GRID or name in shared.DETERMINISTIC
        return point["size"] not in (self.cells if name == _GRID else self.n) or (once and point["replica"] > 0)

    def cost(self, **point: Any) -> float:
        size = point["size"]
        return 0.1 + (4e-7 * size ** (self.pde.dimension + 1) if point["solution"] == _GRID else 5e-5 * size)

    def prepare(self, settled: Any) -> _Reference:
        return _reference(self) if settled is None else _Reference(**settled)

    def settled(self, prepared: _Reference) -> dict[str, Any]:
        return prepared._asdict()

    def measure(self, prepared: _Reference, **point: Any) -> xr.Dataset:
        run = _solved(self, *self.task(**point))
        units, moments = units_of(self.pde.start), zip(prepared.mean, prepared.covariance, strict=True)
        errors = np.max([
            units.errors(mean, covariance, np.array(true_mean), np.array(true_covariance))
            for mean, covariance, (true_mean, true_covariance) in zip(
                run["mean"].values, run["covariance"].values, moments, strict=True)
        ], axis=0)  # fmt: skip
        own = {name: float(run[name].max(skipna=False)) if name in run else math.nan for name in _ERRORS}
        return xr.Dataset({
            "mean_error": errors[0],
            "covariance_error": errors[1],
            "density_error": own["density_error"],
            "mean_estimate": own["mean_error"],
            "covariance_estimate": own["covariance_error"],
            "seconds": float(run.attrs["wall_seconds"]),
        })  # fmt: skip

    def finish(self, dataset: xr.Dataset, prepared: _Reference) -> xr.Dataset:
        floors = {
            "mean_error": prepared.mean_error,
            "covariance_error": prepared.covariance_error,
            "density_error": 0.0,
        }
        floor = xr.Dataset({name: max(_FLOOR * error, _ROUNDING) for name, error in floors.items()})
        parts = []
        for name in dataset["solution"].values.tolist():
            fit = Fit(line=1) if name == _GRID else Fit()
            least = floor if name not in shared.DETERMINISTIC else xr.full_like(floor, math.inf)
            fitted = with_slopes(dataset.sel(solution=[name]), list(_ERRORS), "size", fit, floor=least)
            parts.append(fitted.assign(expected=xr.full_like(fitted["slope"], self._expected(name, dataset))))
        dataset.attrs |= {"reference": prepared.name, "note": self.note}
        dataset.attrs |= {"reference_mean": prepared.mean_error, "reference_covariance": prepared.covariance_error}
        return xr.concat(parts, "solution").assign_attrs(dataset.attrs)

    def _expected(self, name: str, dataset: xr.Dataset) -> float:
        """Return the slope by the theory: of cells only where the density is smooth, so that its error is known."""
        if name != _GRID:
            return _THEORY.get(name, math.nan)
        smooth = bool(dataset["density_error"].sel(solution=name).notnull().any())
        return -float(SCHEMES[self._own(_GRID).get("reconstruction", "upwind5")].order) if smooth else math.nan


def _solved(study: Refinement, solver: str, options: dict[str, Any]) -> xr.Dataset:
    """Return a run at the output times; SolverError where it ends before the last of them."""
    times = np.linspace(0.0, study.pde.horizon, _TIMES)
    run = driver.solve(study.pde, solver, times=times, **options)
    if run.attrs["status"] != "completed":
        raise SolverError(f"{solver} {run.attrs['status']} at t = {float(run['time'][-1]):.4g}, before the horizon")
    return run


def _reference(study: Refinement) -> _Reference:
    """Return the solution that all others are compared with: the first of these that applies."""
    d, (reduction, tolerance) = study.pde.dimension, _TOLERANCES
    nodes = min(_MOST, _NODES[d] ** d) if d in _NODES else _MOST
    own = study.task(study.sampling[0], nodes, 0)[1] if study.sampling else {}
    candidates = {
        "the exact reduction of Gaussians": ("gaussian", {"tolerance": reduction}),
        f"{nodes:,} Gauss nodes": ("particles", own | {"sampling": "quadrature", "tolerance": tolerance}),
        f"{_MOST:,} Sobol tokens": ("particles", own | {"n": _MOST, "sampling": "sobol", "tolerance": tolerance}),
    }
    for name, (solver, options) in candidates.items():
        try:
            driver.prepare(study.pde, solver, options=options)
        except InputError:
            continue
        run = _solved(study, solver, options)
        errors = (float(run[error].max(skipna=False)) for error in ("mean_error", "covariance_error"))
        return _Reference(name, run["mean"].values.tolist(), run["covariance"].values.tolist(), *errors)
    raise InputError("has no solution to compare with: neither Gaussians nor tokens apply", "problem")


refinement = front(Refinement)
