"""Panels and tables of runs: moments, radius, mass, errors and energies over time.

The solvers declare the kind of runs, and may not import what shows them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from vlasov import estimates
from vlasov.balance import check
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.energies import ENERGIES, energies
from vlasov.postprocess.panels import Curve, Panel, Table, spread
from vlasov.problem import Problem
from vlasov.solvers.dataset import RUN, SCHEMA, kept_problem
from vlasov.solvers.record import ERRORS

_MOST_CURVES, _MOST_COLUMNS = 6, 3  # eigenvalues and components
_OUTPUTS, _MOST_TOKENS = 41, 5000  # with which energies are computed
_STILL = 1e-6  # of the deviation: means that move less stand still
_ROUNDING = 1e-13  # of the deviation: a mean nearer to zero is rounding
_LOST = 1e-9  # of mass: less is not drawn
_COLUMNS = ("layer", "radius", "mass", *ERRORS)


def _panels(run: xr.Dataset) -> list[Panel]:
    times, d = run["time"].values, run.sizes["component"]
    if times.size < 2:
        return []
    mean, values, problem = run["mean"].values, _spectrum(run), kept_problem(run)
    shown = min(d, _MOST_CURVES)
    few = f" (the first {shown} of {d})" if d > shown else ""
    name = str(run["time"].attrs.get("long_name", "time"))
    x, still = "t" if name == "time" else name, _STILL * float(np.sqrt(values.sum(axis=1).max()))
    means = [Curve(f"mean of x_{k + 1}", times, mean[:, k]) for k in range(shown)]
    spectrum = [Curve(f"λ_{k + 1}" if d > 1 else "variance", times, values[:, k]) for k in range(shown)]
    errors = [
        Curve(SCHEMA[name].long_name, times, np.where(run[name] > 0, run[name], np.nan))
        for name in ERRORS
        if name in run
    ]
    return [
        Panel(f"Mean{few}", x, means, logy=False, least=still),
        Panel(f"Eigenvalues of the covariance{few}" if d > 1 else "Variance", x, spectrum),
        *_radius(run, problem, x),
        *_mass(run, x),
        Panel("Errors, as the run estimates them", x, errors, logy=True),
        *_energies(run, problem),
    ]


def _spectrum(run: xr.Dataset) -> Any:
    """Return the eigenvalues of the covariance (time, rank), the largest first."""
    return np.linalg.eigvalsh(run["covariance"].values)[:, ::-1]


def _radius(run: xr.Dataset, problem: Problem | None, x: str) -> list[Panel]:
    if "radius" not in run:
        return []
    times, radius = run["time"].values, run["radius"].values
    curves = [Curve("radius", times, radius)]
    if problem is not None and np.isfinite(problem.initial.support_radius):  # a Gaussian has no compact support
        with suppress(InputError):  # of attentions that the theory does not know
            bound = np.array([estimates.support_radius(problem.block, float(radius[0]), float(t)) for t in times])
            curves.append(Curve("bound R_0 exp ∫|V|", times, bound, role="bound", dash="--"))
    return [Panel("Radius of the support", x, curves)] if np.isfinite(radius).any() else []


def _mass(run: xr.Dataset, x: str) -> list[Panel]:
    if "mass" not in run or "density" not in run:
        return []
    lost = np.abs(run["mass"].values - run["mass"].values[0])
    curve = Curve("|mass(t) − mass(0)|", run["time"].values, np.where(lost > 0, lost, np.nan))
    return [Panel("Mass lost or gained", x, [curve], logy=True)] if lost.max() > _LOST else []


def _energies(run: xr.Dataset, problem: Problem | None) -> list[Panel]:
    """Return the panels of energies of gradient flows, V = A = A^T, unless that would take long."""
    if problem is None or run.sizes.get("particle", 0) > _MOST_TOKENS:
        return []
    try:
        check(problem)
        return (
            list(ENERGIES.panels(energies(run.isel(time=spread(run.sizes["time"], _OUTPUTS)))))
            if ENERGIES.panels
            else []
        )
    except (InputError, SolverError):
        return []


def _tables(run: xr.Dataset) -> list[Table]:
    values, shown = _spectrum(run), min(run.sizes["component"], _MOST_COLUMNS)
    least = _ROUNDING * np.sqrt(np.abs(values).sum(axis=1).max())
    mean = np.where(np.abs(run["mean"].values) > least, run["mean"].values, 0.0)
    columns = {"t": run["time"].values} | {f"mean x_{k + 1}": mean[:, k] for k in range(shown)}
    columns |= {f"λ_{k + 1}": values[:, k] for k in range(shown)} | {"trace of Σ": values.sum(axis=1)}
    names = [name for name in _COLUMNS if name in run and run[name].notnull().any()]
    columns |= {name.replace("_", " "): run[name].values for name in names}
    return [Table.of_columns("At output times", columns)]


RUNS = replace(
    RUN, panels=_panels, tables=_tables, variables={name: variable.long_name for name, variable in SCHEMA.items()}
)
